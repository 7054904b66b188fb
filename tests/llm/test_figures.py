"""The figure of a run's progress: what it shows of one run and of two, and where a step's time went."""

import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from harness import figures
from harness.log import read_log
from llm.figures import MOST_BARS, PANELS, progress, split

STEP = {"pass_rate": 0.5, "length": 900.0, "entropy": 0.2, "kl": 1e-4, "clip_ratio": 0.01,
        "log_probability_gap": 0.02, "tokens_per_s": 5e4, "gradient_norm": 1.0,
        "rollout_s": 3.0, "update_s": 2.0, "sync_s": 0.5}  # fmt: skip


def write_log(path: Path, steps: Sequence[dict[str, float]], seconds: float = 6.0) -> None:
    """A log of steps that take so many seconds each."""
    lines: list[dict[str, object]] = [
        {"event": "run_start", "run_id": "a", "seed": 1, "recipe_sha256": "b"},
        {"event": "warmup_start"},
        {"event": "warmup_stop"},
        {"event": "train_start", "cpu_s": 0.0},
    ]
    lines = [{**line, "monotonic": 100.0} for line in lines]
    for number, fields in enumerate(steps, start=1):
        lines.append({"event": "step", "monotonic": 100.0 + seconds * number, "step": number, **fields})
    path.parent.mkdir(parents=True, exist_ok=True)
    stamped = [{**line, "utc": "2026-11-30T00:00:00+00:00"} for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in stamped))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Every figure that is drawn, before it becomes text."""
    kept: list[Figure] = []
    to_text = figures.svg
    monkeypatch.setattr(figures, "svg", lambda figure: (kept.append(figure), to_text(figure))[1])
    return kept


def titles(figure: Figure) -> list[str]:
    return [axes.get_title("left") for axes in figure.axes if axes.axison]


def test_one_run_has_a_panel_for_each_number_and_one_for_its_time(
    tmp_path: Path, drawn: list[Figure]
) -> None:
    write_log(tmp_path / "log.jsonl", [STEP] * 50)
    text = progress(tmp_path)
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert text == progress(tmp_path)
    assert titles(drawn[0]) == [*PANELS.values(), "seconds a step"]
    rate = drawn[0].axes[0].lines[0]
    assert (rate.get_xdata()[-1], rate.get_ydata()[-1]) == (300.0, 0.5)


def test_two_runs_share_the_panels_but_not_the_time(tmp_path: Path, drawn: list[Figure]) -> None:
    write_log(tmp_path / "log.jsonl", [STEP] * 20)
    write_log(tmp_path / "verification/log.jsonl", [{**STEP, "kl": -1e-4}] * 30)
    progress(tmp_path)
    assert titles(drawn[0])[-2:] == ["seconds a step, first run", "seconds a step, second run"]
    first, second = drawn[0].axes[0].lines
    assert (first.get_xdata()[-1], second.get_xdata()[-1]) == (120.0, 180.0)
    legend = drawn[0].axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["first run", "second run"]
    low, high = drawn[0].axes[list(PANELS).index("kl")].get_ylim()
    assert low < -1e-4 < 1e-4 < high


def test_the_parts_of_a_step_and_the_rest_make_up_its_time(tmp_path: Path) -> None:
    write_log(tmp_path / "log.jsonl", [STEP, {**STEP, "update_s": 40.0}])
    ends, parts = split(read_log(tmp_path / "log.jsonl"))
    assert ends.tolist() == [6.0, 12.0]
    assert {name: seconds.tolist() for name, seconds in parts.items()} == {
        "rollout": [3.0, 3.0], "update": [2.0, 40.0], "sync": [0.5, 0.5], "rest": [0.5, 0.0],
    }  # fmt: skip


def test_a_long_run_is_drawn_in_few_bars_of_the_same_area(tmp_path: Path, drawn: list[Figure]) -> None:
    write_log(tmp_path / "log.jsonl", [{**STEP, "rollout_s": 1 + number % 2} for number in range(1000)])
    progress(tmp_path)
    bars = drawn[0].axes[len(PANELS)].patches[0].get_data()
    assert len(bars.values) == MOST_BARS and bars.edges[-1] == 6000.0
    assert np.sum(bars.values * np.diff(bars.edges)) == pytest.approx(1.5 * 6000)


@pytest.mark.parametrize("steps", [[], [{}], [{"pass_rate": 0.1}, {"loss": 2.0}], [{"sync_s": 0.0}]])
def test_whatever_a_recipe_logs_is_drawn(
    steps: list[dict[str, float]], tmp_path: Path, drawn: list[Figure]
) -> None:
    write_log(tmp_path / "log.jsonl", steps)
    progress(tmp_path)
    logged = {name for step in steps for name in step}
    assert len(titles(drawn[0])) == len(logged & {"pass_rate", "sync_s"})
