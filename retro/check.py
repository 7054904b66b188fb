"""FIXED: looks for mistakes in a game package.

    python -m retro.run check module:Class

It loads the package, plays its game at random, and plays a part of that again in two fresh processes.
"""

import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.errors import Problem
from retro.packages import GamePackage, load_package
from retro.random_play import FRAMES, Survey, survey
from retro.replay import replay_fresh

PATIENCE = 30.0  # seconds that loading a package, or the play of one frame, may take


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


@contextmanager
def impatient() -> Iterator[Callable[[], None]]:
    """Gives a function to call with every frame; a Problem, with the line that runs, where it is not called
    for `PATIENCE` seconds. For the main thread."""
    count, seen = 0, -1

    def beat() -> None:
        nonlocal count
        count += 1

    def look(_: int, frame: FrameType | None) -> None:
        nonlocal seen
        if seen == count:
            stack = traceback.extract_stack(frame)
            ours = [
                entry for entry in stack if not entry.filename.startswith((sys.base_prefix, sys.prefix, "<"))
            ]
            reason = f"the package has kept this process waiting for {PATIENCE:g} s: this does not return"
            raise Problem(reason, file=ours[-1].filename, line=ours[-1].lineno)
        seen = count

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE / 2, PATIENCE / 2)
    try:
        yield beat
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ---- the command -------------------------------------------------------------------------------------------


def run_check(spec: str, seed: int = 0, frames: int | None = None) -> int:
    """Print what is found; exit status 1 where the package breaks a rule or its game is not deterministic."""
    console = Console()
    try:
        with impatient() as beat:
            package = load_package(spec)
            found = survey(package, seed, FRAMES if frames is None else frames, beat)
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
    for text in faults:
        console.print(Text(f"FAIL: {text}"))
    for text in _warnings(package, found):
        console.print(Text(f"warning: {text}"))
    if not faults:
        console.print(f"{len(found.inputs):,} frames of it came out the same in two fresh processes.")
    return 1 if faults else 0


def _warnings(package: GamePackage, found: Survey) -> list[str]:
    pairs = zip(package.states, found.visits, strict=True)
    never = [state.name for state, visit in pairs if visit.reached is None]
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
