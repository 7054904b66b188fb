"""FIXED: shave a crossing: change its inputs at random, and keep what crosses in as few frames or fewer.

What is as fast is kept too, so that the inputs drift to where a frame can be saved.
"""

import random
from bisect import bisect_right

from retro.search.archive import Archive
from retro.search.modes import Starts
from retro.search.world import Fate, Mark, World

LENGTHS = (1, 1, 1, 2, 2, 3, 4, 6, 8, 12)  # frames that a change touches
STRIDE = 6  # frames between the places where a trial can begin


class Shave:
    def choose(self, archive: Archive, weights: dict[int, float], generator: random.Random) -> list[int]:
        return [0]

    def explore(self, world: World, starts: Starts, generator: random.Random) -> list[int]:
        (start,) = starts
        world.go(start)
        inputs = [mask for mask, frames in world.inputs for _ in range(frames)]
        marks = [world.mark()]
        if not play(world, marks, inputs):
            return []
        best, inputs = world.frames, inputs[: world.left]
        while world.spent < world.budget:
            trial, first = mutate(inputs, world.masks, generator)
            kept = marks[: max(1, bisect_right(marks, first, key=lambda mark: mark.frames))]
            if play(world, kept, trial) and world.frames <= best:
                best, marks, inputs = world.frames, kept, trial[: world.left]
        return []


def play(world: World, marks: list[Mark], inputs: list[int]) -> bool:
    """Play on from the last mark, which marks gets more of; whether that crosses.

    Where the inputs end too early, the last of them is held on.
    """
    world.back(marks[-1])
    fate = Fate.ALIVE
    while fate is Fate.ALIVE:
        at = world.frames
        mask = inputs[at] if at < len(inputs) else inputs[-1]
        hold = 1
        while hold < STRIDE and (inputs[at + hold] if at + hold < len(inputs) else inputs[-1]) == mask:
            hold += 1
        fate = world.act(mask, hold)
        if fate is Fate.ALIVE and world.frames - marks[-1].frames >= STRIDE:
            marks.append(world.mark())
    return fate is Fate.CROSSED


def mutate(inputs: list[int], masks: list[int], generator: random.Random) -> tuple[list[int], int]:
    """Changed inputs, and the first frame at which they differ in kind."""
    trial, first = list(inputs), len(inputs)
    for _ in range(generator.choice((1, 1, 2, 3))):
        at, length = generator.randrange(len(trial)), generator.choice(LENGTHS)
        kind = generator.randrange(4)
        if kind == 0 and len(trial) > length:  # leave frames out
            del trial[at : at + length]
        elif kind == 1:  # press something else for a while
            trial[at : at + length] = [generator.choice(masks)] * min(length, len(trial) - at)
        elif kind == 2:  # put frames in
            trial[at:at] = [generator.choice((trial[at], *masks))] * length
        else:  # move the change of buttons that comes next
            edge = next((i for i in range(at + 1, len(trial)) if trial[i] != trial[i - 1]), None)
            if edge is None:
                continue
            if generator.random() < 0.5:
                at, mask = edge, trial[edge - 1]
            else:
                at, mask = max(0, edge - length), trial[edge]
            trial[at : at + length] = [mask] * min(length, len(trial) - at)
        first = min(first, at)
        if not trial:
            return list(inputs), 0
    return trial, min(first, len(trial))
