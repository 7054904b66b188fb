"""Boxoban-like levels in any number, made as in the appendix of Racaniere et al. 2017 but many at a time.

1. A room is cut out of solid wall by a random walk that stamps a small pattern at every step.
2. Four goals and the player are put on random floor cells, and a box on every goal.
3. The game is played in reverse: walkers pull boxes off the goals at random, and the best position that any
   of them meets becomes the level. Best is (number of times the pulled box changed) x (sum of the distances
   of the boxes from their goals), counted only where no box stands on a goal.

Reverse play is also a proof: the pulls read backwards are pushes that solve the level. Everything is a
function of the seed, on bitboards in numpy, so thousands of levels a second come from one core.

    python -m sokoban.generator --practice                        # writes sokoban/data/practice.txt again
    python -m sokoban.generator --count 1000 --seed 7 --out levels.txt
"""

import argparse
import sys
from collections.abc import Set
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from sokoban.files import write_atomic
from sokoban.levels import BOXOBAN, format_levels
from sokoban.reverse_play import SolvedLevels, make_batch
from sokoban.symmetry import canonical_keys
from sokoban.table import LevelTable, concatenate, parse_table

PRACTICE = Path(__file__).parent / "data" / "practice.txt"
PRACTICE_COUNT = 1000
PRACTICE_SEED = 2017


def generate(count: int, seed: int) -> LevelTable:
    """`count` levels for training, no two of them images of each other, none an image of a practice level.

    The same seed gives the same levels, and a smaller count gives the first of them.
    """
    return generate_solved(count, seed).levels


def generate_solved(count: int, seed: int) -> SolvedLevels:
    """The levels of `generate`, each with a solution."""
    return _generate(count, seed, _practice_keys())


def practice_levels() -> LevelTable:
    """The committed practice set: PRACTICE_COUNT levels that `generate` never gives."""
    return parse_table(PRACTICE.read_bytes(), PRACTICE.name)


def make_practice_set() -> bytes:
    """The bytes of the practice file, made from its seed."""
    return _text(_generate(PRACTICE_COUNT, PRACTICE_SEED, frozenset()).levels)


def _text(table: LevelTable) -> bytes:
    levels = (replace(table.level(index), title=str(index)) for index in range(len(table)))
    return format_levels(levels, BOXOBAN).encode()


@cache
def _practice_keys() -> frozenset[bytes]:
    return frozenset(canonical_keys(practice_levels()).tolist())


def _generate(count: int, seed: int, excluded: Set[bytes]) -> SolvedLevels:
    if count < 1:
        raise ValueError(f"{count} levels: ask for at least one")
    random = np.random.default_rng(seed)
    batches: list[SolvedLevels] = []
    seen = set(excluded)
    missing = count
    while missing > 0:
        batch = make_batch(random)
        fresh = []
        for index, key in enumerate(canonical_keys(batch.levels).tolist()):
            if key not in seen:
                seen.add(key)
                fresh.append(index)
        rows = np.array(fresh[:missing], dtype=np.int64)
        batches.append(SolvedLevels(batch.levels.take(rows), batch.pushes[rows], batch.lengths[rows]))
        missing -= len(rows)
    return SolvedLevels(
        concatenate([batch.levels for batch in batches]),
        np.concatenate([batch.pushes for batch in batches]),
        np.concatenate([batch.lengths for batch in batches]),
    )


def main() -> int:
    """Write the practice set, or a file of fresh levels."""
    parser = argparse.ArgumentParser(
        prog="python -m sokoban.generator", description="Make Boxoban-like levels."
    )
    parser.add_argument(
        "--practice", action="store_true", help=f"write {PRACTICE.name} again, and nothing else"
    )
    parser.add_argument("--count", type=int, default=1000, help="number of levels (1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed, not negative (0)")
    parser.add_argument("--out", type=Path, help="file to write in the Boxoban format")
    options = parser.parse_args()
    if options.practice == (options.out is not None):
        parser.error("give either --practice or --out FILE")
    if options.count < 1 or options.seed < 0:
        parser.error("--count must be at least 1 and --seed at least 0")
    path = PRACTICE if options.practice else options.out
    try:
        write_atomic(
            path, make_practice_set() if options.practice else _text(generate(options.count, options.seed))
        )
    except OSError as error:
        print(f"{path}: {error.strerror}", file=sys.stderr)
        return 2
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
