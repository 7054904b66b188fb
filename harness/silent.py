"""What processes have that help the first one of a run: no clock and no log, and no life after it."""

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess
from typing import Any

from tqdm import tqdm


class SilentRun:
    """Takes what a `Run` takes while training, and does nothing, so that a recipe needs no `if rank == 0`."""

    state: bytes | None = None

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def warmup(self) -> AbstractContextManager[None]:
        return nullcontext()

    def train_start(self) -> None: ...

    def record_data(self, sources: Iterable[tuple[str, str]]) -> None: ...

    def log_step(self, step: int, **numbers: float) -> None: ...

    def state_due(self, size: int = 0) -> bool:
        return False

    def save_state(self, state: Callable[[], bytes]) -> None:
        """Do a helper's part in making the state: what it holds comes from all processes."""
        state()

    def train_stop(self, synchronize: Callable[[], None] | None = None) -> None: ...

    def save_checkpoint(self, data: bytes) -> None: ...

    def progress(self, total: int, unit: str) -> "tqdm[Any]":
        return tqdm(total=total, unit=unit, disable=True)


@contextmanager
def ignored_signals() -> Iterator[None]:
    """No Ctrl-C or SIGTERM interrupts this process meanwhile, nor ever those that it starts meanwhile.

    For the start of helpers: the first process alone hears of a signal, says so, and ends the others.
    """
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def killed_on_error(processes: Iterable[BaseProcess]) -> Iterator[None]:
    """Kill helpers where the work in here breaks off, before they miss this process and say so."""
    try:
        yield
    except BaseException:
        for process in processes:
            process.kill()
        raise


def end_with_parent() -> None:
    """End this process, which multiprocessing started, as soon as its parent has ended, however that was."""
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
