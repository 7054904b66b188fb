"""What Airstriker's time is made of, measured.

    python -m retro.games.airstriker.timing

The first table counts the frames that game loops lose in the first rows of level 1, with and without music
and fire. The second plays `run.txt`, a run that loses none, and says where its frames go.
"""

import argparse
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from retro.emulator import Emulator, mask
from retro.games.airstriker import Airstriker
from retro.inputs import parse_inputs
from retro.packages import Variable

MENUS = {
    True: "359 1:START 1:B 2 1:B",
    False: "359 1:START 1:DOWN 2 1:B+DOWN 1 1:B 1 1:B+DOWN 1:UP 1 1:B+UP 1 1:B",
}
"""Whether the music is on -> the fastest way into level 1."""

FRAMES = 400  # of level 1; a ship at the right border lives that long

_VARIABLES = {
    **Airstriker.variables,
    "tick": Variable(0xFF0296, ">u2"),  # counts down to the next note of the music
}


class Loops(NamedTuple):
    """What the frames of a stretch of play were used for."""

    frames: int
    lost: int
    """Frames in which no game loop ended."""
    at_note: int
    """How many of them began with a note of the music."""


def run_inputs() -> list[int]:
    """A run from power-on to the ending."""
    text = Path(__file__).with_name("run.txt").read_text()
    return parse_inputs(text, Airstriker().console_buttons)


def measure(emulator: Emulator, music: bool, fire: bool) -> Loops:
    """Play the first rows of level 1 at the right border; `fire` = press and let go of B all the time."""
    moves = (mask(["RIGHT"], emulator.buttons), mask(["RIGHT", "B"] if fire else ["RIGHT"], emulator.buttons))
    emulator.power_on()
    for buttons in parse_inputs(MENUS[music], emulator.buttons):
        emulator.step(buttons)
    emulator.step(0)  # row 1 is done at once, and sets the delay of row 2
    lost = at_note = 0
    before = emulator.values()
    for frame in range(FRAMES):
        emulator.step(moves[frame // 2 % 2])
        after = emulator.values()
        if (before.row, before.delay) == (after.row, after.delay):
            lost += 1
            at_note += after.tick > before.tick
        before = after
    return Loops(FRAMES, lost, at_note)


def stretches(emulator: Emulator) -> Iterator[tuple[str, int, int]]:
    """Of the run: state, or transit and what it leads to, its frames, and how many no loop ended in."""
    package = Airstriker()
    frames: list[tuple[str, Any]] = []
    emulator.power_on()
    for buttons in run_inputs():
        emulator.step(buttons)
        ram = emulator.values()
        index = package.state_of(ram)
        frames.append((package.states[index].name if index >= 0 else "transit", ram))
    lost = [(one.row, one.delay) == (two.row, two.delay) for (_, one), (_, two) in pairwise(frames)]
    lost.insert(0, False)
    for name, group in groupby(range(len(frames)), lambda number: frames[number][0]):
        numbers = list(group)
        yield name, len(numbers), sum(lost[number] for number in numbers)


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m retro.games.airstriker.timing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    emulator = Emulator(Airstriker().rom, _VARIABLES)
    console = Console()
    table = Table(title=f"The first {FRAMES} frames of level 1", title_justify="left")
    for name in ("music", "fire", "frames lost", "of them at a note"):
        table.add_column(name, justify="left" if name in ("music", "fire") else "right")
    for music in (True, False):
        for fire in (False, True):
            found = measure(emulator, music, fire)
            table.add_row(
                "on" if music else "off", "yes" if fire else "no", str(found.lost), str(found.at_note)
            )
    console.print(table)

    table = Table(title=f"A run of {len(run_inputs()):,} frames", title_justify="left")
    for name in ("state", "frames", "frames lost"):
        table.add_column(name, justify="left" if name == "state" else "right")
    for name, frames, lost in stretches(emulator):
        table.add_row(name, f"{frames:,}", f"{lost:,}" if name.startswith("level") else "")
    console.print(table)


if __name__ == "__main__":
    main()
