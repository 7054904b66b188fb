"""The puzzles of the llm track, read from files whose SHA-256 is pinned.

Every row of `datasets/<name>.jsonl` is `{"board": ..., "solution": ...}`: a board in the alphabet of
reasoning-gym, and moves that solve it. `llm.make_datasets` makes the files; docs/llm_datasets.md describes
them.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from harness.errors import Problem
from harness.files import read_bytes, sha256_bytes
from sokoban.levels import REASONING_GYM, Level, parse_levels

DATASETS = Path(__file__).resolve().parent / "datasets"
HASHES = "datasets.sha256"  # as `sha256sum` writes it
NAMES = ("sokoban_train", "sokoban_valid", "sokoban_eval", "tiny_train", "tiny_valid", "tiny_eval")
MOVES = "UDLR"  # the letter at an index is the direction of that number in `sokoban.reference`

_REMEDY = "`git checkout llm/datasets`, or `python -m llm.make_datasets`, which makes the same files again"


@dataclass(frozen=True, slots=True)
class Puzzle:
    """One board of a dataset with the moves that prove it solvable."""

    index: int
    """Row in the file, from 0."""
    board: str
    """Rows joined by newlines: `+` wall, `-` floor, `X` goal, `@` box, `*` player; on a goal `$` and `%`."""
    solution: str
    """Moves as U D L R; the last one solves the board, and none before it."""

    @property
    def level(self) -> Level:
        """The board as the rules of `sokoban.reference` take it."""
        return _level(self.board)

    @property
    def difficulty(self) -> int:
        """Moves of the solution."""
        return len(self.solution)


@lru_cache(maxsize=1024)  # all completions of a puzzle are judged one after the other
def _level(board: str) -> Level:
    return parse_levels(board, REASONING_GYM, count=1)[0]


def read_puzzles(name: str) -> list[Puzzle]:
    """All puzzles of one of NAMES, in order; a Problem where the file differs from the pinned one."""
    pinned = dataset_sha256(name)
    path = DATASETS / f"{name}.jsonl"
    content = read_bytes(path)  # hashed and parsed from the same bytes
    if (found := sha256_bytes(content)) != pinned:
        raise Problem(f"its SHA-256 is {found}, not the pinned {pinned}", file=path, remedy=_REMEDY)
    rows = map(json.loads, content.splitlines())
    return [Puzzle(index, row["board"], row["solution"]) for index, row in enumerate(rows)]


def dataset_sha256(name: str) -> str:
    """The pinned SHA-256 of a dataset's file, in lowercase hex; a Problem where there is none."""
    if name not in NAMES:
        raise Problem(f"there is no dataset {name!r}", remedy=f"choose one of: {', '.join(NAMES)}")
    path = DATASETS / HASHES
    for line in read_bytes(path).decode(errors="replace").splitlines():
        digest, _, file = line.partition("  ")
        if file == f"{name}.jsonl":
            return digest
    raise Problem(f"no line for {name}.jsonl", file=path, remedy=_REMEDY)
