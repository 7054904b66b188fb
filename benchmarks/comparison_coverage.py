"""How often the intervals of harness.compare hold a difference that is known.

    python -m benchmarks.comparison_coverage

Each row draws two sides, units and all, many times over. An interval that says 95% should hold the true
difference in 95 of 100 draws, and where there is none at most 5 of 100 should be told.
"""

import argparse
from collections.abc import Callable
from functools import partial
from statistics import NormalDist

import numpy as np
from numpy.random import Generator
from rich.console import Console
from rich.table import Table

from harness.differences import Difference, over_runs, paired, unpaired
from harness.errors import run_command
from harness.progress import progress_bar

DRAWS = 500
LEVELS = 1000
RATE = 0.75  # of levels that a run solves
RUN_NOISE = (
    0.3  # beside difficulties of spread 1: about one level in eight then comes out otherwise in a second run
)
SEED_SPREAD = 0.01  # of two runs' scores
SEARCH_SPREAD = 0.07  # of two searches' ratios, about as in retro's records

Draw = Callable[[Generator, float], Difference]


def levels(generator: Generator, gap: float, runs: int) -> Difference:
    """So many runs a side on the same levels, some of which are hard for all."""
    difficulty = generator.normal(size=LEVELS)

    def solved(rate: float) -> list[list[float]]:
        limit = NormalDist(0, (1 + RUN_NOISE**2) ** 0.5).inv_cdf(rate)
        latent = difficulty + RUN_NOISE * generator.normal(size=(runs, LEVELS))
        outcomes: list[list[float]] = (latent < limit).astype(float).tolist()
        return outcomes

    return paired(solved(RATE + gap), solved(RATE), "levels")


def searches(generator: Generator, gap: float, count: int) -> Difference:
    """So many searches a side, each with a seed of its own."""
    a, b = (generator.normal(1.35 + shift, SEARCH_SPREAD, count).tolist() for shift in (gap, 0.0))
    return unpaired(a, b, "searches")


def seeds(generator: Generator, gap: float) -> Difference:
    """The scores of two runs a side, on levels that stay the same."""
    a, b = (generator.normal(RATE + shift, SEED_SPREAD, 2).tolist() for shift in (gap, 0.0))
    return over_runs(a, b)


def measure(draw: Draw, gap: float) -> tuple[float, float, float]:
    """Shares of draws: the interval holds `gap`, the true one; it is told; one is told that is none."""
    generator = np.random.default_rng(1)
    holds = told = wrong = 0
    with progress_bar(DRAWS, "draws") as bar:
        for _ in range(DRAWS):
            found = draw(generator, gap)
            holds += found.interval is not None and found.interval.low <= gap <= found.interval.high
            told += found.told
            wrong += draw(generator, 0.0).told
            bar.update()
    return holds / DRAWS, told / DRAWS, wrong / DRAWS


def main() -> int:
    """Draw, and print a table."""
    argparse.ArgumentParser(
        prog="python -m benchmarks.comparison_coverage",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    rows: list[tuple[str, Draw, float]] = [
        (f"{LEVELS:,} levels, one run a side", partial(levels, runs=1), 0.03),
        (f"{LEVELS:,} levels, two runs a side", partial(levels, runs=2), 0.03),
        ("8 searches a side", partial(searches, count=8), 0.1),
        ("16 searches a side", partial(searches, count=16), 0.1),
        ("2 runs a side, as units", seeds, 0.03),
    ]
    table = Table(title=f"{DRAWS:,} draws a row", title_justify="left")
    for column in (
        "what is compared",
        "true difference",
        "interval holds it",
        "told",
        "told where there is none",
    ):
        table.add_column(column, justify="left" if column.startswith("what") else "right")
    for name, draw, gap in rows:
        shares = (f"{share:.1%}" for share in measure(draw, gap))
        table.add_row(name, f"{gap:g}", *shares)
    Console(width=None if Console().is_terminal else 110).print(table)
    return 0


if __name__ == "__main__":
    run_command(main)
