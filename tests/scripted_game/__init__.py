"""A game of a few lines of Python in place of a console, whose optimum a plain search finds: package and all.

A runner has to leap two pits in each of two levels; quarter steps decide which leap is the last that carries.
"""

import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from harness.errors import Problem
from retro.packages import GamePackage, Ram, State, Variable

BUTTONS = ("A", "LEFT", "RIGHT", "START")
TITLE, PLAY, CLEAR, DEAD, ENDING = range(5)
PITS = {1: ((20, 27), (50, 58)), 2: ((12, 20), (40, 45))}
GOAL = 80
CLEAR_FRAMES = 5


class Values(NamedTuple):
    mode: int
    level: int
    x: int
    vx: int
    y: int
    vy: int


START = Values(TITLE, 0, 0, 0, 0, 0)


def advance(now: Values, mask: int) -> Values:
    """One frame of the game."""
    mode, level, x, vx, y, vy = now
    if mode == TITLE:
        return Values(PLAY, 1, 0, 0, 0, 0) if mask & 8 else now
    if mode == CLEAR:
        if vy < CLEAR_FRAMES:
            return now._replace(vy=vy + 1)
        return Values(PLAY, 2, 0, 0, 0, 0) if level == 1 else Values(ENDING, 2, 0, 0, 0, 0)
    if mode != PLAY:
        return now
    vx = min(vx + 1, 8) if mask & 4 else max(vx - 1, -8) if mask & 2 else vx - (vx > 0) + (vx < 0)
    if y == 0 and mask & 1:
        vy = 5
    x = max(0, x + vx // 4)
    y, vy = max(0, y + vy), (vy - 1 if y + vy > 0 else 0)
    if y == 0 and any(low <= x < high for low, high in PITS[level]):
        return Values(DEAD, level, x, 0, 0, 0)
    if x >= GOAL:
        return Values(CLEAR, level, x, 0, 0, 0)
    return Values(PLAY, level, x, vx, y, vy)


@cache
def fastest(level: int) -> list[int]:
    """Buttons, one mask a frame, that clear a level in the fewest frames: found by trying everything."""
    first = Values(PLAY, level, 0, 0, 0, 0)
    queue = deque([first])
    reached: dict[Values, tuple[Values, int]] = {}
    while (now := queue.popleft()).mode != CLEAR:
        for mask in range(8):
            then = advance(now, mask)
            if then.mode != DEAD and then not in reached and then != first:
                reached[then] = now, mask
                queue.append(then)
    inputs = []
    while now != first:
        now, mask = reached[now]
        inputs.append(mask)
    return inputs[::-1]


def fewest_frames() -> int:
    """The time of the fastest movie: a frame without buttons, START, the levels, and what follows each."""
    return 2 + sum(len(fastest(level)) + CLEAR_FRAMES + 1 for level in PITS)


HOPPER_INPUTS = [0, 8, *fastest(1), *[0] * (CLEAR_FRAMES + 1), *fastest(2), *[0] * (CLEAR_FRAMES + 1)]
"""The fastest movie."""


class ScriptedEmulator:
    """Takes the place of `retro.emulator.Emulator`; runs any game that is a function of its small numbers."""

    buttons = BUTTONS
    system, core = "Scripted", "scripted"
    frame_rate = 60.0
    rom_sha256 = "5" * 64
    boot = b""

    def __init__(self, start: Any = START, advance: Callable[[Any, int], Any] = advance) -> None:
        """`start` = the values at power-on, a named tuple; `advance` gives those after one more frame."""
        self._start, self._advance = start, advance
        self._layout = struct.Struct(f"<4sI{len(start)}h")
        self.power_on()

    def power_on(self) -> None:
        self.frame = 0
        self.now: Any = self._start

    def step(self, buttons: int, frames: int = 1) -> None:
        for _ in range(frames):
            self.now = self._advance(self.now, buttons)
        self.frame += frames

    def save(self) -> bytes:
        return self._layout.pack(b"TOY1", self.frame, *self.now)

    def load(self, state: bytes) -> None:
        try:
            magic, frame, *values = self._layout.unpack(state)
        except struct.error as error:
            raise Problem(f"no savestate of this game: {error}") from error
        if magic != b"TOY1":
            raise Problem("no savestate of this game")
        self.frame, self.now = frame, type(self._start)(*values)

    def values(self) -> Any:
        return self.now

    def ram_hash(self) -> str:
        return str(xxhash.xxh3_64_hexdigest(repr(self.now).encode()))

    def screen(self) -> NDArray[np.uint8]:
        """The runner's place, as a picture of one row."""
        picture = np.zeros((1, 128, 3), np.uint8)
        picture[0, max(0, self.now.x) % 128] = 255
        return picture

    def close(self) -> None: ...


class Hopper(GamePackage):
    """The package of the scripted game."""

    name = "Hopper-Scripted-v0"
    title = "Hopper"
    variables: ClassVar[Mapping[str, Variable]] = {
        name: Variable(index, "|i1") for index, name in enumerate(Values._fields)
    }
    states: ClassVar[Sequence[State]] = (
        State("title", "press START", lambda ram: ram.mode == TITLE),
        State(
            "level-1",
            "run",
            lambda r: r.mode == PLAY and r.level == 1,
            lambda r: r.x,
            lambda r: r.mode == DEAD,
        ),
        State(
            "level-2",
            "run",
            lambda r: r.mode == PLAY and r.level == 2,
            lambda r: r.x,
            lambda r: r.mode == DEAD,
        ),
        State("ending", "rest", lambda ram: ram.mode == ENDING),
    )
    buttons: ClassVar[Sequence[Sequence[str]]] = (
        (),
        ("LEFT",),
        ("RIGHT",),
        ("A",),
        ("RIGHT", "A"),
        ("START",),
    )
    holds: ClassVar[Sequence[int]] = (1, 2, 4, 8)

    console_buttons = BUTTONS
    rom = Path(__file__)

    def cell(self, ram: Ram) -> tuple[int, ...]:
        return (ram.x // 4, ram.vx, ram.y, int(ram.y > 0))

    def open(self) -> Any:
        return ScriptedEmulator()
