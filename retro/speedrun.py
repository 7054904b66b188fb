"""OPEN: the recipe that holds the record: how to search for the fastest movie of a game.

    python -m retro.speedrun             the pinned recipe of this machine's class
    python -m retro.speedrun --smoke     the same, tiny
    python -m retro.speedrun --verify records/retro/...     a record's recipe with its second seed
    python -m retro.speedrun --resume outputs/<run>         goes on with a run that broke off

Eight independent searches play every game of the track from power-on to its ending. Each is given a seed of
its own, and a process of its own: two searches at a time want no synchronisation, where two workers of one
search wait for each other at the end of every round. The search itself is `retro.search`; what tells it what
to try are the modes, of which one can be replaced by a class in this file ("retro.speedrun:YourMode").

A recipe knows games by their packages alone. It may not contain inputs, places or times of a game.
"""

import shutil
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import NamedTuple

from harness.errors import Problem, run_command
from harness.launch import launch
from harness.lock import locked
from harness.run import Run
from harness.silent import SilentRun, end_with_parent, ignored_signals
from retro.eval_speedrun import evaluate
from retro.evidence import Found, expected, movies_bytes
from retro.inputs import format_inputs
from retro.packages import load_package
from retro.search.pool import Worker
from retro.search.route import ROUTE, Route, RouteSearch, read_route
from retro.search.segment import SegmentSearch
from retro.search.settings import Settings
from retro.task import benchmark
from retro.track import TRACK

# ---- the recipe --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """One way to search. Frames are emulated ones."""

    seed: int = 1
    """Those of the searches follow from it."""
    lanes: int = 2
    """Searches at a time."""
    frames: int = 400_000
    """Frames that the search of a segment may emulate before it is cut off."""
    patience: int = 4_000
    """Frames without a faster crossing after which a solved segment is left."""
    walks: float = 0.8
    """The share of Go-Explore's walks."""
    frontier: float = 0.1
    """The share of the breadth-first search."""
    tree: float = 0.1
    """The share of Monte Carlo tree search."""
    items: int = 2
    """Pieces of work in a round."""
    item_frames: int = 400
    """Frames of a piece of work."""
    cells: int = 20_000
    """Cells that an archive holds at most."""
    crossings: int = 3
    """Distinct crossings that compete by how fast the next segment is from them."""
    lookahead: int = 0
    """Frames that the next segment's search gets for each of them."""
    shave: int = 1_000
    """Frames of shaving when the search has ended; 0 = no shaving at all, during the search neither."""
    settle: int = 2
    """Frames for which a new state must hold before a crossing counts."""

    def settings(self) -> Settings:
        """What a search is told."""
        return Settings(
            frames=self.frames,
            patience=self.patience,
            modes={"walks": self.walks, "frontier": self.frontier, "tree": self.tree},
            items=self.items,
            item_frames=self.item_frames,
            cells=self.cells,
            crossings=self.crossings,
            lookahead=self.lookahead,
            shave=self.shave,
            settle=self.settle,
        )

    def __post_init__(self) -> None:
        if self.lanes < 1:
            raise Problem(f"lanes is {self.lanes}", remedy="give 1 or more")
        self.settings()

    def smoke(self) -> "Recipe":
        """The same with a hundredth of the work."""
        return replace(self, frames=4_000, patience=1_000, item_frames=250, shave=500)


RECIPES = {"cpu": Recipe()}

# ---- searching ---------------------------------------------------------------------------------------------


class Note(NamedTuple):
    """How far a search has come."""

    search: int
    solved: int
    """Segments that it has left behind."""
    segment: int
    frames: int
    """Emulated since its beginning."""
    cells: int
    """Of the present segment."""


Notes = SimpleQueue[Note]

_notes: Notes


def open_lane(notes: Notes) -> None:
    """Begin the life of a lane's process."""
    global _notes
    _notes = notes
    end_with_parent()


def ready() -> bool:
    """What a lane does in the warm-up: it has imported all that a search needs."""
    return True


def find(wanted: Found, settings: Settings, folder: Path) -> Found:
    """One search of one game, from power-on, or from where it stands in its folder."""
    spec = benchmark(wanted.game).package
    package = load_package(spec)
    worker = Worker(package)
    folder = folder / f"{wanted.game}-{wanted.search}"
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / ROUTE).is_file():
        route = read_route(folder)
    else:
        route = Route(spec, wanted.game, "", wanted.seed, settings)
    emulated, told = {"": sum(piece.searched for piece in route.pieces)}, 0.0

    def watch(doing: str, search: SegmentSearch) -> None:
        nonlocal told
        segment = search.beginning.segment
        emulated[f"{segment} {search.beginning.ram_hash}"] = search.frames
        if time.monotonic() - told > 1.0:
            told = time.monotonic()
            cells = len(search.archive.cells)
            _notes.put(Note(wanted.search, len(route.pieces), segment, sum(emulated.values()), cells))

    with locked(folder):  # the evaluation replays everything, so nothing is replayed here
        solved = RouteSearch(folder, route, worker, watch, replays=False).run()
    worker.world.emulator.close()
    _notes.put(Note(wanted.search, len(route.pieces), len(package.states) - 1, sum(emulated.values()), 0))
    buttons = package.console_buttons
    return wanted._replace(inputs=format_inputs(route.inputs(buttons), buttons) if solved else None)


SEARCHES = "searches"  # in the run's folder, while it trains

# ---- the run -----------------------------------------------------------------------------------------------


def train(run: Run | SilentRun, recipe: Recipe) -> None:
    """All searches, `recipe.lanes` at a time; the checkpoint is their movies."""
    assert isinstance(run, Run)  # no torchrun here
    context, folder = get_context("spawn"), run.path / SEARCHES
    if run.state is None:  # what a search kept goes on from where the log does, and not from later
        shutil.rmtree(folder, ignore_errors=True)
    notes: Notes = context.SimpleQueue()
    settings, todo = recipe.settings(), expected(run.seed)
    with ProcessPoolExecutor(recipe.lanes, context, initializer=open_lane, initargs=(notes,)) as lanes:
        try:
            with run.warmup():
                with ignored_signals():
                    lanes_ready = [lanes.submit(ready) for _ in range(recipe.lanes)]
                wait(lanes_ready)
            run.train_start()
            run.record_data(TRACK.data_files().items())
            searches = [lanes.submit(find, wanted, settings, folder) for wanted in todo]
            follow(run, searches, notes)
            found = [search.result() for search in searches]
            run.train_stop()
        except BrokenProcessPool as error:
            raise Problem(
                "a search's process was killed", remedy="see if memory ran out, and run again"
            ) from error
        except BaseException:
            for process in lanes._processes.values():
                process.kill()
            raise
    run.save_checkpoint(movies_bytes(found))
    shutil.rmtree(folder, ignore_errors=True)


def follow(run: Run, searches: "list[Future[Found]]", notes: Notes) -> None:
    """Log how the searches go, until all are done; they keep in their folders what they go on from."""
    step, pending = run.steps, set(searches)
    solved = dict.fromkeys(range(len(searches)), 0)
    with run.progress(len(searches), "search") as bar:
        while pending:
            done, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
            while not notes.empty():
                step += 1
                note = notes.get()
                solved[note.search] = note.solved
                run.log_step(step, segments_solved=sum(solved.values()), **note._asdict())
                bar.set_postfix(search=note.search, segment=note.segment, cells=note.cells, refresh=False)
            if step and run.state_due():
                run.save_state(bytes)
            bar.update(len(done))


if __name__ == "__main__":
    run_command(lambda: launch(TRACK, RECIPES, train=train, evaluate=evaluate, source=Path(__file__)))
