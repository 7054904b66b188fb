"""FIXED: the true world of a Crafter game as a map to walk on, for oracles.

A cell is a number, (x + 1) * 66 + y + 1, so that the world has a border of cells where nothing can be done. A
*stand* is a cell and the side that the player faces there: cell * 4 + side, sides as in `SIDES`.
"""

from collections.abc import Container, Iterable, Mapping
from heapq import heappop, heappush
from typing import Any

import numpy as np

SIDES = ("left", "right", "up", "down")
ROW = 66
STEPS = (-ROW, ROW, -1, 1)  # to the neighbour at each side
BACK = (1, 0, 3, 2)
WALKABLE = frozenset({"grass", "sand", "path"})
TOOLS = {"tree": None, "stone": "wood_pickaxe", "coal": "wood_pickaxe"} | {
    "iron": "stone_pickaxe",
    "diamond": "iron_pickaxe",
}
DARK = 0.45  # daylight under which many zombies appear
NIGHT = 3  # what a step on grass costs more in the dark
NOTHING: frozenset[int] = frozenset()


class Ground:
    """Everything that stands where, at one moment."""

    def __init__(self, game: Any) -> None:
        world, player = game.world, game.player
        names = np.array([world._mat_names[number] or "" for number in range(len(world._mat_names))])
        padded = np.full((ROW, ROW), "", names.dtype)
        padded[1:-1, 1:-1] = names[world._mat_map]
        self.materials: list[str] = padded.reshape(-1).tolist()
        self.things = {cell_of(thing.pos): thing for thing in world.objects if thing is not player}
        self.inventory: Mapping[str, int] = player.inventory
        self.here = cell_of(player.pos)
        facing = tuple(int(value) for value in player.facing)
        self.side = ((-1, 0), (1, 0), (0, -1), (0, 1)).index(facing)
        self.ahead = self.here + STEPS[self.side]
        self.stand = self.here * 4 + self.side
        self.dark = float(world.daylight) < DARK
        self.danger = self._danger()

    def _danger(self) -> dict[int, int]:
        """What it costs more, besides the step, to be near zombies and skeletons."""
        danger: dict[int, int] = {}
        for cell, thing in self.things.items():
            name = type(thing).__name__
            if name in ("Zombie", "Skeleton"):
                for right in range(-2, 3):
                    for down in range(abs(right) - 2, 3 - abs(right)):
                        near = cell + right * ROW + down
                        danger[near] = danger.get(near, 0) + (3 if name == "Zombie" else 1)
        return danger

    def minable(self, cell: int) -> bool:
        """Whether the player's tools clear the cell; a tree is cleared by hand."""
        material = self.materials[cell]
        tool = TOOLS.get(material, "")
        return tool is None or (tool != "" and self.inventory[tool] > 0)

    def free(self, cell: int) -> bool:
        """Whether one can walk there now."""
        return self.materials[cell] in WALKABLE and cell not in self.things

    def find(self, material: str) -> list[int]:
        """All cells of a material."""
        return [cell for cell, name in enumerate(self.materials) if name == material]

    def kinds(self, name: str) -> list[int]:
        """Cells of all objects of one of the package's classes, by its name."""
        return [cell for cell, thing in self.things.items() if type(thing).__name__ == name]

    def cost(self, cell: int, kept: Container[int]) -> int:
        """Steps to get onto a cell that is faced, 0 if one cannot. Cells in `kept` are left as they are."""
        if cell in self.things:
            return 0 if type(self.things[cell]).__name__ == "Plant" or cell in kept else 4
        material = self.materials[cell]
        if material in WALKABLE:
            return 1
        if cell in kept:
            return 0
        if self.minable(cell):
            return 2
        if material == "water" and self.inventory["stone"] and self.inventory["wood_pickaxe"]:
            return 3  # cover it with a stone, mine that
        return 0

    def route(self, goals: Mapping[int, int], kept: Container[int] = NOTHING, most: int = 400) -> list[int]:
        """The cheapest way to one of the goals: stands, this one first; [] if there is none.

        `goals` are stands, each with what it costs besides the way; `most` bounds the sum.
        """
        best, best_goal = most + 1, -1
        costs = {self.stand: 0}
        came = {self.stand: -1}
        queue = [(0, self.stand)]
        entry: dict[int, int] = {}
        while queue:
            cost, stand = heappop(queue)
            if cost >= best:
                break
            if cost > costs[stand]:
                continue
            if stand in goals and cost + goals[stand] < best:
                best, best_goal = cost + goals[stand], stand
            cell, facing = divmod(stand, 4)
            for side, step in enumerate(STEPS):
                beside = cell + step
                price = entry.get(beside, -1)
                if price < 0:
                    price = entry[beside] = self.cost(beside, kept)
                if price == 1:
                    after = beside * 4 + side
                elif self.materials[beside] in ("lava", ""):
                    continue  # to turn to lava is to walk into it
                elif side != facing:
                    after, price = cell * 4 + side, 1  # turn to what is in the way
                elif price:
                    after = beside * 4 + side
                else:
                    continue
                if after >> 2 != cell:
                    price += self.danger.get(beside, 0)
                    if self.dark and self.materials[beside] == "grass":
                        price += NIGHT
                if cost + price < costs.get(after, most + 1):
                    costs[after] = cost + price
                    came[after] = stand
                    heappush(queue, (cost + price, after))
        way = []
        while best_goal >= 0:
            way.append(best_goal)
            best_goal = came[best_goal]
        return way[::-1]

    def toward(self, stand: int) -> str:
        """The action that leads to a stand next on a route."""
        cell, side = divmod(stand, 4)
        turn = f"move {SIDES[side]}"
        if cell == self.here or self.free(cell) or side != self.side:
            return turn
        return "do" if cell in self.things or self.minable(cell) else "place stone"

    def enclosed(self, most: int = 8) -> bool:
        """Whether nothing can come to the player: few cells to walk on around, and no creature there."""
        known = [self.here]
        for cell in known:  # grows on the way
            for step in STEPS:
                beside = cell + step
                if beside in known or self.materials[beside] not in WALKABLE:
                    continue
                thing = self.things.get(beside)
                if thing is None:
                    known.append(beside)
                elif type(thing).__name__ != "Plant":
                    return False
            if len(known) > most:
                return False
        return True


def cell_of(place: Iterable[int]) -> int:
    """The cell of a place (x, y)."""
    x, y = place
    return (int(x) + 1) * ROW + int(y) + 1


def distance(first: int, second: int) -> int:
    """Steps between two cells without obstacles."""
    x, y = divmod(first, ROW)
    other_x, other_y = divmod(second, ROW)
    return abs(x - other_x) + abs(y - other_y)


def around(cell: int) -> list[int]:
    """The nine cells in which a table at `cell` is next to one."""
    return [cell + right + down for right in (-ROW, 0, ROW) for down in (-1, 0, 1)]


def facing(cells: Iterable[int], extra: int = 0) -> dict[int, int]:
    """The stands that face one of the cells, as goals."""
    return {(cell - step) * 4 + side: extra for cell in cells for side, step in enumerate(STEPS)}
