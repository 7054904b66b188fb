"""Route memory: for every cell on a way through a beaten level, the frames that are still needed to its exit.

It is learned from every verified piece, and from a reference movie if there is one. A search lets cells that
lie close to the exit weigh more.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.errors import Problem
from harness.files import canonical_json, read_json, write_atomic
from retro.packages import Cell
from retro.search.archive import Runs
from retro.search.pool import Pool
from retro.search.world import NEVER, World

MEMORY = "memory.json"

Walk = list[tuple[int, Cell]]
"""Index of the state and cell after every frame; -1 and () in transit."""


def walk(world: World, runs: Runs) -> Walk:
    """Plays inputs from power-on; for `Pool.ask`."""
    emulator, package = world.emulator, world.package
    emulator.power_on()
    walked: Walk = []
    for mask, frames in runs:
        for _ in range(frames):
            emulator.step(mask)
            ram = emulator.values()
            held = package.state_of(ram)
            walked.append((held, (held, *map(int, package.cell(ram))) if held >= 0 else ()))
    return walked


class Memory:
    """What is known of the ways to the exits, kept in a folder."""

    def __init__(self, folder: Path, package_sha256: str) -> None:
        """Take up what the folder holds, if it is of this version of the package, which says what a cell is.

        Raises:
            Problem: the file is malformed.
        """
        self._path, self._package = folder / MEMORY, package_sha256
        self.frames: dict[Cell, int] = {}
        """Cell -> frames to the exit of its state."""
        if self._path.exists():
            remedy = "remove the file: it is learned again"
            try:
                found = read_json(self._path)
                if found["package_sha256"] == package_sha256:
                    self.frames = {tuple(cell): int(frames) for *cell, frames in found["cells"]}
            except Problem as problem:
                raise Problem(problem.reason, file=self._path, line=problem.line, remedy=remedy) from problem
            except (TypeError, KeyError, ValueError) as error:
                raise Problem(f"no route memory: {error!r}", file=self._path, remedy=remedy) from error

    def learn(self, pool: Pool, runs: Runs) -> int:
        """Take in inputs from power-on; returns how many cells are new or nearer."""
        return self.take(pool.ask(f"{__name__}:walk", runs))

    def take(self, walked: Iterable[tuple[int, Cell]]) -> int:
        """As `learn`, of what was walked. States that are not left by it teach nothing."""
        steps, learned, at = list(walked), 0, 0
        while at < len(steps):
            segment = steps[at][0]
            end = next((i for i in range(at, len(steps)) if steps[i][0] > segment), None)
            if end is None:
                break
            for place in range(at, end if segment >= 0 else at):
                held, cell = steps[place]
                if held == segment and end - place < self.frames.get(cell, NEVER):
                    self.frames[cell] = end - place
                    learned += 1
            at = end
        return learned

    def near(self, segment: int, strength: float) -> dict[Cell, float]:
        """Cell of a state -> how many times its merit counts: 1 far from the exit, `strength` more at it."""
        known = {cell: frames for cell, frames in self.frames.items() if cell[0] == segment}
        longest = max(known.values(), default=1)
        return {cell: 1 + strength * (1 - frames / longest) for cell, frames in known.items()}

    def save(self) -> None:
        """Write it, whole or not at all."""
        cells: list[Any] = [[*cell, frames] for cell, frames in sorted(self.frames.items())]
        table = {"package_sha256": self._package, "cells": cells}
        write_atomic(self._path, canonical_json(table) + "\n")
