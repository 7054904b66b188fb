"""FIXED: the hot loop: plays from savestates within one segment, and keeps what it finds.

What a piece of work finds depends on its starts, its seed and what was known when the round began; not on the
process it runs in, nor on what else that process has done.
"""

import random
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from harness.errors import Problem
from retro.emulator import mask
from retro.faults import CELL, is_cell, is_finite
from retro.packages import Cell, GamePackage, Ram
from retro.packing import pack, unpack
from retro.search.archive import Found, Runs
from retro.search.guidance import Guide, Move

NEVER = 1 << 60
"""More frames than any segment takes."""


class Fate(Enum):
    """What came of a decision."""

    ALIVE = "alive"
    DEAD = "dead"
    """Dead, back in an earlier state, or lost in transit."""
    CROSSED = "crossed"
    LATE = "late"
    """Too slow to be of use."""
    SPENT = "spent"
    """The piece of work has used its frames."""


@dataclass(frozen=True, slots=True)
class Start:
    """A node to play from."""

    index: int
    frames: int
    state: bytes
    """Packed."""
    reward: float
    legs: tuple[Runs, ...] = ()
    """Inputs that led on from a slower way into its cell."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a segment starts: the first frame in which its state holds."""

    segment: int
    """Index of the state."""
    state: bytes
    """The savestate, packed."""
    ram_hash: str
    cell: Cell
    reward: float


@dataclass(frozen=True, slots=True)
class Crossing:
    """A way out of the segment, into a state that held."""

    start: int
    runs: Runs
    frames: int
    transit: int
    """Frames of it at the end in which no state held."""
    into: Beginning


@dataclass(frozen=True, slots=True)
class Result:
    """What a piece of work came back with."""

    found: list[Found]
    crossings: list[Crossing]
    seen: set[tuple[int, int]]
    """(variable, value) pairs that are new."""
    frames: int
    """Frames emulated."""
    deaths: int


class Mark(NamedTuple):
    """A situation within a piece of work."""

    state: bytes
    start: int
    frames: int
    reward: float
    runs: Runs


@dataclass(slots=True)
class Knowledge:
    """What is known of a segment at the beginning of a round."""

    segment: int
    settle: int
    """Frames for which a new state must hold."""
    slack: int
    """Crossings that take less than this more than the fastest are of use too."""
    frames: dict[Cell, int] = field(default_factory=dict)
    """Cell -> frames of the fastest way into it."""
    seen: set[tuple[int, int]] = field(default_factory=set)
    """(variable, value) pairs."""
    bound: int = NEVER
    """A crossing must take fewer frames to be of use."""
    transit: int = 0
    """The shortest transit of a crossing so far: what cannot be in time with it is given up."""
    guides: tuple[Guide, ...] = ()


class World:
    """One emulator in one segment. `begin` a piece of work, `go` to a start, `act`; the rest are results."""

    def __init__(self, package: GamePackage) -> None:
        self.package = package
        self.emulator = package.open()
        self._width: int | None = None  # of cells
        self._masks = [
            [mask(names, self.emulator.buttons) for names in state.buttons or package.buttons]
            for state in package.states
        ]

    def begin(self, knowledge: Knowledge, budget: int, inputs: Runs = ()) -> None:
        """Start a piece of work of about `budget` frames, on a crossing's inputs if it is about one."""
        self.knowledge = knowledge
        self.inputs = inputs
        self.state = self.package.states[knowledge.segment]
        self.masks = self._masks[knowledge.segment]
        """The combinations of buttons to try."""
        self.budget = budget
        self.spent = 0
        self.deaths = 0
        self.crossings: list[Crossing] = []
        self.bound = knowledge.bound
        self._found: dict[Cell, tuple[int, Runs, int, bytes, float, int]] = {}
        self._seen: set[tuple[int, int]] = set()
        self._starts: dict[int, Mark] = {}
        self._newest = b""  # the savestate of what `new` tells of

    def result(self) -> Result:
        """What the piece of work found."""
        for cell, (*_, reward, _) in self._found.items():
            self._check(cell, reward)
        found = [
            Found(start, runs, frames, cell, pack(state), reward, novelty)
            for cell, (start, runs, frames, state, reward, novelty) in self._found.items()
        ]
        return Result(found, self.crossings, self._seen, self.spent, self.deaths)

    # ---- where the branch is ---------------------------------------------------------------------------

    def go(self, start: Start) -> None:
        """Play from a node."""
        mark = self._starts.get(start.index)
        if mark is None:
            mark = Mark(unpack(start.state), start.index, start.frames, start.reward, ())
            self._starts[start.index] = mark
        self.back(mark)

    def mark(self) -> Mark:
        """The present situation, to come back to within this piece of work."""
        state = self._newest if self.new else self.emulator.save()
        return Mark(state, self.start, self.frames, self.reward, tuple(self.runs))

    def back(self, mark: Mark) -> None:
        """Return to a mark."""
        self.emulator.load(mark.state)
        self.start, self.frames, self.reward, self.runs = (
            mark.start,
            mark.frames,
            mark.reward,
            list(mark.runs),
        )
        self.new = False

    def act(self, mask: int, hold: int) -> Fate:
        """Hold buttons for some frames; what follows in transit is waited out without buttons.

        Afterwards `frames`, `cell`, `reward` and `new` tell of the situation; `new` says whether its cell is
        new, or was reached faster than before.
        """
        emulator, enter, dead = self.emulator, self.state.enter, self.state.dead
        held, self.new = 0, False
        while held < hold:
            emulator.step(mask)
            held += 1
            ram = emulator.values()
            if not enter(ram) or dead(ram):
                break
        self.spent += held
        self._extend(mask, held)
        return self._arrive(ram) if enter(ram) else self._leave(ram)

    def guided(self, mask: int, hold: int, generator: random.Random) -> Move:
        """A move that was drawn, or in its place, as often as the guides' shares say, what one proposes."""
        if self.knowledge.guides:
            chance = generator.random()
            for guide in self.knowledge.guides:
                chance -= guide.share
                if chance < 0:
                    return guide.propose(self.package, self.emulator.values(), generator) or (mask, hold)
        return mask, hold

    def arrive(self, inputs: Runs) -> tuple[Beginning, int]:
        """Play from power-on, then without buttons until a state holds; returns that, and how long it took.

        Raises:
            Problem: no state holds within the package's transit limit.
        """
        emulator, package = self.emulator, self.package
        emulator.power_on()
        for buttons, frames in inputs:
            emulator.step(buttons, frames)
        for waited in range(package.transit_limit + 1):
            if (entered := package.state_of(emulator.values())) >= 0:
                return self.beginning(entered), waited
            emulator.step(0)
        limit = package.transit_limit
        raise Problem(f"{package.title}: no state holds for {limit} frames, up to frame {emulator.frame}")

    def beginning(self, entered: int) -> Beginning:
        """The present situation as the start of the segment of state `entered`."""
        emulator, ram = self.emulator, self.emulator.values()
        cell = (entered, *self.package.cell(ram))
        reward = self.package.states[entered].reward(ram)
        self._check(cell, reward)
        return Beginning(entered, pack(emulator.save()), emulator.ram_hash(), cell, float(reward))

    def _check(self, cell: Cell, reward: float) -> None:
        """A Problem where a cell or a reward is not as packages may give them."""
        if self._width is None:
            self._width = len(cell)
        if not is_cell(cell):
            fault = f"cell gives {cell[1:]!r:.80}, which is not a {CELL}"
        elif len(cell) != self._width:
            fault = f"cell gives {len(cell) - 1} numbers, and {self._width - 1} elsewhere"
        elif not is_finite(reward):
            fault = f"the reward of {self.package.states[cell[0]].name} is {reward!r:.80}"
        else:
            return
        remedy = "mend it; python -m retro.run check plays it at random"
        raise Problem(f"{self.package.title}: {fault}", file=self.package.source_files[0], remedy=remedy)

    def _extend(self, mask: int, frames: int) -> None:
        self.frames += frames
        if self.runs and self.runs[-1][0] == mask:
            self.runs[-1] = (mask, self.runs[-1][1] + frames)
        else:
            self.runs.append((mask, frames))

    def _arrive(self, ram: Ram) -> Fate:
        """Look at the situation, and keep it if it is worth it."""
        if self.state.dead(ram):
            return self._die()
        frames = self.frames
        if frames + self.knowledge.transit >= self.bound:
            return Fate.LATE
        cell = (self.knowledge.segment, *self.package.cell(ram))
        self.cell, self.reward = cell, self.state.reward(ram)
        found = self._found.get(cell)
        best = found[2] if found is not None else self.knowledge.frames.get(cell)
        self.new = best is None or frames < best
        if self.new:
            novelty = self._novelty(ram) if best is None else 0
            state = self._newest = self.emulator.save()
            self._found[cell] = (self.start, tuple(self.runs), frames, state, self.reward, novelty)
        return Fate.SPENT if self.spent >= self.budget else Fate.ALIVE

    def _novelty(self, ram: Ram) -> int:
        """How many variables have a value that was never seen in this segment."""
        new = set(enumerate(ram)) - self.knowledge.seen - self._seen
        self._seen |= new
        return len(new)

    def _die(self) -> Fate:
        self.deaths += 1
        return Fate.DEAD

    def _leave(self, ram: Ram) -> Fate:
        """The state no longer holds: find out what comes after it."""
        emulator, segment = self.emulator, self.knowledge.segment
        self.left = self.frames
        waited = 0
        if self.left + self.knowledge.transit >= self.bound:
            return Fate.LATE
        while (entered := self.package.state_of(ram)) < 0:
            if self.state.dead(ram) or waited >= self.package.transit_limit:
                return self._die()
            if self.frames >= self.bound:
                return Fate.LATE
            emulator.step(0)
            self.spent += 1
            waited += 1
            self._extend(0, 1)
            ram = emulator.values()
        if entered < segment:
            return self._die()
        if entered == segment:
            return self._arrive(ram)
        return self._cross(entered)

    def _cross(self, entered: int) -> Fate:
        """Another state holds: see that it goes on holding."""
        if self.frames >= self.bound:
            return Fate.LATE
        emulator, state = self.emulator, self.package.states[entered]
        into = self.beginning(entered)
        if state.dead(emulator.values()):
            return self._die()
        for _ in range(self.knowledge.settle):
            emulator.step(0)
            self.spent += 1
            ram = emulator.values()
            if self.package.state_of(ram) != entered or state.dead(ram):
                return self._die()
        transit = self.frames - self.left
        self.crossings.append(Crossing(self.start, tuple(self.runs), self.frames, transit, into))
        self.bound = min(self.bound, self.frames + self.knowledge.slack)
        return Fate.CROSSED
