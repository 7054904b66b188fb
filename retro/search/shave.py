"""FIXED: shave a crossing: change its inputs at random, and keep what crosses in as few frames or fewer.

A trial either changes the inputs somewhere, or leaves the way for a walk that may come back to it sooner;
then the rest of the inputs is played from there. What is as fast is kept too, so that the inputs drift to
where a frame can be saved.
"""

import random
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from retro.packages import Cell
from retro.search.archive import Archive, Runs
from retro.search.modes import Starts
from retro.search.world import Fate, Mark, World

LENGTHS = (1, 1, 1, 2, 2, 3, 4, 6, 8, 12)  # frames that a change touches
STRIDE = 6  # frames between the places where a trial can begin
DETOUR = 5  # decisions of a walk that leaves the way, at most
DETOURS = 0.75  # of the trials


@dataclass(slots=True)
class Way:
    """Inputs that cross, and what can be said of them."""

    inputs: list[int]
    """Button masks, one a frame, up to where the state is left."""
    marks: list[Mark]
    """Places on it, in order."""
    cells: dict[Cell, int]
    """Cell -> frames after which it is on it."""


class Shave:
    def choose(self, archive: Archive, weights: dict[int, float], generator: random.Random) -> list[int]:
        return [0]

    def explore(self, world: World, starts: Starts, generator: random.Random) -> list[int]:
        (start,) = starts
        world.go(start)
        way = play(world, [world.mark()], frame_by_frame(world.inputs), {})
        while way is not None and world.spent < world.budget:
            world.bound = world.crossings[-1].frames + 1
            trial = detour if generator.random() < DETOURS else change
            way = trial(world, way, generator) or way
        return []


def change(world: World, way: Way, generator: random.Random) -> Way | None:
    """Play changed inputs."""
    inputs, first = mutate(way.inputs, world.masks, generator)
    kept = bisect_right(way.marks, first, key=lambda mark: mark.frames)
    return play(world, way.marks[: max(1, kept)], inputs, way.cells)


def detour(world: World, way: Way, generator: random.Random) -> Way | None:
    """Walk off the way, and on along it where that comes back to it sooner."""
    place = generator.randrange(len(way.marks))
    world.back(way.marks[place])
    cells = {cell: frames for cell, frames in way.cells.items() if frames <= world.frames}
    for _ in range(DETOUR):
        fate = world.act(generator.choice(world.masks), generator.choice(world.package.holds))
        if fate is Fate.CROSSED:
            return play(world, way.marks[:1], frame_by_frame(tuple(world.runs)), {})
        if fate is not Fate.ALIVE:
            return None
        cells[world.cell] = world.frames
        there = way.cells.get(world.cell)
        if there is not None and there > world.frames:
            inputs = frame_by_frame(tuple(world.runs)) + way.inputs[there:]
            return play(world, [*way.marks[: place + 1], world.mark()], inputs, cells)
    return None


def play(world: World, marks: list[Mark], inputs: list[int], cells: Mapping[Cell, int]) -> Way | None:
    """Play on from the last mark; the way, if that crosses. `cells` are those of the way so far, and more.

    Where the inputs end too early, the last of them is held on.
    """
    world.back(marks[-1])
    cells = {cell: frames for cell, frames in cells.items() if frames <= marks[-1].frames}
    fate = Fate.ALIVE
    while fate is Fate.ALIVE:
        at = world.frames
        mask = inputs[at] if at < len(inputs) else inputs[-1]
        hold = 1
        while hold < STRIDE and (inputs[at + hold] if at + hold < len(inputs) else inputs[-1]) == mask:
            hold += 1
        fate = world.act(mask, hold)
        if fate is Fate.ALIVE:
            cells[world.cell] = world.frames
            if world.frames - marks[-1].frames >= STRIDE:
                marks.append(world.mark())
    if fate is not Fate.CROSSED:
        return None
    whole = frame_by_frame(tuple(world.runs))[: world.left]
    return Way(whole, marks, cells)


def frame_by_frame(runs: Runs) -> list[int]:
    """Runs as one mask a frame."""
    return [mask for mask, frames in runs for _ in range(frames)]


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
