"""A progress bar for people, and a line now and then for files."""

import contextlib
import os
import sys
import threading
import time
from typing import Any

from tqdm import tqdm

_SECONDS_BETWEEN_LINES = 30.0

# One process draws; tqdm's own lock is a semaphore of the system, which a killed run would leave behind.
tqdm.set_lock(threading.RLock())


def progress_bar(total: int, unit: str) -> "tqdm[Any]":
    """A tqdm bar on stderr with elapsed time, time left and postfix; lines where stderr is no terminal."""
    if sys.stderr is not None and sys.stderr.isatty():
        if _size_is_known():
            return tqdm(total=total, unit=unit, dynamic_ncols=True)
        return tqdm(total=total, unit=unit, ncols=80, nrows=24)
    return tqdm(total=total, unit=unit, ascii=True, file=_Lines())


def _size_is_known() -> bool:
    """False where the terminal says that it has no columns or no rows, as some in containers do."""
    try:
        return all(os.get_terminal_size(sys.stderr.fileno()))
    except OSError:
        return True


class _Lines:
    """Where tqdm would draw over its last bar, prints a new line at most every 30 s, and the last bar."""

    def __init__(self) -> None:
        self._bar = ""
        self._due = time.monotonic() + _SECONDS_BETWEEN_LINES

    def write(self, text: str) -> None:
        # tqdm writes a carriage return with a bar, and at the very end one newline.
        self._bar = text.strip() or self._bar
        if text == "\n" or time.monotonic() >= self._due:
            with contextlib.suppress(OSError):  # a bar that nobody can see ends no run
                if sys.stderr is not None:
                    print(self._bar, file=sys.stderr)
            self._due = time.monotonic() + _SECONDS_BETWEEN_LINES

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            if sys.stderr is not None:
                sys.stderr.flush()
