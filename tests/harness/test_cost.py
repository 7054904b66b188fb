"""A track where something else than time ranks, whose classes are chosen and have targets of their own."""

import datetime
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness import figures
from harness.assemble import add_verification, assemble
from harness.boards import Entry, board
from harness.checks import RecordFolder, check_all
from harness.errors import Problem
from harness.launch import launch
from harness.machine import Machine, find_class, misfits
from harness.manifest import read_manifest
from harness.readme import results_block, scaffold
from harness.record import Record, RunEntry, ScoreEntry, read_record, spent_text, worse
from harness.run import Run
from harness.track import ROOT, HardwareClass, Score, Track, open_file_hashes
from toy_track import track as toy
from toy_track.forging import failing
from toy_track.records import make_checkout, make_run, make_second_run, write_idea

CLASSES = (
    HardwareClass("cpu", "small squares", None, None, "", 60.0, target=0.7),
    HardwareClass("1xH100", "large squares", None, None, "", 60.0, target=0.95),
)
TOKENS_A_RIGHT_ANSWER = 1000


def score(evidence: Path) -> Score:
    """The score of the toy track, at so many tokens a right answer."""
    known = toy.score(evidence)
    assert known.successes is not None
    return replace(known, cost=float(TOKENS_A_RIGHT_ANSWER * known.successes))


TRACK: Track = replace(
    toy.TRACK, cost="tokens", class_is_chosen=True, classes=CLASSES, target=math.inf, score=score
)
SCORE = ScoreEntry(value=0.742, low=0.714, high=0.768, count=1000)
SECOND = RunEntry(seed=2, time_s=431.0, cpu_s=810.0, cost=5e6, score=SCORE, calibration_s=1.25)


@pytest.fixture
def costly(monkeypatch: pytest.MonkeyPatch, plain_machine: None) -> None:
    """The toy track is this one."""
    monkeypatch.setattr(toy, "TRACK", TRACK)


def make_record(number: int = 1, **changes: object) -> Record:
    record = Record(
        ruleset="1", track="toy_track", hardware_class="cpu", number=number, date=datetime.date(2026, 11, 30),
        name=f"idea-{number}", description="Learns", contributors=("Ada",), seed=1, time_s=432.0, cpu_s=1.0,
        cost=4_321_000.0, score=SCORE, target=0.7, hardware="h", calibration_s=1.0, files={},
        verification=SECOND, published=worse(TRACK, SCORE, None),
    )  # fmt: skip
    return record.model_copy(update=changes)


def test_a_class_may_have_a_target_of_its_own() -> None:
    good = Score(0.9, 0.8, 0.95, None, 1, "levels", (0.9,), cost=1.0)
    small, large = TRACK.of_class("cpu"), TRACK.of_class("1xH100")
    assert (small.target, large.target) == (0.7, 0.95)
    assert small.clears(good) and not large.clears(good) and not TRACK.clears(good)
    assert TRACK.of_class("unknown") is TRACK and TRACK.of_class(None) is TRACK
    assert toy.TRACK.of_class("cpu") is toy.TRACK
    assert large.verdict(good) == "the low end 0.8 is not above the target 0.95"


def test_a_score_that_does_not_tell_its_cost_makes_no_record() -> None:
    good = Score(0.9, 0.8, 0.95, None, 1, "levels", (0.9,), cost=1.0)
    small = TRACK.of_class("cpu")
    assert small.shortcomings(good) == []
    assert small.shortcomings(replace(good, cost=None)) == ["its tokens are not known"]
    assert len(TRACK.of_class("1xH100").shortcomings(replace(good, cost=None))) == 2
    assert toy.TRACK.shortcomings(replace(good, cost=None)) == []


@pytest.mark.parametrize("cost", [-1.0, math.nan, math.inf])
def test_a_cost_is_a_finite_number_from_0(cost: float) -> None:
    with pytest.raises(ValueError, match="a cost of"):
        Score(0.9, 0.8, 0.95, None, 1, "levels", (0.9,), cost=cost)


def test_what_ranks_is_the_cost_where_there_is_one() -> None:
    record = make_record()
    assert (TRACK.spent(record), toy.TRACK.spent(record)) == (4_321_000.0, 432.0)
    assert (spent_text(TRACK, record), spent_text(toy.TRACK, record)) == ("4,321,000", "7:12")
    with pytest.raises(Problem, match="does not tell its tokens"):
        TRACK.spent(make_record(cost=None))


def test_a_record_without_a_cost_is_written_without_one(tmp_path: Path) -> None:
    for record in (make_record(), make_record(cost=None, verification=replace_cost(None))):
        text = record.dump()
        (tmp_path / "record.json").write_text(text)
        assert read_record(tmp_path / "record.json") == record
        assert text.count('"cost"') == (2 if record.cost is not None else 0)
    order = list(json.loads(make_record().dump()))
    assert order[order.index("cpu_s") + 1] == "cost"


def replace_cost(cost: float | None) -> RunEntry:
    return SECOND.model_copy(update={"cost": cost})


def test_the_board_is_ordered_by_cost_and_shows_it(costly: None) -> None:
    records = [
        make_record(1, cost=3e6, time_s=1.0),
        make_record(2, cost=1e6, time_s=900.0),
        make_record(3, cost=5e5, verification=None),
    ]
    head, _, *rows = board([Entry(ROOT / "records/x", record) for record in records]).split("\n")
    assert head.startswith("| # | record | tokens | time | CPU s | first seed |")
    assert [row.split(" | ")[0] for row in rows[:3]] == ["| 2", "| 1", "| 3"]
    assert [row.split(" | ")[2:4] for row in rows[:2]] == [["1,000,000", "15:00"], ["3,000,000", "0:01"]]


def test_the_history_is_one_of_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr("harness.figures.svg", lambda figure: drawn.append(figure) or "")
    later = datetime.date(2026, 12, 2)
    figures.history([make_record(1, time_s=1.0), make_record(2, cost=2e6, date=later)], TRACK)
    (axes,) = drawn[0].axes
    assert axes.get_ylabel() == "tokens" and list(axes.lines[0].get_ydata()) == [4_321_000.0, 2e6, 2e6]
    assert {text.get_text() for text in axes.texts} == {"idea-1 4,321,000", "idea-2 2,000,000"}
    assert axes.yaxis.get_major_formatter()(1_500_000, 0) == "1,500,000"


def test_the_results_tell_the_cost_and_how_to_reproduce_it() -> None:
    assert "\n| tokens | 4,321,000 | 5,000,000 |\n| time |" in results_block(make_record(), TRACK)
    assert "\npython -m toy_track.speedrun cpu\n" in scaffold(make_record(), TRACK)
    assert "\npython -m toy_track.speedrun\n" in scaffold(make_record(), toy.TRACK)


def test_a_chosen_class_fits_any_machine_and_only_itself() -> None:
    machine = Machine(
        cpu="CPU", logical_cores=3, available_cores=3, memory_gib=1.0, gpus=("T4",), driver=None,
        python="3.11", platform="Linux",
    )  # fmt: skip
    assert misfits(CLASSES[1], machine) == []
    assert find_class(TRACK, machine, chosen="1xH100") is CLASSES[1]
    assert find_class(TRACK, machine, chosen="other") is find_class(TRACK, machine) is None
    fussy = replace(CLASSES[0], cores=2)
    assert find_class(replace(TRACK, classes=(fussy,)), machine, chosen="cpu") is None


def test_a_record_with_a_cost_passes_and_a_forged_cost_fails(costly: None, tmp_path: Path) -> None:
    root = make_checkout(tmp_path)
    run = make_run(root)
    path = assemble(run, "cheap", root=root, contributors=["Ada"], description="Knows them").path
    write_idea(path)
    pending = {check.name: check for check in check_all(RecordFolder(path, root=root))}["verification"]
    assert "run python -m toy_track.speedrun cpu --verify records/" in pending.reason
    path = add_verification(make_second_run(root, path), path, root=root).path
    checks = {check.name: check for check in check_all(RecordFolder(path, root=root))}
    assert failing(list(checks.values())) == {}
    assert (
        checks["cost"].reason == "91,000 tokens" and checks["no_pause"].reason == "not time but tokens rank"
    )
    record = read_record(path / "record.json")
    assert record.cost == 91_000.0 and record.target == 0.7 and record.verification is not None
    assert record.verification.cost == score(path / "verification/evidence.jsonl").cost
    forged = record.model_copy(update={"cost": 1000.0})
    (path / "record.json").write_text(forged.dump())
    found = failing(check_all(RecordFolder(path, root=root)))
    assert set(found) == {"cost", "readme"} and "cost is 1000.0, expected 91000.0" in found["cost"]
    (path / "record.json").write_text(record.dump().replace('"target": 0.7,', '"target": 0.6,'))
    found = failing(check_all(RecordFolder(path, root=root)))
    assert "target is 0.6, expected 0.7" in found["target"]


def test_a_run_of_unknown_cost_is_refused(
    costly: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(make_checkout(tmp_path))
    monkeypatch.setattr(toy, "TRACK", replace(TRACK, score=toy.score))
    with pytest.raises(Problem, match="its tokens are not known"):
        assemble(run, "free", root=tmp_path)
    assert not any(tmp_path.glob("records/*/*"))


# ---- the command line ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    seed: int = 1
    right: int = 90

    def smoke(self) -> "Recipe":
        return self


def train(run: Run, recipe: Recipe) -> None:
    with run.warmup():
        pass
    run.train_start()
    run.log_step(1, right=recipe.right)
    run.train_stop()
    run.save_checkpoint(f"{recipe.right} {run.seed}".encode())


def evaluate(run: Run) -> Score:
    run.eval_start()
    evidence = run.path / TRACK.evidence_name
    evidence.write_text(toy.evidence(int((run.path / TRACK.checkpoint_name).read_text().split()[0])))
    found = TRACK.score(evidence)
    run.eval_stop(evidence, found)
    run.stop()
    return found


def start(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Path:
    before = set(folder.glob("outputs/*"))
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["speedrun", *arguments])
    source = folder / "speedrun.py"
    source.write_text("# a source\n")
    recipes = {"cpu": Recipe(), "1xH100": Recipe(right=99)}
    assert launch(toy.TRACK, recipes, train=train, evaluate=evaluate, source=source) == 0
    (run,) = set(folder.glob("outputs/*")) - before
    return run


def test_what_a_recipe_lacks_is_found_before_anything_is_made(
    costly: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(name: str, recipe: Recipe) -> None:
        raise Problem(f"no server for {name} with {recipe.right}")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["speedrun", "cpu", "--recipe.right", "12"])
    with pytest.raises(Problem, match="no server for cpu with 12"):
        launch(
            toy.TRACK, {"cpu": Recipe(), "1xH100": Recipe()}, train=train, evaluate=evaluate,
            source=Path(__file__), check=check,
        )  # fmt: skip
    assert not any(tmp_path.iterdir())


def test_the_command_line_names_the_class(
    costly: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = start(tmp_path, monkeypatch, "cpu")
    manifest = read_manifest(run / "manifest.json")
    assert (manifest.hardware_class, manifest.recipe_name, manifest.flags) == ("cpu", "cpu", ())
    shown = capsys.readouterr().out
    assert "is above the target 0.7\ntokens: 90,000" in shown and f"Next: RUN=outputs/{run.name} " in shown
    other = start(tmp_path, monkeypatch, "1xH100", "--recipe.right", "98")
    manifest = read_manifest(other / "manifest.json")
    assert (manifest.hardware_class, manifest.recipe["right"], manifest.flags) == (
        "1xH100", 98, ("--recipe.right",),
    )  # fmt: skip
    assert "is not above the target 0.95" in capsys.readouterr().out
    second = start(tmp_path, monkeypatch, "cpu", "--verify", str(run))
    assert read_manifest(second / "manifest.json").verifies == read_manifest(run / "manifest.json").run_id
    with pytest.raises(Problem, match=r"without flags: python -m toy_track\.speedrun cpu --verify"):
        start(tmp_path, monkeypatch, "1xH100", "--verify", str(run))


@pytest.mark.parametrize("arguments", [(), ("tpu",), ("--smoke",)])
def test_without_a_class_the_choice_is_shown(
    costly: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
) -> None:
    with pytest.raises(SystemExit) as caught:
        start(tmp_path, monkeypatch, *arguments)
    assert caught.value.code == 2
    shown = capsys.readouterr()
    assert "cpu, 1xH100" in shown.out + shown.err


# ---- files that are open besides the recipe --------------------------------------------------------------


def test_open_files_are_hashed_into_the_run_and_bind_the_second(
    costly: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy, "TRACK", replace(TRACK, open_files=("tests/toy_track/records.py",)))
    run = start(tmp_path, monkeypatch, "cpu")
    manifest = read_manifest(run / "manifest.json")
    assert manifest.open_files == open_file_hashes(toy.TRACK) != {}
    start(tmp_path, monkeypatch, "cpu", "--verify", str(run))
    monkeypatch.setattr(toy, "TRACK", replace(TRACK, open_files=("tests/toy_track/forging.py",)))
    with pytest.raises(Problem, match=r"not as they were .* tests/toy_track/forging.py, tests/toy_track/rec"):
        start(tmp_path, monkeypatch, "cpu", "--verify", str(run))
    monkeypatch.setattr(toy, "TRACK", replace(TRACK, open_files=("tests/none/*.md",)))
    with pytest.raises(Problem, match="no file matches the open files"):
        start(tmp_path, monkeypatch, "cpu")
