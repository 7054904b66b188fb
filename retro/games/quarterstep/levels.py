"""The screens of Quarterstep, read from levels.txt: the one source of the ROM, the model and the pictures."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.errors import Problem
from harness.files import read_bytes

LEVELS = Path(__file__).parent / "levels.txt"
WIDTH, HEIGHT = 16, 15
TILE = 64  # quarter pixels along one side of a tile
BOX = 32  # ... and of the player

EMPTY, EXIT, SPIKE, PORTAL, SPARK, LOCK, HANGING, BRICK, LEDGE, DOOR = 0, 1, 2, 3, 4, 5, 6, 8, 9, 10
"""Codes of tiles; from BRICK on they are solid. A LEDGE is a brick with nothing solid above it."""
_CODES = {
    ".": EMPTY, "S": EMPTY, "Q": EMPTY, "E": EXIT, "^": SPIKE, "v": HANGING,
    "P": PORTAL, "*": SPARK, "L": LOCK, "#": BRICK, "D": DOOR,
}  # fmt: skip
CLOSED = 64
"""What the door variable holds until the lock was touched. Then it counts down, and 0 is open."""


@dataclass(frozen=True)
class Screen:
    """One screen: the title (0), a level (1 to 5) or the ending (6)."""

    number: int
    name: str
    tiles: NDArray[np.uint8]
    """(15, 16), codes of tiles."""
    start: tuple[int, int]
    """x, y of the player's box at the start, in quarter pixels from the top left."""
    beyond: tuple[int, int]
    """x, y where the portal leads."""
    door: tuple[int, int] | None
    """Column and row of the door."""

    def page(self) -> bytes:
        """The 256 bytes that the ROM keeps of it: tiles by rows, start, beyond, the door's state and tile."""
        places = b"".join(value.to_bytes(2, "little") for value in (*self.start, *self.beyond))
        column, row = self.door or (0, 0)
        rest = bytes([CLOSED if self.door else 0, row * WIDTH + column])
        return (self.tiles.tobytes() + places + rest).ljust(256, b"\0")


@cache
def screens() -> tuple[Screen, ...]:
    """All screens of levels.txt, in order."""
    return tuple(parse(read_bytes(LEVELS).decode(), LEVELS))


def parse(text: str, path: Path) -> list[Screen]:
    """The screens in a text.

    Raises:
        Problem: a screen is not 16x15 of known tiles, is not closed in, is out of order, or lacks its start
            or exit.
    """
    found: list[Screen] = []
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line and line[0] != ";"]
    for first in range(0, len(lines), HEIGHT + 1):
        number, heading = lines[first]
        match = re.fullmatch(r"screen (\d) ([A-Z0-9 !-]{1,28})", heading)
        rows = lines[first + 1 : first + 1 + HEIGHT]
        if match is None or int(match[1]) != len(found):
            raise Problem(f"not the heading of screen {len(found)}: {heading!r}", file=path, line=number)
        for place, row in rows:
            if len(row) != WIDTH or set(row) - set(_CODES):
                raise Problem(f"not {WIDTH} tiles of {''.join(_CODES)}", file=path, line=place)
        if len(rows) != HEIGHT:
            raise Problem(f"a screen has {HEIGHT} rows", file=path, line=number)
        try:
            found.append(_screen(len(found), match[2], [row for _, row in rows]))
        except ValueError as error:
            raise Problem(f"screen {len(found)}: {error}", file=path, line=number) from error
    return found


def _screen(number: int, name: str, rows: list[str]) -> Screen:
    text = "".join(rows)
    edge = rows[0] + rows[-1] + "".join(row[0] + row[-1] for row in rows)
    if set(edge) != {"#"}:
        raise ValueError("it is not closed in by #")
    for character, least, most in (("S", 1, 1), ("E", 1, WIDTH), ("Q", 0, 1), ("D", 0, 1)):
        if not least <= text.count(character) <= most:
            raise ValueError(f"{text.count(character)} of {character}")
    tiles = np.array([_CODES[character] for character in text], np.uint8).reshape(HEIGHT, WIDTH)
    below = tiles[1:]
    below[(below == BRICK) & (tiles[:-1] < BRICK)] = LEDGE

    def standing(character: str) -> tuple[int, int]:
        row, column = divmod(text.index(character), WIDTH)
        return column * TILE + (TILE - BOX) // 2, (row + 1) * TILE - BOX

    door = divmod(text.index("D"), WIDTH)[::-1] if "D" in text else None
    return Screen(number, name, tiles, standing("S"), standing("Q") if "Q" in text else (0, 0), door)
