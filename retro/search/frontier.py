"""FIXED: breadth-first search from the frontier: every action with several holds, three decisions deep.

A branch is followed as long as each of its decisions reaches a cell that is new, or reaches it faster. Half
of the pieces of work begin with the cells that were reached in the fewest frames, half with the most
promising.
"""

import random
from collections.abc import Sequence

from retro.search.archive import Archive
from retro.search.modes import Starts
from retro.search.world import Fate, World

STARTS = 6
DEPTH = 3
HOLDS = 3  # how many lengths of a hold are tried, spread over the package's


class Frontier:
    def choose(self, archive: Archive, weights: dict[int, float], generator: random.Random) -> list[int]:
        open_nodes = [node for node in archive.unexpanded() if weights[node.index] > 0]
        if generator.random() < 0.5:
            open_nodes.sort(key=lambda node: (node.frames, node.index))
        else:
            open_nodes.sort(key=lambda node: (-weights[node.index], node.index))
        return [node.index for node in open_nodes[:STARTS]]

    def explore(self, world: World, starts: Starts, generator: random.Random) -> list[int]:
        holds = spread(world.package.holds, HOLDS)
        done: list[int] = []
        for start in starts:
            world.go(start)
            layer = [world.mark()]
            for depth in range(DEPTH):
                following = []
                for mark in layer:
                    for mask in world.masks:
                        for hold in holds:
                            world.back(mark)
                            fate = world.act(mask, hold)
                            if fate is Fate.ALIVE and world.new:
                                following.append(world.mark())
                            if depth and world.spent >= world.budget:
                                return done
                if depth == 0:
                    done.append(start.index)
                    if world.spent >= world.budget:
                        return done
                layer = following
        return done


def spread(values: Sequence[int], count: int) -> list[int]:
    """`count` of the values, evenly from the first to the last."""
    if len(values) <= count:
        return list(values)
    return [values[round(i * (len(values) - 1) / (count - 1))] for i in range(count)]
