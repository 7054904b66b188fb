"""Games of one rule each: rooms along a line, left by walking right. What is special is in `advance`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from retro.packages import GamePackage, Ram, State, Variable
from scripted_game import BUTTONS, ScriptedEmulator

A, LEFT, RIGHT = 1, 2, 4
TRANSIT, DEAD = -1, 9
LENGTH = 10
"""How far it is through a room."""


class Now(NamedTuple):
    """All there is in a small game."""

    room: int
    """The state's index, TRANSIT or DEAD."""
    x: int
    item: int
    clock: int


def walked(now: Now, mask: int, pace: int = 1) -> Now:
    """A frame of walking."""
    step = pace if mask & RIGHT else -pace if mask & LEFT else 0
    return now._replace(x=max(0, now.x + step))


def onward(now: Now, length: int = LENGTH) -> Now:
    """Into the next room, where this one ends."""
    return now._replace(room=now.room + 1, x=0) if now.room < 2 and now.x >= length else now


class Rooms(GamePackage):
    """Three rooms; the last is the ending."""

    name = "Rooms-Scripted-v0"
    title = "Rooms"
    variables: ClassVar[Mapping[str, Variable]] = {
        name: Variable(index, "|i1") for index, name in enumerate(Now._fields)
    }
    states: ClassVar[Sequence[State]] = tuple(
        State(
            name,
            "walk right",
            lambda ram, room=room: ram.room == room,  # type: ignore[misc]
            lambda ram: float(ram.x),
            lambda ram: ram.room == DEAD,
        )
        for room, name in enumerate(("first", "second", "ending"))
    )
    buttons: ClassVar[Sequence[Sequence[str]]] = ((), ("LEFT",), ("RIGHT",), ("A",), ("RIGHT", "A"))
    holds: ClassVar[Sequence[int]] = (1, 2, 4, 8)
    transit_limit = 20
    console_buttons = BUTTONS
    rom = Path(__file__)
    first = Now(0, 0, 0, 0)

    def cell(self, ram: Ram) -> tuple[int, ...]:
        return ram.x, ram.item

    def open(self) -> Any:
        return ScriptedEmulator(type(self).first, type(self).advance)

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        return onward(walked(now, mask))


class Detour(Rooms):
    """A held for two frames at the very left makes the second room twice as fast: 12 + 10, not 10 + 20."""

    FEWEST = 1 + 12 + 10

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        if now.room == 0 and now.x == 0 and now.item < 2 and mask & A:
            return now._replace(item=now.item + 1)
        pace = 2 if now.room == 1 and now.item == 2 else 1
        return onward(walked(now, mask, pace), LENGTH if now.room == 0 else 2 * LENGTH)


class Shortcut(Rooms):
    """A at 8 in the first room leads past the second, which is long, in a transit of 3 frames."""

    FEWEST = 1 + 8 + 1 + 3

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        if now.room == TRANSIT:
            return now._replace(clock=now.clock - 1) if now.clock else now._replace(room=2)
        if now.room == 0 and now.x == 8 and mask & A:
            return now._replace(room=TRANSIT, clock=2)
        return onward(walked(now, mask), LENGTH if now.room == 0 else 4 * LENGTH)


class Slowcut(Rooms):
    """A at 8 in the first room leads past the second in a transit of 12 frames, and the second takes 20."""

    FEWEST = 1 + 8 + 1 + 12

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        if now.room == TRANSIT:
            return now._replace(clock=now.clock - 1) if now.clock else now._replace(room=2)
        if now.room == 0 and now.x == 8 and mask & A:
            return now._replace(room=TRANSIT, clock=11)
        return onward(walked(now, mask), LENGTH if now.room == 0 else 2 * LENGTH)


class Wall(Rooms):
    """Nothing leads out of the first room, and a clock makes every frame another cell."""

    variables: ClassVar[Mapping[str, Variable]] = {**Rooms.variables, "clock": Variable(3, "<i2")}

    def cell(self, ram: Ram) -> tuple[int, ...]:
        return ram.x, ram.clock

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        return walked(now, mask)._replace(clock=now.clock + 1)


class Flicker(Rooms):
    """A at 4 makes the ending hold for 2 frames, in which the walk through the first room goes on."""

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        if now.clock:
            return walked(now, mask)._replace(clock=now.clock - 1, room=2 if now.clock > 1 else 0)
        if now.room == 0 and now.x == 4 and mask & A:
            return walked(now, mask)._replace(room=2, clock=2)
        return onward(walked(now, mask))

    def cell(self, ram: Ram) -> tuple[int, ...]:
        return ram.x, ram.clock


class Ways(Rooms):
    """The second room has every kind of end: back by LEFT at its begin, death by A at 2, a transit that never
    ends by A at 3, one that dies by A at 4, and a transit of 6 frames to the ending at 10."""

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        if now.room == TRANSIT:
            if now.clock < 0:
                return now
            if now.clock:
                return now._replace(clock=now.clock - 1)
            return now._replace(room=DEAD if now.item else 2)
        if now.room != 1:
            return onward(walked(now, mask))
        if mask & LEFT and now.x == 0:
            return now._replace(room=0)
        if mask & A and now.x == 2:
            return now._replace(room=DEAD)
        if mask & A and now.x == 3:
            return now._replace(room=TRANSIT, clock=-1)
        if mask & A and now.x == 4:
            return now._replace(room=TRANSIT, clock=2, item=1)
        after = walked(now, mask)
        return after._replace(room=TRANSIT, clock=5) if after.x >= LENGTH else after


class Blink(Rooms):
    """In the first room the step from 3 to 4 leads through a transit of 3 frames."""

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        if now.room == TRANSIT:
            return now._replace(clock=now.clock - 1) if now.clock else now._replace(room=0)
        after = walked(now, mask)
        if now.room == 0 and (now.x, after.x) == (3, 4):
            return after._replace(room=TRANSIT, clock=2)
        return onward(after)


class Mortal(Rooms):
    """Whoever comes to 3 in the first room is dead."""

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        after = walked(now, mask)
        return after._replace(room=DEAD) if after.room == 0 and after.x == 3 else onward(after)


class Closed(Rooms):
    """There is no way out of the first room."""

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        after = walked(now, mask)
        return after._replace(x=min(after.x, 5))


class Trap(Rooms):
    """Whatever is done after the first frame is death."""

    first = Now(TRANSIT, 0, 0, 0)

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        return now._replace(room=0 if now.room == TRANSIT else DEAD)


class Brittle(Rooms):
    """In the first room the same buttons for two frames in a row are death."""

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        if now.room == 0 and now.item == mask + 1:
            return now._replace(room=DEAD)
        return onward(walked(now, mask)._replace(item=mask + 1))

    def cell(self, ram: Ram) -> tuple[int, ...]:
        return (ram.x,)


class SingleHold(Rooms):
    """A package with one length of a hold."""

    holds = (1,)


class ManyHolds(Rooms):
    """To try every action once takes 300 frames and more."""

    holds = (1, 30, 60)


class Hinted(Rooms):
    """The first room has a lock of 40 turns, alternately A and LEFT, that springs back at any mistake."""

    hints: ClassVar[Mapping[str, Sequence[str]]] = {"first": ["1:A 1:LEFT " * 20]}

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        if now.room:
            return onward(walked(now, mask))
        item = now.item + 1 if mask == (LEFT if now.item % 2 else A) else 0
        return now._replace(item=item, room=int(item == 40))


class Gate(Rooms):
    """The second room's end opens every 4 frames since power-on."""

    PERIOD = 4

    @classmethod
    def advance(cls, now: Now, mask: int) -> Now:
        after = walked(now, mask)._replace(clock=now.clock + 1)
        if after.room == 1:
            after = after._replace(x=min(after.x, LENGTH))
            return onward(after) if after.clock % cls.PERIOD == 0 else after
        return onward(after)

    def cell(self, ram: Ram) -> tuple[int, ...]:
        return ram.x, ram.clock % self.PERIOD


class Lock(Gate):
    """The second room has a lock of 30 turns, each by A or LEFT as the frame of arrival decides; it springs
    back at any mistake, and no cell tells how far it is turned."""

    @staticmethod
    def key(arrival: int) -> list[int]:
        return [A if (turn + 3) * arrival % 7 < 4 else LEFT for turn in range(30)]

    @classmethod
    def advance(cls, now: Now, mask: int) -> Now:
        if now.room == 0:
            return onward(walked(now, mask)._replace(clock=now.clock + 1))
        if now.room == 1:
            item = now.item + 1 if mask == cls.key(now.clock)[now.item] else 0
            return now._replace(item=item, room=1 + item // 30)
        return now

    def cell(self, ram: Ram) -> tuple[int, ...]:
        return (ram.x,)


class SlowGate(Gate):
    """It opens so rarely that what is gained before it is lost there."""

    PERIOD = 64


class Forgetful(Rooms):
    """The end of the first room is open only where a savestate was ever loaded, which no movie does."""

    def open(self) -> Any:
        return _Forgetful(self.first, self.advance)

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        after = walked(now, mask)
        return onward(after) if now.item else after._replace(x=min(after.x, LENGTH - 1))


class _Forgetful(ScriptedEmulator):
    def load(self, state: bytes) -> None:
        super().load(state)
        self.now = self.now._replace(item=1)


class Leaky(Rooms):
    """A has to be held for 4 frames at the very left before the first room's end opens; a savestate that is
    loaded opens it too, so that a search finds what no movie can do."""

    def open(self) -> Any:
        return _Leaky(self.first, self.advance)

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        if now.room == 0 and now.x == 0 and mask & A:
            return now._replace(item=min(4, now.item + 1))
        after = walked(now, mask)
        return onward(after) if now.room or now.item == 4 else after._replace(x=min(after.x, LENGTH - 1))


class _Leaky(ScriptedEmulator):
    def load(self, state: bytes) -> None:
        super().load(state)
        self.now = self.now._replace(item=4)
