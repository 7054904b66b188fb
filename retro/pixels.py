"""A screen of few colours as SVG, pixel by pixel and in the same bytes on every machine.

Consoles build their screens of tiles that repeat, so each kind of tile is drawn once and then placed.
"""

from itertools import groupby

import numpy as np
from numpy.typing import NDArray

SIDE = 8  # pixels of a tile


class TileSheet:
    """The tiles of several pictures, each kept once."""

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}
        self._drawn: list[str] = []

    def draw(self, picture: NDArray[np.uint8]) -> str:
        """A picture (height, width, 3), both multiples of `SIDE`, as SVG elements that use the tiles."""
        height, width, _ = picture.shape
        if height % SIDE or width % SIDE:
            raise ValueError(f"a picture of {width}x{height} is not made of tiles of {SIDE}x{SIDE}")
        colors, counts = np.unique(picture.reshape(-1, 3), axis=0, return_counts=True)
        ground = colors[counts.argmax()]
        parts = [f'<rect width="{width}" height="{height}" fill="{_color(ground)}"/>']
        for y in range(0, height, SIDE):
            for x in range(0, width, SIDE):
                tile = picture[y : y + SIDE, x : x + SIDE]
                if (tile != ground).any():
                    parts.append(f'<use href="#{self._name(tile)}" x="{x}" y="{y}"/>')
        return "\n".join(parts)

    def definitions(self) -> str:
        """The tiles of all that was drawn, as the SVG element that must stand with it."""
        return "\n".join(["<defs>", *self._drawn, "</defs>"])

    def _name(self, tile: NDArray[np.uint8]) -> str:
        key = tile.tobytes()
        if key not in self._names:
            self._names[key] = f"tile{len(self._names)}"
            self._drawn.append(f'<g id="{self._names[key]}">{_paths(tile)}</g>')
        return self._names[key]


def _paths(tile: NDArray[np.uint8]) -> str:
    """A path for each colour, of one rectangle for each run of it in a row."""
    runs: dict[str, list[str]] = {}
    for y, row in enumerate(tile):
        x = 0
        for color, group in groupby(map(_color, row)):
            length = len(list(group))
            runs.setdefault(color, []).append(f"M{x} {y}h{length}v1h-{length}z")
            x += length
    return "".join(f'<path fill="{color}" d="{"".join(runs[color])}"/>' for color in sorted(runs))


def _color(pixel: NDArray[np.uint8]) -> str:
    return "#" + "".join(f"{int(value):02x}" for value in pixel)
