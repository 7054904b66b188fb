"""The workflows of .github: two linters pass them, they let nobody in, and their scripts do as they say."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pull_requests import Repository, make_repository

from harness.submission.summary import RecordSummary, Summary, dump, load
from harness.track import ROOT

GITHUB = ROOT / ".github"
SCRIPTS = GITHUB / "scripts"
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(GITHUB.glob("workflows/*"))}
JOBS = [(name, job) for name, flow in WORKFLOWS.items() for job in flow["jobs"].values()]
STEPS = [(name, step) for name, job in JOBS for step in job["steps"]]
TOOLS = Path(sys.executable).parent


def linted(*command: object) -> str:
    """What a linter says; empty where it finds nothing."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=ROOT)
    return "" if done.returncode == 0 else done.stdout + done.stderr


# ---- what linters say ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", "workflows/*.yml"),
        ("custom.github-workflows-require-timeout", "workflows/*.yml"),
        ("vendor.github-issue-forms", "ISSUE_TEMPLATE/[!c]*.yml"),
        ("vendor.github-issue-config", "ISSUE_TEMPLATE/config.yml"),
        ("vendor.dependabot", "dependabot.yml"),
    ],
)
def test_files_keep_their_schemas(schema: str, files: str) -> None:
    paths = sorted(GITHUB.glob(files))
    assert paths and linted(TOOLS / "check-jsonschema", "--builtin-schema", schema, *paths) == ""


def test_the_auditor_of_workflows_finds_nothing() -> None:
    assert linted(TOOLS / "zizmor", "--offline", "--pedantic", "--no-progress", GITHUB) == ""


# ---- what may run with which token --------------------------------------------------------------------


def test_actions_are_pinned_by_commit_with_their_version() -> None:
    lines = [line for path in GITHUB.glob("workflows/*") for line in path.read_text().split("\n")]
    uses = [line.strip() for line in lines if "uses:" in line]
    assert len(uses) == sum("uses" in step for _, step in STEPS) > 10
    for line in uses:
        pinned = r"(- )?uses: actions/[a-z-]+(/restore)?@[0-9a-f]{40} # v\d+\.\d+\.\d+"
        assert re.fullmatch(pinned, line), line
    commits = {re.sub(r"/restore|.*uses: ", "", line) for line in uses}
    assert len(commits) == len({line.split("@")[0] for line in commits})  # one commit an action


def test_tokens_may_do_the_least_and_no_checkout_keeps_them() -> None:
    writes = []
    for name, job in JOBS:
        writes += [(name, what) for what, right in job["permissions"].items() if right == "write"]
    assert sorted(writes) == [("boards", "contents"), ("comment", "pull-requests")]
    assert all(flow["permissions"] == {} for flow in WORKFLOWS.values())
    checkouts = [step for _, step in STEPS if step.get("uses", "").startswith("actions/checkout@")]
    assert len(checkouts) == len(JOBS)
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_nothing_of_a_pull_request_meets_a_token_that_writes() -> None:
    assert [name for name, flow in WORKFLOWS.items() if "pull_request_target" in flow[True]] == []
    assert set(WORKFLOWS["comment"][True]) == {"workflow_run"}  # True is how YAML 1.1 reads `on`
    assert set(WORKFLOWS["boards"][True]) == {"push"}
    for name, step in STEPS:
        assert "${{" not in step.get("run", ""), step
        if name == "comment":
            assert "ref" not in step.get("with", {})
        if name == "records" and step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["ref"] == "${{ github.event.pull_request.base.ref }}"
    for name, job in JOBS:
        if "write" in job["permissions"].values():
            runs = [step["run"] for step in job["steps"] if "run" in step]
            assert runs == [f".github/scripts/{'comment' if name == 'comment' else 'commit_boards'}.sh"]


def test_steps_call_what_is_there() -> None:
    targets = set(re.findall(r"(?m)^([\w./-]+):", (ROOT / "Makefile").read_text()))
    for _, step in STEPS:
        if "run" not in step:
            continue
        (line,) = step["run"].strip().split("\n")
        match shlex.split(line):
            case ["make", target]:
                assert target in targets
            case [".venv/bin/python", "-m", module, *_]:
                assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
            case [".venv/bin/python", script] | [script]:
                assert (ROOT / script).is_file() and script.startswith(".github/scripts/")
                assert script.endswith(".py") or os.access(ROOT / script, os.X_OK)
            case other:
                pytest.fail(f"a step runs {other}")


def test_a_push_is_held_to_what_the_local_script_holds_it_to() -> None:
    local = set(re.findall(r"(?m)^make (\S+)", (ROOT / ".ci/run").read_text()))
    there = {step["run"] for name, step in STEPS if name == "tests" and "run" in step}
    assert {f"make {target}" for target in local} <= there
    assert ".venv/bin/python -m harness.boards --check --records" in there


# ---- the scripts --------------------------------------------------------------------------------------


class Runner:
    """A machine of GitHub's: a checkout, the variables of a job, and stand-ins of commands that it has."""

    def __init__(self, folder: Path, checkout: Path) -> None:
        self.folder, self.checkout = folder, checkout
        (folder / "bin").mkdir()
        self.variables = {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
            "GITHUB_STEP_SUMMARY": str(folder / "step.md"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "SUMMARY": str(folder / "summary.json"),
            "REPOSITORY": "owner/name",
        }

    def stand_in(self, name: str | Path, script: str) -> None:
        """A command of this name first on the PATH, or at this path."""
        path = self.folder / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/usr/bin/env bash\n{script}")
        path.chmod(0o755)

    def run(self, script: str, **variables: str) -> tuple[int, str]:
        """Exit status and output of a script of .github/scripts, called in the checkout."""
        done = subprocess.run(
            [SCRIPTS / script], cwd=self.checkout, env={**os.environ, **self.variables, **variables},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        return done.returncode, done.stdout


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return make_repository(tmp_path_factory.mktemp("toy") / "repository")


@pytest.fixture
def origin(toy: Repository, tmp_path: Path) -> Repository:
    """What GitHub holds: main, and the branch `idea` as pull request 5 alone."""
    toy.git("clone", "--quiet", "--bare", str(toy.path), str(tmp_path / "origin"))
    origin = Repository(tmp_path / "origin", toy.record)
    origin.git("update-ref", "refs/pull/5/head", "idea")
    origin.git("branch", "--quiet", "-D", "idea", "other")
    return origin


@pytest.fixture
def runner(origin: Repository, tmp_path: Path) -> Runner:
    origin.git("clone", "--quiet", "--branch", "main", str(origin.path), str(tmp_path / "checkout"))
    runner = Runner(tmp_path, tmp_path / "checkout")
    runner.stand_in(runner.checkout / ".venv/bin/python", f'exec {shlex.quote(sys.executable)} "$@"\n')
    return runner


def test_a_pull_request_is_reviewed_by_its_number(origin: Repository, runner: Runner) -> None:
    head = origin.git("rev-parse", "refs/pull/5/head")
    status, said = runner.run("review.sh", NUMBER="5", HEAD_SHA=head)
    assert status == 0 and said.endswith("14 files differ: nothing to put right\n")
    assert "nothing to put right" in (runner.folder / "step.md").read_text()
    summary = load(runner.folder / "summary.json")
    assert (summary.number, summary.head, summary.passed) == (5, head, True)
    assert not (runner.checkout / origin.record).exists()  # nothing of it was checked out
    assert runner.run("review.sh", NUMBER="6", HEAD_SHA=head)[0] != 0


def test_a_bad_pull_request_fails_the_job_and_leaves_a_summary(origin: Repository, runner: Runner) -> None:
    empty = origin.git("hash-object", "-t", "tree", "/dev/null", "-w")
    head = origin.git("commit-tree", empty, "-p", "main", "-m", "all gone")
    origin.git("update-ref", "refs/pull/5/head", head)
    status, said = runner.run("review.sh", NUMBER="5", HEAD_SHA=head)
    assert status == 1 and "README.md: is deleted" in said
    assert not load(runner.folder / "summary.json").passed


GH = """
echo "$@" >>"$(dirname "$0")/calls"
case "$*" in
*/git/trees/$HEAD_SHA\\ *) echo "$TREE" ;;
*/pulls/5\\ *) echo "$HEAD_NOW" ;;
pr\\ comment*) cat >"$(dirname "$0")/comment" ;;
*) exit 1 ;;
esac
"""


@pytest.fixture
def commenter(tmp_path: Path) -> Iterator[Runner]:
    """The runner of comment.yml: python3 without any package, in a checkout of this repository."""
    runner = Runner(tmp_path, ROOT)
    runner.stand_in("gh", GH)
    runner.stand_in("python3", f'exec {shlex.quote(sys.executable)} -S "$@"\n')
    tree = subprocess.check_output(["git", "rev-parse", "HEAD:.github"], cwd=ROOT, text=True).strip()
    runner.variables |= {"PYTHONPATH": "", "HEAD_NOW": "c" * 40, "HEAD_SHA": "c" * 40, "TREE": tree}
    yield runner


def summary(number: int | None = 5, *faults: str) -> str:
    record = RecordSummary(*["@all <b>|x"] * 3, ("check: @all",), *["`1`"] * 6, ("[a](b)",))
    return dump(Summary(number, "b" * 40, "c" * 40, 3, faults, (record,)))


def test_what_was_found_is_commented_as_plain_text(commenter: Runner) -> None:
    (commenter.folder / "summary.json").write_text(summary(5, "x: is a link"))
    assert commenter.run("comment.sh") == (0, "")
    comment = (commenter.folder / "bin/comment").read_text()
    assert "- `` x: is a link ``" in comment and "| `` @all <b>¦x `` |" in comment
    assert "do not trust" not in comment
    assert (commenter.folder / "bin/calls").read_text().endswith(
        "pr comment 5 --repo owner/name --body-file - --edit-last --create-if-none\n"
    )  # fmt: skip


@pytest.mark.parametrize("tree", ["d" * 40, ""])
def test_a_pull_request_with_other_workflows_is_not_believed(commenter: Runner, tree: str) -> None:
    (commenter.folder / "summary.json").write_text(summary())
    assert commenter.run("comment.sh", TREE=tree)[0] == 0
    assert "**This pull request has another .github/" in (commenter.folder / "bin/comment").read_text()


@pytest.mark.parametrize(
    ("content", "variables", "status"),
    [
        (summary(), {"HEAD_NOW": "d" * 40}, 0),  # of another pull request, or no longer its head
        (summary(6), {}, 1),  # there is none of this number
        (summary(None), {}, 2),
        (summary().replace('"number": 5', '"number": "5 --body x"'), {}, 2),
        ("x" * 3_000_000, {}, 2),
        ("", {}, 2),
    ],
)
def test_no_other_summary_is_commented(
    commenter: Runner, content: str, variables: dict[str, str], status: int
) -> None:
    (commenter.folder / "summary.json").write_text(content)
    assert commenter.run("comment.sh", **variables)[0] == status
    assert not (commenter.folder / "bin/comment").exists()


def test_boards_are_committed_where_they_differ(origin: Repository, runner: Runner) -> None:
    runner.stand_in("gh", "exit 0\n")
    assert runner.run("commit_boards.sh", BRANCH="main") == (0, "The boards are as they should be.\n")
    shutil.copy(ROOT / "docs/figures/llm_history.svg", runner.checkout / "docs/figures/new_history.svg")
    (runner.checkout / "README.md").write_text("# New\n")
    (runner.checkout / "elsewhere").write_text("not ours")
    before = origin.git("rev-parse", "main")
    assert runner.run("commit_boards.sh", BRANCH="main") == (0, "")
    assert origin.git("rev-parse", "main~") == before
    changed = origin.git("diff", "--name-only", "main~", "main").split("\n")
    assert changed == ["README.md", "docs/figures/new_history.svg"]


def test_boards_of_a_branch_that_moved_on_are_left_to_the_next_run(
    origin: Repository, runner: Runner
) -> None:
    runner.stand_in("gh", "exit 0\n")
    (runner.checkout / "README.md").write_text("# New\n")
    moved = origin.git("commit-tree", "main^{tree}", "-p", "main", "-m", "more")
    origin.git("update-ref", "refs/heads/main", moved)
    status, said = runner.run("commit_boards.sh", BRANCH="main")
    assert (status, origin.git("rev-parse", "main")) == (0, moved)
    assert said == "main has moved on: the run for its newest commit makes the boards.\n"


def test_drawing_may_change_nothing_but_what_all_records_share(runner: Runner) -> None:
    runner.stand_in(runner.checkout / ".venv/bin/python", "exit 0\n")
    (runner.checkout / "README.md").write_text("# New\n")
    assert runner.run("drawn.sh") == (0, "")
    record = next(runner.checkout.glob("records/*/*/README.md"))
    record.write_text(record.read_text() + "\n")
    assert runner.run("drawn.sh")[0] == 1


def test_the_folder_of_the_levels_is_named_to_later_steps(boxoban_folder: Path, tmp_path: Path) -> None:
    here = {**os.environ, "PYTHONPATH": str(ROOT), "GITHUB_ENV": str(tmp_path / "env"), "HOME": str(tmp_path)}
    here.pop("XDG_CACHE_HOME", None)
    subprocess.run([sys.executable, SCRIPTS / "levels.py"], env=here, check=True)
    folder = f"{tmp_path}/.cache/boxoban-levels/78011d8c86ad423bfb2e1005012393b4c3c24409"
    assert (tmp_path / "env").read_text() == f"BOXOBAN_LEVELS={folder}\n"
