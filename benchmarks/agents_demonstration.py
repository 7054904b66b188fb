"""What two methods make of a script in place of a model, which acts aimlessly and programs well.

    python -m benchmarks.agents_demonstration [--episodes 100] [--seeds 3] [--methods react speedrunner]

No model takes part, so nothing here says how good a model or a method is. The script (agents/scripted)
wanders as long as it has single actions alone, writes or mends one skill in each sleep by what it saw fail,
and forgets its skills now and then. What is shown is that a method which keeps functions gains by that, over
one stream of episodes of BabyAI's five families, and that one which keeps nothing does not.

All runs play over HTTP against the server of the script, as they would against a model. The table and
docs/figures/agents_demonstration.svg give, for every ten episodes between two sleeps, the share of successes
and the tokens per success, those of the sleep included.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from rich.console import Console
from rich.table import Table

from agents.config import Config
from agents.core.loop import Experiment
from agents.core.report import make_report
from agents.core.watch import short
from agents.llm.chat_app import background
from agents.methods import METHODS
from agents.scripted.server import MODEL, scripted_app
from harness.errors import Problem, run_command
from harness.figures import FIRST, INK, LATER, style, svg
from harness.files import write_atomic
from harness.track import ROOT

FIGURE = ROOT / "docs" / "figures" / "agents_demonstration.svg"
TASKS = ("goto", "pickup", "open", "putnext", "pick_up_seq_go_to")
EVERY = 10
"""Episodes between two sleeps."""
ANSWERS = 30
"""In an episode."""


class Stretch(NamedTuple):
    """The episodes between two sleeps, and the sleep after them, of one run or several."""

    episodes: int
    successes: int
    tokens: int

    @property
    def rate(self) -> float:
        return self.successes / self.episodes

    @property
    def price(self) -> float | None:
        """Tokens per success; None where there was none."""
        return self.tokens / self.successes if self.successes else None


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agents_demonstration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--episodes", type=int, default=100, help="of a run")
    parser.add_argument("--seeds", type=int, default=3, help="runs of a method, with seeds from 0")
    parser.add_argument("--methods", nargs="+", default=["react", "speedrunner"], choices=list(METHODS))
    parser.add_argument("--figure", type=Path, default=FIGURE, help="SVG to write")
    options = parser.parse_args()
    runs: dict[str, list[list[Stretch]]] = {}
    with background(scripted_app("demo")) as url, tempfile.TemporaryDirectory() as folder:
        for method in options.methods:
            runs[method] = [
                play(Path(folder) / f"{method}-{seed}", url, method, seed, options.episodes)
                for seed in range(options.seeds)
            ]
    Console(width=110).print(table(runs))
    write_atomic(options.figure, figure(runs))


def play(folder: Path, url: str, method: str, seed: int, episodes: int) -> list[Stretch]:
    """Run an experiment to its end."""
    folder.mkdir()
    config = Config.model_validate(
        {
            "benchmark": "babyai",
            "method": method,
            "model": {"name": MODEL, "provider": "local", "base_url": url, "seed": seed},
            "phases": ({"tasks": TASKS, "episodes": episodes},),
            "seed": seed,
            "sleep_every": EVERY,
            "turn_limit": ANSWERS,
            "parallel": 2,
        }
    )
    experiment = Experiment(folder, config)
    try:
        end = experiment.run()
        if end.status != "complete":
            raise Problem(f"{method} with seed {seed} ended early: {end.reason}")
        return [stretch(batch) for batch in make_report(experiment, end)["batches"]]
    finally:
        experiment.close()


def stretch(batch: dict[str, Any]) -> Stretch:
    """A batch of a report."""
    return Stretch(batch["episodes"], batch["successes"], batch["wake_tokens"] + batch["sleep_tokens"])


def together(runs: Sequence[Sequence[Stretch]]) -> list[Stretch]:
    """Runs of a method, added up stretch by stretch."""
    return [Stretch(*map(sum, zip(*some, strict=True))) for some in zip(*runs, strict=True)]


def table(runs: dict[str, list[list[Stretch]]]) -> Table:
    """Successes and tokens by stretch, all seeds together."""
    made = Table(title="A scripted programmer on BabyAI's five families", title_justify="left")
    made.add_column("episodes")
    for method in runs:
        made.add_column(f"{method}: successes", justify="right")
        made.add_column("tokens per success", justify="right")
    columns = [together(some) for some in runs.values()]
    for place, row in enumerate(zip(*columns, strict=True)):
        cells = [
            f"{place * EVERY + 1} to {place * EVERY + row[0].episodes // len(next(iter(runs.values())))}"
        ]
        for one in row:
            cells += [f"{one.successes} of {one.episodes}", "-" if one.price is None else f"{one.price:,.0f}"]
        made.add_row(*cells)
    return made


def figure(runs: dict[str, list[list[Stretch]]]) -> str:
    """Success and tokens per success over episodes, a thin line a seed and a thick one for all."""
    with style():
        drawn = Figure(figsize=(7.6, 3.6))
        drawn.suptitle("A script in place of a model, on BabyAI's five families", x=0.02, ha="left", size=11)
        success, tokens = drawn.subplots(1, 2)
        for (method, some), color in zip(runs.items(), [FIRST, LATER, INK, INK, INK, INK], strict=False):
            for one in some:
                _line(success, [part.rate for part in one], color=color, alpha=0.35, linewidth=0.9)
            whole = together(some)
            _line(success, [part.rate for part in whole], color=color, label=method, marker="o", ms=4)
            _line(tokens, [part.price for part in whole], color=color, label=method, marker="o", ms=4)
        success.set(title="Success rate", ylim=(-0.02, 1.02))
        success.legend(loc="center right", labelcolor="linecolor")
        tokens.set(title="Tokens per success", yscale="log")
        tokens.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        tokens.yaxis.set_minor_locator(NullLocator())
        tokens.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(int(value))))
        for axes in (success, tokens):
            axes.set(xlabel="episodes", xlim=(0, None))
        return svg(drawn)


def _line(axes: Axes, values: Sequence[float | None], **look: Any) -> None:
    """Values of stretches at their middles; what is None is left out."""
    points = [(EVERY * (place + 0.5), value) for place, value in enumerate(values) if value is not None]
    axes.plot([place for place, _ in points], [value for _, value in points], **look)


if __name__ == "__main__":
    run_command(main)
