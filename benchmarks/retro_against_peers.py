"""Our search against stable-retro's Brute and against Go-Explore's walks alone, in one run.

    python -m benchmarks.retro_against_peers [--seconds 600] [--seeds 3] [--games quarterstep airstriker]

Each contestant plays each game from power-on with each seed, in a process of its own with the same CPU
seconds, of that process and its children, from when its imports are done. Told are the CPU seconds up to the
first complete movie, and the frames of the best movie at the end; where there is none, the furthest state.
A movie counts once a fresh process that loads no savestate has replayed it from power-on to the ending.

ours    The engine with the settings of the pinned recipe (retro/speedrun.py): a route, then passes of
        `improve` over it until the time is up. A search that does not solve a segment begins anew.
hasty   The same, but the first route takes each segment's first crossing, unshaved; `improve` does the rest.
Brute   `stable_retro.examples.brute`, its own class and frame skip of 4, on stable-retro's environment.
        That starts at power-on, and its actions are the combinations of buttons that the package gives the
        present state. An episode ends with the package's deaths, at the ending, when an earlier state comes
        back, and after twice the frames of the fastest known movie. Its return is the furthest that it came:
        the index of the state, plus the state's reward scaled to less than 1; at the ending more, the sooner
        it is reached. Brute only compares returns, so how they are scaled does not matter.
walks   The engine's walks over one archive for the whole game: no segments, frontier search, trees, shaving
        or choice between crossings. Cells are (state, the package's cell); reward and buttons are as for
        Brute.
"""

import json
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from importlib import import_module
from math import inf
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import gymnasium
import numpy as np
import stable_retro
import tyro
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from stable_retro.data import Integrations
from tqdm import tqdm

from harness.errors import Problem, run_command
from harness.files import write_atomic
from harness.track import ROOT
from retro.emulator import mask, versions
from retro.inputs import format_inputs, parse_inputs
from retro.packages import GamePackage, Ram, State, load_package
from retro.replay import replay_fresh
from retro.search.modes import Mode
from retro.search.pool import Worker
from retro.search.route import Route, RouteSearch
from retro.search.segment import SegmentSearch
from retro.search.settings import Settings as SearchSettings
from retro.search.world import NEVER, Mark, World
from retro.task import GAMES

WIDTH = 110  # columns of the tables
EXAMPLE_FRAMES = 18_000  # of an episode of the example: 4,500 steps of 4


@dataclass(frozen=True)
class Settings:
    """What to compare."""

    seconds: float = 600
    """CPU seconds of each search"""
    seeds: int = 3
    """searches of each contestant in each game"""
    games: tuple[str, ...] = ("quarterstep", "airstriker")
    """packages, as `retro.packages.load_package` takes them"""
    contestants: tuple[str, ...] = ("ours", "hasty", "Brute", "walks")
    """ours, hasty, Brute, walks"""
    lanes: int = 2
    """searches at a time"""
    out: Path | None = None
    """JSON file to write, with the best movies"""


@dataclass(frozen=True)
class Movie:
    """A way from power-on to the ending."""

    seconds: float
    """CPU seconds after which it was found."""
    frames: int
    inputs: str


class TimeUp(Exception):
    """The CPU seconds are used up."""


class Search:
    """What one contestant does with its time: the movies it finds, and how far it comes."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.furthest = 0
        """Index of a state."""
        self.movies: list[Movie] = []
        """Each faster than those before."""
        self._started = cpu_seconds()

    def used(self) -> float:
        """CPU seconds so far."""
        return cpu_seconds() - self._started

    def check(self) -> None:
        """Raises TimeUp once the time is up."""
        if self.used() >= self.seconds:
            raise TimeUp

    def reached(self, state: int) -> None:
        """Take note of how far it came."""
        self.furthest = max(self.furthest, state)

    def wants(self, frames: int) -> bool:
        """Whether a complete movie of so many frames is the fastest so far."""
        return not self.movies or frames < self.movies[-1].frames

    def found(self, package: GamePackage, inputs: list[int]) -> None:
        """Take in a complete movie, if it is the fastest so far."""
        if self.wants(len(inputs)):
            text = format_inputs(inputs, package.console_buttons)
            self.movies.append(Movie(self.used(), len(inputs), text))


@dataclass(frozen=True)
class Outcome:
    """What is left of a search once its movies are replayed."""

    game: str
    contestant: str
    seed: int
    cpu_seconds: float
    furthest: str
    """Name of a state."""
    first: Movie | None
    """The first movie that its replay confirms."""
    best: Movie | None
    """The fastest such movie."""


def cpu_seconds() -> float:
    """Of this process and of those that it has started and seen end."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


# ---- ours ----------------------------------------------------------------------------------------------


def search_settings() -> SearchSettings:
    """Those of the pinned recipe, which is open to change and looked up when this runs."""
    settings: SearchSettings = import_module("retro.speedrun").RECIPES["cpu"].settings()
    return settings


def ours(search: Search, spec: str, seed: int) -> None:
    """Find a route, then improve it; from another seed where a segment was not solved."""
    find_routes(search, spec, seed, search_settings())


def hasty(search: Search, spec: str, seed: int) -> None:
    """Find a route in which nothing is waited for, then improve it."""
    find_routes(search, spec, seed, replace(search_settings(), patience=1, crossings=1, lookahead=0, shave=0))


def find_routes(search: Search, spec: str, seed: int, first: SearchSettings) -> None:
    """Routes until one is complete, which is then improved; `first` = how its segments are searched."""
    worker = Worker(load_package(spec))
    while True:
        with tempfile.TemporaryDirectory() as folder:
            route = Route(spec, worker.world.package.name, "", seed, first)
            work_on_route(search, Path(folder), route, worker)
        seed += 1_000_000


def work_on_route(search: Search, folder: Path, route: Route, worker: Worker) -> None:
    """Returns where a segment is not solved; what is found is improved until the time is up."""
    package = worker.world.package
    complete = False

    def watch(doing: str, segment: SegmentSearch) -> None:
        search.reached(segment.beginning.segment)
        if complete:
            keep()
        search.check()

    def keep() -> None:
        if search.wants(route.frames):
            search.found(package, route.inputs(package.console_buttons))

    searcher = RouteSearch(folder, route, worker, watch, replays=False)
    complete = searcher.run()
    route.settings = search_settings()
    while complete:
        keep()
        searcher.improve()
        search.check()


# ---- the goal, as the peers are told it ----------------------------------------------------------------


def progress(package: GamePackage, state: int, ram: Ram) -> float:
    """Index of a state that holds, plus its reward brought between 0 and 1."""
    reward = package.states[state].reward(ram)
    return state + (1 + reward / (50 + abs(reward))) / 2


def choices(package: GamePackage) -> list[list[int]]:
    """Button masks to try, by state."""
    console = package.console_buttons
    return [[mask(names, console) for names in state.buttons or package.buttons] for state in package.states]


def fastest_known(spec: str, package: GamePackage) -> list[int] | None:
    """Inputs of the fastest known movie; None for a package that no movie was kept of."""
    for game in GAMES:
        if game.package == spec:
            return parse_inputs(game.best_inputs, package.console_buttons)
    path = ROOT / "retro" / "games" / spec / "run.txt"
    return parse_inputs(path.read_text(), package.console_buttons) if path.is_file() else None


# ---- walks alone ---------------------------------------------------------------------------------------


def whole(package: GamePackage) -> GamePackage:
    """The package's game as one segment, with the states in its cells."""
    last = len(package.states) - 1
    held: Callable[[Ram], int] = lru_cache(maxsize=1)(package.state_of)

    def plays(ram: Ram) -> bool:
        return 0 <= held(ram) < last

    def reward(ram: Ram) -> float:
        return progress(package, held(ram), ram)

    def dead(ram: Ram) -> bool:
        state = held(ram)
        return package.states[state].dead(ram) if state >= 0 else any(s.dead(ram) for s in package.states)

    class Whole(GamePackage):
        name, title, variables = package.name, package.title, package.variables
        states = (State("run", "reach the ending", plays, reward, dead), package.states[last])
        buttons, holds, transit_limit = package.buttons, package.holds, package.transit_limit
        integration = package.integration

        def cell(self, ram: Ram) -> tuple[int, ...]:
            return held(ram), *package.cell(ram)

    return Whole()


class WholeWorld(World):
    """Tries in each state the buttons that the package gives it, as segments do."""

    def __init__(self, package: GamePackage) -> None:
        super().__init__(whole(package))
        self._held, self._choices = package.state_of, choices(package)

    def back(self, mark: Mark) -> None:
        super().back(mark)
        self.masks = self._choices[self._held(self.emulator.values())]


class WholeWorker(Worker):
    """A worker in a world of one segment."""

    def __init__(self, package: GamePackage) -> None:
        self.world = WholeWorld(package)
        self._modes: dict[str, Mode] = {}


def walks(search: Search, spec: str, seed: int) -> None:
    """Walks over one archive, as large as those of all segments together."""
    package = load_package(spec)
    worker, given = WholeWorker(package), search_settings()
    settings = replace(
        given,
        frames=NEVER,
        patience=NEVER,
        modes={"walks": 1.0},
        cells=given.cells * len(package.states),
        crossings=1,
        lookahead=0,
        shave=0,
    )
    beginning, waited = worker.arrive(((0, 1),))
    segment = SegmentSearch(beginning, settings, str(seed))
    segment.open(worker)
    while True:
        segment.round(worker)
        search.reached(max(cell[1] for cell in segment.archive.cells))
        if segment.solutions:
            search.reached(len(package.states) - 1)
            held = [mask for mask, frames in segment.solutions[0].runs for _ in range(frames)]
            search.found(package, [0] * (1 + waited) + held)
        search.check()


# ---- stable-retro's Brute ------------------------------------------------------------------------------


class Goal(gymnasium.Wrapper[Any, Any, Any, Any]):
    """stable-retro's environment from power-on, with the package's actions, return and ends of episodes."""

    def __init__(self, package: GamePackage, limit: int) -> None:
        """`limit` = frames of an episode at most."""
        emulator = package.open()
        boot = emulator.boot
        emulator.close()
        del emulator  # a process can hold one, and the environment makes its own
        Integrations.add_custom_path(str(package.integration.parent))
        variables = {name: variable._asdict() for name, variable in package.variables.items()}
        with tempfile.TemporaryDirectory() as folder:
            info, scenario = Path(folder, "data.json"), Path(folder, "scenario.json")
            info.write_text(json.dumps({"info": variables}))
            scenario.write_text("{}")
            super().__init__(
                stable_retro.make(
                    package.name,
                    stable_retro.State.NONE,
                    Integrations.CUSTOM_ONLY,
                    info=str(info),
                    scenario=str(scenario),
                    use_restricted_actions=stable_retro.Actions.ALL,
                    render_mode="rgb_array",
                )
            )
        self.unwrapped.initial_state = boot  # type: ignore[attr-defined]
        self.package, self.limit, self.masks = package, limit, choices(package)
        self.action_space = gymnasium.spaces.Discrete(max(map(len, self.masks)))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.inputs = [0]  # resetting runs the first frame, without buttons
        self.state, self.best = -1, 0.0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: int) -> Any:
        masks = self.masks[max(0, self.state)]
        bits = masks[action % len(masks)]
        seen, _, _, _, info = self.env.step(pressed(bits, len(self.package.console_buttons)))
        self.inputs.append(bits)
        ram = self.package.ram_type(**info)
        entered = self.package.state_of(ram)
        lost = 0 <= entered < self.state
        self.state = max(self.state, entered)
        if self.state >= 0:
            lost = lost or self.package.states[self.state].dead(ram)
        gained = 0.0
        if entered >= 0 and not lost:
            worth = progress(self.package, entered, ram)
            if self.complete:
                worth += 2 - len(self.inputs) / self.limit
            gained = max(0.0, worth - self.best)
            self.best += gained
        return seen, gained, lost or self.complete, len(self.inputs) >= self.limit, info

    @property
    def complete(self) -> bool:
        """Whether the ending is reached."""
        return self.state == len(self.package.states) - 1


@cache
def pressed(bits: int, count: int) -> NDArray[np.uint8]:
    """A button mask as stable-retro takes it."""
    return np.array([bits >> place & 1 for place in range(count)], np.uint8)


def brute(search: Search, spec: str, seed: int) -> None:
    """The Brute, episode after episode."""
    peer = import_module("stable_retro.examples.brute")
    package = load_package(spec)
    known = fastest_known(spec, package)
    goal = Goal(package, 2 * len(known) if known else EXAMPLE_FRAMES)
    skipping = peer.Frameskip(goal)
    skipping.action_space.seed(seed)
    random.seed(seed)
    player = peer.Brute(skipping, max_episode_steps=-(-goal.limit // skipping._skip))
    while True:
        player.run()
        search.reached(goal.state)
        if goal.complete:
            search.found(package, goal.inputs)
        search.check()


# ---- comparison ----------------------------------------------------------------------------------------

CONTESTANTS: dict[str, Callable[[Search, str, int], None]] = {
    "ours": ours,
    "hasty": hasty,
    "Brute": brute,
    "walks": walks,
}


def compete(game: str, contestant: str, seed: int, seconds: float) -> Outcome:
    """One search, and the replays of what it found."""
    search = Search(seconds)
    with suppress(TimeUp):
        CONTESTANTS[contestant](search, game, seed)
    used = search.used()
    ending = load_package(game).states[-1].name

    @cache
    def reproduces(movie: Movie) -> bool:
        return replay_fresh(game, movie.inputs).splits.get(ending) == movie.frames

    return Outcome(
        game,
        contestant,
        seed,
        used,
        load_package(game).states[search.furthest].name,
        next(filter(reproduces, search.movies), None),
        next(filter(reproduces, reversed(search.movies)), None),
    )


def table(game: str, outcomes: list[Outcome], settings: Settings) -> Table:
    """Medians, and all values in the order of the seeds."""
    known = fastest_known(game, load_package(game))
    title = f"{game}: {settings.seconds:g} CPU s each"
    if known:
        title += f"; the fewest frames known are {len(known):,}"
    view = Table("", title=title, title_justify="left", box=None)
    for name in ("CPU s to a movie", "all", "frames of the best", "all", "furthest without a movie"):
        view.add_column(name, justify="left" if "furthest" in name else "right")
    for contestant in settings.contestants:
        rows = [one for one in outcomes if (one.game, one.contestant) == (game, contestant)]
        rows.sort(key=lambda one: one.seed)
        lacking = [one.furthest for one in rows if one.best is None]
        view.add_row(
            contestant,
            *spread([one.first.seconds if one.first else None for one in rows]),
            *spread([one.best.frames if one.best else None for one in rows]),
            ", ".join(lacking),
        )
    return view


def spread(values: Sequence[float | None]) -> tuple[str, str]:
    """The median, and all values; None, where there is no movie, is more than any number."""
    numbers = [inf if value is None else float(value) for value in values]
    middle, *others = (f"{number:,.0f}" if number < inf else "none" for number in (median(numbers), *numbers))
    return middle, "  ".join(others)


def main(settings: Settings) -> None:
    """Run all searches, print a table a game, write the file."""
    for game in settings.games:
        load_package(game)
    if unknown := sorted(set(settings.contestants) - set(CONTESTANTS)):
        raise Problem(f"there is no contestant {unknown[0]!r}", remedy=f"choose {', '.join(CONTESTANTS)}")
    jobs = [
        (game, contestant, seed, settings.seconds)
        for game in settings.games
        for seed in range(1, settings.seeds + 1)
        for contestant in settings.contestants
    ]
    outcomes = []
    with ProcessPoolExecutor(settings.lanes, get_context("spawn"), max_tasks_per_child=1) as lanes:
        running = [lanes.submit(compete, *job) for job in jobs]
        for done in tqdm(as_completed(running), "searches", len(running)):
            outcomes.append(done.result())
    console = Console(width=WIDTH)
    for game in settings.games:
        console.print(table(game, outcomes, settings))
    if settings.out:
        report = {
            "settings": asdict(settings) | {"out": str(settings.out)},
            "recipe": asdict(search_settings()),
            "versions": versions(),
            "load_average": os.getloadavg(),
            "outcomes": [asdict(one) for one in outcomes],
        }
        write_atomic(settings.out, json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    run_command(
        lambda: main(tyro.cli(Settings, prog="python -m benchmarks.retro_against_peers", description=__doc__))
    )
