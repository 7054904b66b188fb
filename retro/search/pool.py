"""FIXED: the workers: one process each with one emulator, or this process itself.

A worker that dies is replaced, told all that is known, and its piece of work is dealt out again. The results
of a round are the same with any number of workers.
"""

import importlib
import random
import signal
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from harness.errors import Problem
from retro.faults import blaming
from retro.packages import Cell, GamePackage, load_package
from retro.search.archive import Runs
from retro.search.guidance import Guide
from retro.search.modes import Mode, load_mode
from retro.search.world import Beginning, Knowledge, Result, Start, World

DEATHS = 3  # workers that a piece of work may take with it
SILENCE = 120.0  # seconds without an answer of any worker after which that is said


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


class Pool(Protocol):
    """Does pieces of work on what is known of a segment."""

    def open(self, knowledge: Knowledge) -> None:
        """Turn to a segment, and take over what is known of it."""

    def tell(self, news: News) -> None:
        """Add what a round found."""

    def do(self, items: Sequence[Item]) -> list[Done]:
        """Do a round's work, and return it in order."""

    def arrive(self, inputs: Runs) -> tuple[Beginning, int]:
        """See `World.arrive`."""

    def ask(self, call: str, argument: Any) -> Any:
        """What the function `call`, module:function, gives for a worker's World and the argument.

        It must leave no trace in the World but the emulator's state, and give neither a Problem nor a text.
        """

    def screens(self, count: int) -> list[NDArray[np.uint8]]:
        """The newest pictures of the first `count` workers, as far as they are known, between two rounds.

        Newer ones come with the results of the next round, so nobody waits for them.
        """


@dataclass(frozen=True, slots=True)
class Ask:
    """See `Pool.ask`."""

    call: str
    argument: Any


class Look:
    """Asks a worker for its newest picture."""


class Worker:
    """Does pieces of work with the emulator of this process."""

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


class Processes:
    """Workers in processes of their own."""

    def __init__(self, spec: str, count: int) -> None:
        self._spec = spec
        self._knowledge: Knowledge | None = None
        self._workers = [_start(spec) for _ in range(count)]
        self._wanted: set[int] = set()  # workers whose pictures are
        self._looking: set[int] = set()  # those who will send one once they have done their work
        self._seen: dict[int, NDArray[np.uint8]] = {}

    @property
    def pids(self) -> list[int]:
        return [process.pid or 0 for process, _ in self._workers]

    def open(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        for place in range(len(self._workers)):
            self._send(place, knowledge)

    def tell(self, news: News) -> None:
        assert self._knowledge is not None
        news.tell(self._knowledge)
        for place in range(len(self._workers)):
            self._send(place, news)

    def do(self, items: Sequence[Item]) -> list[Done]:
        return self._deal(items)

    def arrive(self, inputs: Runs) -> tuple[Beginning, int]:
        (answer,) = self._deal([inputs])
        return answer  # type: ignore[no-any-return]

    def ask(self, call: str, argument: Any) -> Any:
        (answer,) = self._deal([Ask(call, argument)])
        return answer

    def screens(self, count: int) -> list[NDArray[np.uint8]]:
        self._wanted = set(range(min(count, len(self._workers))))
        return [self._seen[place] for place in sorted(self._seen) if place < count]

    def _deal(self, items: Sequence[Any]) -> list[Any]:
        """Have each item answered by a worker; the answers in order."""
        results: list[Any] = [None] * len(items)
        todo = list(range(len(items)))[::-1]
        lost = [0] * len(items)
        busy: dict[int, int] = {}
        while todo or busy:
            for place in range(len(self._workers)):
                if place not in busy and todo:
                    busy[place] = todo.pop()
                    self._send(place, items[busy[place]])
                    if place in self._wanted:
                        self._look(place)
            ready = wait([self._workers[place][1] for place in busy], SILENCE)
            if not ready:
                tqdm.write(
                    f"No worker has answered for {SILENCE:.0f} s. Should the machine not be busy, a function "
                    f"of the package or of a mode does not return: python -m retro.run check {self._spec}"
                )
            for place in [place for place in busy if self._workers[place][1] in ready]:
                index = busy.pop(place)
                try:
                    answer = self._workers[place][1].recv()
                except (EOFError, OSError):
                    lost[index] += 1
                    status = self._replace(place)
                    if lost[index] == DEATHS:
                        raise Problem(
                            f"a piece of work ended {DEATHS} workers, the last with {status}"
                        ) from None
                    todo.append(index)
                    continue
                if isinstance(answer, Problem):
                    raise answer
                if isinstance(answer, str):
                    raise RuntimeError(f"a worker failed:\n{answer}")
                results[index] = answer
        return results

    def close(self) -> None:
        for process, connection in self._workers:
            connection.close()
            process.join(2)
            if process.is_alive():
                process.kill()
                process.join()

    def _look(self, place: int) -> None:
        """Have a worker send its picture after the work that it has been given."""
        self._wanted.discard(place)
        with suppress(OSError):  # it has died; that its work is lost is noticed elsewhere
            self._workers[place][1].send(Look())
            self._looking.add(place)

    def _collect(self, place: int) -> None:
        """Take the picture that a worker was asked for; its work is done."""
        if place in self._looking:
            self._looking.discard(place)
            with suppress(EOFError, OSError):
                answer = self._workers[place][1].recv()
                if isinstance(answer, list):  # else it has failed, and is replaced when it is sent something
                    self._seen[place] = answer[0]

    def _send(self, place: int, message: object) -> None:
        self._collect(place)
        try:
            self._workers[place][1].send(message)
        except (BrokenPipeError, ConnectionError):
            self._replace(place)
            if not isinstance(message, Knowledge | News):  # those are part of what it is told
                self._workers[place][1].send(message)

    def _replace(self, place: int) -> str:
        """Start a worker in place of one that died; returns how it ended."""
        self._looking.discard(place)
        process, connection = self._workers[place]
        connection.close()
        process.join(1)
        process.kill()
        process.join()
        code = process.exitcode or 0
        status = f"signal {-code}" if code < 0 else f"exit {code}"
        tqdm.write(f"A worker died ({status}); another takes its place and its work")
        self._workers[place] = _start(self._spec)
        if self._knowledge is not None:
            self._workers[place][1].send(self._knowledge)
        return status


@contextmanager
def open_pool(spec: str, workers: int) -> Iterator[Pool]:
    """`workers` processes; 0 = this process does the work."""
    if not workers:
        worker = Worker(load_package(spec))
        try:
            yield worker
        finally:
            worker.world.emulator.close()
        return
    pool = Processes(spec, workers)
    try:
        yield pool
    finally:
        pool.close()


def _start(spec: str) -> tuple[BaseProcess, "Connection[Any, Any]"]:
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(spec, there), daemon=True)
    process.start()
    there.close()
    return process, here


def _serve(spec: str, connection: "Connection[Any, Any]") -> None:
    """The life of a worker process: it answers pieces of work until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that saves
    try:
        worker = Worker(load_package(spec))
        while True:
            message = connection.recv()
            if isinstance(message, Knowledge):
                worker.open(message)
            elif isinstance(message, News):
                worker.tell(message)
            elif isinstance(message, Item):
                connection.send(worker.do([message])[0])
            elif isinstance(message, Ask):
                connection.send(worker.ask(message.call, message.argument))
            elif isinstance(message, Look):
                connection.send(worker.screens())
            else:
                connection.send(worker.arrive(message))
    except (EOFError, OSError):
        return
    except Exception as error:
        with suppress(OSError):  # another worker's fault may have ended the search before
            connection.send(error if isinstance(error, Problem) else traceback.format_exc())
