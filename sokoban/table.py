"""Many levels at once: each level is four 64-bit words, one a plane, and a table holds N of them.

A word is the 8x8 interior of a 10x10 level whose outer ring is wall: the cell (row, column) of the level is
the bit 8 * (row - 1) + (column - 1). Smaller levels lie in the top left corner.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sokoban.levels import BOXOBAN, Cell, Level, LevelError, parse_levels

Words = NDArray[np.uint64]

SIDE = 10  # of the whole board, its ring of wall included
INTERIOR = SIDE - 2


@dataclass(frozen=True, eq=False)
class LevelTable:
    """N levels as bitboards, each plane of shape (N,).

    `floor` has every cell that is not wall, so the other planes lie within it. `sources` names every file
    that was read, in order, with the SHA-256 of its bytes.
    """

    floor: Words
    goals: Words
    boxes: Words
    player: Words
    sources: tuple[tuple[str, str], ...] = ()

    def __len__(self) -> int:
        return len(self.floor)

    @property
    def planes(self) -> tuple[Words, Words, Words, Words]:
        """`floor`, `goals`, `boxes` and `player`."""
        return self.floor, self.goals, self.boxes, self.player

    def level(self, index: int) -> Level:
        """The level at `index` as a 10x10 board."""
        floor, goals, boxes, player = (_cells(int(plane[index])) for plane in self.planes)
        board = frozenset(product(range(SIDE), range(SIDE)))
        return Level(SIDE, SIDE, board - floor, goals, boxes, next(iter(player)))

    def apply(self, operation: Callable[[Words], Words]) -> "LevelTable":
        """The table whose planes are `operation` of these, from the same sources."""
        floor, goals, boxes, player = map(operation, self.planes)
        return LevelTable(floor, goals, boxes, player, self.sources)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.integer] | slice) -> "LevelTable":
        """The levels that a mask, an array of indices or a slice selects, from the same sources."""
        return self.apply(lambda plane: plane[rows])


def _cells(word: int) -> frozenset[Cell]:
    bits = range(INTERIOR * INTERIOR)
    return frozenset((bit // INTERIOR + 1, bit % INTERIOR + 1) for bit in bits if word >> bit & 1)


def concatenate(tables: Sequence[LevelTable]) -> LevelTable:
    """The levels of all `tables`, in order."""
    planes = (np.concatenate(plane) for plane in zip(*(table.planes for table in tables), strict=True))
    floor, goals, boxes, player = planes
    return LevelTable(floor, goals, boxes, player, tuple(pair for table in tables for pair in table.sources))


def table_of(levels: Sequence[Level]) -> LevelTable:
    """Pack closed levels of at most 10x10. What lies outside the walls is packed as wall.

    Raises:
        LevelError: a level is larger than 10x10.
    """
    words = np.zeros((4, len(levels)), dtype=np.uint64)
    for index, level in enumerate(levels):
        floor = _inside(level)
        if level.height > SIDE or level.width > SIDE:
            name = f"level {index}" + (f" ({level.title!r})" if level.title else "")
            raise LevelError(f"{name} is {level.height}x{level.width}, a bitboard holds {SIDE}x{SIDE}")
        for plane, cells in zip(words, (floor, level.goals, level.boxes, {level.player}), strict=True):
            plane[index] = sum(1 << INTERIOR * (row - 1) + column - 1 for row, column in cells)
    return LevelTable(*words)


def _inside(level: Level) -> set[Cell]:
    """The floor that is not connected to the edge of the board."""
    board = set(product(range(level.height), range(level.width)))
    edge = {
        (row, column)
        for row, column in board
        if row in (0, level.height - 1) or column in (0, level.width - 1)
    }
    outside, frontier = set(edge - level.walls), list(edge - level.walls)
    while frontier:
        row, column = frontier.pop()
        beside = {(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)}
        fresh = (beside & board) - level.walls - outside
        outside |= fresh
        frontier += fresh
    return board - level.walls - outside


def parse_table(data: bytes, name: str, digest: str = "") -> LevelTable:
    """Pack a whole Boxoban file at once; `name` and `digest` become the table's source.

    A file that is laid out as the official ones are takes a few milliseconds. Any other goes through
    `parse_levels`, which accepts what is well formed and says which line is not.
    """
    table = _parse_regular(data)
    if table is None:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise LevelError("not UTF-8 text", file=name, line=line) from None
        table = table_of(parse_levels(text, BOXOBAN, source=name))
    return LevelTable(*table.planes, sources=((name, digest),))


def _parse_regular(data: bytes) -> LevelTable | None:
    """Pack `; 0`, ten rows of ten, a blank line, `; 1`, ...; None where anything at all differs from that."""
    count = data.count(b";")
    titles = [b"; %d\n" % index for index in range(count)]
    board_bytes = SIDE * (SIDE + 1)
    sizes = np.array([len(title) for title in titles], dtype=np.int64) + board_bytes + 1
    if not count or len(data) != sizes.sum():
        return None
    raw = np.frombuffer(data, dtype=np.uint8)
    ends = np.cumsum(sizes)
    is_title = np.ones(len(data), dtype=np.bool_)
    boards = (ends - board_bytes - 1)[:, None] + np.arange(board_bytes + 1)
    is_title[boards] = False
    lines = raw[boards[:, :-1]].reshape(count, SIDE, SIDE + 1)
    cells = lines[:, :, :SIDE]
    inner = cells[:, 1:-1, 1:-1]
    ring = np.ones((SIDE, SIDE), dtype=np.bool_)
    ring[1:-1, 1:-1] = False
    wall, goal, box, player = (inner == ord(character) for character in "#.$@")
    regular = (
        raw[is_title].tobytes() == b"".join(titles)
        and bool((lines[:, :, SIDE] == ord("\n")).all())
        and bool((raw[boards[:, -1]] == ord("\n")).all())
        and bool((cells[:, ring] == ord("#")).all())
        and bool((wall | goal | box | player | (inner == ord(" "))).all())
        and bool((player.sum((1, 2)) == 1).all())
        and bool((box.sum((1, 2)) == goal.sum((1, 2))).all())
        and bool(box.any((1, 2)).all())
    )
    return LevelTable(_pack(~wall), _pack(goal), _pack(box), _pack(player)) if regular else None


def _pack(cells: NDArray[np.bool_]) -> Words:
    """(N, 8, 8) booleans to (N,) words."""
    rows = np.packbits(cells, axis=2, bitorder="little").reshape(len(cells), INTERIOR)
    return np.ascontiguousarray(rows).view("<u8").reshape(len(cells)).astype(np.uint64)
