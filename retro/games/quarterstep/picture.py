"""Pictures of Quarterstep's screens, from tiles and maps: `python -m retro.games.quarterstep.picture`.

The command draws the title and every level with a fastest way through it into docs/figures/quarterstep.png.
"""

import argparse
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from harness.errors import run_command
from harness.files import write_atomic
from retro.games.quarterstep import Quarterstep, graphics, model
from retro.games.quarterstep.levels import SPARK, screens
from retro.games.quarterstep.optimum import optimum
from retro.inputs import parse_inputs

FIGURE = Path(__file__).parents[3] / "docs" / "figures" / "quarterstep.png"
_ROUTE, _LAG = (255, 240, 90), (255, 110, 70)


def background(level: int) -> NDArray[np.uint8]:
    """Screen 0 (title), 1 to 5 (levels) or 6 (ending) without the player: (240, 256, 3), red, green, blue.

    The game's x, y in pixels count from its top left; the core shows rows 8 to 231 and columns 8 to 247.
    """
    screen = screens()[level]
    palettes = (graphics.BRICKS[level], *graphics.PALETTES[1:4])
    colours = np.array([[graphics.COLOURS[ink] for ink in palette] for palette in palettes], np.uint8)
    stars = graphics.star_places()
    picture = np.zeros((240, 256), np.uint8)
    palette = np.zeros((240, 256), np.uint8)
    for (row, column), code in np.ndenumerate(screen.tiles):
        place = (slice(row * 16, row * 16 + 16), slice(column * 16, column * 16 + 16))
        if code or stars[row, column]:
            picture[place] = graphics.tile(int(code))
        palette[place] = graphics.TILE_PALETTES[code]
    for row, column, text, large in graphics.texts(screen):
        letters = [graphics.big(letter) if large else graphics.font()[letter] for letter in text]
        ink = np.concatenate(letters, axis=1)
        picture[row * 8 : row * 8 + ink.shape[0], column * 8 : column * 8 + ink.shape[1]] = ink
    return np.asarray(colours[palette, picture], np.uint8)


def route(level: int) -> list[tuple[float, float, bool]]:
    """A fastest way through a level: the middle of the player in pixels after each frame, and whether the
    sparks take the next one."""
    screen = screens()[level]
    solution = optimum()["levels"][level - 1]
    state, lag = model.start(screen), False
    way = []
    for buttons in parse_inputs(solution["inputs"], Quarterstep().console_buttons):
        if lag:
            lag = False
        else:
            state, touched = model.step(screen, state, buttons)
            lag = bool(touched[0] == SPARK)
        way.append((float(state.x[0]) / 4 + 4, float(state.y[0]) / 4 + 4, lag))
    return way


def draw(level: int) -> Image.Image:
    """A level with a fastest way: a dot a frame, and a red one where a frame is lost."""
    image = Image.fromarray(background(level))
    pen = ImageDraw.Draw(image)
    for x, y, lag in route(level):
        pen.rectangle(
            (round(x) - lag, round(y) - lag, round(x) + lag, round(y) + lag), _LAG if lag else _ROUTE
        )
    return image


def main() -> int:
    """The command."""
    argparse.ArgumentParser(
        prog="python -m retro.games.quarterstep.picture",
        description="Draw the title and the five levels of Quarterstep, each with a fastest way.",
    ).parse_args()
    sheet = Image.new("RGB", (3 * 256 + 16, 2 * 240 + 8), "white")
    for place in range(6):
        image = draw(place) if place else Image.fromarray(background(0))
        sheet.paste(image, (place % 3 * 264, place // 3 * 248))
    content = io.BytesIO()
    sheet.quantize(32).save(content, "PNG", optimize=True)
    write_atomic(FIGURE, content.getvalue())
    print(f"{FIGURE.name}: {len(content.getvalue()):,} bytes")
    return 0


if __name__ == "__main__":
    run_command(main)
