"""How fast a search worker emulates against the bare core, and what the search around it costs.

    python -m benchmarks.retro_speed [quarterstep airstriker] [--turns 40] [--rounds 16]

All is measured in the longest segment of the fastest known movie.

The first table compares a worker with stable-retro's core. A turn is one piece of work, of a mode or of
shaving, done by a worker, and the same frames, from the same situations with the same buttons, run by the
core alone: its time is that of setting buttons and running frames, and nothing is loaded, saved or looked at
in it. Frames that the worker ran again, to find the one in which a state ended, count once for it. Modes
take turns, the two contestants go first in turn, and what is told are medians of CPU seconds and of the
turns' ratios, so other programs on the machine hardly matter. A state is a situation that the search looks
at: what a decision leads to.

The second table has rounds of a whole search with one worker and with two, which take turns. Frames and
states are those of a second on the clock, medians of rounds, so this one wants a quiet machine. The share of
the master, the process that merges, is of all CPU seconds. The third shows how the archive and a worker grow.
"""

import argparse
import random
import time
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

import psutil
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from benchmarks.retro_against_peers import WIDTH, fastest_known, search_settings
from harness.errors import run_command
from retro.packages import load_package
from retro.replay import replay
from retro.search.pool import Item, Pool, Processes, Worker, open_pool
from retro.search.route import runs_of
from retro.search.segment import SHAVE, SegmentSearch
from retro.search.world import Beginning
from retro.splits import stages

PIECE = 1_500  # frames of a turn
BEGUN = 6  # rounds of the search that the pieces of work come from
POINTS = 4  # of growth that are shown


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.retro_speed",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument(
        "packages", nargs="*", default=["quarterstep", "airstriker"], help="folders of retro/games (both)"
    )
    parser.add_argument("--turns", type=int, default=40, help="of each mode")
    parser.add_argument("--rounds", type=int, default=16, help="of the search")
    arguments = parser.parse_args()
    console = Console(width=WIDTH)
    for spec in arguments.packages:
        inputs = longest_segment(spec)
        turns = measure_worker(spec, inputs, arguments.turns)
        console.print(worker_table(spec, turns))
        for table in search_tables(spec, inputs, arguments.rounds, states_a_frame(turns)):
            console.print(table)


def longest_segment(spec: str) -> list[int]:
    """Inputs from power-on to where the longest segment of the fastest known movie begins."""
    package = load_package(spec)
    known = fastest_known(spec, package)
    if known is None:
        return [0]
    splits = replay(package, known).splits
    lasting = stages(splits)
    state = max(list(splits)[:-1], key=lambda name: lasting[name])
    return known[: splits[state]]


def begin(pool: Pool, inputs: list[int]) -> Beginning:
    """The segment that the inputs lead to."""
    return pool.arrive(runs_of(inputs))[0]


# ---- a worker against the core -------------------------------------------------------------------------


class Turn(NamedTuple):
    """A piece of work, and its frames on the bare core."""

    frames: int
    """As the search counts them: those run again, to find the one in which a state ended, count once."""
    run: int
    """All that the emulator ran."""
    states: int
    loads: int
    saves: int
    worker: float
    """CPU seconds."""
    core: float
    """CPU seconds."""


@dataclass
class Trace:
    """What a piece of work has the emulator do."""

    steps: list[tuple[bytes | None, int, int]]
    """(savestate to load first, button mask, frames)"""
    states: int = 0
    saves: int = 0
    loads: int = 0


def measure_worker(spec: str, inputs: list[int], turns: int, begun: int = BEGUN) -> dict[str, list[Turn]]:
    """Mode -> its turns, after so many rounds."""
    settings = search_settings()
    generator = random.Random(1)
    with open_pool(spec, 0) as pool:
        assert isinstance(pool, Worker)
        search = SegmentSearch(begin(pool, inputs), settings, "benchmark")
        search.open(pool)
        for _ in range(begun):
            search.round(pool)
        modes = [name for name, share in settings.modes.items() if share] + [SHAVE] * bool(search.solutions)
        measured: dict[str, list[Turn]] = {mode: [] for mode in modes}
        for turn in tqdm(range(turns), f"{spec}, turns"):
            for mode in modes:
                runs = search.solutions[0].runs if mode == SHAVE else ()
                nodes = search._mode(mode).choose(search.archive, search.archive.weights(), generator)
                if nodes:
                    starts = [search._start(node) for node in nodes]
                    item = Item(mode, starts, str(generator.random()), PIECE, runs)
                    measured[mode].append(take_turn(pool, item, worker_first=turn % 2 == 0))
    return {mode: list_of for mode, list_of in measured.items() if list_of}


def take_turn(worker: Worker, item: Item, worker_first: bool) -> Turn:
    """Time a piece of work, and its frames."""
    trace, frames = record(worker, item)
    if worker_first:
        spent = time_worker(worker, item)
        core = time_core(worker, trace)
    else:
        core = time_core(worker, trace)
        spent = time_worker(worker, item)
    run = sum(frames for _, _, frames in trace.steps)
    return Turn(frames, run, trace.states, trace.loads, trace.saves, spent, core)


def record(worker: Worker, item: Item) -> tuple[Trace, int]:
    """Do a piece of work, and note what the emulator runs; with the frames that count."""
    world, trace = worker.world, Trace([])
    emulator, waiting = world.emulator, [None]
    load, save, step, act = emulator.load, emulator.save, emulator.step, world.act

    def noted_load(state: Any) -> None:
        waiting[0] = state
        trace.loads += 1
        load(state)

    def noted_save() -> bytes:
        trace.saves += 1
        return save()

    def noted_step(buttons: int, frames: int = 1) -> None:
        trace.steps.append((waiting[0], buttons, frames))
        waiting[0] = None
        step(buttons, frames)

    def noted_act(*arguments: int) -> Any:
        trace.states += 1
        return act(*arguments)

    with ExitStack() as stack:
        for owner, name, noted in (
            (emulator, "load", noted_load),
            (emulator, "save", noted_save),
            (emulator, "step", noted_step),
            (world, "act", noted_act),
        ):
            stack.enter_context(patch.object(owner, name, noted))
        (done,) = worker.do([item])
    return trace, done.result.frames


def time_worker(worker: Worker, item: Item) -> float:
    """CPU seconds of a piece of work, as the search does it."""
    started = time.process_time()
    worker.do([item])
    return time.process_time() - started


def time_core(worker: Worker, trace: Trace) -> float:
    """CPU seconds of the core for the same frames."""
    emulator = worker.world.emulator
    hold, step, masks = emulator._core.set_button_mask, emulator._core.step, emulator._masks
    spent = 0.0
    started = time.process_time()
    for state, buttons, frames in trace.steps:
        if state is not None:
            spent += time.process_time() - started
            emulator.load(state)
            started = time.process_time()
        hold(masks[buttons])
        for _ in range(frames):
            step()
    spent += time.process_time() - started
    emulator._held = -1  # buttons were set past it
    return spent


def worker_table(spec: str, turns: dict[str, list[Turn]]) -> Table:
    """Medians by mode."""
    count = len(next(iter(turns.values())))
    table = Table(title=f"{spec}: one worker, medians of {count} turns", title_justify="left")
    table.add_column("")
    names = ("frames per CPU s", "the core's", "share of it", "states per CPU s", "loads", "saves")
    for name in names:
        table.add_column(name, justify="right")
    for mode, taken in turns.items():
        frames = sum(turn.frames for turn in taken)
        table.add_row(
            "shaving" if mode == SHAVE else mode,
            f"{median(turn.frames / turn.worker for turn in taken):,.0f}",
            f"{median(turn.run / turn.core for turn in taken):,.0f}",
            f"{share_of(taken):.1%}",
            f"{median(turn.states / turn.worker for turn in taken):,.0f}",
            f"{sum(turn.loads for turn in taken) / frames * 1000:.0f}",
            f"{sum(turn.saves for turn in taken) / frames * 1000:.0f}",
        )
    shares = {mode: part for mode, part in search_settings().modes.items() if mode in turns}
    together = sum(shares.values()) / sum(part / share_of(turns[mode]) for mode, part in shares.items())
    table.add_row("modes by their shares", "", "", f"{together:.1%}")
    table.caption = "loads and saves of savestates are those of 1,000 frames"
    return table


def share_of(turns: list[Turn]) -> float:
    """The worker's frames a second by the core's."""
    return median((turn.frames / turn.worker) / (turn.run / turn.core) for turn in turns)


def states_a_frame(turns: dict[str, list[Turn]]) -> float:
    """Of the modes by their shares."""
    shares = {mode: part for mode, part in search_settings().modes.items() if mode in turns}
    states = {
        mode: sum(t.states for t in turns[mode]) / sum(t.frames for t in turns[mode]) for mode in shares
    }
    return sum(part * states[mode] for mode, part in shares.items()) / sum(shares.values())


# ---- the search around it ------------------------------------------------------------------------------


class Round(NamedTuple):
    """What one round of a search took."""

    frames: int
    wall: float
    master: float
    """CPU seconds."""
    workers: float
    """CPU seconds of all of them."""


@dataclass
class Measured:
    """A search and its rounds."""

    pool: Processes
    search: SegmentSearch
    rounds: list[Round]

    def round(self) -> None:
        """Search one round on."""
        frames, workers = self.search.frames, self._workers()
        master, wall = time.process_time(), time.perf_counter()
        self.search.round(self.pool)
        wall, master = time.perf_counter() - wall, time.process_time() - master
        self.rounds.append(Round(self.search.frames - frames, wall, master, self._workers() - workers))

    def _workers(self) -> float:
        times = [psutil.Process(pid).cpu_times() for pid in self.pool.pids]
        return float(sum(spent.user + spent.system for spent in times))

    def megabytes(self) -> float:
        """Memory of the largest worker that it shares with no other process."""
        return max(psutil.Process(pid).memory_full_info().uss for pid in self.pool.pids) / 1e6


def search_tables(spec: str, inputs: list[int], rounds: int, states: float) -> list[Table]:
    """A search of the segment with one worker and with two; `states` = those of a frame."""
    growth = Table(title=f"{spec}: the archive as it grows", title_justify="left")
    for column in ("frames", "cells", "kB packed", "bytes a cell", "MB a worker"):
        growth.add_column(column, justify="right")
    with ExitStack() as stack:
        runs = []
        for workers in (1, 2):
            pool = stack.enter_context(open_pool(spec, workers))
            assert isinstance(pool, Processes)
            search = SegmentSearch(begin(pool, inputs), search_settings(), "benchmark")
            search.open(pool)
            runs.append(Measured(pool, search, []))
        search = runs[-1].search
        for point in range(1, POINTS + 1):
            while len(runs[-1].rounds) < rounds * point / POINTS:
                for run in runs:
                    run.round()
            cells, packed = len(search.archive.cells), search.archive.state_bytes
            row = (search.frames, cells, packed / 1e3, packed / cells, runs[-1].megabytes())
            growth.add_row(*(f"{number:,.0f}" for number in row))
    title = f"{spec}: one segment, medians of {len(runs[0].rounds)} rounds"
    table = Table(title=title, title_justify="left")
    for column in ("workers", "frames/s", "states/s", "frames/s a worker", "frames per CPU s", "master"):
        table.add_column(column, justify="right")
    for run in runs:
        count = len(run.pool.pids)
        rate = median(one.frames / one.wall for one in run.rounds)
        # The clock of other processes ticks in hundredths, too coarse for one round.
        master, spent = (sum(getattr(one, name) for one in run.rounds) for name in ("master", "workers"))
        emulated = sum(one.frames for one in run.rounds)
        shown = (rate, rate * states, rate / count, emulated / (master + spent))
        table.add_row(str(count), *(f"{number:,.0f}" for number in shown), f"{master / (master + spent):.1%}")
    return [table, growth]


if __name__ == "__main__":
    run_command(main)
