"""FIXED: the workers: one process each with one emulator, or this process itself.

A worker that dies is replaced, told all that is known, and its piece of work is dealt out again. The results
of a round are the same with any number of workers.
"""

import signal
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from harness.errors import Problem
from retro.packages import load_package
from retro.search.archive import Runs
from retro.search.worker import Ask, Done, Item, Look, News, Worker, failure, is_told, respond
from retro.search.world import Beginning, Knowledge

__all__ = ["Crew", "Done", "Item", "Line", "News", "Pool", "Processes", "Worker", "open_pool"]

DEATHS = 3  # workers that a piece of work may take with it
SILENCE = 120.0  # seconds without an answer of any worker after which that is said


class Pool(Protocol):
    """Does pieces of work on what is known of a segment."""

    @property
    def lost(self) -> int:
        """How many workers have died and were replaced."""

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


class Line(Protocol):
    """The way to one worker elsewhere: `send` and `recv` raise EOFError or OSError where it has died."""

    def send(self, message: object) -> None:
        """Give it something for `retro.search.worker.respond`."""

    def recv(self) -> Any:
        """Its next answer, or its `failure`, after which it does nothing more."""

    def end(self) -> str:
        """See that it has ended; how it did."""


L = TypeVar("L", bound=Line)


class Crew(ABC, Generic[L]):
    """Workers elsewhere. Where they are, and how messages get there, is up to subclasses."""

    def __init__(self, spec: str, count: int) -> None:
        self.lost = 0
        self._spec = spec
        self._knowledge: Knowledge | None = None
        self._wanted: set[int] = set()  # workers whose pictures are
        self._looking: set[int] = set()  # those who will send one once they have done their work
        self._seen: dict[int, NDArray[np.uint8]] = {}
        self._lines: list[L] = []
        for _ in range(count):
            self._lines.append(self._start(spec))

    @abstractmethod
    def _start(self, spec: str) -> L:
        """Start a worker, and do not wait for it."""

    @abstractmethod
    def _wait(self, lines: Sequence[L], seconds: float) -> Collection[L]:
        """Lines on which an answer has come or the worker has died, once there is one; none after so many
        seconds."""

    def open(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        for place in range(len(self._lines)):
            self._send(place, knowledge)

    def tell(self, news: News) -> None:
        assert self._knowledge is not None
        news.tell(self._knowledge)
        for place in range(len(self._lines)):
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
        self._wanted = set(range(min(count, len(self._lines))))
        return [self._seen[place] for place in sorted(self._seen) if place < count]

    def _deal(self, items: Sequence[Any]) -> list[Any]:
        """Have each item answered by a worker; the answers in order."""
        results: list[Any] = [None] * len(items)
        todo = list(range(len(items)))[::-1]
        lost = [0] * len(items)
        busy: dict[int, int] = {}
        while todo or busy:
            for place in range(len(self._lines)):
                if place not in busy and todo:
                    busy[place] = todo.pop()
                    self._send(place, items[busy[place]])
                    if place in self._wanted:
                        self._look(place)
            ready = self._wait([self._lines[place] for place in busy], SILENCE)
            if not ready:
                tqdm.write(
                    f"No worker has answered for {SILENCE:.0f} s. Should the machine not be busy, a function "
                    f"of the package or of a mode does not return: python -m retro.run check {self._spec}"
                )
            for place in [place for place in busy if self._lines[place] in ready]:
                index = busy.pop(place)
                try:
                    answer = self._lines[place].recv()
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

    def _look(self, place: int) -> None:
        """Have a worker send its picture after the work that it has been given."""
        self._wanted.discard(place)
        with suppress(OSError):  # it has died; that its work is lost is noticed elsewhere
            self._lines[place].send(Look())
            self._looking.add(place)

    def _collect(self, place: int) -> None:
        """Take the picture that a worker was asked for; its work is done."""
        if place in self._looking:
            self._looking.discard(place)
            with suppress(EOFError, OSError):
                answer = self._lines[place].recv()
                if isinstance(answer, list):  # else it has failed, and is replaced when it is sent something
                    self._seen[place] = answer[0]

    def _send(self, place: int, message: object) -> None:
        self._collect(place)
        try:
            self._lines[place].send(message)
        except (BrokenPipeError, ConnectionError):
            self._replace(place)
            if not is_told(message):  # that is part of what it is told
                self._lines[place].send(message)

    def _replace(self, place: int) -> str:
        """Start a worker in place of one that died; returns how it ended."""
        self._looking.discard(place)
        status = self._lines[place].end()
        tqdm.write(f"A worker died ({status}); another takes its place and its work")
        self.lost += 1
        self._lines[place] = self._start(self._spec)
        if self._knowledge is not None:
            self._lines[place].send(self._knowledge)
        return status


# ---- processes of this machine -----------------------------------------------------------------------------


class Pipe:
    """A process with a worker, and the pipe to it."""

    def __init__(self, spec: str) -> None:
        context = get_context("spawn")
        self.connection, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(spec, there), daemon=True)
        self.process.start()
        there.close()
        self.send, self.recv = self.connection.send, self.connection.recv

    def end(self) -> str:
        self.connection.close()
        self.process.join(2)
        self.process.kill()
        self.process.join()
        code = self.process.exitcode or 0
        return f"signal {-code}" if code < 0 else f"exit {code}"


class Processes(Crew[Pipe]):
    """Workers in processes of their own."""

    @property
    def pids(self) -> list[int]:
        return [line.process.pid or 0 for line in self._lines]

    def close(self) -> None:
        for line in self._lines:
            line.end()

    def _start(self, spec: str) -> Pipe:
        return Pipe(spec)

    def _wait(self, lines: Sequence[Pipe], seconds: float) -> list[Pipe]:
        ready = wait([line.connection for line in lines], seconds)
        return [line for line in lines if line.connection in ready]


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


def _serve(spec: str, connection: "Connection[Any, Any]") -> None:
    """The life of a worker process: it answers what it is sent until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that saves
    try:
        worker = Worker(load_package(spec))
        while True:
            message = connection.recv()
            answer = respond(worker, message)
            if not is_told(message):
                connection.send(answer)
    except (EOFError, OSError):
        return
    except Exception as error:
        with suppress(OSError):  # another worker's fault may have ended the search before
            connection.send(failure(error))
