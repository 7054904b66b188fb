"""The colours and the movable tiles of `sokoban.render`: a crate, and the player facing four ways."""

from functools import cache

from PIL import Image, ImageDraw, ImageFilter

from sokoban.reference import OFFSETS

SCALE = 4  # how much larger shapes are drawn before they are scaled down

NIGHT, WALL, WALL_EDGE, WALL_FACE = "#1b2230", "#46546b", "#5b6b85", "#323d50"
FLOOR, FLOOR_ODD, SHADE = "#efe7da", "#e9dfcf", (60, 44, 30)
GOAL = "#d9694f"
CRATE = ("#e2ab52", "#c98b36", "#8f5a22")  # lid, planks, side
CRATE_HOME = ("#83b868", "#649a4c", "#3f6b31")
PLAYER, PLAYER_LIGHT, PLAYER_DARK = "#4d7fd0", "#7ea6e6", "#2f5496"


@cache
def crate(tile: int, home: bool) -> Image.Image:
    """A wooden crate seen from slightly above, green on a goal."""
    lid, planks, side = CRATE_HOME if home else CRATE
    image, draw, size = _sprite(tile)
    _shadow(image, size)
    edge, radius = size * 0.10, size * 0.09
    draw.rounded_rectangle((edge, edge, size - edge, size * 0.93), radius, fill=side)
    top = (edge, size * 0.06, size - edge, size * 0.80)
    draw.rounded_rectangle(top, radius, fill=planks)
    inner = (edge + size * 0.09, size * 0.15, size - edge - size * 0.09, size * 0.71)
    draw.rounded_rectangle(inner, radius * 0.6, fill=lid)
    width = round(size * 0.085)
    left, upper, right, lower = (round(value) for value in inner)
    for start, end in (((left, lower), (right, upper)), ((left, upper), (right, lower))):
        draw.line((start, end), fill=planks, width=width)
    draw.rounded_rectangle(inner, radius * 0.6, outline=planks, width=round(size * 0.02))
    return _finished(image, tile)


@cache
def player(tile: int, facing: int) -> Image.Image:
    """A round fellow who looks where he goes."""
    image, draw, size = _sprite(tile)
    _shadow(image, size)
    x, y, radius = size * 0.5, size * 0.49, size * 0.37
    disc(draw, x, y, radius, PLAYER_DARK)
    disc(draw, x, y - size * 0.025, radius * 0.93, PLAYER)
    disc(draw, x - size * 0.03, y - size * 0.07, radius * 0.72, PLAYER_LIGHT)
    disc(draw, x - size * 0.005, y - size * 0.035, radius * 0.74, PLAYER)
    down, right = OFFSETS[facing]
    for side in (-1, 1):
        eye_x, eye_y = x + side * size * 0.125 + right * size * 0.08, y - size * 0.05 + down * size * 0.07
        disc(draw, eye_x, eye_y, size * 0.088, "#ffffff")
        disc(draw, eye_x + right * size * 0.03, eye_y + down * size * 0.03, size * 0.048, NIGHT)
    return _finished(image, tile)


def _sprite(tile: int) -> tuple[Image.Image, ImageDraw.ImageDraw, int]:
    image = Image.new("RGBA", (tile * SCALE, tile * SCALE), (*SHADE, 0))
    return image, ImageDraw.Draw(image), tile * SCALE


def _shadow(image: Image.Image, size: int) -> None:
    """A soft shadow on the floor, drawn before the thing that casts it."""
    soft = Image.new("L", (size, size), 0)
    ImageDraw.Draw(soft).ellipse((size * 0.10, size * 0.62, size * 0.90, size * 0.98), fill=120)
    image.putalpha(soft.filter(ImageFilter.GaussianBlur(size / 28)))


def _finished(image: Image.Image, tile: int) -> Image.Image:
    return image.resize((tile, tile), Image.Resampling.LANCZOS)


def disc(draw: ImageDraw.ImageDraw, x: float, y: float, radius: float, colour: str) -> None:
    """A filled circle around (x, y), in pixels."""
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
