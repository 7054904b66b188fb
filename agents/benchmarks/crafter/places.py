"""FIXED: good places in a Crafter world, for oracles: to plant and to sleep."""

from collections.abc import Container
from typing import NamedTuple

from agents.benchmarks.crafter.ground import STEPS, WALKABLE, Ground, distance, facing

WALLS = frozenset({"stone", "coal", "iron", "diamond", "tree", "water", "table", "furnace", ""})
NEAR = 20  # steps within which places are looked for


class Bed(NamedTuple):
    """Two cells in a row with walls around, to be closed behind oneself."""

    inner: int
    outer: int
    side: int
    """From outer to inner."""

    @property
    def door(self) -> int:
        """The cell to put a stone on, from `outer`."""
        return self.outer - STEPS[self.side]

    @property
    def end(self) -> int:
        """The cell beyond `inner`; a stone is put there if it is open."""
        return self.inner + STEPS[self.side]

    @property
    def walls(self) -> list[int]:
        """The cells that must stay as they are."""
        beside = [self.inner + step for step in STEPS] + [self.outer + step for step in STEPS]
        return [cell for cell in beside if cell not in (self.inner, self.outer, self.door, self.end)]


def find_bed(ground: Ground, near: int, kept: Container[int]) -> Bed | None:
    """The bed that takes the fewest steps from `near`, about; None if there is none."""

    def work(cell: int) -> int | None:
        """Steps to make a cell walkable; None if one cannot."""
        material = ground.materials[cell]
        if cell in kept or cell in ground.things:
            return None
        if material in WALKABLE:
            return 0
        if ground.minable(cell):
            return 2
        return 3 if material == "water" and ground.inventory["stone"] else None

    best, found = 10**6, None
    for outer in range(len(ground.materials)):
        far = distance(outer, near)
        work_outer = work(outer) if far <= NEAR and ground.materials[outer] else None
        if work_outer is None:
            continue
        for side, step in enumerate(STEPS):
            bed = Bed(outer + step, outer, side)
            work_inner, work_door = work(bed.inner), work(bed.door)
            if work_inner is None or work_door is None or bed.end in kept:
                continue
            stones = ground.inventory["stone"]
            stones += sum(ground.materials[cell] == "stone" for cell in (bed.inner, bed.outer))
            open_end = ground.materials[bed.end] in WALKABLE
            if stones < 1 + open_end or ground.materials[bed.end] == "lava":
                continue
            if any(ground.materials[wall] not in WALLS for wall in bed.walls):
                continue
            wet = sum(ground.materials[wall] == "water" for wall in bed.walls)  # arrows fly over water
            cost = far + 3 * wet + work_inner + work_outer + work_door + open_end
            if cost < best:
                best, found = cost, bed
    return found


def plots(ground: Ground, near: int, kept: Container[int]) -> dict[int, int]:
    """Stands that face grass to plant on; a goal costs more the more sides need a stone."""
    goals: dict[int, int] = {}
    for cell, material in enumerate(ground.materials):
        if material != "grass" or cell in ground.things or distance(cell, near) > NEAR or cell in kept:
            continue
        sides = [cell + step for step in STEPS]
        if any(ground.materials[side] == "lava" for side in sides):
            continue
        stones = sum(ground.materials[side] in WALKABLE for side in sides)
        if stones <= ground.inventory["stone"]:
            goals |= facing([cell], 5 * stones)
    return goals
