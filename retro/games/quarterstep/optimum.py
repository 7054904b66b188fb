"""Proves the fewest frames of Quarterstep: `python -m retro.games.quarterstep.optimum`.

Each level is searched exhaustively, the fastest inputs are put together to a movie from power-on, and the
ROM plays it. The result is compared with optimum.json; `--write` writes it instead. `--level 3` proves one
level only, `--json` prints the result as JSON.
"""

import argparse
import json
import resource
import sys
import time
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from harness.errors import Problem, run_command
from harness.files import read_json, sha256_file, write_atomic
from retro.games.quarterstep import Quarterstep, model, policies, search
from retro.games.quarterstep.levels import screens
from retro.inputs import format_inputs, parse_inputs
from retro.times import format_frames

OPTIMUM = Path(__file__).parent / "optimum.json"
LEVELS = range(1, len(screens()) - 1)
FRAME_RATE = Fraction(39375000, 655171)  # of the NES, NTSC


@cache
def optimum() -> dict[str, Any]:
    """What optimum.json holds: `frames`, `inputs` as text, `splits` by state, `levels`, `rom_sha256`."""
    found: dict[str, Any] = read_json(OPTIMUM)
    return found


def prove(number: int) -> dict[str, Any]:
    """Search one level and let the players without search play it."""
    screen = screens()[number]
    with tqdm(desc=f"level {number}", unit=" states", disable=None, leave=False) as bar:
        solution = search.solve(screen, lambda states: bar.update(states - bar.n))
    return {
        "level": number,
        "name": screen.name,
        "frames": solution.frames,
        "states": solution.states,
        "ways": str(solution.ways),
        "states_on_fastest_ways": solution.on_fastest,
        "inputs": format_inputs(solution.inputs, Quarterstep().console_buttons),
        "policies": policies.policies(screen),
    }


def assemble(levels: list[list[int]]) -> tuple[list[int], dict[str, int]]:
    """The whole movie from power-on out of the levels' inputs, and the frame at which a state is entered."""
    game, package = model.Game(), Quarterstep()
    inputs: list[int] = []
    splits: dict[str, int] = {}
    left: list[int] = []
    while "ending" not in splits:
        now = game.values
        buttons = 0
        if now.mode == model.TITLE:
            buttons = model.START
        elif now.mode == model.PLAY:
            buttons = left.pop(0)
        inputs.append(buttons)
        state = package.state_of(game.step(buttons))
        name = package.states[state].name
        if state >= 0 and name not in splits:
            splits[name] = len(inputs)
            if game.values.mode == model.PLAY:
                left = list(levels[game.values.level - 1])
    return inputs, splits


def confirm(inputs: list[int]) -> None:
    """Play inputs on the ROM; a Problem where a variable differs from the model after any frame."""
    game, package = model.Game(), Quarterstep()
    emulator = package.open()
    try:
        for frame, buttons in enumerate(inputs):
            emulator.step(buttons)
            real, expected = tuple(emulator.values()), tuple(game.step(buttons))
            if real != expected:
                raise Problem(
                    f"after frame {frame} the ROM holds {real}, the model {expected}", file=package.rom
                )
    finally:
        emulator.close()


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m retro.games.quarterstep.optimum",
        description="Prove the fewest frames of Quarterstep.",
    )
    parser.add_argument("--level", type=int, choices=LEVELS, help="prove this level only")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--write", action="store_true", help="write optimum.json instead of comparing with it"
    )
    options = parser.parse_args()
    found, seconds = [], []
    for number in LEVELS if options.level is None else (options.level,):
        start = time.process_time()
        found.append(prove(number))
        seconds.append(time.process_time() - start)
    if options.level is not None:
        _show(found, seconds, options.json)
        return _compare(found, [level for level in optimum()["levels"] if level["level"] == options.level])
    package = Quarterstep()
    inputs, splits = assemble([parse_inputs(level["inputs"], package.console_buttons) for level in found])
    confirm(inputs)
    result = {
        "game": package.name,
        "rom_sha256": sha256_file(package.rom),
        "frames": len(inputs),
        "splits": splits,
        "levels": found,
        "inputs": format_inputs(inputs, package.console_buttons),
    }
    _show(result, seconds, options.json)
    if options.write:
        write_atomic(OPTIMUM, json.dumps(result, indent=2) + "\n")
        return 0
    return _compare(result, optimum())


def _compare(found: object, expected: object) -> int:
    if found == expected:
        print(f"The same as {OPTIMUM.name}.", file=sys.stderr)
        return 0
    print(f"Not the same as {OPTIMUM.name}.", file=sys.stderr)
    return 1


def _show(result: Any, seconds: list[float], as_json: bool) -> None:
    if as_json:
        print(json.dumps(result, indent=2))
        return
    levels = result if isinstance(result, list) else result["levels"]
    table = Table(title="Fewest frames of Quarterstep")
    headings = ("level", "frames", "states met", "on fastest ways", "fastest ways")
    for heading in (*headings, *levels[0]["policies"], "CPU s"):
        table.add_column(heading, justify="left" if heading == "level" else "right")
    for level, spent in zip(levels, seconds, strict=True):
        players = ("-" if frames is None else str(frames) for frames in level["policies"].values())
        table.add_row(
            level["name"],
            str(level["frames"]),
            f"{level['states']:,}",
            f"{level['states_on_fastest_ways']:,}",
            f"{float(level['ways']):.1e}",
            *players,
            f"{spent:.1f}",
        )
    console = Console(width=120)
    console.print(table)
    if not isinstance(result, list):
        total = format_frames(result["frames"], FRAME_RATE)
        console.print(f"Whole game from power-on, played on the ROM: {total}.")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    console.print(f"Most memory: {memory:.1f} GiB.")


if __name__ == "__main__":
    run_command(main)
