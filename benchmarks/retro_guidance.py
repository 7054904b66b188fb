"""What each guidance of the search, and route memory, is worth: searches with and without, after equal CPU
seconds.

    python -m benchmarks.retro_guidance [--seconds 90] [--seeds 3] [--games quarterstep airstriker]

Each variant plays each game from power-on with each seed, with the settings of the pinned recipe
(retro/speedrun.py): a route, then passes of `improve` over it until the time is up; a search that does not
solve a segment begins anew. The CPU seconds are those of the search and of all that it started, so a policy's
training takes from the search what it uses. A movie counts once a fresh process that loads no savestate has
replayed it from power-on to the ending.

none      no guidance
table     the table of moves, with its share of the decisions
policy    the trained policy, with its share, and its ways out
both      both
memory    no guidance; cells near the exit of a segment that was solved weigh more (retro/marathon/memory.py)
rival     as memory, which knows the fastest movie in records/retro/movies from the start

Each search that is done is a line of `--out`; the same command goes on where it stopped, and prints the
tables of all that is done. How far a training is depends on timing, and so do the searches that follow it.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil
import tyro
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from benchmarks.retro_against_peers import Search, TimeUp, search_settings
from harness.errors import Problem, run_command
from harness.files import read_jsonl
from harness.intervals import bootstrap, paired_difference
from harness.silent import end_with_parent
from harness.track import ROOT
from retro.marathon.memory import Memory
from retro.movie import read_movie
from retro.packages import load_package
from retro.replay import replay_fresh
from retro.search.guidance import open_guidance
from retro.search.pool import Worker
from retro.search.route import Route, RouteSearch, runs_of
from retro.search.segment import SegmentSearch
from retro.search.settings import SOURCES

WIDTH = 130  # columns of the table
VARIANTS = ("none", "table", "policy", "both", "memory", "rival")


@dataclass(frozen=True)
class Settings:
    """What to compare."""

    seconds: float = 90
    """CPU seconds of each search, with all that it started"""
    seeds: int = 3
    """searches of each variant in each game"""
    games: tuple[str, ...] = ("quarterstep", "airstriker")
    """packages, as `retro.packages.load_package` takes them"""
    variants: tuple[str, ...] = VARIANTS[:4]
    """none, table, policy, both, memory, rival"""
    table: float = 0.3
    """the share of the table"""
    policy: float = 0.2
    """the share of the policy"""
    memory: float = 4.0
    """how many times more a cell at an exit weighs"""
    lanes: int = 2
    """searches at a time"""
    out: Path = Path("outputs/retro_guidance.jsonl")
    """where the searches that are done are kept"""


@dataclass(frozen=True)
class Outcome:
    """What is left of one search."""

    game: str
    variant: str
    seed: int
    seconds: float
    shares: dict[str, float]
    """Of guidance; `memory` is how many times more a cell at an exit weighs, `rival` that it knows one."""
    cpu_seconds: float
    training_seconds: float
    """Of them, the training's."""
    segments: int
    """How many were solved."""
    first_seconds: float | None
    """CPU seconds to the first movie; None where there is none."""
    frames: int | None
    """Of the best movie whose replay reaches the ending."""

    @property
    def job(self) -> tuple[Any, ...]:
        return self.game, self.variant, self.seed, self.seconds, self.shares


class Tree(Search):
    """Counts the CPU seconds of all processes."""

    def used(self) -> float:
        return sum(tree_seconds()) - getattr(self, "_started", 0.0)


class Remembering(RouteSearch):
    """Has route memory, which it learns anew from every route."""

    memory: Memory
    strength: float
    rival: Sequence[int] = ()
    _learned: list[int] | None = None

    def _open(self, search: SegmentSearch) -> None:
        inputs = self.route.inputs(self._buttons)
        if self._learned is None and self.rival:
            self.memory.learn(self._pool, runs_of(self.rival))
        if inputs != self._learned:
            self.memory.learn(self._pool, runs_of(inputs))
            self._learned = inputs
        search.archive.near = self.memory.near(search.beginning.segment, self.strength)
        super()._open(search)


def tree_seconds() -> tuple[float, float]:
    """CPU seconds of this process with those that it saw end, and of those that it started and that run."""
    own = psutil.Process()
    started = 0.0
    for process in own.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            started += sum(process.cpu_times()[:4])
    return sum(own.cpu_times()[:4]), started


def shares_of(variant: str, settings: Settings) -> dict[str, float]:
    """`Outcome.shares` of a variant."""
    if variant == "memory":
        return {"memory": settings.memory}
    if variant == "rival":
        return {"memory": settings.memory, "rival": 1.0}
    shares = {"table": settings.table, "policy": settings.policy}
    return {name: share for name, share in shares.items() if variant in (name, "both")}


def fastest_movie(game: str) -> Sequence[int]:
    """The inputs of the game's fastest movie in records/retro/movies; a Problem where there is none."""
    folder = ROOT / "records/retro/movies" / game
    movies = (read_movie(path).inputs for path in folder.glob("*/movie.bk2"))
    if (fastest := min(movies, key=len, default=None)) is None:
        raise Problem("there is no movie", file=folder, remedy="leave the variant rival out")
    return fastest


def compete(game: str, variant: str, seed: int, seconds: float, shares: dict[str, float]) -> Outcome:
    """One search, and the replays of what it found."""
    search = Tree(seconds)
    search._started = sum(tree_seconds())  # from here on, when imports are done
    package = load_package(game)
    guiding = {name: share for name, share in shares.items() if name in SOURCES}
    told = replace(search_settings(), guidance=guiding)
    solved = 0
    complete = False
    used = training = 0.0

    def watch(doing: str, segment: SegmentSearch) -> None:
        nonlocal used, training, solved
        solved = max(solved, len(route.pieces) - 1)
        if complete:
            keep()
        used, training = search.used(), tree_seconds()[1]
        search.check()

    def keep() -> None:
        if search.wants(route.frames):
            search.found(package, route.inputs(package.console_buttons))

    worker = Worker(package)
    with (
        suppress(TimeUp),
        tempfile.TemporaryDirectory() as name,
        open_guidance(game, guiding, seed, Path(name)) as guidance,
    ):
        for attempt in count():
            folder = Path(name) / str(attempt)
            folder.mkdir()
            route = Route(game, package.name, "", seed + attempt * 1_000_000, told)
            kind = Remembering if "memory" in shares else RouteSearch
            searcher = kind(folder, route, worker, watch, replays=False, guidance=guidance)
            if isinstance(searcher, Remembering):
                searcher.memory = Memory(folder, package.source_sha256)
                searcher.strength = shares["memory"]
                searcher.rival = fastest_movie(package.name) if "rival" in shares else ()
            complete = searcher.run()
            while complete:
                keep()
                searcher.improve()
    worker.world.emulator.close()
    ending = package.states[-1].name
    best = (
        movie.frames
        for movie in reversed(search.movies)
        if replay_fresh(game, movie.inputs).splits.get(ending) == movie.frames
    )
    first = search.movies[0].seconds if search.movies else None
    return Outcome(game, variant, seed, seconds, shares, used, training, solved, first, next(best, None))


# ---- comparison --------------------------------------------------------------------------------------------


def table(game: str, outcomes: list[Outcome], settings: Settings) -> Table:
    """Means over seeds with 95% bootstrap intervals, and differences to `none` seed by seed."""
    view = Table(title=f"{game}: {settings.seconds:g} CPU s each", title_justify="left", box=None)
    for name in ("", "segments solved", "movies", "CPU s to the first", "frames of the best"):
        view.add_column(name, justify="right" if name else "left")
    for name in ("over none", "training, % of the CPU"):
        view.add_column(name, justify="right")
    ours = {variant: _rows(game, variant, outcomes) for variant in settings.variants}
    for variant, rows in ours.items():
        frames = {seed: row.frames for seed, row in rows.items() if row.frames is not None}
        firsts = [row.first_seconds for row in rows.values() if row.first_seconds is not None]
        view.add_row(
            variant,
            mean([row.segments for row in rows.values()], 1),
            f"{len(frames)} of {len(rows)}",
            mean(firsts),
            mean(list(frames.values())),
            "" if variant == "none" else over(frames, ours.get("none", {})),
            mean([100 * row.training_seconds / row.cpu_seconds for row in rows.values()]),
        )
    return view


def _rows(game: str, variant: str, outcomes: list[Outcome]) -> dict[int, Outcome]:
    """Seed -> outcome, in order."""
    found = [one for one in outcomes if (one.game, one.variant) == (game, variant)]
    return {one.seed: one for one in sorted(found, key=lambda one: one.seed)}


def mean(values: list[Any], digits: int = 0) -> str:
    """Of some numbers, with its interval where they differ."""
    if not values:
        return "none"
    if len(set(values)) == 1:
        return f"{values[0]:,.{digits}f}"
    low, high = bootstrap(values)
    return f"{sum(values) / len(values):,.{digits}f} [{low:,.{digits}f}, {high:,.{digits}f}]"


def over(frames: dict[int, int], none: dict[int, Outcome]) -> str:
    """Frames more than without guidance, over the seeds at which both have a movie."""
    pairs = [(best, none[seed].frames) for seed, best in frames.items() if seed in none]
    both = [(one, other) for one, other in pairs if other is not None]
    if len(both) < 2:
        return ""
    found = paired_difference([one for one, _ in both], [other for _, other in both])
    return f"{found.value:+,.0f} [{found.low:+,.0f}, {found.high:+,.0f}]"


# ---- the command -------------------------------------------------------------------------------------------


def main(settings: Settings) -> None:
    """Run what is not done yet, and print a table a game."""
    if unknown := sorted(set(settings.variants) - set(VARIANTS)):
        raise Problem(f"there is no variant {unknown[0]!r}", remedy=f"choose {', '.join(VARIANTS)}")
    jobs = [
        (game, variant, seed, settings.seconds, shares_of(variant, settings))
        for seed in range(1, settings.seeds + 1)
        for game in settings.games
        for variant in settings.variants
    ]
    done = list(read_outcomes(settings.out))
    todo = [job for job in jobs if not any(one.job == job for one in done)]
    settings.out.parent.mkdir(parents=True, exist_ok=True)
    with lanes(settings.lanes) as pool, settings.out.open("a") as out:
        running = [pool.submit(compete, *job) for job in todo]
        for finished in tqdm(as_completed(running), "searches", len(running)):
            done.append(finished.result())
            print(json.dumps(asdict(done[-1])), file=out, flush=True)
    console = Console(width=WIDTH)
    for game in settings.games:
        console.print(table(game, [one for one in done if one.job in jobs], settings))


@contextmanager
def lanes(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Processes for one search each; ended at once where the command is stopped."""
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, context, end_with_parent, max_tasks_per_child=1) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(pool._processes.values()):
                process.kill()
            raise


def read_outcomes(path: Path) -> Iterator[Outcome]:
    """The searches that a file keeps; none where there is no file."""
    if path.is_file():
        for _, row in read_jsonl(path):
            yield Outcome(**row)


if __name__ == "__main__":
    run_command(lambda: main(tyro.cli(Settings, description=__doc__)))
