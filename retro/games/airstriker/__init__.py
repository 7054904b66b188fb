"""Airstriker, a vertical shooter for the Genesis, from power-on to the end of its level mode.

How its time is made up (docs/retro_airstriker.md has the evidence):

- The pad is read for the first time in frame 359, on the title screen: nothing before can be shortened.
- A level is a list of rows. A row puts enemies at the top and names the number of game loops until the next;
  the last row ends the level. Kills, score and position change none of it.
- A game loop takes one frame, or two where its work is not done when the beam reaches the end of the picture.
  Firing and explosions are work, so a fast run flies and does not fire.
- The music plays in the vertical interrupt. With a note the interrupt ends too late for the game loop, which
  loses a frame, one in 14.4. Without music a run that does not fire loses none.
- So a fast run switches the music off under Options, which costs 9 frames in the menus, and then survives.
  The states ask for that: a game that begins with music is given up.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import ClassVar

from retro.packages import GamePackage, Ram, State, Variable

PARTS = {1: (1, 14, 27), 2: (2, 12, 20, 26), 3: (2, 16, 29, 42, 55)}
"""Level -> the rows at which its parts begin. Row 1 shows that the level before is done and takes no input,
row 2 shows the level's banner."""

_LIVES = 3  # at power-on; each level but the last adds one
_ALL_ROWS = 1000  # more than any level has
_OPTIONS = 4  # where the cursor of the main menu is at its third line


_STEERING = ((), ("LEFT",), ("RIGHT",), ("B",))
"""What does anything in play; B fires."""


def _on_title(ram: Ram) -> bool:
    """On the title screen or in the menus, with music, not yet at Options."""
    return bool(ram.blink >= 1 and ram.level == 0 and ram.music == 1 and ram.cursor != _OPTIONS)


def _at_options(ram: Ram) -> bool:
    return bool(ram.level == 0 and ram.music == 1 and ram.cursor == _OPTIONS)


def _silent(ram: Ram) -> bool:
    return bool(ram.level == 0 and ram.music == 0 and ram.blink >= 1)


def _flies(level: int, first: int, behind: int) -> Callable[[Ram], bool]:
    """In these rows of a level, without music and with no life lost."""
    lives = _LIVES - 1 + level
    return lambda ram: bool(
        ram.level == level and first <= ram.row < behind and ram.lives == lives and ram.music == 0
    )


def _ended(ram: Ram) -> bool:
    """The level counts from 1 again, and the lives show that it is not for the first time."""
    return bool(ram.level == 1 and ram.lives > _LIVES)


def _progress(ram: Ram) -> float:
    """Rows done, and of the present one how much, as far as its loops that are left tell."""
    return float(ram.row - ram.delay / 150)


def _dead(ram: Ram) -> bool:
    """The ship is lost: the stars are gone while a row is on, or a life is missing."""
    return bool(ram.level >= 1 and ((ram.stars == 0 and ram.row >= 2) or ram.lives < _LIVES - 1 + ram.level))


def _loud(ram: Ram) -> bool:
    """The game begins with its music on."""
    return bool(ram.level >= 1 and ram.music == 1)


def _parts() -> list[State]:
    states = []
    for level, firsts in PARTS.items():
        for letter, (first, behind) in zip("abcde", pairwise((*firsts, _ALL_ROWS)), strict=False):
            goal = f"survive level {level} from row {first} on"
            enter = _flies(level, first, behind)
            states.append(State(f"level-{level}{letter}", goal, enter, _progress, _dead, _STEERING))
    return states


class Airstriker(GamePackage):
    """Title, menus, twelve parts of three levels, ending."""

    name = "Airstriker-Genesis-v0"
    title = "Airstriker"
    variables: ClassVar[Mapping[str, Variable]] = {
        "stars": Variable(0xFF0030, ">u2"),  # sprite of the first star, 0 = none
        "music": Variable(0xFF021A, ">u2"),  # 1 = on
        "blink": Variable(0xFF0232, ">u2"),  # phase of "Press Start" on the title screen, from 1
        "cursor": Variable(0xFF0234, ">u2"),  # of the main menu: 0, 2, 4, 6
        "pad": Variable(0xFF0238, ">u2"),  # what the game last read of it
        "setting": Variable(0xFF024C, ">u2"),  # cursor of the options: 0 = Music, 2 = Exit
        "row": Variable(0xFF0254, ">u2"),
        "delay": Variable(0xFF0256, ">u2"),  # loops until the next row
        "level": Variable(0xFF0258, ">u2"),  # 0 before the first; 1 again at the ending
        "lives": Variable(0xFF025A, ">u2"),
        "x": Variable(0xFF0268, ">u2"),  # pixels, 140 to 410 in steps of 5
    }
    states = (
        State("title", "move the cursor to Options", _on_title, lambda ram: float(ram.cursor), _loud),
        State("options", "switch the music off", _at_options, dead=_loud),
        State(
            "silent",
            "leave the options and start the game",
            _silent,
            lambda ram: float(ram.setting - ram.cursor),
        ),
        *_parts(),
        State("ending", "nothing: the level mode is beaten", _ended),
    )
    buttons = (
        (),
        ("LEFT",),
        ("RIGHT",),
        ("B",),
        ("START",),
        ("DOWN",),
        ("UP",),
        ("B", "DOWN"),
        ("B", "UP"),
    )
    holds = (1, 2, 4, 8, 16)

    def cell(self, ram: Ram) -> tuple[int, ...]:
        if ram.level == 0:
            return ram.cursor, ram.setting, ram.pad
        return ram.row, ram.delay // 4, ram.x // 15
