"""The moving pictures of README.md, made from what was played: docs/figures/*.gif.

    python -m benchmarks.moving_pictures

non_llm_solution  the agent of the newest non_llm record plays the practice levels, which it never saw; the
                  first that it solves in 40 moves or more is drawn
quarterstep       the proven movie of Quarterstep, every fourth frame
crafter           the first steps of the oracle in the first test episode in which it unlocks everything
"""

import argparse
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from crafter import constants, engine
from numpy.typing import NDArray
from PIL import Image

from agents.benchmarks import load_benchmark
from agents.references import FOLDER, LONGEST_LINE
from agents.task import EVIDENCE, episodes
from agents.traces import Played, read_played
from harness.boards import read_records
from harness.errors import run_command
from harness.files import write_atomic
from harness.packed import unpack_lines
from harness.track import ROOT
from non_llm.eval_speedrun import play, snapshot
from retro.movie import read_movie
from retro.packages import load_package
from sokoban.generator import practice_levels
from sokoban.reference import replay
from sokoban.render import gif

LEAST_MOVES = 40  # of a solution: fewer hardly show anything
TILE = 24  # pixels a cell of Sokoban
PROOF = "records/retro/movies/Quarterstep-Nes-v0/788_proof/movie.bk2"
EVERY = 4  # frames of Quarterstep
STEPS = 130  # of Crafter
UNIT = 26  # pixels a cell of Crafter
STEP_MS = 100
COLOURS = 32


def solution() -> bytes:
    """A practice level, solved by the newest non_llm record."""
    record = [entry.folder for entry in read_records() if entry.record.track == "non_llm"][-1]
    checkpoint = (record / "checkpoint.safetensors").read_bytes()
    policy = snapshot(record / "speedrun.py").load_policy(checkpoint, torch.device("cpu"))
    levels = practice_levels()
    games = enumerate(play(policy, levels, torch.device("cpu")))
    index, moves = next(
        (i, m) for i, m in games if len(m) >= LEAST_MOVES and replay(levels.level(i), m).solved
    )
    return gif(levels.level(index), moves, tile=TILE)


def quarterstep() -> bytes:
    """The proven movie, as a television shows it."""
    emulator = load_package("quarterstep").open()
    emulator.power_on()
    screens = []
    for number, mask in enumerate(read_movie(ROOT / PROOF).inputs):
        emulator.step(mask)
        if number % EVERY == 0:
            screens.append(emulator.screen())
    return _animation(screens, round(1000 * EVERY / emulator.frame_rate))


def crafter() -> bytes:
    """The oracle's first steps, as the package draws them."""
    _, *rows = (row for _, row in unpack_lines(ROOT / FOLDER / "crafter/oracle" / EVIDENCE, LONGEST_LINE))
    played = map(read_played, rows, episodes("crafter"))
    return _animation(_crafter_screens(next(one for one in played if one.score == 1)), STEP_MS)


def _crafter_screens(played: Played) -> Iterator[NDArray[np.uint8]]:
    environment: Any = load_benchmark("crafter").make()
    environment.reset(played.episode)
    world, player = environment.game.world, environment.game.player
    textures = engine.Textures(constants.root / "assets")
    view, items = engine.LocalView(world, textures, [9, 7]), engine.ItemView(textures, [9, 2])
    for action in played.actions[:STEPS]:
        environment.step(action)
        drawn = world.random.get_state()  # the package takes a night's noise from the world's own numbers
        shown = np.concatenate([view(player, (UNIT, UNIT)), items(player.inventory, (UNIT, UNIT))], 1)
        yield shown.transpose(1, 0, 2).astype(np.uint8)
        world.random.set_state(drawn)


def _animation(screens: Iterable[NDArray[np.uint8]], ms: int) -> bytes:
    """A GIF that loops. screens: (height, width, 3) in red, green, blue; ms: of each."""
    pictures = [Image.fromarray(screen) for screen in screens]
    sample = Image.fromarray(np.concatenate([np.asarray(picture) for picture in pictures[::10]]))
    colours = sample.quantize(COLOURS)
    images = [picture.quantize(palette=colours, dither=Image.Dither.NONE) for picture in pictures]
    buffer = io.BytesIO()
    images[0].save(buffer, "GIF", save_all=True, append_images=images[1:], duration=ms, loop=0)
    return buffer.getvalue()


PICTURES = {"non_llm_solution": solution, "quarterstep": quarterstep, "crafter": crafter}


def main() -> int:
    """Play, and draw."""
    argparse.ArgumentParser(
        prog="python -m benchmarks.moving_pictures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    for name, draw in PICTURES.items():
        path = Path("docs/figures") / f"{name}.gif"
        picture = draw()
        write_atomic(ROOT / path, picture)
        print(f"{path}: {len(picture):,} bytes")
    return 0


if __name__ == "__main__":
    run_command(main)
