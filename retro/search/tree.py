"""FIXED: Monte Carlo tree search with upper confidence bounds and short rollouts.

A tree grows from one cell; its edges are actions. UCB1 (Auer et al. 2002) chooses where it grows, and a
rollout is worth the reward it gains and whether it finds cells, crosses or dies.
"""

import math
import random
from dataclasses import dataclass, field

from retro.search.archive import Archive
from retro.search.frontier import spread
from retro.search.modes import Starts, weighted
from retro.search.world import Fate, Mark, World

STARTS = 1
ROLLOUT = 4  # decisions
HOLDS = 2
EXPLORATION = 0.7
FOUND = 0.2  # what a new cell is worth, beside a reward of 1
VERDICT = {Fate.CROSSED: 2.0, Fate.DEAD: -1.0}


@dataclass(slots=True)
class Branch:
    mark: Mark
    untried: list[tuple[int, int]]
    children: "list[Branch]" = field(default_factory=list)
    visits: int = 0
    value: float = 0.0


class Tree:
    def choose(self, archive: Archive, weights: dict[int, float], generator: random.Random) -> list[int]:
        return weighted(archive, weights, STARTS, generator)

    def explore(self, world: World, starts: Starts, generator: random.Random) -> list[int]:
        actions = [
            (mask, hold)
            for mask in world.masks
            for hold in spread(world.package.holds[1:] or world.package.holds, HOLDS)
        ]
        (start,) = starts
        world.go(start)
        root = Branch(world.mark(), shuffled(actions, generator))
        scale = 1.0
        while world.spent < world.budget:
            path = [root]
            while not path[-1].untried and path[-1].children:
                path.append(best_child(path[-1]))
            if not path[-1].untried:  # every action from here has ended
                if len(path) == 1:
                    return []
                path[-2].children.remove(path[-1])
                continue
            fate, found = grow(world, path, actions, generator)
            gain = world.reward - start.reward
            scale = max(scale, abs(gain))
            worth = gain / scale + FOUND * found + VERDICT.get(fate, 0.0)
            for branch in path:
                branch.visits += 1
                branch.value += worth
        return []


def grow(
    world: World, path: list[Branch], actions: list[tuple[int, int]], generator: random.Random
) -> tuple[Fate, int]:
    """Try one more action at the end of a path, and play on; returns how that ended, and the cells found."""
    world.back(path[-1].mark)
    fate = world.act(*path[-1].untried.pop())
    if fate is not Fate.ALIVE:
        return fate, 0
    found = int(world.new)
    child = Branch(world.mark(), shuffled(actions, generator))
    path[-1].children.append(child)
    path.append(child)
    for _ in range(ROLLOUT):
        fate = world.act(*world.guided(*generator.choice(actions), generator))
        if fate is not Fate.ALIVE:
            break
        found += world.new
    return fate, found


def best_child(branch: Branch) -> Branch:
    """The child of the highest upper confidence bound."""
    log = math.log(branch.visits)
    return max(
        branch.children,
        key=lambda child: child.value / child.visits + EXPLORATION * math.sqrt(log / child.visits),
    )


def shuffled(actions: list[tuple[int, int]], generator: random.Random) -> list[tuple[int, int]]:
    return generator.sample(actions, len(actions))
