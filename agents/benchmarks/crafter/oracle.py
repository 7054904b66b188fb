"""FIXED: a script that plays Crafter with the true world before it, as a row to compare with.

Each step it takes the first of its wishes that can be pursued: to stay alive, then tools, then whatever is
still locked and nearest, and last to be near its plant until that is ripe. The plant stands between stones,
since cows and zombies would eat it, and grows only while the player is near. It sleeps in a tunnel of two
cells that it digs into solid ground and closes behind itself.
"""

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from agents.benchmarks.base import Environment, Player
from agents.benchmarks.crafter.ground import (
    BACK,
    SIDES,
    STEPS,
    WALKABLE,
    Ground,
    around,
    distance,
    facing,
)
from agents.benchmarks.crafter.places import Bed, find_bed, plots

GROWS_WITHIN = 17  # steps between player and plant; what is farther stands still
RIPE = 301  # steps of growth
NIGHT_REACH = 20  # how much a way may cost in the dark

Wish = Callable[[], str | None]


class Oracle(Player):
    """Plays one environment at a time; it remembers its plant, its bed and its way."""

    def act(self, environment: Environment, generator: Random) -> str:
        """The next action."""
        if environment.steps == 0:
            self._begin()
        game: Any = environment.game  # type: ignore[attr-defined]
        if game.player.sleeping:
            return "noop"
        self.ground = Ground(game)
        self.have: Mapping[str, int] = game.player.inventory
        self.done = {name for name, count in game.player.achievements.items() if count}
        self.left = 1000 - environment.steps
        self.dark = self.ground.dark
        self._watch_plant()
        for wish in self._wishes():
            action = wish()
            if action:
                return action
        return "noop"

    def _begin(self) -> None:
        self.plot: int | None = None
        self.plot_sides: list[int] = []
        self.bed: Bed | None = None
        self.bed_age = 0
        self.tired = self.hurt = False

    # What to want ------------------------------------------------------------------------------------------

    def _wishes(self) -> Iterator[Wish]:
        """The most urgent first."""
        have, done = self.have, self.done
        self.reach = 400
        yield self._fight
        at_water = self.ground.materials[self.ground.ahead] == "water"
        if have["drink"] <= (1 if self.dark else 3) or (at_water and have["drink"] < 9):
            yield self._drink
        if have["food"] <= (1 if self.dark else 4):
            yield self._eat
        yield self._rest
        if self.dark:
            self.reach = NIGHT_REACH
        else:
            if have["drink"] <= 6:
                yield lambda: self._drink(most=8)
            if have["food"] <= 6:
                yield lambda: self._eat(most=12)
        if "collect_sapling" not in done:
            yield self._find_sapling
        yield self._near_by
        if not (have["wood_pickaxe"] and have["wood_sword"]):
            yield self._tools(["wood_pickaxe", "wood_sword"])
        if not (have["stone_pickaxe"] and have["stone_sword"]):
            if have["wood"] < 8:
                yield lambda: self._take("tree", most=40 if have["wood"] < 4 else 8)
            yield self._tools(["stone_pickaxe", "stone_sword"])
        if "place_stone" not in done and have["stone"]:
            yield lambda: self._place("stone")
        yield self._tend
        if have["stone"] < 6:
            yield lambda: self._take("stone")
        if self._materials_for_iron():
            yield self._tools(["iron_pickaxe", "iron_sword"])
        yield self._quest
        self.reach = 400
        if self.plot is not None:
            yield self._wait
        yield self._sleep_safely

    def _near_by(self) -> str | None:
        """Achievements that lie at the way."""
        if "collect_drink" not in self.done:
            action = self._reach(facing(self.ground.find("water")), "do", most=8)
            if action:
                return action
        if "eat_cow" not in self.done and self.ground.kinds("Cow"):
            return self._reach(facing(self.ground.kinds("Cow")), "do", most=12)
        return None

    def _quest(self) -> str | None:
        """The nearest of what is still wanted."""
        ground, have, done = self.ground, self.have, self.done
        tools = [tool for tool in ("iron_pickaxe", "iron_sword") if not have[tool]]
        goals: dict[int, int] = {}
        wanted = []
        if have["coal"] < len(tools):
            wanted.append("coal")
        if have["iron"] < len(tools) and have["stone_pickaxe"]:
            wanted.append("iron")
        if "collect_diamond" not in done and have["iron_pickaxe"]:
            wanted.append("diamond")
        if "collect_drink" not in done:
            wanted.append("water")
        if have["wood"] < len(tools) + 2 * bool(tools):
            wanted.append("tree")
        for material in wanted:
            goals |= facing(ground.find(material))
        strong = have["health"] >= 6
        if "eat_cow" not in done:
            goals |= facing(ground.kinds("Cow"))
        if "defeat_zombie" not in done and strong:
            goals |= facing(ground.kinds("Zombie"), 10)
        if "defeat_skeleton" not in done and strong and have["stone_sword"]:
            goals |= facing(ground.kinds("Skeleton"), 15)
        return self._reach(goals, "do")

    def _materials_for_iron(self) -> bool:
        """Whether there is enough for the iron tools that are missing, or at least for one."""
        have = self.have
        missing = 2 - have["iron_pickaxe"] - have["iron_sword"]
        least = min(have["wood"], have["coal"], have["iron"])
        return 0 < missing <= least or (missing == 2 and least == 1 and not self.ground.find("iron"))

    # Staying alive -----------------------------------------------------------------------------------------

    def _fight(self) -> str | None:
        """Hit what stands beside."""
        for side, step in enumerate(STEPS):
            thing = type(self.ground.things.get(self.ground.here + step)).__name__
            if thing == "Zombie" or (thing == "Skeleton" and self.have["stone_sword"]):
                return "do" if side == self.ground.side else f"move {SIDES[side]}"
        return None

    def _drink(self, most: int = 400) -> str | None:
        return self._reach(facing(self.ground.find("water")), "do", most)

    def _eat(self, most: int = 400) -> str | None:
        return self._reach(facing(self.ground.kinds("Cow")), "do", most)

    def _rest(self) -> str | None:
        """Sleep when tired, wait when hurt, both behind walls."""
        have = self.have
        energy = have["energy"]
        self.tired = energy <= (8 if self.dark else 3) or (self.tired and energy < 9)
        self.hurt = have["health"] <= 3 or (self.hurt and have["health"] < 6)
        if self.tired or self.hurt:
            return self._sleep_safely()
        self.bed = None
        return None

    def _sleep_safely(self) -> str | None:
        ground = self.ground
        if ground.enclosed():
            return "sleep" if self.have["energy"] < 9 else "noop"
        if not self.have["wood_pickaxe"]:
            return "sleep" if self.have["energy"] <= 1 else None
        self.bed_age += 1
        if self.bed is None or self.bed_age > 60:
            near = ground.here if self.plot is None or distance(ground.here, self.plot) > 30 else self.plot
            self.bed, self.bed_age = find_bed(ground, near, self._kept()), 0
            if self.bed is None:
                return None
        bed = self.bed
        shut = ground.materials[bed.end] not in WALKABLE and ground.materials[bed.inner] in WALKABLE
        if shut and ground.here == bed.outer and ground.side == BACK[bed.side]:
            if ground.free(bed.door):
                return "place stone" if self.have["stone"] else None
            return "do" if bed.door in ground.things else "noop"
        if ground.here == bed.inner and shut and ground.free(bed.outer):
            return f"move {SIDES[BACK[bed.side]]}"
        if ground.stand == bed.inner * 4 + bed.side and ground.free(bed.end):
            return "place stone"
        return self._reach({bed.inner * 4 + bed.side: 0}, "noop", kept={*self._kept(), *bed.walls})

    # Tools -------------------------------------------------------------------------------------------------

    def _tools(self, tools: list[str]) -> Wish:
        """Make those of the tools that are missing, with what they need."""

        def wish() -> str | None:
            have = self.have
            missing = [tool for tool in tools if not have[tool]]
            if not missing:
                return None
            stone, iron = missing[0].startswith("stone"), missing[0].startswith("iron")
            tables = self.ground.find("table")
            beside = self._beside(tables)
            new = 0 if self._reach(beside, "noop", most=14) else 2
            if have["wood"] < new + len(missing) and not (have["wood"] and not new):
                action = self._take("tree")
                if action:
                    return action
            if stone and have["stone"] < len(missing):
                return self._take("stone")
            if iron and not self._beside(self.ground.find("furnace")) and have["stone"] < 4:
                return self._take("stone")
            make = f"make {missing[0].replace('_', ' ')}"
            if not iron:
                return self._reach(beside, make, most=14) or self._place("table") or self._reach(beside, make)
            both = {stand: 0 for stand in self._beside(self.ground.find("furnace")) if stand in beside}
            action = self._reach(both, make, most=14)
            if action:
                return action
            if self.ground.stand not in beside:
                return self._reach(beside, "noop", most=14) or self._place("table")
            return self._place("furnace", beside)

        return wish

    def _beside(self, cells: list[int]) -> dict[int, int]:
        """Stands from which a table or furnace on one of the cells can be used."""
        return {near * 4 + side: 0 for cell in cells for near in around(cell) for side in range(4)}

    def _take(self, material: str, most: int = 400) -> str | None:
        cells = [cell for cell in self.ground.find(material) if cell not in self._kept()]
        return self._reach(facing(cells), "do", most)

    def _place(self, thing: str, within: Mapping[int, int] | None = None) -> str | None:
        """Put a table, furnace or stone onto a cell near by, from one of the stands `within`."""
        ground = self.ground
        goals: dict[int, int] = {}
        uses = {"table": ("wood", 2), "furnace": ("stone", 4), "stone": ("stone", 1)}[thing]
        if self.have[uses[0]] < uses[1]:
            return None
        for cell, material in enumerate(ground.materials):
            if distance(cell, ground.here) <= 4 and cell not in self._kept():
                if ground.free(cell):
                    goals |= facing([cell])
                elif material in ("stone", "coal") and ground.minable(cell):
                    goals |= facing([cell], 1)
        if within is not None:
            goals = {stand: extra for stand, extra in goals.items() if stand in within}
        return self._reach(goals, f"place {thing}" if ground.free(ground.ahead) else "do")

    # The plant ---------------------------------------------------------------------------------------------

    def _watch_plant(self) -> None:
        """Learn whether a plant was set or lost."""
        plants = self.ground.kinds("Plant")
        if self.plot not in plants:
            self.plot = plants[0] if plants else None
            self.plot_sides = [] if self.plot is None else [self.plot + step for step in STEPS]

    def _kept(self) -> list[int]:
        """Cells not to be dug through."""
        return self.plot_sides

    def _find_sapling(self) -> str | None:
        ground = self.ground
        cells = [cell for cell in ground.find("grass") if cell not in ground.things]
        return self._reach(facing(cell for cell in cells if distance(cell, ground.here) < 12), "do")

    def _tend(self) -> str | None:
        """Plant, put stones around, be back in time, eat."""
        ground, have = self.ground, self.have
        if "eat_plant" in self.done and "place_plant" in self.done:
            return None
        if self.plot is None:
            if self.left < RIPE + 20 and "place_plant" in self.done:
                return None
            if not have["sapling"]:
                return self._find_sapling()
            if have["stone"] < 5 and self.left > 300:
                return self._take("stone")
            return self._reach(plots(ground, ground.here, self._kept()), "place plant")
        open_sides = [side for side in self.plot_sides if ground.materials[side] in WALKABLE]
        if ground.things[self.plot].ripe:
            return self._reach(facing([self.plot]), "do", kept=())
        if open_sides:
            if not have["stone"]:
                return self._take("stone")
            action = "do" if ground.ahead in ground.things else "place stone"
            return self._reach(facing(open_sides), action)
        lacking = RIPE - ground.things[self.plot].grown
        if lacking + distance(ground.here, self.plot) + 40 > self.left:
            return self._wait()
        return None

    def _wait(self) -> str | None:
        """Be near the plant, behind walls."""
        assert self.plot is not None
        if distance(self.ground.here, self.plot) > GROWS_WITHIN - 4:
            return self._reach(facing(self.plot_sides), "noop")
        if self.have["drink"] < 6:
            return self._drink()
        return self._sleep_safely()

    # Walking -----------------------------------------------------------------------------------------------

    def _reach(self, goals: Mapping[int, int], then: str, most: int = 400, kept: Any = None) -> str | None:
        """Go to the best of the goals, there do `then`; None if there is no way."""
        ground = self.ground
        if not goals:
            return None
        if kept is None:
            kept = self._kept()
        way = ground.route(goals, kept, min(most, self.reach))
        if not way:
            return None
        return then if len(way) == 1 else ground.toward(way[1])
