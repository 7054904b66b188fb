"""FIXED: one worker: what it is told, what it is given to do, and what it answers."""

import importlib
import random
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import Problem
from retro.faults import blaming
from retro.packages import Cell, GamePackage
from retro.search.archive import Runs
from retro.search.guidance import Guide
from retro.search.modes import Mode, load_mode
from retro.search.world import Beginning, Knowledge, Result, Start, World


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of work."""

    mode: str
    starts: list[Start]
    seed: str
    budget: int
    """Frames."""
    inputs: Runs = ()
    """A crossing's, from the segment's start, where the work is about one."""


@dataclass(frozen=True, slots=True)
class Done:
    """A piece of work, done."""

    result: Result
    exhausted: list[int]


@dataclass(frozen=True, slots=True)
class News:
    """What a round adds to what is known."""

    cells: dict[Cell, int]
    gone: list[Cell]
    seen: set[tuple[int, int]]
    bound: int
    transit: int
    guides: tuple[Guide, ...] | None = None
    """None = as before."""

    def tell(self, knowledge: Knowledge) -> None:
        for cell in self.gone:
            knowledge.frames.pop(cell, None)
        knowledge.frames.update(self.cells)
        knowledge.seen |= self.seen
        knowledge.bound, knowledge.transit = self.bound, self.transit
        if self.guides is not None:
            knowledge.guides = self.guides


@dataclass(frozen=True, slots=True)
class Ask:
    """See `Pool.ask`."""

    call: str
    argument: Any


class Look:
    """Asks a worker for its newest picture."""


class Worker:
    """Does pieces of work with the emulator of this process; a pool of one."""

    lost = 0

    def __init__(self, package: GamePackage) -> None:
        self.world = World(package)
        self._modes: dict[str, Mode] = {}

    def open(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge

    def tell(self, news: News) -> None:
        news.tell(self.knowledge)

    def do(self, items: Sequence[Item]) -> list[Done]:
        with blaming(self.world.package):
            return [self._do(item) for item in items]

    def arrive(self, inputs: Runs) -> tuple[Beginning, int]:
        with blaming(self.world.package):
            return self.world.arrive(inputs)

    def ask(self, call: str, argument: Any) -> Any:
        module, _, name = call.partition(":")
        with blaming(self.world.package):
            return getattr(importlib.import_module(module), name)(self.world, argument)

    def screens(self, count: int = 1) -> list[NDArray[np.uint8]]:
        return [self.world.emulator.screen()][:count]

    def _do(self, item: Item) -> Done:
        if item.mode not in self._modes:
            self._modes[item.mode] = load_mode(item.mode)
        self.world.begin(self.knowledge, item.budget, item.inputs)
        exhausted = self._modes[item.mode].explore(self.world, item.starts, random.Random(item.seed))
        return Done(self.world.result(), exhausted)


# ---- in another process ------------------------------------------------------------------------------------


def is_told(message: object) -> bool:
    """Whether a message has no answer."""
    return isinstance(message, Knowledge | News)


def respond(worker: Worker, message: object) -> Any:
    """Do what a message says; the answer, None where it has none."""
    match message:
        case Knowledge():
            worker.open(message)
        case News():
            worker.tell(message)
        case Item():
            return worker.do([message])[0]
        case Ask(call, argument):
            return worker.ask(call, argument)
        case Look():
            return worker.screens()
        case _:
            return worker.arrive(message)  # type: ignore[arg-type]  # nothing else is sent


def failure(error: Exception) -> Problem | str:
    """What is answered in place of an answer: a Problem, or the traceback of anything else."""
    return error if isinstance(error, Problem) else "".join(traceback.format_exception(error))
