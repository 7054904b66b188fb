"""FIXED: how fast requests leave: so many at a time, so many a minute, and not before a server wants them."""

import email.utils
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random

from harness.errors import Problem

LONGEST_BACKOFF = 60.0  # seconds
LONGEST_PAUSE = 600.0  # seconds; a server that asks for more has run out of something


class Gate:
    """Where every request passes. Thread-safe."""

    def __init__(self, concurrency: int, per_minute: int | None) -> None:
        self._free = threading.BoundedSemaphore(concurrency)
        self._per_minute = per_minute
        self._started: deque[float] = deque(maxlen=per_minute)
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._closed = threading.Event()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Wait for a place, for the minute's share and for the end of a pause; then hold the place.

        Raises:
            Problem: the gate was closed.
        """
        with self._free:
            while (delay := self._delay()) > 0:
                self.sleep(delay)
            yield

    def pause(self, seconds: float) -> None:
        """No request leaves for so long, as a server wants it."""
        with self._lock:
            self._not_before = max(self._not_before, time.monotonic() + seconds)

    def sleep(self, seconds: float) -> None:
        """Wait, unless the gate is closed meanwhile."""
        if self._closed.wait(seconds):
            raise Problem("stopped while it waited for the model")

    def close(self) -> None:
        """Let whoever waits go home."""
        self._closed.set()

    def _delay(self) -> float:
        """Seconds until the next request may leave; 0 = now, and it is counted."""
        now = time.monotonic()
        with self._lock:
            if self._closed.is_set():
                raise Problem("stopped before it asked the model")
            wanted = self._not_before
            if self._per_minute is not None and len(self._started) == self._per_minute:
                wanted = max(wanted, self._started[0] + 60.0)
            if wanted <= now:
                self._started.append(now)
                return 0.0
            return wanted - now


def backoff(label: str, attempt: int) -> float:
    """Seconds before the attempt after the k-th, from 1: twice as long each time, half of it by lot."""
    longest = min(LONGEST_BACKOFF, 2.0 ** (attempt - 1))
    return longest * (0.5 + 0.5 * Random(f"{label} {attempt}").random())


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a server wants to be left alone, from `now` (Unix time); None = it does not say."""
    value = headers.get("retry-after-ms", "")
    try:
        seconds = float(value) / 1000 if value else float(headers.get("retry-after", ""))
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if seconds == seconds else None  # a NaN says nothing
