"""Figures: the same bytes each time, what they show, and that they draw whatever a log holds."""

import datetime
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from harness import figures
from harness.record import PublishedScore, Record, RunEntry, ScoreEntry
from toy_track.track import TRACK

SCORE = ScoreEntry(value=0.742, low=0.714, high=0.768, count=1000)
SECOND = RunEntry(seed=99, time_s=440.0, cpu_s=1.0, score=SCORE, calibration_s=1.0)


def make_record(number: int = 1, **changes: object) -> Record:
    record = Record(
        ruleset="1", track="toy_track", hardware_class="cpu", number=number, date=datetime.date(2026, 11, 30),
        name=f"idea-{number}", description="Learns", contributors=("Ada",), seed=1, time_s=432.0, cpu_s=1.0,
        score=SCORE, target=0.7, hardware="h", calibration_s=1.0, files={}, verification=SECOND,
        published=PublishedScore(value=0.742, low=0.714, high=0.768),
    )  # fmt: skip
    return record.model_copy(update=changes)


def write_log(path: Path, seconds: float, steps: Sequence[dict[str, float]]) -> None:
    utc = "2026-11-30T00:00:00+00:00"
    start = [
        ("run_start", {"run_id": "a", "seed": 1, "recipe_sha256": "b"}),
        ("warmup_start", {}),
        ("warmup_stop", {}),
    ]
    events = [*start, ("train_start", {"cpu_s": 0.0})]
    lines = [{"event": name, "monotonic": 5.0, "utc": utc, **fields} for name, fields in events]
    for number, fields in enumerate(steps, start=1):
        moment = 5.0 + seconds * number / len(steps)
        lines.append({"event": "step", "monotonic": moment, "utc": utc, "step": number, **fields})
    stop = {"event": "train_stop", "monotonic": 5.0 + seconds, "utc": utc, "steps": len(steps), "cpu_s": 1.0}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, stop]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rising = [{"entropy": 1.0, "solve_rate": number / 200} for number in range(150)]
    write_log(tmp_path / "log.jsonl", 432.0, rising)
    write_log(tmp_path / "verification/log.jsonl", 440.0, rising)
    return tmp_path


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Every figure that is drawn, before it becomes text."""
    kept: list[Figure] = []
    to_text = figures.svg
    monkeypatch.setattr(figures, "svg", lambda figure: (kept.append(figure), to_text(figure))[1])
    return kept


def texts(figure: Figure) -> set[str]:
    return {text.get_text() for axes in figure.axes for text in axes.texts} | {
        text.get_text()
        for axes in figure.axes
        if (legend := axes.get_legend())
        for text in legend.get_texts()
    }


def test_a_curve_is_the_same_bytes_each_time_and_well_formed(folder: Path) -> None:
    first = figures.training_curve(folder, make_record(), TRACK)
    with mpl.rc_context({"font.size": 30, "svg.hashsalt": "x", "lines.linewidth": 9, "axes.grid": False}):
        assert figures.training_curve(folder, make_record(), TRACK) == first
    assert ElementTree.fromstring(first).tag == "{http://www.w3.org/2000/svg}svg"
    assert "dc:date" not in first
    assert all(line == line.rstrip() for line in first.splitlines())


def test_a_curve_shows_both_runs_over_time_and_the_target(folder: Path, drawn: list[Figure]) -> None:
    figures.training_curve(folder, make_record(), TRACK)
    curves, scores = drawn[0].axes
    assert texts(drawn[0]) == {"first run, seed 1", "second run, seed 99", "target 0.7"}
    assert (curves.get_xlabel(), curves.get_ylabel()) == ("time (m:ss)", "solve rate in training")
    assert curves.get_title("left") == "Squares: idea-1"
    raw = curves.lines[0]
    assert (len(raw.get_xdata()), raw.get_xdata()[-1], raw.get_ydata()[-1]) == (150, 432.0, 149 / 200)
    assert [list(line.get_ydata()) for line in scores.lines if line.get_linestyle() == "--"] == [[0.7, 0.7]]


def test_where_less_is_better_the_curve_need_not_begin_at_nothing(folder: Path, drawn: list[Figure]) -> None:
    for goal in ("above", "below"):
        figures.training_curve(folder, make_record(), replace(TRACK, goal=goal))
    (above, beside), (below, _) = (figure.axes for figure in drawn)
    assert above.get_ylim()[0] == 0 > below.get_ylim()[0]
    assert [text.get_va() for figure in drawn for text in figure.axes[1].texts] == ["top", "bottom"]
    assert [line.get_linestyle() for line in beside.lines].count("--") == 1


def test_a_smoothed_curve_is_a_running_mean(folder: Path, drawn: list[Figure]) -> None:
    figures.training_curve(folder, make_record(), TRACK)
    smooth = drawn[0].axes[0].lines[1]
    assert smooth.get_ydata()[0] == pytest.approx((0 + 1 + 2) / 3 / 200)
    assert smooth.get_ydata()[-1] == pytest.approx((147 + 148 + 149) / 3 / 200)
    assert smooth.get_xdata()[-1] == 432.0


def test_a_short_run_without_the_metric_is_drawn_too(tmp_path: Path, drawn: list[Figure]) -> None:
    write_log(tmp_path / "log.jsonl", 40.0, [{"frames": 30.0, "x": 1.0}, {"frames": 60.0}])
    figures.training_curve(tmp_path, make_record(verification=None, time_s=40.0), TRACK)
    curves = drawn[0].axes[0]
    assert (curves.get_xlabel(), curves.get_ylabel()) == ("time (s)", "frames in training")
    assert [line.get_linestyle() for line in curves.lines] == ["-"]
    write_log(tmp_path / "log.jsonl", 40.0, [{}])
    figures.training_curve(tmp_path, make_record(verification=None, time_s=40.0), TRACK)
    assert drawn[1].axes[0].get_ylabel() == "step in training"


def test_the_metric_itself_is_drawn_where_it_is_logged(tmp_path: Path, drawn: list[Figure]) -> None:
    write_log(tmp_path / "log.jsonl", 40.0, [{"loss": 1.0, "pass_1": 0.5}, {"loss": 1.0, "pass_1": 0.6}])
    figures.training_curve(tmp_path, make_record(verification=None), replace(TRACK, metric="pass@1"))
    assert drawn[0].axes[0].get_ylabel() == "pass 1 in training"


def test_history_steps_down_with_each_verified_record_that_is_faster(drawn: list[Figure]) -> None:
    day = datetime.date(2026, 11, 30)
    records = [
        make_record(1, time_s=400.0),
        make_record(2, time_s=450.0, date=day + datetime.timedelta(2)),
        make_record(3, time_s=100.0, date=day + datetime.timedelta(3), verification=None),
        make_record(4, time_s=300.0, date=day + datetime.timedelta(9)),
        make_record(5, time_s=50.0, date=day + datetime.timedelta(12), hardware_class="1xH100"),
    ]
    text = figures.history(records, TRACK)
    assert text == figures.history(list(reversed(records)), TRACK)
    cpu, gpu = drawn[0].axes
    assert cpu.get_title("left") == "Squares, cpu: any number of CPU cores"
    assert gpu.get_title("left") == "Squares, 1xH100: one H100"
    steps = cpu.lines[0]
    days = [day.toordinal() + offset for offset in (0, 9, 12)]
    assert (list(steps.get_xdata()), list(steps.get_ydata())) == (days, [400.0, 300.0, 300.0])
    assert {t.get_text() for t in cpu.texts} == {"idea-1 6:40", "idea-4 5:00", "idea-3 1:40 (pending)"}


def test_a_history_of_one_pending_record_is_drawn(drawn: list[Figure]) -> None:
    figures.history([make_record(verification=None)], TRACK)
    assert {text.get_text() for text in drawn[0].axes[0].texts} == {"idea-1 7:12 (pending)"}


def test_a_step_far_behind_the_time_told_draws_few_ticks() -> None:
    axes = Figure().subplots()
    axes.plot([0.0, 3e7], [0.0, 1.0])
    figures.time_axis(axes, 130.0)
    assert 2 <= len(axes.get_xticks()) < 20
