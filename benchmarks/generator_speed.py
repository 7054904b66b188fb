"""How fast the generator is, and how its levels compare with the official unfiltered ones.

    BOXOBAN_LEVELS=... python -m benchmarks.generator_speed

Speed is levels per second of CPU time in this one process. The statistics are means with standard deviations
over fresh levels, the practice set and official training levels, the last only where they can be had.
`--solve` levels of each set are solved in as few pushes as possible with `sokoban.solver`.
"""

import argparse
import time
from itertools import permutations

import numpy as np

from sokoban.boxoban import LevelsUnavailable, read_split
from sokoban.generator import generate, practice_levels
from sokoban.levels import Level
from sokoban.reference import STEP_LIMIT
from sokoban.solver import OutOfStates, region, solve
from sokoban.table import LevelTable

MAX_STATES = 20_000


def main() -> None:
    """Time the generator, then print one line of statistics for each set of levels."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.generator_speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--levels", type=int, default=5000, help="levels to generate and compare (5000)")
    parser.add_argument("--solve", type=int, default=20, help="levels of each set to solve (20)")
    parser.add_argument("--seed", type=int, default=0, help="of the fresh levels (0)")
    options = parser.parse_args()
    generate(1, options.seed)  # reads the practice set once
    started = time.process_time()
    fresh = generate(options.levels, options.seed)
    seconds = time.process_time() - started
    print(f"{options.levels} levels in {seconds:.2f} CPU s: {options.levels / seconds:.0f} a second")
    sets = {"generated": fresh, "practice": practice_levels()}
    try:
        sets["official"] = read_split("unfiltered/train", 5)
    except LevelsUnavailable as error:
        print(error)
    for name, table in sets.items():
        print(f"{name:9}", describe(table, options.levels, options.solve))


def describe(table: LevelTable, count: int, solve_count: int) -> str:
    """Floor cells, distance to goals, share of the free floor that the player reaches, pushes and moves."""
    levels = [table.level(index) for index in range(min(len(table), count))]
    parts = [
        f"floor {spread([len(cells(level)) for level in levels])}",
        f"distance {spread([distance(level) for level in levels[:2000]])}",
        f"reach {spread([reach(level) for level in levels[:2000]])}",
    ]
    pushes, moves, unsolved = [], [], 0
    for level in levels[:solve_count]:
        try:
            solution = solve(level, max_states=MAX_STATES)
        except OutOfStates:
            unsolved += 1
            continue
        assert solution is not None, "every level has a solution"
        pushes.append(sum(letter.isupper() for letter in solution))
        moves.append(len(solution))
    if moves:
        late = sum(length > STEP_LIMIT for length in moves)
        parts.append(f"pushes {spread(pushes)}  moves {spread(moves)}")
        parts.append(f"{late} of {len(moves)} over {STEP_LIMIT} moves, {unsolved} beyond {MAX_STATES} states")
    return "  ".join(parts)


def spread(values: list[int] | list[float]) -> str:
    """Mean and standard deviation."""
    return f"{np.mean(values):.2f} ± {np.std(values):.2f}"


def cells(level: Level) -> set[tuple[int, int]]:
    """The floor of a level."""
    return {(row, column) for row in range(level.height) for column in range(level.width)} - level.walls


def distance(level: Level) -> int:
    """The least sum of distances, as the crow flies, over all ways to give each box a goal of its own."""
    boxes = sorted(level.boxes)
    return min(
        sum(abs(r - gr) + abs(c - gc) for (r, c), (gr, gc) in zip(boxes, goals, strict=True))
        for goals in permutations(level.goals)
    )


def reach(level: Level) -> float:
    """The share of the floor without a box that the player can walk to at the start."""
    return len(region(level, level.boxes, level.player)) / (len(cells(level)) - len(level.boxes))


if __name__ == "__main__":
    main()
