"""state.bin: what training goes on from when it broke off; it lies in the run's folder, whole or not at all.

The first line is JSON: run_id, step, the CPU seconds spent by then, and the SHA-256 of all that follows. That
is the recipe's own.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import Problem
from harness.files import canonical_json, parse_json, read_bytes, sha256_bytes, write_atomic

STATE_NAME = "state.bin"


@dataclass(frozen=True)
class State:
    """Where training stands."""

    run_id: str
    step: int
    cpu_s: float
    data: bytes


def write_state(folder: Path, state: State) -> None:
    """Put a state in the place of an earlier one; a Problem where it cannot be written."""
    about = {"run_id": state.run_id, "step": state.step, "cpu_s": state.cpu_s}
    head = canonical_json({**about, "sha256": sha256_bytes(state.data)})
    write_atomic(folder / STATE_NAME, head.encode() + b"\n" + state.data)


def read_state(folder: Path, run_id: str) -> State | None:
    """The state of a run; None where none was saved.

    Raises:
        Problem: it is damaged, or of another run.
    """
    path, remedy = folder / STATE_NAME, "delete the file, and training begins anew in the same folder"
    if not path.exists():
        return None
    line, _, data = read_bytes(path).partition(b"\n")
    try:
        head = parse_json(line, path, 1)
    except Problem as problem:
        raise Problem(problem.reason, file=path, line=1, remedy=remedy) from problem
    if not isinstance(head, dict) or head.keys() != {"run_id", "step", "cpu_s", "sha256"}:
        raise Problem("is not a state that a run saved", file=path, remedy=remedy)
    if head["sha256"] != sha256_bytes(data):
        raise Problem("is damaged: its hash is not the one that it names", file=path, remedy=remedy)
    if head["run_id"] != run_id:
        raise Problem(f"is of the run {head['run_id']}", file=path, remedy=remedy)
    return State(head["run_id"], int(head["step"]), float(head["cpu_s"]), data)


class Pace:
    """When to save, so seldom that the run hardly pays for it."""

    EVERY_S, SHARE, BYTES_PER_S = 30.0, 0.005, 1e9

    def __init__(self, every_s: float | None) -> None:
        """Every so many seconds; None = 30, and more where that would take over 0.5% of the time."""
        self.every_s = every_s
        self._cost_s = 0.0
        self._last = time.monotonic()

    def start(self) -> None:
        """Count from now on."""
        self._last = time.monotonic()

    def due(self, size: int) -> bool:
        """Whether to save now; `size` is about how many bytes that would be."""
        wait = self.every_s
        if wait is None:
            wait = max(self.EVERY_S, max(self._cost_s, size / self.BYTES_PER_S) / self.SHARE)
        return time.monotonic() - self._last >= wait

    def timed(self, save: Callable[[], None]) -> None:
        """Save, and learn what that takes."""
        start = time.monotonic()
        save()
        self._last = time.monotonic()
        self._cost_s = self._last - start


class Postponed:
    """Ctrl-C or SIGTERM that waits for the next saving, for `WAIT_S` at most; a second one does not wait."""

    WAIT_S = 8.0  # `docker stop` kills after 10

    def __init__(self) -> None:
        self.number: int | None = None
        """Of the signal that waits."""
        self._before: dict[int, Any] = {}

    def hold(self) -> None:
        """Let signals wait from now on; not under torchrun, whose other processes end at once."""
        main = threading.current_thread() is threading.main_thread()
        if self._before or not main or "LOCAL_RANK" in os.environ:
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._hear)
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._hear)

    def release(self, *, interrupt: bool) -> None:
        """Let signals wait no longer; interrupt: with the one that has waited, if there is one."""
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
        waiting, self.number = self.number, None
        if interrupt and waiting is not None:
            signal.raise_signal(waiting)

    def _hear(self, number: int, frame: object) -> None:
        if self.number is not None:
            self.release(interrupt=True)
        elif number != signal.SIGALRM:
            self.number = number
            signal.setitimer(signal.ITIMER_REAL, self.WAIT_S)
            name = "Ctrl-C" if number == signal.SIGINT else "SIGTERM"
            when = f"once the state is saved, in {self.WAIT_S:.0f} s at most"
            text = f"\n{name}: ends {when}; a second one ends at once\n"
            with contextlib.suppress(OSError):
                os.write(2, text.encode())  # print may be at work
