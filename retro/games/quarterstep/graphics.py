"""The pictures of Quarterstep: tiles.txt and font.txt as pattern tables of the PPU, and their colours."""

import re
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.errors import Problem
from harness.files import read_bytes
from retro.games.quarterstep import levels

FOLDER = Path(__file__).parent
Picture = NDArray[np.uint8]
"""(height, width), colours 0 to 3."""

TILES = ("star", "exit", "spike", "portal", "spark", "lock", "hanging", "", "brick", "ledge", "door")
"""The picture of each code of tiles; an empty tile is a star in one corner."""
TILE_PALETTES = (0, 1, 2, 3, 3, 1, 2, 0, 0, 0, 1)
SPRITES = ("stand", "run", "step", "jump", "dead", "mote")
PALETTES = (
    (0x0F, 0x3A, 0x1A, 0x0B), (0x0F, 0x38, 0x28, 0x17), (0x0F, 0x30, 0x16, 0x0B), (0x0F, 0x3C, 0x21, 0x14),
    (0x0F, 0x36, 0x27, 0x07), (0x0F, 0x3C, 0x21, 0x30), (0x0F, 0x30, 0x30, 0x30), (0x0F, 0x30, 0x30, 0x30),
)  # fmt: skip
"""Four of the background, then four of sprites; numbers of the PPU's colours."""
BRICKS = (
    (0x0F, 0x3A, 0x1A, 0x0B), (0x0F, 0x3A, 0x1A, 0x0B), (0x0F, 0x3C, 0x11, 0x01), (0x0F, 0x35, 0x15, 0x04),
    (0x0F, 0x37, 0x17, 0x07), (0x0F, 0x3C, 0x1C, 0x0C), (0x0F, 0x3A, 0x1A, 0x0B),
)  # fmt: skip
"""What each screen has instead of the first palette."""
COLOURS = {
    0x01: (0, 42, 136), 0x04: (90, 0, 70), 0x07: (88, 40, 0), 0x0B: (0, 60, 20), 0x0C: (0, 58, 80),
    0x0F: (0, 0, 0), 0x11: (30, 90, 220), 0x14: (148, 28, 168), 0x15: (170, 20, 100), 0x16: (184, 40, 24),
    0x17: (152, 72, 0), 0x1A: (16, 128, 16), 0x1C: (0, 120, 140), 0x21: (72, 144, 252), 0x27: (240, 136, 36),
    0x28: (220, 180, 30), 0x30: (252, 252, 252), 0x35: (252, 196, 220), 0x36: (252, 204, 180),
    0x37: (252, 216, 168), 0x38: (248, 228, 140), 0x3A: (176, 244, 176), 0x3C: (160, 228, 252),
}  # fmt: skip
"""Red, green and blue that pictures show for the PPU's colours; there is no one right answer."""
FIRST_TILE, FIRST_BIG = (
    0x80,
    0xB0,
)  # numbers in the background's pattern table; the font's are its letters' ASCII


@cache
def pictures() -> dict[str, Picture]:
    """Every picture of tiles.txt by name."""
    found: dict[str, Picture] = {}
    lines = _lines("tiles.txt")
    while lines:
        number, heading = lines.pop(0)
        match = re.fullmatch(r"([a-z]+) (8|16)x(8|16)", heading)
        if match is None:
            raise Problem(
                f"not a picture's name and size: {heading!r}", file=FOLDER / "tiles.txt", line=number
            )
        rows, lines = lines[: int(match[3])], lines[int(match[3]) :]
        for place, row in rows:
            if not re.fullmatch(rf"[.123]{{{match[2]}}}", row):
                raise Problem(f"not a row of {match[1]}", file=FOLDER / "tiles.txt", line=place)
        found[match[1]] = np.array([[".123".index(dot) for dot in row] for _, row in rows], np.uint8)
    return found


@cache
def font() -> dict[str, Picture]:
    """Every letter as an 8x8 picture in colour 1, with a shadow in colour 3."""
    found = {" ": np.zeros((8, 8), np.uint8), "-": np.zeros((8, 8), np.uint8)}
    found["-"][3, 1:6] = 1
    lines = _lines("font.txt")
    for first in range(0, len(lines), 8):
        rows = [row.split() for _, row in lines[first + 1 : first + 8]]
        for place, letter in enumerate(lines[first][1]):
            ink = np.zeros((8, 8), bool)
            ink[:7, 1:6] = [[dot == "#" for dot in row[place]] for row in rows]
            found[letter] = ink.astype(np.uint8)
    return found


def tile(code: int) -> Picture:
    """The 16x16 picture of a code of tiles."""
    if code == levels.HANGING:
        return pictures()["spike"][::-1]
    picture = pictures()[TILES[code]]
    if code == levels.EMPTY:
        return np.pad(picture, ((0, 8), (0, 8)))
    return picture


def star_places() -> NDArray[np.bool_]:
    """(15, 16): which tiles show a star where they are empty, as src/screen.s has it."""
    # The tables there are read with the index of the next tile.
    places = np.arange(1, levels.HEIGHT * levels.WIDTH + 1)
    shown: NDArray[np.bool_] = ((places * 73 + places // 16 * 29) % 11 == 0).reshape(
        levels.HEIGHT, levels.WIDTH
    )
    return shown


def big_letters() -> list[str]:
    """The letters that the title needs at double size."""
    return sorted(set(levels.screens()[0].name))


def big(letter: str) -> Picture:
    """A letter at double size, shaded."""
    picture = font()[letter].repeat(2, 0).repeat(2, 1)
    picture[9:][picture[9:] == 1] = 2
    shadow = np.pad(picture, ((1, 0), (1, 0)))[:-1, :-1]
    return np.where((picture == 0) & (shadow > 0), 3, picture).astype(np.uint8)


def quarters(picture: Picture) -> list[Picture]:
    """A 16x16 picture as 8x8: top left, top right, bottom left, bottom right."""
    return [picture[row : row + 8, column : column + 8] for row in (0, 8) for column in (0, 8)]


def patterns() -> bytes:
    """Both pattern tables, 8 KiB: background, then sprites."""
    tables = np.zeros((2, 256, 8, 8), np.uint8)
    for letter, picture in font().items():
        tables[0, ord(letter)] = picture
    for code in range(len(TILES)):
        if TILES[code]:
            tables[0, FIRST_TILE + 4 * code : FIRST_TILE + 4 * code + 4] = quarters(tile(code))
    for place, letter in enumerate(big_letters()):
        tables[0, FIRST_BIG + 4 * place : FIRST_BIG + 4 * place + 4] = quarters(big(letter))
    for place, name in enumerate(SPRITES):
        tables[1, place] = pictures()[name]
    planes = np.stack([np.packbits(tables & 1, axis=-1), np.packbits(tables >> 1, axis=-1)], axis=2)
    return planes.tobytes()


def attributes(screen: levels.Screen) -> bytes:
    """The 64 bytes that give each tile of a screen its palette."""
    chosen = np.zeros((16, 16), np.uint8)
    chosen[: levels.HEIGHT] = np.array(TILE_PALETTES, np.uint8)[screen.tiles]
    return (
        chosen[::2, ::2] | chosen[::2, 1::2] << 2 | chosen[1::2, ::2] << 4 | chosen[1::2, 1::2] << 6
    ).tobytes()


def texts(screen: levels.Screen) -> list[tuple[int, int, str, bool]]:
    """What is written on a screen: row and column in 8x8 cells, letters, whether at double size."""
    if screen.number == 0:
        return [(6, 5, screen.name, True), (11, 11, "PRESS START", False)]
    if screen.number == len(levels.screens()) - 1:
        return [(10, 12, screen.name, False)]
    return [(1, 2, f" {screen.name} ", False)]


def cells(text: str, large: bool) -> list[bytes]:
    """The rows of pattern numbers that write a text: one row, or two at double size."""
    if not large:
        return [text.encode("ascii")]
    numbers = [FIRST_BIG + 4 * big_letters().index(letter) for letter in text]
    return [bytes(number + side + row for number in numbers for side in (0, 1)) for row in (0, 2)]


def _lines(name: str) -> list[tuple[int, str]]:
    lines = read_bytes(FOLDER / name).decode("ascii").splitlines()
    return [(number, line) for number, line in enumerate(lines, 1) if line and line[0] != ";"]
