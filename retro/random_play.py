"""FIXED: random play of a game package, with savestates, to see what of the package shows in play.

One savestate a cell is kept. Half the time play goes on from any of them, else from the best rewarded that
was seldom chosen in the latest state reached. It is no search: a state that it does not reach may be hard.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.errors import Problem
from retro.emulator import Emulator, mask
from retro.faults import CELL, is_bool, is_cell, is_finite, place_of, said
from retro.packages import Cell, GamePackage, Ram
from retro.packing import pack, unpack

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
    """The fewest frames since power-on after which it held."""
    frames: int = 0
    deaths: int = 0
    cells: set[Cell] = field(default_factory=set)


@dataclass
class Spot:
    """A situation to play on from."""

    state: bytes
    """Savestate, packed."""
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

    def __init__(self, package: GamePackage, emulator: Emulator, seed: int, beat: Callable[[], None]) -> None:
        self.package = package
        self.emulator = emulator
        self.frames = 0
        self._beat = beat
        self._random = random.Random(seed)
        self._masks = [
            [mask(names, emulator.buttons) for names in state.buttons or package.buttons]
            for state in package.states
        ]
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
        if not any(self._spots) and not self._faults:
            self._fault("nothing", self._nothing(), self.emulator.values())
        faults = list(self._faults.values())
        return Survey(self._visits, self.frames, seconds, unchanging, faults, inputs, ram_hash)

    def _nothing(self) -> str:
        """Why there is no situation to play on from."""
        if self._state < 0:
            return f"no state holds for {self.package.transit_limit} frames after power-on"
        return f"the run is lost when {self.package.states[self._state].name} begins"

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
            buttons = self._random.choice(self._masks[self._state])
            frames = self._random.choice(self.package.holds)
            if self._arrive(self._hold(buttons, frames)) < 0:
                return

    def _go(self, spot: Spot) -> None:
        self.emulator.load(unpack(spot.state))
        self._runs = list(spot.runs)

    def _hold(self, buttons: int, frames: int) -> int:
        """Hold buttons for some frames, fewer where the run is lost; the state that holds then."""
        state, held = _TRANSIT, 0
        while held < frames and state != _LOST:
            self.emulator.step(buttons)
            held += 1
            state = self._look(self.emulator.values())
        self.frames += held
        if self._runs and self._runs[-1][0] == buttons:
            held += self._runs.pop()[1]
        self._runs.append((buttons, held))
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
        self._beat()
        for values, value in zip(self._seen, ram, strict=True):
            values.add(value)
        states = self.package.states
        enters = ((index, f"{state.name}: enter", state.enter) for index, state in enumerate(states))
        holding = [index for index, what, enter in enters if self._is(what, enter, ram)]
        if len(holding) > 1:
            names = " and ".join(states[index].name for index in holding)
            self._fault(f"overlap {names}", f"the states {names} hold at once", ram)
        if holding:
            self._state = holding[0]
            visit = self._visits[self._state]
            visit.frames += 1
            visit.reached = min(visit.reached or self.emulator.frame, self.emulator.frame)
        last = states[self._state]
        if self._state >= 0 and self._is(f"{last.name}: dead", last.dead, ram):
            self._visits[self._state].deaths += 1
            return _LOST
        return holding[0] if holding else _TRANSIT

    def _keep(self, index: int, ram: Ram) -> None:
        """Note the cell of a situation, and hold its savestate if it is the first of it."""
        state = self.package.states[index]
        reward = self._call(f"{state.name}: reward", state.reward, ram)
        if not is_finite(reward):
            return self._fault(f"reward {state.name}", f"the reward of {state.name} is {reward!r:.80}", ram)
        cell = self._call("cell", self.package.cell, ram)
        if not is_cell(cell):
            return self._fault("cell", f"cell gives {cell!r:.80}, which is not a {CELL}", ram)
        if (again := self._call("cell", self.package.cell, ram)) != cell:
            return self._fault(
                "other cell", f"cell gives {cell!r}, and {again!r} when it is called again", ram
            )
        self._width = len(cell) if self._width is None else self._width
        if len(cell) != self._width:
            self._fault("width", f"cell gives {len(cell)} numbers, and {self._width} elsewhere", ram)
        cells, spots = self._visits[index].cells, self._spots[index]
        if cell not in cells and sum(map(len, self._spots)) < MOST_SPOTS:
            spots[cell] = Spot(pack(self.emulator.save()), tuple(self._runs), reward)
        cells.add(cell)

    def _sample(self) -> tuple[list[int], str]:
        """The longest way to the latest state, and the hash of work RAM at its end."""
        latest = next((spots for spots in reversed(self._spots) if spots), None)
        if latest:
            self._go(max(latest.values(), key=lambda spot: sum(frames for _, frames in spot.runs)))
        inputs = [buttons for buttons, frames in self._runs for _ in range(frames)]
        return inputs, self.emulator.ram_hash()

    def _is(self, what: str, function: Callable[[Ram], Any], ram: Ram) -> bool:
        """What `enter` or `dead` gives; anything but True and False is a fault."""
        value = self._call(what, function, ram)
        if not is_bool(value):
            self._fault(what, f"{what} gives {value!r:.80}, which is neither True nor False", ram)
        return bool(value)

    def _call(self, what: str, function: Callable[[Ram], Any], ram: Ram) -> Any:
        try:
            return function(ram)
        except (Exception, SystemExit) as error:
            file, line = place_of(self.package, error) or (None, None)
            reason = f"{what} fails in frame {self.emulator.frame}: {said(error)}, at {ram}"
            raise Problem(reason, file=file, line=line) from error

    def _fault(self, key: str, text: str, ram: Ram) -> None:
        self._faults.setdefault(key, f"{text}, first in frame {self.emulator.frame}: {ram}")


def survey(
    package: GamePackage, seed: int = 0, frames: int = FRAMES, beat: Callable[[], None] = lambda: None
) -> Survey:
    """Play a package's game at random in this process, which must hold no emulator; `beat` comes every frame.

    Raises:
        Problem: a function of the package fails; its variables or its ROM do not fit the console.
    """
    emulator = package.open()
    try:
        return Explorer(package, emulator, seed, beat).run(frames)
    finally:
        emulator.close()
