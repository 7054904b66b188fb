"""Worlds made by hand for the tests of what walks in them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from crafter import constants, objects

from agents.benchmarks.crafter.ground import cell_of
from agents.benchmarks.crafter.repair import World

LETTERS = {
    ".": "grass",
    "_": "path",
    "s": "sand",
    "#": "stone",
    "T": "tree",
    "~": "water",
    "L": "lava",
    "c": "coal",
    "i": "iron",
    "t": "table",
    "f": "furnace",
}


LEFT = TOP = 10  # of what is drawn


def at(x: int, y: int) -> int:
    """The cell at column x and row y of what is drawn."""
    return cell_of((LEFT + x, TOP + y))


def game_of(drawing: str, daylight: float = 1.0, **things: int) -> Any:
    """A game in a world as drawn, with lava all around. `things` are carried.

    `@` is the player, who faces down; Z, C, S and P are a zombie, a cow, a skeleton, a plant; all on grass.
    """
    world = World((64, 64), constants.materials, (12, 12))
    world._mat_map[:] = world._mat_ids["lava"]
    world.daylight = daylight
    rows = [(y, row) for y, row in enumerate(drawing.split(), TOP)]
    (place,) = [(LEFT + row.index("@"), y) for y, row in rows if "@" in row]
    player = objects.Player(world, np.array(place))
    player.inventory |= things
    world.add(player)
    for y, row in rows:
        for x, letter in enumerate(row, LEFT):
            world[x, y] = LETTERS.get(letter, "grass")
            match letter:
                case "Z":
                    world.add(objects.Zombie(world, (x, y), player))
                case "S":
                    world.add(objects.Skeleton(world, (x, y), player))
                case "C":
                    world.add(objects.Cow(world, (x, y)))
                case "P":
                    world.add(objects.Plant(world, (x, y)))
    return SimpleNamespace(world=world, player=player)
