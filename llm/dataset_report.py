"""What the committed datasets hold, and what a number of eval puzzles buys, as Markdown tables.

python -m llm.dataset_report
"""

import argparse
import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from harness.errors import run_command
from harness.intervals import bootstrap
from llm.make_datasets import LONGEST, canonical_board, layout
from llm.puzzles import NAMES, Puzzle, read_puzzles
from llm.tiny_boards import shortest_solution
from sokoban.levels import REASONING_GYM

TARGET = 0.80
COMPLETIONS = 8


class Power(NamedTuple):
    """What an evaluation can tell: standard error of pass@1, and its 95% interval, means over evaluations."""

    standard_error: float
    width: float
    margin: float
    """From pass@1 down to the low end."""


def interval_power(
    puzzles: int, mean: float = 0.83, spread: float = 0.171, evaluations: int = 200, seed: int = 12345
) -> Power:
    """How well `puzzles` puzzles of COMPLETIONS completions each measure pass@1.

    mean, spread: of the per-puzzle means. A puzzle's own rate is drawn from the Beta distribution that gives
    this spread, the noise of the completions included (beta-binomial, Skellam 1948):
    variance = m (1 - m) (r + (1 - r) / K) with r = 1 / (a + b + 1).
    """
    share = spread**2 / (mean * (1 - mean))
    correlation = (COMPLETIONS * share - 1) / (COMPLETIONS - 1)
    weight = 1 / correlation - 1
    generator = np.random.default_rng(seed)
    rates = generator.beta(mean * weight, (1 - mean) * weight, (evaluations, puzzles))
    means = generator.binomial(COMPLETIONS, rates) / COMPLETIONS
    low, high = np.array([bootstrap(sample, resamples=2_000) for sample in means]).T
    margin = float(np.mean(np.mean(means, axis=1) - low))
    return Power(spread / math.sqrt(puzzles), float(np.mean(high - low)), margin)


def describe(puzzles: dict[str, list[Puzzle]]) -> list[str]:
    """Two tables: what each split holds, and its puzzles by moves of the solution."""
    lines = _head("split", "rows", "a box on a goal", "5 to 14 moves", "fewest moves", "rooms of train")
    for name, rows in puzzles.items():
        train = {layout(puzzle.board) for puzzle in puzzles[f"{name.split('_')[0]}_train"]}
        shares = (
            [REASONING_GYM.box_on_goal in puzzle.board for puzzle in rows],
            [5 <= puzzle.difficulty <= 14 for puzzle in rows],
            [shortest_solution(puzzle.level, puzzle.difficulty - 1) is None for puzzle in rows],
            [layout(puzzle.board) in train for puzzle in rows],
        )
        lines.append(_row(name, f"{len(rows):,}", *(f"{sum(share) / len(rows):.1%}" for share in shares)))
    lengths = range(1, LONGEST + 1)
    lines += ["", *_head("moves", *lengths)]
    for name, rows in puzzles.items():
        counts = Counter(puzzle.difficulty for puzzle in rows)
        lines.append(_row(name, *(counts[length] or "" for length in lengths)))
    keys = [canonical_board(puzzle.board) for rows in puzzles.values() for puzzle in rows]
    return [*lines, "", f"Boards: {len(keys):,}, different up to symmetry: {len(set(keys)):,}."]


def power_table(counts: tuple[int, ...] = (100, 150, 200, 256, 300, 400, 600, 1_000)) -> list[str]:
    """A row for each number of puzzles."""
    lines = _head(
        "puzzles", "completions", "standard error", "interval width", "least pass@1 that clears 0.80"
    )
    for count in counts:
        power = interval_power(count)
        cells = (power.standard_error, power.width, TARGET + power.margin)
        lines.append(_row(f"{count:,}", f"{COMPLETIONS * count:,}", *(f"{cell:.4f}" for cell in cells)))
    return lines


def _head(*titles: object) -> list[str]:
    return [_row(*titles), _row("---", *["---:"] * (len(titles) - 1))]


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """The command line."""
    argparse.ArgumentParser(
        prog="python -m llm.dataset_report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    print("\n".join([*describe({name: read_puzzles(name) for name in NAMES}), "", *power_table()]))


if __name__ == "__main__":
    run_command(main)
