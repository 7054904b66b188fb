"""The ledger of earlier versions of fixed files: what it takes from which records, and what it refuses."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pull_requests import Repository

from harness.accepted import ABSENT, LEDGER, Version, accepted_versions, main, versions_of_records
from harness.errors import Problem
from harness.files import sha256_file
from toy_track.records import make_checkout, make_record, plain_machine

DIGEST = "ab" * 32
FIXED = "tests/toy_track/track.py"


def ledger(root: Path, text: str) -> Path:
    path = root / LEDGER
    path.parent.mkdir()
    path.write_text(text)
    return root


def test_reads_pairs(tmp_path: Path) -> None:
    assert accepted_versions(tmp_path) == set()
    assert accepted_versions(ledger(tmp_path, f"{DIGEST}  1  a/b.py\n")) == {Version(DIGEST, "1", "a/b.py")}


@pytest.mark.parametrize(
    "line",
    [
        *(f"{DIGEST[:-1]}  1  b.py", f"{DIGEST}  b.py", f"{DIGEST} 1 b.py", f"{DIGEST[:-1]}x  1  b.py", ""),
        *(f"{DIGEST}  1  {path}" for path in ("../b.py", "/b.py", "a/./b.py", "a//b.py", "b.py ", "a\\b.py")),
        f"{DIGEST}  one  b.py",
    ],
)
def test_a_malformed_line_is_named(line: str, tmp_path: Path) -> None:
    with pytest.raises(Problem) as caught:
        accepted_versions(ledger(tmp_path, f"{DIGEST}  1  a.py\n{line}\n"))
    assert caught.value.line == 2


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A record that is committed, and a fixed file that has changed since."""
    root = make_checkout(tmp_path_factory.mktemp("checkout"))
    repository = Repository(root)
    repository.git("init", "--quiet", "--initial-branch=main")
    with plain_machine():
        repository.record = make_record(root).relative_to(root).as_posix()
    (root / LEDGER).parent.mkdir()
    repository.commit("record 1")
    (root / FIXED).write_text((root / FIXED).read_text() + "# better\n")
    repository.commit("better")
    return repository


@pytest.fixture
def repository(original: Repository, tmp_path: Path) -> Repository:
    return original.copy(tmp_path / "repository")


def edit(change: Callable[[dict[str, str]], object], name: str = "manifest.json") -> Callable[[Path], object]:
    """Changes the fixed files that a manifest names."""

    def write(record: Path) -> None:
        manifest = json.loads((record / name).read_text())
        change(manifest["fixed_files"])
        (record / name).write_text(json.dumps(manifest))

    return write


def test_what_a_committed_record_names_and_history_holds_is_accepted(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.git("checkout", "--quiet", "HEAD~1")
    old = Version(sha256_file(repository / FIXED), "2", FIXED)
    repository.git("checkout", "--quiet", "main")
    assert versions_of_records(repository.path) == {old}
    assert main([], repository.path) == 1 and not (repository.path / LEDGER).exists()
    assert capsys.readouterr().out == f"{'  '.join(old)}: not accepted\n"
    assert main(["--add"], repository.path) == 0
    assert accepted_versions(repository.path) == {old}
    assert main([], repository.path) == 0


def test_a_record_that_is_not_committed_is_left_out(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    other = f"{repository.record[:-9]}forged"
    shutil.copytree(repository / repository.record, repository / other)
    edit(lambda files: files.update({FIXED: DIGEST}))(repository / other)
    assert main(["--add"], repository.path) == 0
    assert f"{other}: is not committed, so what it names does not count\n" in capsys.readouterr().out
    assert DIGEST not in (repository.path / LEDGER).read_text()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (edit(lambda files: files.update({FIXED: DIGEST})), f"{FIXED} is {DIGEST}, which no commit holds"),
        (
            edit(lambda files: files.update({FIXED: DIGEST}), "verification/manifest.json"),
            f"{FIXED} is {DIGEST}, which no commit holds",
        ),
        (edit(lambda files: files.update({"a.py": DIGEST})), f"a.py is {DIGEST}, which no commit holds"),
        (edit(lambda files: files.update({"../a.py": DIGEST})), "names the fixed file '../a.py', expected"),
        (edit(lambda files: files.update({"/etc/passwd": DIGEST})), "names the fixed file '/etc/passwd'"),
        (
            edit(lambda files: files.update({f"a\n{DIGEST}  2  {FIXED}": DIGEST})),
            "expected a plain path from the root",
        ),
    ],
)  # fmt: skip
def test_a_version_that_cannot_be_is_refused_and_nothing_written(
    repository: Repository, change: Callable[[Path], object], says: str
) -> None:
    change(repository / repository.record)
    with pytest.raises(Problem, match="is not as it was committed"):
        main(["--add"], repository.path)
    repository.commit()
    with pytest.raises(Problem) as caught:
        main(["--add"], repository.path)
    assert says in str(caught.value) and not (repository.path / LEDGER).exists()


def test_a_record_in_the_folder_of_another_track_is_refused(repository: Repository) -> None:
    (repository / "records/llm").mkdir()
    repository.git("mv", repository.record, "records/llm")
    repository.commit()
    with pytest.raises(Problem, match="is of track 'toy_track', and lies in another's folder"):
        versions_of_records(repository.path)


def test_a_file_that_came_later_needs_no_history(repository: Repository) -> None:
    edit(lambda files: files.pop(FIXED))(repository / repository.record)
    edit(lambda files: files.pop(FIXED), "verification/manifest.json")(repository / repository.record)
    repository.commit()
    assert main(["--add"], repository.path) == 0
    assert accepted_versions(repository.path) == {Version(ABSENT, "2", FIXED)}


def test_versions_of_merged_branches_count(repository: Repository) -> None:
    """A version that only the second parent of a merge had."""
    start = repository.git("rev-parse", "HEAD")
    repository.git("checkout", "--quiet", "-b", "side")
    (repository / FIXED).write_text((repository / FIXED).read_text() + "# other\n")
    digest = sha256_file(repository / FIXED)
    repository.commit("other")
    repository.git("checkout", "--quiet", start, "--", FIXED)
    edit(lambda files: files.update({FIXED: digest}))(repository / repository.record)
    repository.commit("back, and a record of it")
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-ff", "--no-edit", "side")
    assert main(["--add"], repository.path) == 0
    assert Version(digest, "2", FIXED) in accepted_versions(repository.path)
