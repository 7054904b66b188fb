"""FIXED: an experiment: batches of episodes awake, a sleep after each, and at the end an evaluation.

A run is exact: its episodes follow from its seed, its calls are known by their labels, and whatever was
answered before is taken from the cache. So a run that broke off, and a replay, end as one that went through.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

from agents.benchmarks import check_playable, load_benchmark
from agents.benchmarks.base import Benchmark, Episode
from agents.config import Config
from agents.core.checkpoint import CACHE, CALLS, as_written
from agents.core.crew import Crew, Line, Stopped, Terms
from agents.core.journal import Journal, Row
from agents.core.watch import Watch
from agents.llm.cache import Cache
from agents.llm.ledger import Budget, BudgetSpent, Ledger
from agents.llm.model import Model
from agents.methods import METHODS
from agents.methods.base import Tools
from agents.sandbox.host import Limits, Sandbox
from harness.errors import Problem
from harness.files import canonical_json

Status = Literal["complete", "budget", "interrupted", "failed"]


@dataclass(frozen=True)
class Batch:
    """Episodes between two sleeps."""

    index: int
    phase: int
    first: int
    """Index of its first episode."""
    episodes: tuple[Episode, ...]
    slept: bool = True
    """Whether a sleep follows."""


class End(NamedTuple):
    """How a run ended."""

    status: Status
    reason: str
    """In words; "" where it is complete."""


class Extent(NamedTuple):
    """How far another run went, for its replay."""

    learned: int
    evaluated: int
    sleeps: int
    end: End


def plan_batches(config: Config, benchmark: Benchmark) -> list[Batch]:
    """The episodes of all phases; no batch reaches over two phases."""
    every = config.sleep_every if METHODS[config.method].parallel else 1
    batches: list[Batch] = []
    first = 0
    for phase, part in enumerate(config.phases):
        generator = Random(f"{config.seed} phase {phase}")
        episodes = benchmark.draw(part.tasks, config.split, part.episodes, generator)
        for start in range(0, len(episodes), every):
            some = tuple(episodes[start : start + every])
            batches.append(Batch(len(batches), phase, first, some))
            first += len(some)
    return batches


def plan_evaluation(config: Config, benchmark: Benchmark) -> list[Episode]:
    """The episodes of the evaluation; [] = there is none."""
    part = config.evaluate
    if part is None:
        return []
    return benchmark.draw(part.tasks, part.split, part.episodes, Random(f"{config.seed} evaluation"))


def up_to(batches: list[Batch], extent: Extent) -> list[Batch]:
    """As much of the batches as another run has played and slept on."""
    kept = []
    for batch in batches:
        episodes = batch.episodes[: max(0, extent.learned - batch.first)]
        if episodes:
            slept = batch.slept and batch.index < extent.sleeps
            kept.append(Batch(batch.index, batch.phase, batch.first, episodes, slept))
    return kept


class Experiment:
    """A run in a folder that holds nothing but its config, or what was written before it broke off."""

    def __init__(
        self,
        folder: Path,
        config: Config,
        *,
        replayed: Path | None = None,
        extent: Extent | None = None,
        played: Callable[[Row], None] = lambda row: None,
    ) -> None:
        """With the folder of a run to be `replayed`, its cache answers everything, up to the `extent` of it.

        `played` is called with each episode's row of episodes.jsonl once it is written.

        Raises:
            Problem: a library, Java, a key, a price or a recorded reply is missing, the machine cannot
                lock model-written code down, or the folder holds something else than a run.
        """
        self.folder, self.config, self._extent, self._played = folder, config, extent, played
        self.benchmark = load_benchmark(config.benchmark, config.server)
        check_playable(self.benchmark)
        with self._sandbox() as sandbox:
            self.confinement = sandbox.confinement
            """What locks model-written code down, or "unsafe"."""
        self.batches = plan_batches(config, self.benchmark)
        self.evaluation = plan_evaluation(config, self.benchmark)
        if extent is not None:
            self.batches = up_to(self.batches, extent)
            self.evaluation = self.evaluation[: extent.evaluated]
        self.journal = Journal(folder)
        budget = config.budget.budget() if replayed is None else Budget()
        with ExitStack() as opened:
            self.ledger = Ledger(folder / CALLS, budget)
            opened.callback(self.ledger.close)
            cache = Cache(folder / CACHE) if replayed is None else Cache(replayed / CACHE, "replay")
            opened.callback(cache.close)
            cache.check_holds(self.ledger.answered())
            self.model = Model(config.model, self.ledger, cache)
            opened.pop_all()
        self._watch: Watch | None = None
        self._line = Line(self.model, self._show)
        tools = Tools(
            benchmark=self.benchmark,
            model=self._line,
            sandbox=self._sandbox,
            settings=config.method_settings,
            seed=config.seed,
            log=self._say,
        )
        self.method = METHODS[config.method](tools)
        terms = Terms(
            turn_limit=config.turn_limit,
            history=config.history,
            token_limit=config.episode_tokens,
            parallel=config.parallel,
        )
        self._crew = Crew(self.benchmark, self._sandbox, terms)

    def run(self) -> End:
        """Play, sleep and evaluate what is left. Ctrl-C, a spent budget and a Problem end it in order."""
        episodes = sum(len(batch.episodes) for batch in self.batches) + len(self.evaluation)
        self._watch = Watch(episodes, self.journal.rows, self.benchmark.metric, self.model)
        try:
            self._restore()
            for batch in self.batches:
                self._live(batch)
            self._evaluate()
            return self._extent.end if self._extent else End("complete", "")
        except BudgetSpent as spent:
            return End("budget", str(spent))
        except (KeyboardInterrupt, Stopped):
            self._halt()
            return End("interrupted", "stopped by Ctrl-C")
        except Problem as problem:
            return End("failed", str(problem))
        finally:
            self._line.cut()
            self._watch.close()

    def load(self, memory: Mapping[str, Any]) -> None:
        """Give the method a memory that the journal holds.

        Raises:
            Problem: it is none of this method's.
        """
        with as_written(self.journal.memory_path):
            self.method.load(memory)

    def close(self) -> None:
        """Give back files, environments and connections."""
        self._crew.close()
        self.model.close()
        if self.model.cache is not None:
            self.model.cache.close()
        self.ledger.close()

    def _restore(self) -> None:
        memory = self.journal.memory()
        if memory is None:
            self.journal.begin(self.method.dump())
            return
        if self.batches and not self.journal.sleeps:
            with as_written(self.journal.memory_path):
                if canonical_json(memory) != canonical_json(self.method.dump()):
                    raise ValueError("nothing has been learned yet")
        self.load(memory)

    def _live(self, batch: Batch) -> None:
        """Play what is left of a batch, and sleep if that is left."""
        done = max(0, self.journal.count("learn") - batch.first)
        rest = batch.episodes[done:]
        for trajectory, seconds in self._crew.play(self.method, rest, batch.first + done, learning=True):
            self._note(self.journal.add_episode("learn", trajectory, seconds, batch.phase, batch.index))
        if batch.slept and len(self.journal.sleeps) <= batch.index:
            start = time.monotonic()
            sleep = self.method.sleep(tuple(self.journal.pending), batch.index)
            self.journal.add_sleep(sleep, self.method.dump(), time.monotonic() - start)

    def _evaluate(self) -> None:
        done = self.journal.count("eval")
        rest = self.evaluation[done:]
        for trajectory, seconds in self._crew.play(self.method, rest, done, learning=False):
            self._note(self.journal.add_episode("eval", trajectory, seconds, None, None))

    def _halt(self) -> None:
        """Let the requests under way come in, unless Ctrl-C is pressed once more."""
        self._line.cut()
        self._say("Stopping: requests under way are waited for; press Ctrl-C again not to wait")
        try:
            self._crew.stop()
        except KeyboardInterrupt:
            self._say("Not waiting any longer")

    def _sandbox(self) -> Sandbox:
        return Sandbox(Limits(), unsafe=self.config.sandbox == "unsafe")

    def _note(self, row: Mapping[str, Any]) -> None:
        assert self._watch is not None
        self._watch.advance()
        self._played(dict(row))

    def _show(self) -> None:
        if self._watch is not None:
            self._watch.show()

    def _say(self, text: str) -> None:
        if self._watch is not None:
            self._watch.say(text)
