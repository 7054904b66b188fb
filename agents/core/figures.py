"""FIXED: the figures of a report as SVG text, the same bytes for the same report."""

from collections.abc import Callable, Mapping
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from agents.core.watch import short
from harness.figures import FIRST, INK, LATER, style, svg

Report = Mapping[str, Any]

_SIZE = (7.6, 3.4)


def draw_figures(report: Report) -> dict[str, str]:
    """Name without `.svg` -> SVG; of an experiment without a learning episode there is none."""
    if not report["batches"]:
        return {}
    drawings: dict[str, Callable[[Axes, Report], None]] = {
        "learning_curve": _learning_curve,
        "cost": _cost,
        "wake_sleep_split": _split,
    }
    if report["skills"]:
        drawings["skill_reuse"] = _skill_reuse
    figures = {}
    for name, draw in drawings.items():
        with style():
            figure = Figure(figsize=_SIZE)
            axes = figure.subplots()
            draw(axes, report)
            figures[name] = svg(figure)
    return figures


def _learning_curve(axes: Axes, report: Report) -> None:
    """The mean score of each batch, and the evaluation's after the last."""
    batches = report["batches"]
    middles = [batch["first"] + (batch["episodes"] + 1) / 2 for batch in batches]
    axes.plot(middles, [batch["score"] for batch in batches], "o-", color=FIRST, label="learning, a batch")
    last = batches[-1]["first"] + batches[-1]["episodes"]
    evaluation = report["evaluation"]
    if evaluation is not None:
        score = evaluation["score"]
        spread = np.abs([[score - evaluation["low"]], [evaluation["high"] - score]])
        label = f"evaluation on {report['evaluation_split']}"
        axes.errorbar([last * 1.04], [score], yerr=spread, fmt="D", color=LATER, capsize=4, label=label)
    for before, after in pairwise(batches):
        if before["phase"] != after["phase"]:
            axes.axvline(after["first"] + 0.5, color=INK, linestyle="--", linewidth=1.2)
            axes.annotate(f"phase {after['phase'] + 1}", (after["first"] + 0.5, 1.0), fontsize=9)
    axes.set(title=f"{report['method']} on {report['title']}", ylabel=report["metric"], ylim=(-0.02, 1.02))
    _episodes(axes)
    axes.legend(loc="best", labelcolor="linecolor")


def _cost(axes: Axes, report: Report) -> None:
    """Tokens so far over episodes, with and without those of sleeps."""
    batches = report["batches"]
    ends = [0, *(batch["first"] + batch["episodes"] for batch in batches)]
    awake = [0, *accumulate(batch["wake_tokens"] for batch in batches)]
    both = [0, *accumulate(batch["wake_tokens"] + batch["sleep_tokens"] for batch in batches)]
    axes.plot(ends, both, color=LATER, label="awake and asleep")
    axes.plot(ends, awake, color=FIRST, label="awake")
    axes.set(title="Tokens of learning so far", ylabel="tokens")
    _counts(axes)
    _episodes(axes)
    axes.legend(loc="upper left", labelcolor="linecolor")


def _split(axes: Axes, report: Report) -> None:
    """Tokens awake and asleep of each batch."""
    batches = report["batches"]
    places = [batch["batch"] + 1 for batch in batches]
    awake = [batch["wake_tokens"] for batch in batches]
    axes.bar(places, awake, color=FIRST, label="awake")
    axes.bar(
        places,
        [batch["sleep_tokens"] for batch in batches],
        bottom=awake,
        color=LATER,
        label="the sleep after it",
    )
    axes.set(title="Tokens of each batch", ylabel="tokens", xlabel="batch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _counts(axes)
    axes.legend(loc="best", labelcolor="linecolor")


def _skill_reuse(axes: Axes, report: Report) -> None:
    """How much of what is done in each batch is done by skills, and how often they fail."""
    batches = report["batches"]
    middles = [batch["first"] + (batch["episodes"] + 1) / 2 for batch in batches]
    steps = [batch["skill_steps"] / max(1, batch["steps"]) for batch in batches]
    axes.plot(middles, steps, "o-", color=FIRST, label="steps taken by skills")
    called = [(place, batch) for place, batch in zip(middles, batches, strict=True) if batch["skill_calls"]]
    failed = [batch["skill_failures"] / batch["skill_calls"] for _, batch in called]
    axes.plot([place for place, _ in called], failed, "D--", color=LATER, label="calls that failed")
    axes.set(title="Skills", ylabel="share", ylim=(-0.02, 1.02))
    _episodes(axes)
    axes.legend(loc="best", labelcolor="linecolor")


def _episodes(axes: Axes) -> None:
    axes.set_xlabel("episodes")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _counts(axes: Axes) -> None:
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
