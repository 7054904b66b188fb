"""Comparisons of toy records whose right values are known, in numbers, in words and on the command line."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from harness.compare import compare, main, read_side
from harness.comparison import Comparison, RunFacts, Side, Spending
from harness.differences import Difference
from harness.errors import Problem
from harness.intervals import Interval, wilson
from harness.standing import Standing
from harness.track import ROOT, Score, Track
from harness.verdict import of_difference, of_spending, plain, sentences, verdict
from toy_track import track as toy
from toy_track.forging import Forged
from toy_track.records import make_checkout, make_record, plain_machine

COUNT = 100
CPU = toy.TRACK.of_class("cpu")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with plain_machine():
        return make_record(make_checkout(tmp_path_factory.mktemp("checkout")))


def run(name: str, right: int, time_s: float = 100.0, **changes: object) -> RunFacts:
    """A run that solved the first `right` of 100 numbers."""
    outcomes = tuple(float(index < right) for index in range(COUNT))
    score = Score(right / COUNT, *wilson(right, COUNT), right, COUNT, "numbers", outcomes)
    return replace(RunFacts(name, 1, score, time_s, 2 * time_s, 1.0), **changes)


def side(*runs: RunFacts, track: Track = CPU, standing: Standing | None = None) -> Side:
    return Side(f"records/{runs[0].run_id}", track, "cpu", runs, standing)


def sides(rights: tuple[int, ...], times: tuple[float, ...], name: str = "a", track: Track = CPU) -> Side:
    """A side of which each run solved so many, in so many seconds."""
    runs = (run(f"{name}{k}", right, time) for k, (right, time) in enumerate(zip(rights, times, strict=True)))
    return side(*runs, track=track)


NEW = sides((90, 92), (100.0, 104.0), "new")
OLD = sides((95, 93), (150.0, 149.0), "old")


def test_a_faster_record_whose_score_holds_beats_the_standing_one() -> None:
    found = Comparison(NEW, OLD)
    assert found.beats and found.shortcomings == []
    assert found.score.value == pytest.approx(-0.03)
    assert found.seeds is not None and found.seeds.value == pytest.approx(-0.03)
    assert found.spending == Spending("s", 100.0, 150.0, 4.0)
    assert found.calibrated == Spending("calibrations", 100.0, 150.0, 4.0)
    said = verdict(found)
    assert said.startswith("A beats B on time; its score holds: both its runs clear the target.")
    assert not Comparison(OLD, NEW).beats
    assert verdict(Comparison(OLD, NEW)).startswith("A does not beat B on time, though its score holds")


def test_runs_of_a_side_are_averaged_within_each_unit() -> None:
    # 90 and 92 of 100, against 95 and 93: numbers 90 and 91 differ by 1/2, 92 by 1, 93 and 94 by 1/2.
    outcomes = Comparison(NEW, OLD).score
    assert outcomes.value == pytest.approx(-(0.5 + 0.5 + 1 + 0.5 + 0.5) / COUNT)
    assert outcomes.p == pytest.approx(2 / 2**5)  # all five one way


def test_one_run_a_side_goes_by_mcnemar() -> None:
    found = Comparison(side(run("a", 90)), side(run("b", 95)))
    assert (found.score.value, found.score.p) == (pytest.approx(-0.05), pytest.approx(2 / 2**5))
    assert found.seeds is None
    assert found.spending.spread is None and not found.spending.told
    assert not found.beats and found.shortcomings == ["it has no second run"]
    assert "its score does not hold (it has no second run)" in verdict(found)


def test_a_score_holds_where_both_runs_clear_the_target() -> None:
    found = Comparison(sides((90, 75), (10.0, 10.0)), OLD)
    assert wilson(75, COUNT).low < CPU.target < 0.75
    assert not found.beats and len(found.shortcomings) == 1
    assert "A does not beat B: its score does not hold (the low end" in verdict(found)


def test_seconds_within_the_spread_of_two_runs_are_not_told_apart() -> None:
    found = Comparison(sides((90, 92), (146.0, 155.0)), OLD)
    assert found.beats and not found.spending.told
    assert "A beats B on time, though not by more than runs of one recipe are apart;" in verdict(found)
    assert (
        "4.000 (2.7%) less: no more than two runs of one recipe are apart (9.000)" in sentences(found)["time"]
    )


def test_time_is_also_told_in_calibrations() -> None:
    slow = side(run("a", 90, 100.0, calibration_s=0.5), run("b", 90, 100.0, calibration_s=0.5))
    found = Comparison(slow, OLD)
    assert found.calibrated is not None
    assert found.spending.a < found.spending.b and found.calibrated.a > found.calibrated.b


def test_where_a_cost_ranks_seconds_do_not() -> None:
    track = replace(CPU, cost="tokens")
    costs = [
        side(*(replace(r, score=replace(r.score, cost=cost)) for r in one.runs), track=track)
        for one, cost in ((OLD, 5_000.0), (NEW, 12_000.0))
    ]
    found = Comparison(*costs)
    assert found.beats and found.calibrated is None
    assert found.spending == Spending("tokens", 5_000.0, 12_000.0, 0.0)
    assert "tokens" in sentences(found) and "time" not in sentences(found)
    assert verdict(found).startswith("A beats B on tokens;")


def test_repeats_with_seeds_of_their_own_are_not_paired() -> None:
    def repeats(name: str, *ratios: float) -> RunFacts:
        score = Score(1.0, 0.9, 1.1, None, len(ratios), "searches", ratios, shared_units=False)
        return RunFacts(name, 1, score, 10.0, 20.0, 1.0)

    track = replace(CPU, goal="below", target=1.45)
    found = Comparison(
        side(repeats("a", 1.3, 1.4, 1.2), repeats("b", 1.25, 1.35, 1.3), track=track),
        side(repeats("c", 1.8, 1.7, 1.9, 1.6), track=track),
    )
    assert "6 and 4 searches, unpaired" in found.score.method
    assert found.seeds is None
    assert found.score.value == pytest.approx((1.3 + 1.4 + 1.2 + 1.25 + 1.35 + 1.3) / 6 - 1.75)
    assert "That its score is higher than B's cannot be told; on other searches it is not higher." in verdict(
        found
    )
    assert "Its runs score higher than B's" in verdict(Comparison(found.b, found.a))


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (replace(OLD, track=replace(CPU, name="llm")), "A is of track toy_track and B of track llm"),
        (replace(OLD, hardware_class="1xH100"), "A is of class cpu and B of class 1xH100"),
        (replace(OLD, hardware_class=None), "B of class none"),
        (replace(OLD, track=replace(CPU, ruleset="0", comparable=False)), "under ruleset 2 and B under 0"),
        (replace(OLD, runs=(NEW.runs[1], OLD.runs[0])), "run new1 is on both sides"),
    ],
)
def test_what_does_not_compare_is_named(other: Side, reason: str) -> None:
    with pytest.raises(Problem, match=reason):
        Comparison(NEW, other)


def test_other_units_do_not_compare() -> None:
    few = run("few", 1)
    fewer = replace(few, score=replace(few.score, count=2, outcomes=(1.0, 0.0)))
    with pytest.raises(Problem, match="the runs played 100 numbers and 2 numbers"):
        Comparison(NEW, side(fewer))
    levels = replace(few, score=replace(few.score, unit="levels"))
    with pytest.raises(Problem, match="100 levels and 100 numbers"):
        Comparison(NEW, side(levels))


def test_rulesets_that_compare_may_differ() -> None:
    assert Comparison(NEW, replace(OLD, track=CPU.under("1"))).beats


def test_standings_are_told_and_obeyed() -> None:
    def entry(**changes: object) -> Standing:
        content = {
            "record": "x", "standing": "retimed", "date": date(2026, 12, 1), "by": "maintainer",
            "reason": "A noisy neighbour", "times_s": (90.0, 91.0), "machine": "another",
        }  # fmt: skip
        return Standing.model_validate(content | changes)

    retimed = Comparison(NEW, replace(OLD, standing=entry()))
    assert retimed.spending == Spending("s", 100.0, 90.0, 4.0) and not retimed.beats
    assert retimed.calibrated is None
    assert "A noisy neighbour" in sentences(retimed)["B"]
    gone = entry(standing="invalidated", times_s=None, machine=None)
    assert not Comparison(replace(NEW, standing=gone), OLD).beats
    assert "A was invalidated. A does not beat B." in verdict(Comparison(replace(NEW, standing=gone), OLD))
    slower = Comparison(OLD, replace(NEW, standing=gone))
    assert slower.beats
    assert "B was invalidated. A stands before B;" in verdict(slower)


@pytest.mark.parametrize(
    ("interval", "p", "words"),
    [
        ((0.00449, 0.03651), 0.01, "A's rate is higher than B's, by 0.0044 to 0.0366."),
        ((-0.03651, -0.00449), 0.01, "A's rate is lower than B's, by 0.0044 to 0.0366."),
        ((-0.2, 0.1), 0.6, "no difference can be told: A's rate may be up to 0.2000 lower or 0.1000 higher."),
        ((0.0001, 0.02), 0.0612, "no difference can be told: 0 is outside the interval, but p is 0.061."),
        (None, 1.0, "the outcomes show no spread, so nothing can be told of the difference +0.0100."),
    ],
)  # fmt: skip
def test_words_claim_no_more_than_the_interval(
    interval: tuple[float, float] | None, p: float, words: str
) -> None:
    found = Difference(0.01, None if interval is None else Interval(*interval), p, "")
    assert of_difference(found, "rate") == words


def test_words_of_spending() -> None:
    words = of_spending(Spending("tokens", 1_000_000.0, 2_000_000.0, None), False)
    assert words.startswith("A took 1,000,000 tokens and B 2,000,000, 1,000,000 (50.0%) less.")
    assert "not known" in words
    assert of_spending(Spending("s", 2.0, 0.0, 1.0), False).startswith(
        "A took 2.000 s and B 0.000, 2.000 more: m"
    )


def test_a_record_alone_is_its_two_runs(record: Path) -> None:
    found = compare(record)
    assert (found.a.runs[0].seed, len(found.b.runs)) == (1, 1)
    assert not found.beats
    assert verdict(found) == "These are two runs of one record, of which neither beats the other."


def test_a_record_is_read_with_both_runs_and_a_run_folder_with_one(record: Path) -> None:
    found = read_side(record)
    assert [one.seed for one in found.runs] == [
        1,
        json.loads((record / "verification/manifest.json").read_text())["seed"],
    ]
    assert found.runs[0].time_s == json.loads((record / "record.json").read_text())["time_s"]
    assert (found.hardware_class, found.track.target) == ("cpu", CPU.target)
    assert len(read_side(record / "verification").runs) == 1


def test_the_command_line_shows_and_prints_json(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = Forged(record, record.parents[2], tmp_path)
    forged.replay(97)
    for part in ("", "verification"):
        forged.part = part
        forged.manifest(run_id=part[:1].ljust(32, "0").replace("v", "f"))
    assert main([str(forged.path), str(record)]) == 0
    shown = capsys.readouterr().out
    for word in ("A first", "B second", "numbers", "seeds", "time / calibration", "verdict", "score"):
        assert word in shown
    assert main([str(forged.path), str(record), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values == json.loads(json.dumps(plain(compare(forged.path, record))))
    assert values["track"] == "toy_track"
    assert set(values["sentences"]) == {"score", "seeds", "time", "machines", "verdict"}
    assert values["score"]["interval"][0] <= values["score"]["value"] <= values["score"]["interval"][1]


def test_mistakes_of_use_are_named(record: Path, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="is not a folder"):
        main([str(tmp_path / "nowhere")])
    with pytest.raises(Problem, match=re.escape("is on both sides")):
        main([str(record), str(record / "verification")])
    with pytest.raises(Problem, match="holds one run"):
        main([str(record / "verification")])
    (tmp_path / "run").mkdir()
    with pytest.raises(Problem, match=r"manifest.json: is missing. Remedy: give a record, or a run"):
        main([str(tmp_path / "run")])
    shutil.copy(record / "manifest.json", tmp_path / "run")
    shutil.copy(record / "log.jsonl", tmp_path / "run")
    (tmp_path / "run/evidence.jsonl").symlink_to(record / "evidence.jsonl")
    with pytest.raises(Problem, match="is a link"):
        main([str(tmp_path / "run")])


def test_the_command_exits_2_where_nothing_can_be_compared() -> None:
    command = [sys.executable, "-m", "harness.compare", "nowhere"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("nowhere: is not a folder. Remedy: ")


def test_the_page_shows_what_the_command_prints(
    boxoban_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs/comparing.md").read_text()
    command, _, shown = page.partition("$ python -m harness.compare ")[2].partition("\n")
    monkeypatch.chdir(ROOT)
    assert main(command.split()) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert shown.partition("\n```")[0].splitlines() == printed
