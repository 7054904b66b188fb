"""The figures of the competition as SVG text, the same bytes for the same records.

Lines and letters are of middling lightness on no background, so that they read on white and on black, and the
two colours differ in lightness and hue to every kind of eye (Okabe and Ito 2008).
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator
from numpy.typing import NDArray

from harness.log import RunLog, read_log
from harness.record import LOG, SECOND, Record, RunEntry, minutes, spent_text
from harness.track import Track

FIRST, LATER = "#0072B2", "#D55E00"
INK = "#7A7A7A"
_STYLE: dict[Any, object] = {
    "svg.hashsalt": "learning-speedruns",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "figure.constrained_layout.use": True,
}
_SMOOTHED_FROM = 100  # steps; shorter curves are drawn as they are
_ROUND_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


def training_curve(folder: Path, record: Record, track: Track) -> str:
    """What the runs of the record in `folder` logged at each step, over time, and beside it their scores."""
    runs: list[tuple[str, str, RunEntry, RunLog]] = [("first", FIRST, record.first, read_log(folder / LOG))]
    if record.verification:
        runs.append(("second", LATER, record.verification, read_log(folder / SECOND / LOG)))
    field = _curve_field(runs[0][3], track)
    with style():
        figure = Figure(figsize=(7.6, 3.8))
        curves, scores = figure.subplots(1, 2, sharey=field in _metric_fields(track), width_ratios=(5, 1))
        for place, (which, color, entry, log) in enumerate(runs):
            seconds, values = series(log, field)
            draw_curve(curves, seconds, values, color, f"{which} run, seed {entry.seed}")
            score = entry.score
            spread = [[score.value - score.low], [score.high - score.value]]
            scores.errorbar(
                [place], [score.value], yerr=np.abs(spread), fmt="D", color=color, capsize=4, ms=5
            )
        curves.set(title=f"{track.title}: {record.name}", ylabel=f"{field.replace('_', ' ')} in training")
        time_axis(curves, max(entry.time_s for _, _, entry, _ in runs))
        rising = track.goal == "above"
        curves.legend(loc="lower right" if rising else "upper right", labelcolor="linecolor")
        if field in _metric_fields(track) and rising:
            curves.set_ylim(bottom=0)
        scores.set(title="held out", xlim=(-0.7, len(runs) - 0.3))
        scores.set_xticks(range(len(runs)), [which for which, *_ in runs])
        scores.grid(axis="x", visible=False)
        for axes in (curves, scores) if field in _metric_fields(track) else (scores,):
            axes.axhline(record.target, color=INK, linestyle="--", linewidth=1.2)
        scores.annotate(
            f"target {record.target:g}", (1, record.target), xycoords=("axes fraction", "data"),
            xytext=(0, -3 if rising else 3), textcoords="offset points", ha="right",
            va="top" if rising else "bottom", fontsize=9,
        )  # fmt: skip
        return svg(figure)


def history(records: Sequence[Record], track: Track) -> str:
    """What a track's records took by date, a panel for each class, with a line along the best so far."""
    records = sorted(records, key=lambda record: (record.date, record.number))
    classes = [
        hardware for hardware in track.classes if any(r.hardware_class == hardware.name for r in records)
    ]
    with style():
        figure = Figure(figsize=(7.6, 3.0 * len(classes)))
        panels = figure.subplots(len(classes), 1, squeeze=False, sharex=True)[:, 0]
        for axes, hardware in zip(panels, classes, strict=True):
            here = [record for record in records if record.hardware_class == hardware.name]
            _draw_history(axes, here, track, last=max(record.date for record in records).toordinal())
            label = track.cost or "training time (m:ss)"
            axes.set(title=f"{track.title}, {hardware.name}: {hardware.title}", ylabel=label)
        _date_axis(panels[-1], records)
        return svg(figure)


def _draw_history(axes: Axes, records: Sequence[Record], track: Track, last: int) -> None:
    best: list[Record] = []
    for record in records:
        if record.verification and (not best or track.spent(record) < track.spent(best[-1])):
            best.append(record)
    if best:
        days = [*(record.date.toordinal() for record in best), last]
        heights = [track.spent(record) for record in (*best, best[-1])]
        axes.plot(days, heights, color=FIRST, drawstyle="steps-post")
    for record in records:
        face = FIRST if record.verification else "none"
        axes.plot([record.date.toordinal()], [track.spent(record)], "o", color=FIRST, mfc=face, ms=6)
    middle = (min(record.date.toordinal() for record in records) + last) / 2
    for record in [*best, *(record for record in records if not record.verification)]:
        day, pending = record.date.toordinal(), "" if record.verification else " (pending)"
        left = day > middle  # labels stay inside the panel
        axes.annotate(
            f"{record.name} {spent_text(track, record)}{pending}", (day, track.spent(record)), fontsize=9,
            xytext=(-6 if left else 6, 5), textcoords="offset points", ha="right" if left else "left",
        )  # fmt: skip
    most = max(track.spent(record) for record in records)
    axes.set_ylim(0, 1.2 * most)
    if track.cost is None:
        _clock_ticks(axes.yaxis, most)
    else:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda spent, _: f"{spent:,.0f}"))


def _date_axis(axes: Axes, records: Sequence[Record]) -> None:
    days = [record.date.toordinal() for record in records]
    margin = max(1.0, 0.1 * (max(days) - min(days)))
    axes.set_xlim(min(days) - margin, max(days) + 2 * margin)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda day, _: date.fromordinal(int(day)).isoformat()))


def draw_curve(
    axes: Axes, seconds: NDArray[np.float64], values: NDArray[np.float64], color: str, label: str
) -> None:
    """Draw a number over time, both (steps,); a long curve as its running mean over the curve itself."""
    if len(values) < _SMOOTHED_FROM:
        axes.plot(seconds, values, color=color, label=label, marker="o", ms=3)
        return
    width = len(values) // 50
    kernel = np.ones(width) / width
    axes.plot(seconds, values, color=color, alpha=0.3, linewidth=0.8)
    axes.plot(seconds[width - 1 :], np.convolve(values, kernel, mode="valid"), color=color, label=label)


def time_axis(axes: Axes, longest: float) -> None:
    """Ticks at round times for a horizontal axis of so many seconds, or as many as are drawn."""
    axes.set_xlim(left=0)
    longest = max([longest, *(abs(end) for end in axes.dataLim.intervalx if np.isfinite(end))])
    if longest < 120:
        axes.set_xlabel("time (s)")
    else:
        axes.set_xlabel("time (m:ss)")
        _clock_ticks(axes.xaxis, longest)


def _clock_ticks(axis: Axis, longest: float) -> None:
    """At most eight ticks at round times."""
    step = next((step for step in _ROUND_SECONDS if longest / step < 8), longest)
    axis.set_major_locator(MultipleLocator(step))
    axis.set_major_formatter(FuncFormatter(lambda seconds, _: minutes(seconds)))


def _metric_fields(track: Track) -> tuple[str, ...]:
    """Names under which a step may log the track's own metric."""
    return (re.sub(r"\W+", "_", track.metric), "solve_rate", "pass_rate")


def _curve_field(log: RunLog, track: Track) -> str:
    """The field of the steps to draw: the metric, or else the first number that every step has."""
    shared = [name for name in log.steps[0].fields if all(name in step.fields for step in log.steps)]
    candidates = [*_metric_fields(track), *(name for name in shared if name != "step"), "step"]
    return next(name for name in candidates if name in shared)


def series(log: RunLog, field: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Seconds since train_start, and the field, of every step that has it; both (steps,)."""
    start = log.get("train_start").monotonic
    points = [(step.monotonic - start, step.fields[field]) for step in log.steps if field in step.fields]
    table = np.array(points, dtype=np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


@contextmanager
def style() -> Iterator[None]:
    """The look of every figure, whatever matplotlibrc the user has."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def svg(figure: Figure) -> str:
    """The figure as text."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
