"""Quarterstep: a small NES game of our own whose fastest movie is proven. See docs/retro_quarterstep.md."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

from retro.games.quarterstep.levels import CLOSED, EXIT, TILE, screens
from retro.packages import GamePackage, Ram, State, Variable

_PLAY, _DYING, _TITLE, _ENDING = 3, 4, 2, 6  # what the variable mode holds


def _plays(level: int) -> Callable[[Ram], bool]:
    return lambda ram: bool(ram.mode == _PLAY and ram.level == level)


def _nearness(level: int) -> Callable[[Ram], float]:
    """Minus the pixels to the exit that is seen on the screen, along both axes together."""
    rows, columns = (screens()[level].tiles == EXIT).nonzero()
    x, y = int(columns[0]) * TILE + TILE // 4, int(rows[0]) * TILE + TILE // 4
    return lambda ram: -(abs(ram.x - x) + abs(ram.y - y)) / 4


def _dying(ram: Ram) -> bool:
    return bool(ram.mode == _DYING)


class Quarterstep(GamePackage):
    """Title, five levels, ending."""

    name = "Quarterstep-Nes-v0"
    title = "Quarterstep"
    variables: ClassVar[Mapping[str, Variable]] = {
        "mode": Variable(0, "|u1"),
        "level": Variable(1, "|u1"),
        "x": Variable(2, "<u2"),
        "y": Variable(4, "<u2"),
        "vx": Variable(6, "|i1"),
        "vy": Variable(7, "|i1"),
        "grounded": Variable(8, "|u1"),
        "rng": Variable(9, "|u1"),
        "door": Variable(10, "|u1"),
        "lag": Variable(11, "|u1"),
        "deaths": Variable(12, "|u1"),
        "timer": Variable(13, "|u1"),
    }
    states = (
        State("title", "press START", lambda ram: bool(ram.mode == _TITLE), buttons=((), ("START",))),
        *(
            State(
                f"level-{level}",
                f"reach the exit: {screens()[level].name}",
                _plays(level),
                _nearness(level),
                _dying,
            )
            for level in range(1, len(screens()) - 1)
        ),
        State("ending", "nothing: the game is over", lambda ram: bool(ram.mode == _ENDING)),
    )
    buttons = ((), ("LEFT",), ("RIGHT",), ("A",), ("LEFT", "A"), ("RIGHT", "A"))
    holds = (1, 2, 4, 8, 16)

    @property
    def integration(self) -> Path:
        return Path(__file__).parent / self.name

    def cell(self, ram: Ram) -> tuple[int, ...]:
        door = 0 if ram.door == 0 else 2 if ram.door == CLOSED else 1
        return ram.x // (2 * TILE), ram.y // (2 * TILE), ram.grounded, ram.vx // 8, door
