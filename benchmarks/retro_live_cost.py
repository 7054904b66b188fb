"""What a search pays for being watched: the same searches of Quarterstep with and without a live view.

    python -m benchmarks.retro_live_cost --pairs 5

Both do the same work, so what differs is the cost, and they take turns in going first. Processor time is that
of the search's own process and of its workers: it hardly depends on what else the machine does. Videos are
made by processes that give way to all others, and are counted in none of it.
"""

import argparse
import resource
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import psutil

from harness.errors import run_command
from harness.files import sha256_file
from harness.intervals import bootstrap
from retro.config import read_config
from retro.live.publisher import Publisher
from retro.live.watching import watched
from retro.packages import load_package
from retro.search.pool import Processes, open_pool
from retro.search.route import Route, RouteSearch
from retro.search.segment import SegmentSearch

GAME, UNTIL, WORKERS = "quarterstep", "level-2", 2


class Searched(NamedTuple):
    """One search, and what it took in seconds."""

    inputs: list[str]
    cpu: float
    wall: float
    updates: list[float]
    """Every call of `Publisher.update`."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retro_live_cost", description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    ratios, shares, calls = [], [], []
    for seed in range(1, parser.parse_args().pairs + 1):
        order = (False, True) if seed % 2 else (True, False)
        done = {live: searched(live, seed) for live in order}
        plain, live = done[False], done[True]
        assert plain.inputs == live.inputs, "watching has changed the search"
        ratios.append(live.cpu / plain.cpu - 1)
        shares.append(sum(live.updates) / live.wall)
        calls += live.updates
        print(
            f"seed {seed}: {plain.cpu:.2f} s of processor time alone, {live.cpu:.2f} s watched; "
            f"{100 * shares[-1]:.2f}% of {live.wall:.0f} s on the clock in update()",
            flush=True,
        )
    low, high = bootstrap(ratios)
    mean = sum(ratios) / len(ratios)
    print(f"processor time: {100 * mean:+.2f}% [{100 * low:.2f}, {100 * high:.2f}]")
    print(f"the search waits for update() {100 * sum(shares) / len(shares):.2f}% of the time")
    calls.sort()
    print(f"update(): median {1e6 * calls[len(calls) // 2]:.0f} µs, longest {1e3 * calls[-1]:.0f} ms")
    return 0


def searched(live: bool, seed: int) -> Searched:
    package, config = load_package(GAME), read_config("quick")
    route = Route(GAME, package.name, sha256_file(package.rom), seed, config.settings)
    updates: list[float] = []
    update = Publisher.update

    def timed(publisher: Publisher, *told: object) -> None:
        began = time.monotonic()
        update(publisher, *told)  # type: ignore[arg-type]
        updates.append(time.monotonic() - began)

    def nothing(doing: str, search: SegmentSearch) -> None: ...

    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, watch = Path(name), nothing
        stack.enter_context(patch.object(Publisher, "update", timed))
        pool = stack.enter_context(open_pool(GAME, WORKERS))
        assert isinstance(pool, Processes)
        if live:
            view = watched("", folder, route, pool, WORKERS, package, nothing)
            watch = stack.enter_context(view)  # type: ignore[assignment]
        began, before = time.monotonic(), _cpu(pool)
        RouteSearch(folder, route, pool, watch).run(package.state_index(UNTIL))
        wall, cpu = time.monotonic() - began, _cpu(pool) - before
        return Searched([piece.inputs for piece in route.pieces], cpu, wall, updates)


def _cpu(pool: Processes) -> float:
    """Seconds of processor time of this process, with all its threads, and of the workers."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    workers = [psutil.Process(pid).cpu_times() for pid in pool.pids]
    return own.ru_utime + own.ru_stime + sum(times.user + times.system for times in workers)


if __name__ == "__main__":
    run_command(main)
