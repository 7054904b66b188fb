"""FIXED: Go-Explore: short random walks from cells that are rarely visited or well rewarded.

After Ecoffet et al., First return, then explore (2021): return to a cell by its savestate, then explore from
it. Half of the walks go on from where an earlier walk of the same piece of work found something new. A walk
has a taste of its own: it draws the weight of each combination of buttons anew, so some walks run right and
others wait for a door.
"""

import random
from itertools import accumulate

from retro.search.archive import Archive
from retro.search.modes import Starts, weighted
from retro.search.world import Fate, Mark, World

STARTS = 12
DECISIONS = 12  # of a walk, at most
STICKINESS = 0.6  # how often a decision repeats the buttons before it
ONWARD = 0.5  # how often a walk goes on from what this piece of work has found
RIVALS = 3  # of which the best rewarded is taken then


class Walks:
    def choose(self, archive: Archive, weights: dict[int, float], generator: random.Random) -> list[int]:
        return weighted(archive, weights, STARTS, generator)

    def explore(self, world: World, starts: Starts, generator: random.Random) -> list[int]:
        found: list[Mark] = []
        while world.spent < world.budget:
            for start in starts:
                if found and generator.random() < ONWARD:
                    rivals = [generator.choice(found) for _ in range(RIVALS)]
                    world.back(max(rivals, key=lambda mark: mark.reward))
                else:
                    world.go(start)
                if (news := walk(world, generator)) is not None:
                    found.append(news)
                if world.spent >= world.budget:
                    break
        return []


def walk(world: World, generator: random.Random) -> Mark | None:
    """Walk on from here; returns the last place that was new, if any was."""
    masks, holds = world.masks, world.package.holds
    taste = list(accumulate(generator.random() ** 3 for _ in masks))
    mask = generator.choices(masks, cum_weights=taste)[0]
    news = None
    for _ in range(generator.randint(1, DECISIONS)):
        if generator.random() > STICKINESS:
            mask = generator.choices(masks, cum_weights=taste)[0]
        if world.act(*world.guided(mask, generator.choice(holds), generator)) is not Fate.ALIVE:
            break
        if world.new:
            news = world.mark()
    return news
