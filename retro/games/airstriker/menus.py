"""The fewest frames from power-on into a game without music, by trying everything.

    python -m retro.games.airstriker.menus      # a few minutes

From the first frame in which the pad is read, every combination of UP, DOWN, B and START is tried in every
frame; the game looks at no other button there. Of situations that are alike in all of work RAM, but for the
word that the pad is read into, one is gone on with.
"""

import argparse
from itertools import combinations

import numpy as np
import xxhash
from rich.console import Console

from retro.emulator import Emulator, mask
from retro.games.airstriker import Airstriker
from retro.inputs import format_inputs

BUTTONS = ("UP", "DOWN", "B", "START")
LOGO = 358  # frames; what is pressed in them changes nothing
_PAD = slice(0x238, 0x23A)  # in work RAM


def fastest(emulator: Emulator, most: int) -> list[int] | None:
    """The shortest inputs, of at most so many frames, after which a game without music has begun."""
    masks = [mask(names, emulator.buttons) for count in range(5) for names in combinations(BUTTONS, count)]
    emulator.power_on()
    emulator.step(0, LOGO)
    known: set[int] = set()
    layer: list[tuple[bytes, list[int]]] = [(emulator.save(), [0] * LOGO)]
    for _ in range(LOGO, most):
        following = []
        for state, inputs in layer:
            for buttons in masks:
                emulator.load(state)
                emulator.step(buttons)
                ram = emulator.values()
                if ram.level and not ram.music:
                    return [*inputs, buttons]
                key = _situation(emulator)
                if key not in known and not ram.level:
                    known.add(key)
                    following.append((emulator.save(), [*inputs, buttons]))
        layer = following
    return None


def _situation(emulator: Emulator) -> int:
    ram = np.array(emulator.work_ram())
    ram[_PAD] = 0
    return xxhash.xxh3_64_intdigest(ram.tobytes())


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m retro.games.airstriker.menus",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    emulator = Airstriker().open()
    inputs = fastest(emulator, 400)
    console = Console()
    if inputs is None:
        console.print("No way in 400 frames.")
    else:
        console.print(f"{len(inputs)} frames: {format_inputs(inputs, emulator.buttons)}")


if __name__ == "__main__":
    main()
