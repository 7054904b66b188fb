"""Pictures of levels: ANSI for the terminal, PNG for a position, an animated GIF for a solution.

    python -m sokoban.render LEVELFILE --index 3                         # print the level
    python -m sokoban.render LEVELFILE --index 3 --out level.png
    python -m sokoban.render LEVELFILE --index 3 --moves rrUULd... --out solution.gif

A position is a `Level` whose boxes and player have moved. Everything is drawn here from plain shapes, four
times too large and then scaled down, so that edges are smooth.
"""

import argparse
import io
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from sokoban import tiles
from sokoban.files import write_atomic
from sokoban.levels import DIALECTS, XSB, Cell, Level, LevelError, format_level, read_levels
from sokoban.reference import DOWN, LETTERS, OFFSETS, Game, IllegalMove, replay
from sokoban.solver import region

TILE = 48  # pixels a cell
FRAMES_PER_MOVE = 3
FRAME_MS = 50  # GIF delays are multiples of 10 ms
HOLD_MS = 1500  # the first and the last position


class _Refused(Exception):
    """Options that do not fit together."""


def ansi(position: Level) -> str:
    """The position for a terminal: two columns a cell, 24-bit colours, a reset at the end of each line."""
    inside = _inside(position)
    lines = []
    for row in range(position.height):
        line = ""
        for column in range(position.width):
            cell = (row, column)
            back, fore, text = tiles.FLOOR_ODD if sum(cell) % 2 else tiles.FLOOR, tiles.GOAL, "  "
            if cell not in inside:
                back = tiles.WALL if cell in position.walls else tiles.NIGHT
            elif cell in position.boxes:
                back = (tiles.CRATE_HOME if cell in position.goals else tiles.CRATE)[0]
                fore, text = tiles.NIGHT, "[]"
            elif cell == position.player:
                fore, text = tiles.PLAYER_DARK, "()" if cell in position.goals else "◖◗"
            elif cell in position.goals:
                text = "◇ "
            line += f"\x1b[48;2;{_rgb(back)};38;2;{_rgb(fore)}m{text}"
        lines.append(line + "\x1b[0m")
    return "\n".join(lines) + "\n"


def picture(position: Level, *, facing: int = DOWN, tile: int = TILE) -> Image.Image:
    """The position as an RGB image of width * tile by height * tile pixels."""
    image = _room(position, tile)
    for cell in sorted(position.boxes):
        _put(image, tiles.crate(tile, cell in position.goals), cell, tile)
    _put(image, tiles.player(tile, facing), position.player, tile)
    return image.convert("RGB")


def png(position: Level, *, facing: int = DOWN, tile: int = TILE) -> bytes:
    """`picture` as the bytes of a PNG file."""
    buffer = io.BytesIO()
    picture(position, facing=facing, tile=tile).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def gif(level: Level, moves: str, *, tile: int = TILE) -> bytes:
    """Play `moves` (LURD notation) and return the bytes of a GIF that loops.

    Raises:
        IllegalMove: the rules do not allow the moves.
    """
    replay(level, moves, limit=len(moves))
    frames = list(_frames(level, moves, tile))
    colours = _palette(tile)
    images = [frame.convert("RGB").quantize(palette=colours, dither=Image.Dither.NONE) for frame in frames]
    times = [FRAME_MS] * len(images)
    times[0] = times[-1] = HOLD_MS
    buffer = io.BytesIO()
    images[0].save(buffer, "GIF", save_all=True, append_images=images[1:], duration=times, loop=0)
    return buffer.getvalue()


def positions(level: Level, moves: str) -> list[Level]:
    """The position before the first move and after each; `moves` must be legal."""
    game = Game(level)
    seen = [level]
    for letter in moves:
        game.move(LETTERS.index(letter.lower()))
        seen.append(replace(level, boxes=frozenset(game.boxes), player=game.player))
    return seen


def _frames(level: Level, moves: str, tile: int) -> Iterator[Image.Image]:
    """The start, then FRAMES_PER_MOVE images a move in which player and box slide to their next cells."""
    room = _room(level, tile)
    line = positions(level, moves)
    facing = DOWN
    yield picture(level, tile=tile)
    for before, after, letter in zip(line, line[1:], moves, strict=False):
        facing = LETTERS.index(letter.lower())
        moved = before.boxes - after.boxes
        for frame in range(1, FRAMES_PER_MOVE + 1):
            part = frame / FRAMES_PER_MOVE
            image = room.copy()
            for cell in sorted(before.boxes & after.boxes):
                _put(image, tiles.crate(tile, cell in level.goals), cell, tile)
            for cell in moved:
                end = (cell[0] + OFFSETS[facing][0], cell[1] + OFFSETS[facing][1])
                home = (end if part > 0.5 else cell) in level.goals
                _put(image, tiles.crate(tile, home), _between(cell, end, part), tile)
            _put(image, tiles.player(tile, facing), _between(before.player, after.player, part), tile)
            yield image


def _between(start: Cell, end: Cell, part: float) -> tuple[float, float]:
    return start[0] + (end[0] - start[0]) * part, start[1] + (end[1] - start[1]) * part


def _put(image: Image.Image, sprite: Image.Image, cell: tuple[float, float], tile: int) -> None:
    image.alpha_composite(sprite, (round(cell[1] * tile), round(cell[0] * tile)))


def _palette(tile: int) -> Image.Image:
    """One palette for all frames, from a small board that shows everything, the night outside included."""
    inside = {(row, column) for row in (1, 2) for column in range(1, 6)}
    sample = Level(
        height=4,
        width=9,
        walls=frozenset(set(product(range(4), range(9))) - inside),
        goals=frozenset({(1, 1), (1, 2), (2, 5)}),
        boxes=frozenset({(1, 1), (1, 4), (2, 2)}),
        player=(2, 3),
    )
    return picture(sample, tile=tile).quantize(colors=256, method=Image.Quantize.MEDIANCUT)


def _room(level: Level, tile: int) -> Image.Image:
    """Walls, floor and goals. Walls stand above the floor, so each has a face below it and casts a shadow."""
    size = tile * tiles.SCALE
    board = set(product(range(level.height), range(level.width)))
    floor = _inside(level)
    near = {(r + dr, c + dc) for r, c in floor for dr in (-1, 0, 1) for dc in (-1, 0, 1)} & board
    walls_mask, floor_mask = _mask(level, near, size), _mask(level, floor, size)
    canvas = Image.new("RGB", (level.width * size, level.height * size), tiles.NIGHT)
    canvas.paste(tiles.WALL_EDGE, mask=walls_mask)
    canvas.paste(tiles.WALL, mask=ImageChops.darker(walls_mask, _down(walls_mask, size // 14)))
    canvas.paste(tiles.WALL_FACE, mask=floor_mask)
    lit = ImageChops.darker(floor_mask, _down(floor_mask, size // 5))
    canvas.paste(tiles.FLOOR, mask=lit)
    odd = _mask(level, {cell for cell in floor if sum(cell) % 2}, size, smooth=False)
    canvas.paste(tiles.FLOOR_ODD, mask=ImageChops.darker(lit, odd))
    shadow = ImageChops.subtract(lit, _down(lit, size // 8)).filter(ImageFilter.GaussianBlur(size / 24))
    canvas.paste(tiles.SHADE, mask=ImageChops.darker(shadow, lit).point(lambda value: value * 0.28))
    draw = ImageDraw.Draw(canvas)
    for row, column in level.goals:
        x, y = (column + 0.5) * size, (row + 0.56) * size
        tiles.disc(draw, x, y, size * 0.27, tiles.GOAL)
        tiles.disc(draw, x, y, size * 0.19, tiles.FLOOR_ODD if (row + column) % 2 else tiles.FLOOR)
        tiles.disc(draw, x, y, size * 0.10, tiles.GOAL)
    shape = (level.width * tile, level.height * tile)
    return canvas.resize(shape, Image.Resampling.LANCZOS).convert("RGBA")


def _inside(level: Level) -> set[Cell]:
    """The floor that the player, a box or a goal is connected to; what lies outside the walls is not."""
    things = {level.player, *level.boxes, *level.goals}
    return set[Cell]().union(*(region(level, frozenset(), cell) for cell in things))


def _mask(level: Level, cells: set[Cell], size: int, *, smooth: bool = True) -> Image.Image:
    """White where `cells` are; blurring and cutting at half height rounds every corner, inner ones too."""
    mask = Image.new("L", (level.width * size, level.height * size), 0)
    draw = ImageDraw.Draw(mask)
    for row, column in cells:
        draw.rectangle((column * size, row * size, (column + 1) * size - 1, (row + 1) * size - 1), fill=255)
    if smooth:
        mask = mask.filter(ImageFilter.GaussianBlur(size / 12)).point(lambda value: 255 * (value > 127))
    return mask


def _down(mask: Image.Image, distance: int) -> Image.Image:
    """The mask moved down, empty at the top."""
    moved = Image.new("L", mask.size, 0)
    moved.paste(mask, (0, distance))
    return moved


def _rgb(colour: str) -> str:
    return ";".join(str(int(colour[start : start + 2], 16)) for start in (1, 3, 5))


def main() -> int:
    """Show a level in the terminal or write its picture; 2 for input that is no good."""
    parser = argparse.ArgumentParser(prog="python -m sokoban.render", description="Draw a Sokoban level.")
    parser.add_argument("levels", type=Path, help="file of levels")
    parser.add_argument("--index", type=int, default=0, help="which level of the file, from 0 (0)")
    parser.add_argument("--dialect", choices=sorted(DIALECTS), default=XSB.name, help="of the file (XSB)")
    parser.add_argument("--moves", default="", help="moves to play, in LURD notation: udlr, UDLR for pushes")
    parser.add_argument(
        "--out", type=Path, help="file.png for the position after the moves, file.gif for all"
    )
    parser.add_argument("--tile", type=int, default=TILE, help=f"pixels a cell, 8 to 256 ({TILE})")
    options = parser.parse_args()
    try:
        _draw(options)
    except (LevelError, IllegalMove, _Refused) as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
    else:
        return 0
    return 2


def _draw(options: argparse.Namespace) -> None:
    kind = options.out.suffix.lower() if options.out else ""
    if kind not in ("", ".png", ".gif") or (options.out and not kind):
        raise _Refused(f"{options.out}: a picture is .png or .gif")
    if kind == ".gif" and not options.moves:
        raise _Refused("a .gif shows moves: give --moves")
    if not 8 <= options.tile <= 256:
        raise _Refused(f"--tile {options.tile}: between 8 and 256 pixels")
    levels = read_levels(options.levels, DIALECTS[options.dialect])
    if not 0 <= options.index < len(levels):
        raise _Refused(f"{options.levels} has the levels 0 to {len(levels) - 1}, not {options.index}")
    level = levels[options.index]
    played = replay(level, options.moves, limit=len(options.moves))
    end = positions(level, options.moves)[-1]
    facing = LETTERS.index(options.moves[-1].lower()) if options.moves else DOWN
    if kind == ".gif":
        write_atomic(options.out, gif(level, options.moves, tile=options.tile))
    elif kind == ".png":
        write_atomic(options.out, png(end, facing=facing, tile=options.tile))
    else:
        coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        print(ansi(end) if coloured else format_level(end), end="")
    if options.moves:
        print(f"{'solved' if played.solved else 'not solved'}: {played.moves} moves, {played.pushes} pushes")
    if options.out:
        print(options.out)


if __name__ == "__main__":
    sys.exit(main())
