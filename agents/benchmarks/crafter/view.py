"""FIXED: what the player sees of a Crafter world: 9 by 7 cells, as dark as the picture would be.

At night the picture is mixed with noise, more of it far from the player than near. A cell counts as unseen
where noise outweighs what is drawn there. Write d for daylight, and v for the package's vignette at the
middle of the cell, 1 - exp(-2 (x^2 + y^2)) with x and y from -1 to 1 across the view. The picture is d parts
day and 1 - d parts night; half of night is a dark blue, and of the other half m = (1 - 2 d) v is noise. So a
cell is unseen if (1 - d) m / 2 > d + (1 - d) (1 - m) / 2. Sleep makes the picture grey and dim but hides
nothing.
"""

import math
from typing import Any, NamedTuple

WIDTH, HEIGHT = 9, 7
RIGHT, DOWN = WIDTH // 2, HEIGHT // 2  # steps to the view's border
UNSEEN, OUTSIDE = "unseen", "outside"
DIRECTIONS = {(-1, 0): "left", (1, 0): "right", (0, -1): "up", (0, 1): "down"}
PIXELS = 7  # of a cell, in the picture of 64 by 64 that agents get


class Creature(NamedTuple):
    """Whatever stands or flies on a cell."""

    kind: str
    """cow, zombie, skeleton, arrow, sapling, ripe plant"""
    right: int
    """Steps right of the player; negative = left."""
    down: int
    """Steps down from the player; negative = up."""
    flies: str | None
    """Where an arrow flies to: left, right, up, down."""


class View(NamedTuple):
    """What is seen."""

    grid: tuple[tuple[str, ...], ...]
    """Materials, 7 rows of 9 from top left; the player stands on grid[3][4]."""
    creatures: tuple[Creature, ...]
    """The nearest first."""
    facing: str
    material: str
    """Of the cell that is faced."""
    creature: str | None
    """On the cell that is faced."""


def vignette(right: int, down: int) -> float:
    """How much of a night's noise lies on the middle of a cell, 0 to 1."""
    x = right * 2 * PIXELS / (WIDTH * PIXELS - 1)
    y = down * 2 * PIXELS / (HEIGHT * PIXELS - 1)
    return 1 - math.exp(-2 * (x * x + y * y))


VIGNETTES = {
    (right, down): vignette(right, down)
    for down in range(-DOWN, DOWN + 1)
    for right in range(-RIGHT, RIGHT + 1)
}


def seen(right: int, down: int, daylight: float) -> bool:
    """Whether a cell can be made out at this daylight, 0 to 1."""
    noise = (1 - 2 * daylight) * VIGNETTES[right, down]
    return (1 - daylight) * (2 * noise - 1) <= 2 * daylight


def kind_of(thing: Any) -> str:
    """What one of the package's objects is called."""
    if type(thing).__name__ == "Plant":
        return "ripe plant" if thing.ripe else "sapling"
    return type(thing).__name__.lower()


def look(world: Any, player: Any) -> View:
    """What the player sees now."""
    x, y = (int(value) for value in player.pos)
    width, height = world.area
    daylight = float(world.daylight)
    grid = [[OUTSIDE] * WIDTH for _ in range(HEIGHT)]
    things = []
    names, materials, objects = world._mat_names, world._mat_map, world._obj_map
    for row in range(HEIGHT):
        down = row - DOWN
        if not 0 <= y + down < height:
            continue
        for column in range(WIDTH):
            right = column - RIGHT
            if not 0 <= x + right < width:
                continue
            if not seen(right, down, daylight):
                grid[row][column] = UNSEEN
                continue
            grid[row][column] = names[int(materials[x + right, y + down])]
            index = objects[x + right, y + down]
            if index and (right or down):
                thing = world._objects[index]
                flies = DIRECTIONS[tuple(thing.facing)] if kind_of(thing) == "arrow" else None
                things.append(Creature(kind_of(thing), right, down, flies))
    things.sort(key=lambda thing: (abs(thing.right) + abs(thing.down), thing.down, thing.right))
    right, down = (int(value) for value in player.facing)
    ahead = next((thing.kind for thing in things if (thing.right, thing.down) == (right, down)), None)
    return View(
        grid=tuple(tuple(row) for row in grid),
        creatures=tuple(things),
        facing=DIRECTIONS[right, down],
        material=grid[DOWN + down][RIGHT + right],
        creature=ahead,
    )
