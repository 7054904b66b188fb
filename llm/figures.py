"""How training went, `progress.svg`: small multiples of what each step logged, against time.

Only numbers that a run logged are drawn. Where a step's time went is drawn for each run by itself.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from harness import figures
from harness.log import RunLog, read_log
from harness.record import LOG, SECOND

PANELS = {
    "pass_rate": "pass rate",
    "length": "length (tokens)",
    "entropy": "entropy (nats)",
    "kl": "KL to the sampler (nats)",
    "clip_ratio": "clipped share of tokens",
    "log_probability_gap": "sampler-trainer gap (nats)",
    "tokens_per_s": "tokens per second",
}
"""Field of a step -> title of its panel."""
PARTS = {"rollout_s": "rollout", "update_s": "update", "sync_s": "sync"}
"""Field of a step that holds seconds -> name of that part of the step."""
REST = "rest"
COLUMNS = 3
MOST_BARS = 200
_COLORS = {"rollout": figures.FIRST, "update": figures.LATER, "sync": "#009E73", REST: figures.INK}


class _Curve(NamedTuple):
    name: str
    color: str
    log: RunLog


def progress(folder: Path) -> str:
    """Pass rate, length, entropy and so on of the run or runs in `folder`, as SVG text."""
    runs = [_Curve("first run", figures.FIRST, read_log(folder / LOG))]
    if (folder / SECOND / LOG).is_file():
        runs.append(_Curve("second run", figures.LATER, read_log(folder / SECOND / LOG)))
    logged = {field for run in runs for step in run.log.steps for field in step.fields}
    fields = [field for field in PANELS if field in logged]
    timed = [run for run in runs if any(set(PARTS) & step.fields.keys() for step in run.log.steps)]
    count = len(fields) + len(timed)
    rows = max(1, -(-count // COLUMNS))
    with figures.style():
        figure = Figure(figsize=(10.0, 2.5 * rows))
        panels = list(figure.subplots(rows, COLUMNS, squeeze=False).flat)
        for axes, field in zip(panels, fields, strict=False):
            _draw_field(axes, field, runs)
        for axes, run in zip(panels[len(fields) :], timed, strict=False):
            _draw_parts(axes, run, f"seconds a step, {run.name}" if len(runs) > 1 else "seconds a step")
        for axes in panels[count:]:
            axes.set_axis_off()
        if fields and len(runs) > 1:
            panels[0].legend(loc="best", labelcolor="linecolor", fontsize=9)
        return figures.svg(figure)


def split(log: RunLog) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """Where the time of the steps went.

    Returns the seconds from train_start to the end of each step, (steps,), and for each name of PARTS that
    was logged, and for REST, the seconds a step, (steps,). Parts that overlap leave no rest.
    """
    ends = np.array([step.monotonic for step in log.steps]) - log.get("train_start").monotonic
    logged = [field for field in PARTS if any(field in step.fields for step in log.steps)]
    parts = {
        PARTS[field]: np.array([step.fields.get(field, 0.0) for step in log.steps], dtype=np.float64)
        for field in logged
    }
    rest = np.diff(ends, prepend=0.0) - sum(parts.values())
    return ends, {**parts, REST: np.maximum(rest, 0.0)}


def _draw_field(axes: Axes, field: str, runs: Sequence[_Curve]) -> None:
    longest = lowest = 0.0
    for run in runs:
        seconds, values = figures.series(run.log, field)
        if len(seconds):
            figures.draw_curve(axes, seconds, values, run.color, run.name)
            longest, lowest = max(longest, seconds[-1]), min(lowest, values.min())
    axes.set_title(PANELS[field])
    if lowest == 0.0:
        axes.set_ylim(bottom=0)
    figures.time_axis(axes, longest)


def _draw_parts(axes: Axes, run: _Curve, title: str) -> None:
    """Stacked areas of bars as wide as a step took; in a long run a bar is the mean of neighbouring steps."""
    ends, parts = split(run.log)
    bars = np.array_split(np.arange(len(ends)), min(len(ends), MOST_BARS))
    edges = [0.0, *(float(ends[bar[-1]]) for bar in bars)]
    floor = np.zeros(len(bars))
    for name, seconds in parts.items():
        top = floor + np.array([seconds[bar].mean() for bar in bars])
        axes.stairs(top, edges, baseline=floor, fill=True, color=_COLORS[name], label=name, linewidth=0)
        floor = top
    axes.set(title=title, ylim=(0, 1.45 * max(floor)))
    axes.legend(loc="upper left", fontsize=8, ncols=2, borderaxespad=0)
    figures.time_axis(axes, edges[-1])
