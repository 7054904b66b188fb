"""FIXED: errands in a Crafter world, for oracles. Each gives the next action, or None if there is no way."""

from collections.abc import Container, Mapping
from functools import partial

from agents.benchmarks.crafter.ground import Ground, around, distance, facing

FAR = 400  # what a way may cost
SITE = 14  # what the way to a table may cost before a new one is placed
USES = {"table": ("wood", 2), "furnace": ("stone", 4), "stone": ("stone", 1)}


class Hands:
    """What can be done from where the player stands, one step of the game."""

    def __init__(self, ground: Ground, kept: Container[int]) -> None:
        """`kept` are cells not to be dug through."""
        self.ground = ground
        self.have = ground.inventory
        self.kept = kept

    def reach(
        self, goals: Mapping[int, int], then: str, most: int = FAR, kept: Container[int] | None = None
    ) -> str | None:
        """Go to the best of the goals, stands with what they cost besides the way; there do `then`."""
        way = self.ground.route(goals, self.kept if kept is None else kept, most) if goals else []
        if not way:
            return None
        return then if len(way) == 1 else self.ground.toward(way[1])

    def take(self, material: str, most: int = FAR) -> str | None:
        """Take what a cell of the material gives."""
        return self.reach(
            facing(cell for cell in self.ground.find(material) if cell not in self.kept), "do", most
        )

    def hit(self, name: str, most: int = FAR) -> str | None:
        """Hit the nearest creature of one of the package's classes."""
        return self.reach(facing(self.ground.kinds(name)), "do", most)

    def find_sapling(self) -> str | None:
        """Search the grass near by."""
        ground = self.ground
        near = (cell for cell in ground.find("grass") if distance(cell, ground.here) < 12)
        return self.reach(facing(cell for cell in near if cell not in ground.things), "do")

    def place(self, thing: str, within: Mapping[int, int] | None = None) -> str | None:
        """Put a table, furnace or stone onto a cell near by, from one of the stands `within`."""
        ground = self.ground
        item, count = USES[thing]
        if self.have[item] < count:
            return None
        goals: dict[int, int] = {}
        for cell, material in enumerate(ground.materials):
            if distance(cell, ground.here) <= 4 and cell not in self.kept:
                if ground.free(cell):
                    goals |= facing([cell])
                elif material in ("stone", "coal") and ground.minable(cell):
                    goals |= facing([cell], 1)
        if within is not None:
            goals = {stand: extra for stand, extra in goals.items() if stand in within}
        return self.reach(goals, f"place {thing}" if ground.free(ground.ahead) else "do")

    def make(self, kind: str) -> str | None:
        """Make the pickaxe, then the sword, of wood, stone or iron, and the table and furnace it takes."""
        have = self.have
        missing = [tool for tool in ("pickaxe", "sword") if not have[f"{kind}_{tool}"]]
        if not missing:
            return None
        beside, hot = (self._beside(material) for material in ("table", "furnace"))
        there = self.reach(beside, "noop", SITE) is not None
        if have["wood"] < (1 if there else 2 + len(missing)):
            action = self.take("tree")
            if action:
                return action
        stones = {"wood": 0, "stone": len(missing), "iron": 0 if hot else 4}[kind]
        if have["stone"] < stones:
            return self.take("stone")
        craft = partial(self.reach, then=f"make {kind} {missing[0]}")
        if kind != "iron":
            return craft(beside, most=SITE) or self.place("table") or craft(beside)
        action = craft({stand: 0 for stand in hot if stand in beside}, most=SITE)
        if action:
            return action
        if self.ground.stand in beside:
            return self.place("furnace", beside)
        return self.reach(beside, "noop", SITE) or self.place("table")

    def _beside(self, material: str) -> dict[int, int]:
        """Stands from which a table or furnace can be used."""
        return {
            near * 4 + side: 0
            for cell in self.ground.find(material)
            for near in around(cell)
            for side in range(4)
        }
