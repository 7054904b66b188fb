"""FIXED: Go-Explore: short random walks from cells that are rarely visited or well rewarded.

After Ecoffet et al., First return, then explore (2021): return to a cell by its savestate, then explore from
it. A walk has a taste of its own: it draws the weight of each combination of buttons anew, so some walks run
right and others wait for a door.
"""

import random

from retro.search.archive import Archive
from retro.search.modes import Starts, weighted
from retro.search.world import Fate, World

STARTS = 12
DECISIONS = 12  # of a walk, at most
STICKINESS = 0.35  # how often a decision repeats the buttons before it


class Walks:
    def choose(self, archive: Archive, weights: dict[int, float], generator: random.Random) -> list[int]:
        return weighted(archive, weights, STARTS, generator)

    def explore(self, world: World, starts: Starts, generator: random.Random) -> list[int]:
        masks, holds = world.masks, world.package.holds
        while True:
            for start in starts:
                world.go(start)
                taste = [generator.random() ** 3 for _ in masks]
                mask = generator.choices(masks, taste)[0]
                for _ in range(generator.randint(1, DECISIONS)):
                    if generator.random() > STICKINESS:
                        mask = generator.choices(masks, taste)[0]
                    fate = world.act(mask, generator.choice(holds))
                    if fate is not Fate.ALIVE:
                        break
                if world.spent >= world.budget:
                    return []
