"""Which moves the pieces of a route made in which situations, for walks and rollouts to follow.

Every frame of a solved segment is a lesson: in this situation (`GamePackage.situation`), these buttons, for
as long as they were held from there, cut to a length of the package. A guide proposes a move as often as
the pieces made it in the situation. It is settled by the pieces, so a search keeps to its seed.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from retro.inputs import mask
from retro.packages import GamePackage, Ram, load_package
from retro.packing import pack, unpack
from retro.search.archive import Runs
from retro.search.guidance import Move

if TYPE_CHECKING:
    from retro.search.pool import Pool
    from retro.search.world import Beginning, World

Situation = tuple[int, ...]
Lessons = Counter[tuple[Situation, Move]]
"""How many frames taught a move in a situation."""


@dataclass(frozen=True, slots=True)
class MoveTable:
    """The guide of one segment."""

    share: float
    moves: Mapping[Situation, tuple[list[Move], list[int]]]
    """Situation -> its moves, and their counts added up."""

    def propose(self, package: GamePackage, ram: Ram, generator: random.Random) -> Move | None:
        known = self.moves.get(package.situation(ram))
        return None if known is None else generator.choices(known[0], cum_weights=known[1])[0]


class Table:
    """Learns from each piece once, and keeps the savestate after it."""

    def __init__(self, spec: str, share: float, seed: int, folder: Path) -> None:
        self._package = load_package(spec)
        self._share = share
        self._learned: dict[tuple[Runs, ...], tuple[Lessons, bytes]] = {}
        """Pieces from power-on -> the lessons of the last of them, and the packed savestate after it."""

    def begin(self, pool: "Pool", beginning: "Beginning", pieces: Sequence[Runs]) -> MoveTable | None:
        lessons: Lessons = Counter()
        learned, state = {}, b""
        for count in range(1, len(pieces) + 1):
            key = tuple(pieces[:count])
            known = self._learned.get(key) or pool.ask(f"{__name__}:play", (state, pieces[count - 1]))
            learned[key] = known
            lessons += known[0]
            state = known[1]
        self._learned = learned  # the route may have changed: what it no longer holds is forgotten
        return table_of(lessons, self._masks(beginning.segment), self._share)

    def news(self) -> MoveTable | None:
        return None

    def exits(self) -> list[Runs]:
        return []

    def close(self) -> None: ...

    def _masks(self, segment: int) -> set[int]:
        """The combinations of buttons that a state allows."""
        package = self._package
        combinations = package.states[segment].buttons or package.buttons
        return {mask(names, package.console_buttons) for names in combinations}


def play(world: "World", asked: tuple[bytes, Runs]) -> tuple[Lessons, bytes]:
    """In a worker: play a piece from a packed savestate; what it teaches, and the savestate after it.

    An empty savestate is power-on, and what is played from there, up to the first state, teaches nothing.
    """
    state, runs = asked
    package, emulator = world.package, world.emulator
    lessons: Lessons = Counter()
    if state:
        emulator.load(unpack(state))
    else:
        emulator.power_on()
    for bits, frames in runs:
        for left in range(frames, 0, -1):
            if state and package.state_of(ram := emulator.values()) >= 0:
                hold = max((hold for hold in package.holds if hold <= left), default=min(package.holds))
                lessons[package.situation(ram), (bits, hold)] += 1
            emulator.step(bits)
    return lessons, pack(emulator.save())


def table_of(lessons: Lessons, masks: set[int], share: float) -> MoveTable | None:
    """The guide of a segment with these combinations of buttons; None where nothing was learned for it."""
    found: dict[Situation, list[tuple[Move, int]]] = {}
    for (situation, move), count in sorted(lessons.items()):
        if move[0] in masks:
            found.setdefault(situation, []).append((move, count))
    moves = {
        situation: ([move for move, _ in rows], list(accumulate(count for _, count in rows)))
        for situation, rows in found.items()
    }
    return MoveTable(share, moves) if moves else None
