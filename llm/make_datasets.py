"""Make the puzzles of the llm track: a function of the seeds below, the same bytes every time.

    python -m llm.make_datasets             # write llm/datasets/*.jsonl; refuses what differs from the pins
    python -m llm.make_datasets --check     # make all of them again and compare; writes nothing
    python -m llm.make_datasets --pin       # write the files and new pinned hashes

The sokoban_* boards come from reasoning-gym's generator, which only this program needs (Apache-2.0; the
Sokoban part under reasoning_gym/games/contrib is MIT, Copyright 2023 Bruno Andrade). The tiny_* boards are
drawn here. Within a split no board is a turned or mirrored image of another; across splits this holds for
boards without their player too.
"""

import argparse
import importlib
import importlib.metadata
import json
from collections.abc import Callable, Iterator, Set
from itertools import count
from random import Random
from typing import NamedTuple

from tqdm import tqdm

from harness.errors import Problem, run_command
from harness.files import read_bytes, sha256_bytes, write_atomic
from harness.progress import progress_bar
from llm.puzzles import DATASETS, HASHES, MOVES, NAMES, dataset_sha256
from llm.tiny_boards import random_level, shortest_solution
from sokoban.levels import REASONING_GYM, format_level, parse_levels
from sokoban.reference import Game

GENERATOR = ("reasoning-gym", "0.1.25")
SHORTEST, LONGEST = 4, 16  # moves of a solution that is kept from reasoning-gym
TINY_LONGEST = 4
TINY_EASY_SHARE = 50  # one tiny board in so many is solved by a single move

Row = tuple[str, str]  # board, solution


class Split(NamedTuple):
    """How one file is made. Splits of a family are made in order; each leaves out what earlier ones hold."""

    name: str
    rows: int
    seed: int
    """Of the generator. reasoning-gym makes board i of seed s from s + i, so its seeds lie far apart."""


TINY = (
    Split("tiny_eval", 1_000, 1),
    Split("tiny_valid", 512, 2),
    Split("tiny_train", 7_500, 3),
)
SOKOBAN = (
    Split("sokoban_eval", 300, 100_000_000),
    Split("sokoban_valid", 256, 200_000_000),
    Split("sokoban_train", 6_000, 300_000_000),
)


# ---------------------------------------------------------------------------------------------------------
# Which boards are the same


def canonical_board(board: str) -> str:
    """One text for a board, its turned and mirrored images, and all of these inside thicker walls."""
    rows = tuple(board.split("\n"))
    for _ in range(4):
        while set(rows[1]) == {REASONING_GYM.wall}:  # then the first row bounds nothing
            rows = rows[1:]
        rows = _turned(rows)
    images = []
    for _ in range(4):
        rows = _turned(rows)
        images += ["\n".join(rows), "\n".join(rows[::-1])]
    return min(images)


def layout(board: str) -> str:
    """The canonical board without its player, who alone tells many boards of one small room apart."""
    symbols = REASONING_GYM
    cleared = board.replace(symbols.player, symbols.floors[0]).replace(symbols.player_on_goal, symbols.goal)
    return canonical_board(cleared)


def _is_fresh(board: str, seen: set[str], layouts: Set[str]) -> bool:
    """Whether neither this split holds the board nor an earlier one its layout; joins `seen` if so."""
    key = canonical_board(board)
    if key in seen or layout(board) in layouts:
        return False
    seen.add(key)
    return True


def _turned(rows: tuple[str, ...]) -> tuple[str, ...]:
    """A quarter turn clockwise."""
    return tuple("".join(column) for column in zip(*rows[::-1], strict=True))


# ---------------------------------------------------------------------------------------------------------
# Tiny boards: one box on at most 4x4 cells


def tiny_rows(split: Split, layouts: Set[str], bar: "tqdm[None]") -> list[Row]:
    """Rows of a tiny split, in random order, none with one of `layouts`.

    Solutions of 2 to 4 moves are equally frequent, up to one row, and those of one move are rare.
    """
    generator = Random(split.seed)
    wanted = {1: split.rows // TINY_EASY_SHARE}
    for length in range(2, TINY_LONGEST + 1):
        wanted[length] = (split.rows - sum(wanted.values())) // (TINY_LONGEST + 1 - length)
    rows: list[Row] = []
    seen: set[str] = set()
    while len(rows) < split.rows:
        level = random_level(generator)
        solution = shortest_solution(level, TINY_LONGEST) if level else None
        if level is None or solution is None or not wanted[len(solution)]:
            continue
        board = format_level(level, REASONING_GYM).strip()
        if _is_fresh(board, seen, layouts):
            wanted[len(solution)] -= 1
            rows.append((board, solution))
            bar.update()
    generator.shuffle(rows)  # or the frequent lengths would come first
    return rows


# ---------------------------------------------------------------------------------------------------------
# Boards from reasoning-gym: two boxes, 6 to 7 wide and high, its walls included


def sokoban_rows(split: Split, layouts: Set[str], bar: "tqdm[None]") -> list[Row]:
    """Rows of a sokoban split, in the generator's order, none with one of `layouts`."""
    rows: list[Row] = []
    seen: set[str] = set()
    for board, moves in generated(split.seed):
        solution = proven(board, moves)
        if solution is None or not SHORTEST <= len(solution) <= LONGEST:
            continue
        if _is_fresh(board, seen, layouts):
            rows.append((board, solution))
            bar.update()
            if len(rows) == split.rows:
                break
    return rows


def generated(seed: int) -> Iterator[Row]:
    """Boards of reasoning-gym from `seed` on, without end, with the moves that its own search found."""
    package, version = GENERATOR
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        found = "none"
    if found != version:
        raise Problem(
            f"{package} {version} is needed, found {found}", remedy=f"pip install {package}=={version}"
        )
    sides = {"min_w": 6, "max_w": 7, "min_h": 6, "max_h": 7}
    boards = importlib.import_module("reasoning_gym").create_dataset(
        "sokoban", seed=seed, size=1, min_boxes=2, max_boxes=2, **sides
    )
    for index in count():
        item = boards[index]
        lines = item["metadata"]["gamestr"].replace(" ", "").strip()
        yield lines, item["answer"]


def proven(board: str, moves: str) -> str | None:
    """`moves` up to the one that solves the board under our rules; None if none does, or it starts solved."""
    game = Game(parse_levels(board, REASONING_GYM, count=1)[0])
    if game.solved:
        return None
    for index, letter in enumerate(moves):
        game.move(MOVES.index(letter))
        if game.solved:
            return moves[: index + 1]
    return None


# ---------------------------------------------------------------------------------------------------------
# Files


def make(*families: tuple[tuple[Split, ...], Callable[..., list[Row]]]) -> dict[str, bytes]:
    """Name -> content of the files of the families."""
    total = sum(split.rows for splits, _ in families for split in splits)
    files = {}
    with progress_bar(total, "board") as bar:
        for splits, make_rows in families:
            layouts: set[str] = set()
            for split in splits:
                bar.set_postfix_str(split.name)
                rows = make_rows(split, layouts, bar)
                layouts |= {layout(board) for board, _ in rows}
                lines = [json.dumps({"board": board, "solution": solution}) for board, solution in rows]
                files[split.name] = "".join(f"{line}\n" for line in lines).encode()
    return files


def write(files: dict[str, bytes], pin: bool) -> None:
    """Write the files, with new pins if `pin`; else a Problem, before any is written, where one differs."""
    if not pin:
        for name, content in files.items():
            if sha256_bytes(content) != dataset_sha256(name):
                raise Problem(
                    "this machine makes another file than the pinned one",
                    file=DATASETS / f"{name}.jsonl",
                    remedy="restore it with `git checkout llm/datasets`",
                )
    for name, content in files.items():
        write_atomic(DATASETS / f"{name}.jsonl", content)
    if pin:
        lines = [f"{sha256_bytes(files[name])}  {name}.jsonl\n" for name in NAMES]
        write_atomic(DATASETS / HASHES, "".join(lines))


def main() -> int:
    """The command line; 1 if a file differs under --check."""
    parser = argparse.ArgumentParser(
        prog="python -m llm.make_datasets",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    action = parser.add_mutually_exclusive_group()
    for flag, meaning in (
        ("--check", "compare, write nothing"),
        ("--pin", "write the files and their hashes"),
    ):
        action.add_argument(flag, action="store_true", help=meaning)
    options = parser.parse_args()
    files = make((SOKOBAN, sokoban_rows), (TINY, tiny_rows))
    if not options.check:
        write(files, options.pin)
        return 0
    different = [
        name
        for name, content in files.items()
        if read_bytes(DATASETS / f"{name}.jsonl") != content or sha256_bytes(content) != dataset_sha256(name)
    ]
    for name in NAMES:
        print(f"{name}: {'DIFFERENT' if name in different else 'the same'}")
    return 1 if different else 0


if __name__ == "__main__":
    run_command(main)
