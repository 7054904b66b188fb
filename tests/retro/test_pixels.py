"""Pictures as SVG: what is drawn is the picture, pixel by pixel, and tiles are shared."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from retro.pixels import TileSheet

SVG = "{http://www.w3.org/2000/svg}"


def render(sheet: TileSheet, drawn: str, height: int, width: int) -> NDArray[np.uint8]:
    """Paint what the elements say, with a painter that knows only what TileSheet uses."""
    root = ElementTree.fromstring(
        f'<svg xmlns="http://www.w3.org/2000/svg">{sheet.definitions()}<g>{drawn}</g></svg>'
    )
    tiles = {element.attrib["id"]: element for element in root.find(f"{SVG}defs") or ()}
    picture = np.zeros((height, width, 3), np.uint8)
    for element in root.find(f"{SVG}g") or ():
        if element.tag == f"{SVG}rect":
            picture[: int(element.attrib["height"]), : int(element.attrib["width"])] = color(element)
        else:
            left, top = int(element.attrib["x"]), int(element.attrib["y"])
            for path in tiles[element.attrib["href"].removeprefix("#")]:
                for x, y, run in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\3z", path.attrib["d"]):
                    start = left + int(x)
                    picture[top + int(y), start : start + int(run)] = color(path)
    return picture


def color(element: ElementTree.Element) -> list[int]:
    return list(bytes.fromhex(element.attrib["fill"].removeprefix("#")))


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_what_is_drawn_is_the_picture(rows: int, columns: int, colors: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    palette = generator.integers(0, 256, (colors, 3), np.uint8)
    kinds = palette[generator.integers(0, colors, (2, 8, 8))]
    chosen = kinds[generator.integers(0, 2, (rows, columns))]  # rows, columns, 8, 8, 3
    picture = chosen.swapaxes(1, 2).reshape(8 * rows, 8 * columns, 3)
    sheet = TileSheet()
    assert (render(sheet, sheet.draw(picture), 8 * rows, 8 * columns) == picture).all()
    assert sheet.definitions().count("<g id=") <= 2


def test_two_pictures_share_their_tiles() -> None:
    sheet, picture = TileSheet(), np.zeros((16, 16, 3), np.uint8)
    picture[3, 4] = 255
    first = sheet.draw(picture)
    assert sheet.draw(picture) == first
    assert sheet.definitions().count("<g id=") == 1


def test_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="12x8 is not made of tiles"):
        TileSheet().draw(np.zeros((8, 12, 3), np.uint8))
