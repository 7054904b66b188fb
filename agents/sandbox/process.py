"""FIXED: a worker process as the host holds it: started, spoken to within limits, and killed."""

import contextlib
import ctypes
import os
import secrets
import select
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from agents.sandbox import bubblewrap
from agents.sandbox.protocol import decode, encode

_START_SECONDS = 60.0
_GLANCE_SECONDS = 0.05
"""A worker that has not answered after this long is looked at more closely."""
_IDLE_SECONDS = 0.5
"""Of processor time that a worker may take after a call until it listens again."""
_WALL_FACTOR = 12.0
"""How much longer than its processor time a worker may take, for it shares the machine."""

_DEAD = "the process that ran the code has died"

_this_core = getattr(ctypes.CDLL(None), "sched_getcpu", lambda: -1)


@dataclass(frozen=True)
class Limits:
    """What a skill may use."""

    memory_mb: int = 256
    """MiB, beside what the worker needs."""
    seconds: float = 5.0
    """Of processor time between two messages, and 12 times as many by the clock."""
    call_seconds: float = 60.0
    """Of processor time in a whole call; what the host takes for steps does not count."""
    output_chars: int = 20_000
    """Kept of what is printed in a call."""
    source_chars: int = 100_000
    value_chars: int = 200_000
    """Of the JSON text of what a call returns."""
    steps: int = 500
    """Environment steps of a call."""

    @property
    def message_bytes(self) -> int:
        """The longest line that a worker may send."""
        return 6 * (self.value_chars + self.output_chars) + 65_536


class Broken(Exception):
    """A worker that cannot be used any more; `kind` is one of SkillError's."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Process:
    """One worker. After Broken was raised, only `kill` may be called."""

    walls: list[str]

    def __init__(self, limits: Limits, unsafe: bool) -> None:
        """Start a worker and wait until it has locked itself.

        Raises:
            Broken: it did not start, or could not lock itself; the message says why.
        """
        self.limits = limits
        self._buffer = bytearray()
        self.seconds = 0.0
        """By the clock that the worker has had the word since `begin`."""
        self._processor_before = 0.0
        self._let_go: set[int] | None = None  # cores for a worker that is kept on one, should it compute
        theirs_in, self._writing = os.pipe()
        self._reading, theirs_out = os.pipe()
        os.set_blocking(self._writing, False)
        self._poll = select.poll()
        self._poll.register(self._reading, select.POLLIN)
        try:
            wrap = None if unsafe else bubblewrap.find()
            self._popen, self.pid = _starter.submit(
                _start, limits, unsafe, theirs_in, theirs_out, wrap
            ).result()
        except (OSError, ValueError, KeyError) as error:
            os.close(self._writing)
            os.close(self._reading)
            raise Broken("crash", f"the worker did not start: {error}") from error
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        try:
            message = self._message(time.monotonic() + _START_SECONDS, None)
        except Broken as error:
            self.kill()
            status = self._popen.returncode
            raise Broken("crash", f"the worker did not start: {error} (status {status})") from None
        if "ready" not in message:
            self.kill()
            raise Broken("crash", str(message.get("refused")))
        self.walls = [*message["ready"], *(["bubblewrap"] if wrap else [])]

    def begin(self) -> bool:
        """A call begins: its time is counted from here.

        False if the worker spoke or died unasked, or does not say that it is idle: what it said was the end
        of an earlier call was not.
        """
        if self._buffer or self._poll.poll(0):
            return False
        asked = {"nonce": secrets.token_hex(8)}
        try:
            self.send(encode({**asked, "do": "idle"}))
            answer = self._message(time.monotonic() + _IDLE_SECONDS * _WALL_FACTOR, _IDLE_SECONDS)
        except Broken:
            return False
        if answer != {**asked, "idle": True} or self._buffer:
            return False
        self.seconds = 0.0
        self._processor_before = self._processor()
        return True

    @contextlib.contextmanager
    def on_one_core(self) -> Iterator[None]:
        """This thread and the worker on one core: to wake another at each turn takes longer than a turn.

        Where the system forbids it, both stay as they are. A worker that has not answered for
        `_GLANCE_SECONDS` computes, and is let go, so that calls side by side do not wait for one core.
        """
        cores = _cores()
        one = {_this_core()}
        if cores and _keep(self.pid, one):
            self._let_go = cores
            _keep(0, one)
        try:
            yield
        finally:
            self._let_go = None
            if cores:
                _keep(0, cores)

    def send(self, line: bytes) -> None:
        """Give the worker a line, even one that it is slow to read."""
        deadline = time.monotonic() + self.limits.seconds * _WALL_FACTOR
        left = memoryview(line)
        while left:
            try:
                left = left[os.write(self._writing, left) :]
            except BlockingIOError:
                ready = select.poll()
                ready.register(self._writing, select.POLLOUT)
                if not ready.poll(max(0.0, deadline - time.monotonic()) * 1000):
                    raise Broken("timeout", "the worker does not listen") from None
            except OSError:
                raise Broken("crash", _DEAD) from None

    def receive(self) -> Any:
        """The worker's next message; the time until then is the worker's.

        Raises:
            Broken: it took too long, said too much, said what is no JSON, or is gone.
        """
        start = time.monotonic()
        try:
            return self._message(start + self.limits.seconds * _WALL_FACTOR, self.limits.seconds)
        finally:
            self.seconds += time.monotonic() - start
            if self.seconds > self.limits.call_seconds:
                self._check_call()

    def kill(self) -> None:
        """End the worker at once and give back what belonged to it; may be called again."""
        if self._popen.returncode is None:
            self._popen.kill()
            self._popen.wait()
        for descriptor in (self._writing, self._reading):
            if descriptor >= 0:
                os.close(descriptor)
        self._writing = self._reading = -1

    def _message(self, deadline: float, seconds: float | None) -> Any:
        before: float | None = None
        wait = _GLANCE_SECONDS
        glance = time.monotonic() + _GLANCE_SECONDS
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > self.limits.message_bytes:
                raise Broken("protocol", "the worker sent too long a message")
            silent = not self._poll.poll(wait * 1000)
            if not silent:
                if not (data := os.read(self._reading, 65_536)):
                    raise Broken("crash", _DEAD)
                self._buffer += data
            now = time.monotonic()
            if now > deadline:
                raise Broken("timeout", "no step and no end for too long by the clock")
            if silent or now > glance:  # also where it drips
                if self._let_go:
                    _keep(self.pid, self._let_go)
                    self._let_go = None
                if seconds is not None:
                    if before is None:
                        before = self._processor()
                    wait = seconds - (self._processor() - before)
                    if wait <= 0:
                        raise Broken("timeout", f"no step and no end for {seconds:g} s of processor time")
                wait = max(0.01, min(wait, 1.0, deadline - now))
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        try:
            message = decode(line)
        except ValueError as error:
            raise Broken("protocol", f"the worker sent what is not a message: {error}") from None
        if not isinstance(message, dict):
            raise Broken("protocol", "the worker sent what is not a message")
        return message

    def _check_call(self) -> None:
        if self._processor() - self._processor_before > self.limits.call_seconds:
            raise Broken(
                "timeout", f"the call took more than {self.limits.call_seconds:g} s of processor time"
            )

    def _processor(self) -> float:
        """Seconds of processor time that the worker has used in its life; 0 once it is gone."""
        try:
            return time.clock_gettime(~self.pid << 3 | 2)  # the clock of another process: CPUCLOCK_SCHED
        except OSError:
            return 0.0


def _cores() -> set[int] | None:
    """The cores that this thread may run on; None where the system does not say."""
    try:
        return os.sched_getaffinity(0)
    except (OSError, AttributeError):
        return None


def _keep(pid: int, cores: set[int]) -> bool:
    """Keep a process on some cores, 0 = this thread; False where the system does not allow for it."""
    try:
        os.sched_setaffinity(pid, cores)
    except (OSError, ValueError, AttributeError):  # forbidden, no such core, no Linux
        return False
    return True


# A worker dies with the thread that started it (the kernel sees to it), so that none outlives the host; this
# thread lives as long as the host does.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sandbox-starter")


def _start(
    limits: Limits, unsafe: bool, reading: int, writing: int, wrap: "bubblewrap.Wrap | None"
) -> "tuple[subprocess.Popen[bytes], int]":
    """The process that was started, and the number of the worker, which is another inside bubblewrap."""
    command = [
        *bubblewrap.interpreter(),
        *("-W", "ignore", "-c", "from agents.sandbox.worker import main; main()"),
        *map(str, (reading, writing, limits.memory_mb, limits.output_chars, limits.value_chars)),
        "unsafe" if unsafe else "locked",
    ]
    environment = {
        "PYTHONPATH": str(bubblewrap.ROOT),
        "PYTHONHASHSEED": "0",
    }  # sets in the same order everywhere
    if wrap is not None:
        return wrap.start(command, environment, (reading, writing))
    popen = subprocess.Popen(
        command,
        env=environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(reading, writing),
        start_new_session=True,
    )
    return popen, popen.pid
