"""FIXED: looks for mistakes in a game package by playing its game at random.

    python -m retro.run check module:Class

Random play from power-on keeps one savestate a cell. Half the time it plays on from any of them, else from
the best rewarded that it has seldom chosen in the latest state reached. It is no search: a state that it does
not reach may just be hard.
"""

import random
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.errors import Problem
from retro.emulator import Emulator, mask
from retro.faults import is_cell, is_finite
from retro.packages import Cell, GamePackage, Ram, load_package
from retro.replay import replay_fresh

FRAMES = 40_000  # about ten seconds
MOST_SPOTS = 4_000  # savestates held
BURST = 12  # decisions that are played from a savestate
TRIES = 3  # bursts from a savestate before worse rewarded ones get as many
_TRANSIT, _LOST = -1, -2

Runs = tuple[tuple[int, int], ...]
"""(button mask, frames), one after the other."""


@dataclass
class Visit:
    """What random play saw of one state."""

    reached: int | None = None
    """Frames since power-on after which it first held on some way; the fewest of all ways."""
    frames: int = 0
    deaths: int = 0
    cells: set[Cell] = field(default_factory=set)


@dataclass
class Spot:
    """A situation to play on from."""

    state: bytes
    """Savestate, packed by zlib."""
    runs: Runs
    """All inputs since power-on."""
    reward: float
    chosen: int = 0


@dataclass
class Survey:
    """What random play found."""

    visits: list[Visit]
    """One a state, in the package's order."""
    frames: int
    seconds: float
    unchanging: list[str]
    """Names of the variables that had one value throughout."""
    faults: list[str]
    """What breaks the rules of packages, a line each."""
    inputs: list[int]
    """A way from power-on to the latest state, button masks."""
    ram_hash: str
    """Of work RAM where these inputs end, in the process that found them."""


class Explorer:
    """Random play of one package on one emulator."""

    def __init__(self, package: GamePackage, emulator: Emulator, seed: int) -> None:
        self.package = package
        self.emulator = emulator
        self.frames = 0
        self._random = random.Random(seed)
        self._masks = [mask(names, emulator.buttons) for names in package.buttons]
        self._visits = [Visit() for _ in package.states]
        self._spots: list[dict[Cell, Spot]] = [{} for _ in package.states]
        self._seen: list[set[int]] = [set() for _ in package.variables]
        self._faults: dict[str, str] = {}
        self._runs: list[tuple[int, int]] = []
        self._state = _TRANSIT  # the last that held
        self._width: int | None = None

    def run(self, frames: int) -> Survey:
        """Play for about so many frames."""
        started = time.monotonic()
        self.emulator.power_on()
        self._arrive(self._hold(0, 1))
        while any(self._spots) and self.frames < frames:
            self._burst()
        inputs, ram_hash = self._sample()
        seen = zip(self.package.variables, self._seen, strict=True)
        unchanging = [name for name, values in seen if len(values) < 2]
        seconds = time.monotonic() - started
        faults = list(self._faults.values())
        return Survey(self._visits, self.frames, seconds, unchanging, faults, inputs, ram_hash)

    def _burst(self) -> None:
        """Go to a savestate and play on from there."""
        reached = [index for index, spots in enumerate(self._spots) if spots]
        if self._random.random() < 0.5:
            index = reached[-1]
            spot = min(self._spots[index].values(), key=lambda spot: (spot.chosen // TRIES, -spot.reward))
        else:
            index = self._random.choice(reached)
            spot = self._random.choice(list(self._spots[index].values()))
        spot.chosen += 1
        self._go(spot)
        self._state = index
        for _ in range(BURST):
            mask, frames = self._random.choice(self._masks), self._random.choice(self.package.holds)
            if self._arrive(self._hold(mask, frames)) < 0:
                return

    def _go(self, spot: Spot) -> None:
        self.emulator.load(zlib.decompress(spot.state))
        self._runs = list(spot.runs)

    def _hold(self, mask: int, frames: int) -> int:
        """Hold buttons for some frames, fewer where the run is lost; the state that holds then."""
        state = _TRANSIT
        self._runs.append((mask, 0))
        for done in range(1, frames + 1):
            self.emulator.step(mask)
            self.frames += 1
            self._runs[-1] = (mask, done)
            state = self._look(self.emulator.values())
            if state == _LOST:
                break
        return state

    def _arrive(self, state: int) -> int:
        """Wait until a state holds, and keep the situation if its cell is new; the state, or less than 0."""
        waited = 0
        while state == _TRANSIT and waited < self.package.transit_limit:
            state = self._hold(0, 1)
            waited += 1
        if state >= 0:
            self._keep(state, self.emulator.values())
        return state

    def _look(self, ram: Ram) -> int:
        """Note what holds; the first state that does."""
        for values, value in zip(self._seen, ram, strict=True):
            values.add(value)
        states = self.package.states
        holding = [index for index, state in enumerate(states) if self._call(state.name, state.enter, ram)]
        if len(holding) > 1:
            names = " and ".join(states[index].name for index in holding)
            self._fault(f"overlap {names}", f"the states {names} hold at once", ram)
        if holding:
            self._state = holding[0]
            visit = self._visits[self._state]
            visit.frames += 1
            visit.reached = min(visit.reached or self.emulator.frame, self.emulator.frame)
        if self._state >= 0 and self._call(states[self._state].name, states[self._state].dead, ram):
            self._visits[self._state].deaths += 1
            return _LOST
        return holding[0] if holding else _TRANSIT

    def _keep(self, index: int, ram: Ram) -> None:
        """Note the cell of a situation, and hold its savestate if it is the first of it."""
        state = self.package.states[index]
        reward = self._call(state.name, state.reward, ram)
        if not is_finite(reward):
            return self._fault(f"reward {state.name}", f"the reward of {state.name} is {reward!r}", ram)
        cell = self._call("cell", self.package.cell, ram)
        if not is_cell(cell):
            return self._fault("cell", f"cell gives {cell!r}, which is no tuple of plain integers", ram)
        self._width = len(cell) if self._width is None else self._width
        if len(cell) != self._width:
            self._fault("width", f"cell gives {len(cell)} numbers, and {self._width} elsewhere", ram)
        cells, spots = self._visits[index].cells, self._spots[index]
        if cell not in cells and sum(map(len, self._spots)) < MOST_SPOTS:
            spots[cell] = Spot(zlib.compress(self.emulator.save(), 1), tuple(self._runs), reward)
        cells.add(cell)

    def _sample(self) -> tuple[list[int], str]:
        """The longest way to the latest state, and the hash of work RAM at its end."""
        latest = next((spots for spots in reversed(self._spots) if spots), None)
        if latest:
            self._go(max(latest.values(), key=lambda spot: sum(frames for _, frames in spot.runs)))
        inputs = [mask for mask, frames in self._runs for _ in range(frames)]
        return inputs, self.emulator.ram_hash()

    def _call(self, what: str, function: Callable[[Ram], Any], ram: Ram) -> Any:
        try:
            return function(ram)
        except Exception as error:
            raise Problem(
                f"{what} fails in frame {self.emulator.frame}: {type(error).__name__}: {error}, at {ram}"
            ) from error

    def _fault(self, key: str, text: str, ram: Ram) -> None:
        self._faults.setdefault(key, f"{text}, first in frame {self.emulator.frame}: {ram}")


def survey(package: GamePackage, seed: int = 0, frames: int = FRAMES) -> Survey:
    """Play a package's game at random in this process, which must hold no emulator.

    Raises:
        Problem: a function of the package fails; its variables or its ROM do not fit the console.
    """
    emulator = package.open()
    try:
        return Explorer(package, emulator, seed).run(frames)
    finally:
        emulator.close()


def differences(spec: str, found: Survey) -> list[str]:
    """How two replays of a survey's inputs in fresh processes differ from it and from each other."""
    one, other = (replay_fresh(spec, found.inputs) for _ in range(2))
    if one.ram_hashes != other.ram_hashes:
        pairs = zip(one.ram_hashes, other.ram_hashes, strict=True)
        place = next(index for index, (here, there) in enumerate(pairs, 1) if here != there)
        frame = min(place * one.hash_every, one.frames)
        return [f"the same inputs in two fresh processes differ by frame {frame}: nothing can be verified"]
    if one.ram_hashes[-1] != found.ram_hash:
        return ["inputs found through savestates end elsewhere when they are played from power-on"]
    return []


# ---- the command -------------------------------------------------------------------------------------------


def run_check(spec: str, seed: int = 0, frames: int | None = None) -> int:
    """Print what is found; exit status 1 where the package breaks a rule or its game is not deterministic."""
    console = Console()
    try:
        package = load_package(spec)
        found = survey(package, seed, FRAMES if frames is None else frames)
        faults = [*found.faults, *differences(spec, found)]
    except Problem as problem:
        console.print(Text(f"FAIL: {problem}"))
        return 1
    console.print(_table(package, found))
    cells = sum(len(visit.cells) for visit in found.visits)
    console.print(
        f"{found.frames:,} frames in {found.seconds:.1f} s, {found.frames / found.seconds:,.0f} a second; "
        f"{cells:,} cells, {cells / found.seconds:,.0f} a second"
    )
    for text in [
        *(f"FAIL: {fault}" for fault in faults),
        *(f"warning: {text}" for text in _warnings(package, found)),
    ]:
        console.print(Text(text))
    if not faults:
        console.print(f"{len(found.inputs):,} frames of it came out the same in two fresh processes.")
    return 1 if faults else 0


def _warnings(package: GamePackage, found: Survey) -> list[str]:
    never = [
        state.name for state, visit in zip(package.states, found.visits, strict=True) if not visit.frames
    ]
    texts = [f"random play never reached {', '.join(never)}"] if never else []
    return texts + [f"the variable {name} never changed" for name in found.unchanging]


def _table(package: GamePackage, found: Survey) -> Table:
    table = Table(title=Text(f"{package.title}, played at random"), title_justify="left")
    for number, name in enumerate(("state", "reached at frame", "frames", "cells", "deaths")):
        table.add_column(name, justify="right" if number else "left")
    for state, visit in zip(package.states, found.visits, strict=True):
        reached = "never" if visit.reached is None else f"{visit.reached:,}"
        table.add_row(
            Text(state.name), reached, f"{visit.frames:,}", f"{len(visit.cells):,}", f"{visit.deaths:,}"
        )
    return table
