"""FIXED: a script that plays Crafter with the true world before it, as a row to compare with.

Each step it takes the first of its wishes that can be pursued: to stay alive, then tools, then whatever is
still locked and nearest, and last to be near its plant until that is ripe. The plant stands between stones,
since cows and zombies would eat it, and grows only while the player is near. Nights are spent in a tunnel of
two cells, dug into solid ground or water and closed on all sides.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from random import Random

from agents.benchmarks.base import Environment, Player
from agents.benchmarks.crafter.environment import CrafterEnvironment
from agents.benchmarks.crafter.ground import BACK, SIDES, STEPS, WALKABLE, Ground, distance, facing
from agents.benchmarks.crafter.hands import FAR, Hands
from agents.benchmarks.crafter.places import Bed, find_bed, plots

NEAR_PLANT = 13  # steps; beyond 17 from the player a plant does not grow
RIPE = 301  # steps of growth
BED_PATIENCE = 60  # steps after which another bed is looked for
STRONG = 6  # health to go looking for a fight with

Wish = Callable[[], str | None]


class Oracle(Player):
    """Plays one environment at a time; it remembers its plant and its bed."""

    def act(self, environment: Environment, generator: Random) -> str:
        """The next action."""
        assert isinstance(environment, CrafterEnvironment)
        if environment.steps == 0:
            self.plot: int | None = None
            self.bed: Bed | None = None
            self.bed_age = 0
            self.tired = self.hurt = False
        player = environment.game.player
        if player.sleeping:
            return "noop"
        self.ground = Ground(environment.game)
        self.have: Mapping[str, int] = player.inventory
        self.locked = {name for name, count in player.achievements.items() if not count}
        self.left = environment.step_limit - environment.steps
        self.evening = 80 < environment.steps % 300 < 160
        plants = self.ground.kinds("Plant")
        if self.plot not in plants:
            self.plot = plants[0] if plants else None
        self.fence = [] if self.plot is None else [self.plot + step for step in STEPS]
        self.hands = Hands(self.ground, self.fence)
        return next((action for wish in self._wishes() if (action := wish())), "noop")

    def _wishes(self) -> Iterator[Wish]:
        """The most urgent first."""
        have, hands, dark = self.have, self.hands, self.ground.dark
        yield self._fight
        at_water = self.ground.materials[self.ground.ahead] == "water"
        if have["drink"] <= (1 if dark else 3) or (at_water and have["drink"] < 9):
            yield partial(hands.take, "water")
        if have["food"] <= (1 if dark else 4):
            yield partial(hands.hit, "Cow")
        yield self._rest
        if dark:
            yield self._shelter
        if have["drink"] <= 6:
            yield partial(hands.take, "water", 60 if self.evening else 8)
        if have["food"] <= 6:
            yield partial(hands.hit, "Cow", 60 if self.evening else 12)
        if "collect_sapling" in self.locked:
            yield hands.find_sapling
        if "collect_drink" in self.locked:
            yield partial(hands.take, "water", 8)
        if "eat_cow" in self.locked:
            yield partial(hands.hit, "Cow", 12)
        yield partial(hands.make, "wood")
        if not (have["stone_pickaxe"] and have["stone_sword"]):
            if have["wood"] < 8:
                yield partial(hands.take, "tree", 40 if have["wood"] < 4 else 8)
            yield partial(hands.make, "stone")
        if "place_stone" in self.locked:
            yield partial(hands.place, "stone")
        yield self._tend
        if have["stone"] < 6:
            yield partial(hands.take, "stone")
        if self._ready_for_iron():
            yield partial(hands.make, "iron")
        yield self._quest
        if self.plot is not None:
            yield self._wait
        yield self._shelter

    def _ready_for_iron(self) -> bool:
        """Whether there is enough for the iron tools that are missing, or for one and no more iron left."""
        have = self.have
        missing = 2 - have["iron_pickaxe"] - have["iron_sword"]
        enough = min(have["wood"], have["coal"], have["iron"])
        return enough >= (1 if not self.ground.find("iron") else max(missing, 1)) and missing > 0

    def _quest(self) -> str | None:
        """The nearest of what is still wanted."""
        ground, have = self.ground, self.have
        tools = 2 - have["iron_pickaxe"] - have["iron_sword"]
        wanted = {
            "coal": have["coal"] < tools,
            "iron": have["iron"] < tools and have["stone_pickaxe"],
            "diamond": "collect_diamond" in self.locked and have["iron_pickaxe"],
            "water": "collect_drink" in self.locked,
            "tree": tools and have["wood"] < tools + 2,
        }
        goals: dict[int, int] = {}
        for material, wants in wanted.items():
            if wants:
                goals |= facing(ground.find(material))
        if "eat_cow" in self.locked:
            goals |= facing(ground.kinds("Cow"))
        if have["health"] >= STRONG:
            if "defeat_zombie" in self.locked:
                goals |= facing(ground.kinds("Zombie"), 10)
            if "defeat_skeleton" in self.locked and have["stone_sword"]:
                goals |= facing(ground.kinds("Skeleton"), 15)
        return self.hands.reach(goals, "do")

    # Staying alive ---------------------------------------------------------------------------------------

    def _fight(self) -> str | None:
        """Hit what stands beside."""
        for side, step in enumerate(STEPS):
            thing = type(self.ground.things.get(self.ground.here + step)).__name__
            if thing == "Zombie" or (thing == "Skeleton" and self.have["stone_sword"]):
                return self._at(side, "do")
        return None

    def _at(self, side: int, action: str) -> str:
        """Turn to something in the way at a side, then act."""
        return action if side == self.ground.side else f"move {SIDES[side]}"

    def _rest(self) -> str | None:
        """Sleep when tired, wait when hurt."""
        energy, health = self.have["energy"], self.have["health"]
        self.tired = energy <= (8 if self.ground.dark else 3) or (self.tired and energy < 9)
        self.hurt = health <= 3 or (self.hurt and health < 6)
        if self.tired or self.hurt:
            return self._shelter()
        self.bed = None
        return None

    def _shelter(self) -> str | None:
        """Be where nothing can come, and sleep there."""
        ground, have = self.ground, self.have
        if ground.enclosed():
            return self._shut_out_arrows() or ("sleep" if have["energy"] < 9 else "noop")
        if not have["wood_pickaxe"]:
            return "sleep" if have["energy"] <= 1 else None
        self.bed_age += 1
        if self.bed is None or self.bed_age > BED_PATIENCE:
            near = ground.here if self.plot is None or distance(ground.here, self.plot) > 30 else self.plot
            self.bed, self.bed_age = find_bed(ground, near, self.fence), 0
            if self.bed is None:
                return None
        bed = self.bed
        shut = ground.materials[bed.end] not in WALKABLE and ground.materials[bed.inner] in WALKABLE
        if shut and ground.stand == bed.outer * 4 + BACK[bed.side]:
            if ground.free(bed.door):
                return "place stone" if have["stone"] else None
            return "do" if bed.door in ground.things else "noop"
        if shut and ground.here == bed.inner and ground.free(bed.outer):
            return f"move {SIDES[BACK[bed.side]]}"
        inside = bed.inner * 4 + bed.side
        if ground.stand == inside and ground.free(bed.end):
            return "place stone"
        return self.hands.reach({inside: 0}, "noop", kept={*self.fence, *bed.walls})

    def _shut_out_arrows(self) -> str | None:
        """Stones onto water beside, over which arrows fly."""
        ground = self.ground
        archers = ground.kinds("Skeleton") + ground.kinds("Arrow")
        if self.have["stone"] and any(distance(cell, ground.here) <= 9 for cell in archers):
            for side, step in enumerate(STEPS):
                if ground.materials[ground.here + step] == "water":
                    return self._at(side, "place stone")
        return None

    # The plant -------------------------------------------------------------------------------------------

    def _tend(self) -> str | None:
        """Plant, put stones around, be back in time, eat."""
        ground, have, hands = self.ground, self.have, self.hands
        if not {"eat_plant", "place_plant"} & self.locked:
            return None
        if self.plot is None:
            if self.left < RIPE + 20 and "place_plant" not in self.locked:
                return None
            if not have["sapling"]:
                return hands.find_sapling()
            if have["stone"] < 5 and self.left > 300:
                return hands.take("stone")
            return hands.reach(plots(ground, ground.here, self.fence), "place plant")
        plant = ground.things[self.plot]
        if plant.ripe:
            return hands.reach(facing([self.plot]), "do", FAR, kept=())
        gaps = [cell for cell in self.fence if ground.materials[cell] in WALKABLE]
        if gaps:
            if not have["stone"]:
                return hands.take("stone")
            return hands.reach(facing(gaps), "do" if ground.ahead in ground.things else "place stone")
        if RIPE - plant.grown + distance(ground.here, self.plot) + 40 > self.left:
            return self._wait()
        return None

    def _wait(self) -> str | None:
        """Be near the plant, in shelter."""
        assert self.plot is not None
        if distance(self.ground.here, self.plot) > NEAR_PLANT:
            return self.hands.reach(facing(self.fence), "noop")
        if self.have["drink"] < 6:
            return self.hands.take("water")
        return self._shelter()
