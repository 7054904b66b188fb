"""From run to record: what is built, what is kept when built anew, and what is refused without a trace."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import boards, figures
from harness.assemble import add_verification, assemble, main
from harness.checks import Check
from harness.errors import Problem
from harness.files import sha256_file
from harness.record import read_record
from harness.track import ROOT
from toy_track import speedrun
from toy_track.forging import failing
from toy_track.records import IDEA, make_checkout, make_run, make_second_run, plain_machine, write_idea
from toy_track.track import TRACK, evidence


@pytest.fixture(scope="module", autouse=True)
def machine() -> Iterator[None]:
    with plain_machine():
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("first"))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another first run, as a better recipe would make it: with other moves and another checkpoint."""
    path = make_run(tmp_path_factory.mktemp("other"))
    (path / "checkpoint.bin").write_text("{}")
    (path / "evidence.jsonl").write_text(evidence(92))
    score = TRACK.score(path / "evidence.jsonl")
    events = [json.loads(line) for line in (path / "log.jsonl").read_text().splitlines()]
    events[8]["sha256"] = events[9]["checkpoint_sha256"] = sha256_file(path / "checkpoint.bin")
    events[10]["evidence_sha256"] = sha256_file(path / "evidence.jsonl")
    events[10] |= {"value": score.value, "low": score.low, "high": score.high}
    (path / "log.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


@pytest.fixture(scope="module")
def second(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that verifies `run`."""
    return make_second_run(tmp_path_factory.mktemp("second"), run)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_checkout(tmp_path)


def copy(run: Path, root: Path, change: Callable[[Path], object] = lambda path: None) -> Path:
    """A run folder of one's own, changed."""
    path = root / "outputs/copy"
    shutil.copytree(run, path)
    change(path)
    return path


def pending(checks: list[Check]) -> set[str]:
    return {check.name for check in checks if check.pending and "not checked" not in check.reason}


def written(root: Path) -> list[str]:
    """Every file and folder under records."""
    return sorted(path.relative_to(root).as_posix() for path in root.glob("records/*/*"))


def snapshot(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


# ---- built --------------------------------------------------------------------------------------------


def test_a_new_record_is_true_but_for_what_is_pending(run: Path, root: Path) -> None:
    made = assemble(run, "by-heart", root=root)
    expected = {"verification", "description", "contributors", "idea"}
    assert set(failing(made.checks)) == pending(made.checks) == expected
    assert written(root) == [f"records/toy_track/{made.path.name}"]
    assert made.path.name.endswith("_01_by-heart")
    record = read_record(made.path / "record.json")
    assert (record.seed, record.score.value, record.published.value) == (1, 0.91, 0.91)
    for name in ("speedrun.py", "manifest.json", "log.jsonl", "evidence.jsonl", "checkpoint.bin"):
        assert (made.path / name).read_bytes() == (run / name).read_bytes()
    assert (made.path / "mistakes.md").read_text() == "- 91 92 93 94 95 96 97 98 99\n"
    assert "mistakes.md" not in record.files
    assert "[wrong answers](mistakes.md)" in (made.path / "README.md").read_text()


def test_the_second_run_completes_a_record(run: Path, second: Path, root: Path) -> None:
    path = assemble(run, "by-heart", root=root, contributors=["Ada"], description="Learns").path
    write_idea(path)
    done = add_verification(second, path, root=root)
    assert failing(done.checks) == {}
    record = read_record(path / "record.json")
    assert record.verification is not None
    assert (record.verification.score.value, record.published.value) == (0.9, 0.9)
    assert IDEA in (path / "README.md").read_text()
    assert len((path / "mistakes.md").read_text().splitlines()) == 2


def test_numbers_run_on(run: Path, other: Path, root: Path) -> None:
    first = assemble(run, "one", root=root).path
    first.rename(first.with_name("2026-01-01_41_one"))
    assert assemble(other, "two", root=root).path.name.endswith("_42_two")


def test_the_same_run_anew_keeps_words_and_second_run(run: Path, second: Path, root: Path) -> None:
    path = assemble(run, "by-heart", root=root, contributors=["Ada"], description="Learns").path
    write_idea(path)
    add_verification(second, path, root=root)
    before = snapshot(path)
    (path / "evidence.jsonl").write_text("lost")
    (path / "notes.txt").write_text("not part of a record")
    again = assemble(run, str(path), root=root)
    assert (again.path, failing(again.checks)) == (path, {})
    assert snapshot(path) == before


def test_another_run_anew_keeps_words_and_number_but_no_second_run(
    run: Path, second: Path, other: Path, root: Path
) -> None:
    path = assemble(run, "by-heart", root=root, contributors=["Ada"], description="Learns").path
    write_idea(path)
    add_verification(second, path, root=root)
    old = path.rename(path.with_name("2026-01-01_01_by-heart"))
    again = assemble(other, str(old), root=root, description="Learns better")
    assert set(failing(again.checks)) == {"verification"}
    assert written(root) == [f"records/toy_track/{path.name}"]
    record = read_record(path / "record.json")
    assert (record.description, record.contributors, record.verification) == ("Learns better", ("Ada",), None)
    assert IDEA in (path / "README.md").read_text()


# ---- refused ------------------------------------------------------------------------------------------


def rewrite_source(path: Path) -> None:
    (path / "speedrun.py").write_text("# another\n")


def fall_short(path: Path) -> None:
    (path / "evidence.jsonl").write_text(evidence(75))


def improve(path: Path) -> None:
    (path / "evidence.jsonl").write_text(evidence(99))


def misplay(path: Path) -> None:
    (path / "evidence.jsonl").write_text('{"number": 7}\n')


def edit_seed(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text()) | {"seed": 2}
    (path / "manifest.json").write_text(json.dumps(manifest))


REFUSED: list[tuple[Callable[[Path], object], tuple[str, ...]]] = [
    (lambda path: (path / "manifest.json").unlink(), ("not a run folder", "Remedy: give RUN=outputs/<run>")),
    (lambda path: (path / "evidence.jsonl").unlink(), ("evidence.jsonl", "cannot be read")),
    (rewrite_source, ("is not the source that this run ran", "Remedy: put it back with: cp ")),
    (fall_short, ("the low end 0.65", " is not above the target 0.7")),
    (improve, ("evidence_logged: evidence.jsonl: sha256 is",)),
    (misplay, ("evidence.jsonl:1: not the answer to number 0",)),
    (edit_seed, ("first_seed: manifest.json: seed is 2, expected 1", "log_identity: log.jsonl:1: seed is 1")),
]


@pytest.mark.parametrize(("change", "says"), REFUSED)
def test_what_is_untrue_is_refused(
    change: Callable[[Path], object], says: tuple[str, ...], run: Path, root: Path
) -> None:
    with pytest.raises(Problem) as caught:
        assemble(copy(run, root, change), "by-heart", root=root)
    assert all(part in str(caught.value) for part in says)
    assert written(root) == []


def test_every_reason_of_an_ineligible_run_is_given(root: Path) -> None:
    path = speedrun.train(root / "outputs", seed=5, smoke=True)
    speedrun.evaluate(path)
    with pytest.raises(Problem, match="flags change the recipe: --seed; it is a smoke run"):
        assemble(path, "by-heart", root=root)
    assert written(root) == []


def test_a_run_without_evaluation_is_refused_with_the_next_command(root: Path) -> None:
    path = speedrun.train(root / "outputs")
    with pytest.raises(Problem, match=rf"incomplete.*Remedy: python -m toy_track.speedrun --resume {path}"):
        assemble(path, "by-heart", root=root)


def test_changed_fixed_files_are_refused(run: Path, root: Path) -> None:
    (root / "tests/toy_track/track.py").write_text("# easier\n")
    with pytest.raises(Problem, match=r"fixed_files: manifest.json: tests/toy_track/track.py is"):
        assemble(run, "by-heart", root=root)


def test_a_changed_source_in_the_checkout_is_refused(run: Path, root: Path) -> None:
    (root / "toy_track/speedrun.py").write_text("# newer\n")
    with pytest.raises(
        Problem, match=rf"put it back with: cp {run}/speedrun.py {root}/toy_track/speedrun.py"
    ):
        assemble(run, "by-heart", root=root)


def test_words_with_markup_are_refused(run: Path, root: Path) -> None:
    with pytest.raises(Problem, match=r"description: record.json: description holds '\|'"):
        assemble(run, "by-heart", root=root, description="fast | faster")
    with pytest.raises(Problem, match="contributors have one, '<b>'"):
        assemble(run, "by-heart", root=root, contributors=["<b>"])
    assert written(root) == []


@pytest.mark.parametrize("dest", ["By-Heart", "by_heart", "../x", "records/toy_track/none", ".", "a/b"])
def test_a_destination_that_is_neither_name_nor_record_is_refused(dest: str, run: Path, root: Path) -> None:
    with pytest.raises(Problem, match="is neither a name nor a record of this track"):
        assemble(run, dest, root=root)


def test_one_run_makes_one_record(run: Path, root: Path) -> None:
    path = assemble(run, "one", root=root).path
    with pytest.raises(Problem, match=f"is a record already. Remedy: give DEST={path}"):
        assemble(run, "two", root=root)


def test_a_run_that_does_not_verify_is_refused(run: Path, other: Path, second: Path, root: Path) -> None:
    path = assemble(run, "one", root=root).path
    before = snapshot(path)
    with pytest.raises(Problem) as caught:
        add_verification(other, path, root=root)
    for name in ("second_seed", "verifies"):
        assert f"{name}: verification/" in str(caught.value)
    with pytest.raises(Problem, match="is neither a name nor a record"):
        add_verification(second, root / "records/toy_track/none", root=root)
    with pytest.raises(Problem, match="is not a record of toy_track"):
        add_verification(second, Path("name"), root=root)
    assert snapshot(path) == before


def test_a_crash_leaves_the_old_record(run: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = assemble(run, "one", root=root).path
    before = snapshot(path)

    def crash(*arguments: object) -> str:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(figures, "training_curve", crash)
        with pytest.raises(MemoryError):
            assemble(run, str(path), root=root)
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self.name.endswith(".partial"):
            raise OSError("full")
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fail)
        with pytest.raises(OSError, match="full"):
            assemble(run, str(path), root=root)
    assert written(root) == [f"records/toy_track/{path.name}"]
    assert snapshot(path) == before


# ---- command line -------------------------------------------------------------------------------------


def set_environment(monkeypatch: pytest.MonkeyPatch, **variables: object) -> None:
    for name in ("RUN", "DEST", "VERIFY_OF", "SOURCE", "CONTRIBUTORS", "DESCRIPTION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))


def test_from_run_to_board_by_commands(
    run: Path, second: Path, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"CONTRIBUTORS": "Ada, Bob", "DESCRIPTION": "Learns", "SOURCE": "local"}
    set_environment(monkeypatch, RUN=run, DEST="by-heart", **words)
    assert main([], root=root) == 0
    path = next(root.glob("records/toy_track/*"))
    place = path.relative_to(root)
    assert f"Next: python -m toy_track.speedrun --verify {place}\n" in capsys.readouterr().out
    boards.refresh(root)
    assert "| 0.9100 [0.8377, 0.9519] of 100 | pending |" in (root / "README.md").read_text()
    assert (root / "docs/figures/toy_track_history.svg").is_file()
    set_environment(monkeypatch, RUN=second, VERIFY_OF=path)
    assert main([], root=root) == 0
    assert f"Next: write what is pending in {place}" in capsys.readouterr().out
    write_idea(path)
    set_environment(monkeypatch, RUN=run, DEST=path)
    assert main([], root=root) == 0
    assert f"Next: commit {place}, then python -m harness.submission" in capsys.readouterr().out
    assert " pending |" in (root / "README.md").read_text()  # boards are made on the main branch
    boards.refresh(root)
    assert (
        "| 0.9100 [0.8377, 0.9519] of 100 | 0.9000 [0.8256, 0.9448] of 100 |"
        in (root / "README.md").read_text()
    )


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({}, "RUN and one of DEST and VERIFY_OF must be set"),
        ({"RUN": "x"}, "RUN and one of DEST and VERIFY_OF must be set"),
        ({"DEST": "x"}, "RUN and one of DEST and VERIFY_OF must be set"),
        ({"RUN": "x", "DEST": "y", "VERIFY_OF": "z"}, "RUN and one of DEST and VERIFY_OF must be set"),
        ({"RUN": "x", "DEST": "y", "SOURCE": "moon"}, "SOURCE=moon is unknown"),
        ({"RUN": "nowhere", "DEST": "y"}, "nowhere: is not a run folder"),
    ],
)
def test_bad_use_is_named(
    variables: dict[str, str], says: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_environment(monkeypatch, **variables)
    with pytest.raises(Problem) as caught:
        main([], root=root)
    assert says in str(caught.value)


def test_the_script_explains_itself() -> None:
    done = subprocess.run(["bash", "assemble_record.sh", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0
    assert "VERIFY_OF=records/<track>/<record> ./assemble_record.sh" in done.stdout
