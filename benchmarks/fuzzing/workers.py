"""Mutations judged by several processes, of which none can hang or fill the memory unseen."""

import importlib
import signal
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import NamedTuple

import psutil

from benchmarks.fuzzing.judging import Scores, Verdict, clear, judge, remember_scores, remember_unchanged
from benchmarks.fuzzing.records import TrueRecord


class Source(NamedTuple):
    """Where a true record stands, in which checkout, and what must hold for it to be true."""

    place: Path
    root: Path
    within: str = ""
    """A context manager that makes it so, "module:function"; "" = it is true as it stands."""

    def enter(self, stack: ExitStack) -> TrueRecord:
        """The record, read once its context is entered."""
        if self.within:
            module, _, name = self.within.partition(":")
            stack.enter_context(vars(importlib.import_module(module))[name]())
        return TrueRecord.read(self.place, self.root)


class Limits(NamedTuple):
    """What one judgement may take."""

    seconds: float
    memory: int
    """Bytes beyond what a worker holds before its first."""


class Judged(NamedTuple):
    """A mutation's number and what became of it."""

    number: int
    verdict: Verdict
    seconds: float


_Given = tuple[Sequence[Source], Scores, int]


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    folder: Path
    memory: int = 0
    index: int | None = None
    since: float = 0.0


def chance(seed: int, index: int) -> Random:
    """The chance that draws a mutation, given the number of the fuzz run and its own."""
    return Random(f"{seed} {index}")


def donors(records: Sequence[TrueRecord]) -> list[bytes]:
    """What mutations splice from: every file of every record, of the large ones the beginning."""
    return [content[:100_000] for record in records for content in record.files.values() if content]


def judge_all(
    sources: Sequence[Source],
    known: Scores,
    seed: int,
    indices: Sequence[int],
    *,
    folder: Path,
    processes: int,
    limits: Limits,
) -> Generator[Judged]:
    """The verdicts on mutations of these numbers, as they come; record `index % len(sources)` is mutated.

    `known` scores are not computed again. A process that takes longer or more memory than `limits` is ended:
    that is a crash.
    """
    pending = list(reversed(indices))
    workers = [_start((sources, known, seed), folder / str(place)) for place in range(processes)]
    try:
        while pending or any(worker.index is not None for worker in workers):
            ready = wait([worker.connection for worker in workers], timeout=min(0.2, limits.seconds))
            for place, worker in enumerate(workers):
                if worker.connection in ready:
                    try:
                        received = worker.connection.recv()
                    except EOFError:
                        if (done := _lost(worker, "the process ended")) is None:
                            raise RuntimeError("a worker does not start") from None
                        yield done
                        workers[place] = _restart(worker, (sources, known, seed))
                        continue
                    if isinstance(received, Judged):
                        yield received
                        worker.index = None
                    else:
                        worker.memory = received
                    if pending:
                        worker.index, worker.since = pending.pop(), time.monotonic()
                        worker.connection.send(worker.index)
                elif worker.index is not None and (fault := _fault(worker, limits)):
                    done = _lost(worker, fault)
                    assert done is not None
                    yield done
                    workers[place] = _restart(worker, (sources, known, seed))
    finally:
        for worker in workers:
            worker.process.kill()


def _fault(worker: _Worker, limits: Limits) -> str | None:
    """Why a worker must be ended, or None."""
    if (seconds := time.monotonic() - worker.since) > limits.seconds:
        return f"no verdict after {seconds:.0f} s"
    try:
        memory = psutil.Process(worker.process.pid).memory_info().rss - worker.memory
    except psutil.NoSuchProcess:
        return None  # its connection will tell
    return f"takes {memory:,} bytes more than before" if memory > limits.memory else None


def _lost(worker: _Worker, reason: str) -> Judged | None:
    if worker.index is None:
        return None
    verdict = Verdict("crash", "see its command", sealed=False, checks=["(none)"], detail=reason)
    return Judged(worker.index, verdict, time.monotonic() - worker.since)


def _restart(worker: _Worker, given: _Given) -> _Worker:
    worker.process.kill()
    worker.process.join()
    return _start(given, worker.folder)


def _start(given: _Given, folder: Path) -> _Worker:
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there, *given, folder), daemon=False)
    process.start()
    there.close()
    return _Worker(process, here, folder)


def _work(connection: Connection, sources: Sequence[Source], known: Scores, seed: int, folder: Path) -> None:
    """What a worker does: say how much memory it holds, then judge the mutations it is sent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stack = ExitStack()  # left with the process
    records = [source.enter(stack) for source in sources]
    others = donors(records)
    remember_unchanged()
    for name in {source.place.parent.name for source in sources}:
        remember_scores(name, known)
    for record in records:
        assert record.claims
    connection.send(psutil.Process().memory_info().rss)
    while True:
        try:
            index = connection.recv()
        except EOFError:
            return
        started = time.monotonic()
        clear(folder / "record")
        verdict = judge(records[index % len(records)], chance(seed, index), others, folder / "record")
        connection.send(Judged(index, verdict, time.monotonic() - started))
