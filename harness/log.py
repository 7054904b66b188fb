"""log.jsonl: the story of a run, one JSON object a line, in one fixed order.

Every line has `event`, `monotonic` (seconds of a clock that never jumps) and `utc` (ISO 8601), and then the
fields of its event:

    run_start     run_id, seed, recipe_sha256
    warmup_start
    warmup_stop
    train_start   cpu_s
    step          step = 1, 2, 3, ... and any other numbers
    resume        step, cpu_s: training broke off, and goes on after this step, of which cpu_s tells
    train_stop    steps, cpu_s
    checkpoint    sha256
    eval_start    checkpoint_sha256
    eval_stop     evidence_sha256, value, low, high
    run_stop      status = "complete", or at any point status = "interrupted" and reason

A log may end early: the run is then incomplete. A resume follows the step that it names, or run_start where
that is 0, and a warm-up and train_start follow it once more. What comes after it, and the evaluation, may run
in another process, even after a restart of the machine, so the monotonic clock may start again at resume and
eval_start and nowhere else.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from harness.errors import Problem
from harness.files import read_bytes, read_jsonl, unwritable, write_atomic

LOG_NAME = "log.jsonl"

_FOLLOWERS: dict[str, tuple[str, ...]] = {
    "": ("run_start",),
    "run_start": ("warmup_start", "resume"),
    "resume": ("warmup_start",),
    "warmup_start": ("warmup_stop",),
    "warmup_stop": ("train_start",),
    "train_start": ("step", "train_stop"),
    "step": ("step", "train_stop", "resume"),
    "train_stop": ("checkpoint",),
    "checkpoint": ("eval_start",),
    "eval_start": ("eval_stop",),
    "eval_stop": ("run_stop",),
    "run_stop": (),
}
_FIELDS: dict[str, dict[str, type]] = {
    "run_start": {"run_id": str, "seed": int, "recipe_sha256": str},
    "warmup_start": {},
    "warmup_stop": {},
    "train_start": {"cpu_s": float},
    "step": {"step": int},
    "resume": {"step": int, "cpu_s": float},
    "train_stop": {"steps": int, "cpu_s": float},
    "checkpoint": {"sha256": str},
    "eval_start": {"checkpoint_sha256": str},
    "eval_stop": {"evidence_sha256": str, "value": float, "low": float, "high": float},
    "run_stop": {"status": str},
}

_LARGEST = 1e300


@dataclass(frozen=True)
class Event:
    """One line of a log."""

    line: int
    """Line number from 1."""
    name: str
    monotonic: float
    utc: datetime
    fields: dict[str, Any]


@dataclass(frozen=True)
class RunLog:
    """A log that was read and found in order; it may end early."""

    path: Path
    events: tuple[Event, ...]

    def find(self, name: str) -> Event | None:
        """The first event of this name, or None."""
        return next((event for event in self.events if event.name == name), None)

    def get(self, name: str) -> Event:
        """The first event of this name; a Problem where the run never got there."""
        event = self.find(name)
        if event is None:
            raise Problem(f"the run has no {name}: it is {self.status}", file=self.path)
        return event

    @property
    def status(self) -> Literal["complete", "interrupted", "incomplete"]:
        """How the run ended; incomplete = it did not say."""
        last = self.events[-1]
        return last.fields["status"] if last.name == "run_stop" else "incomplete"

    @property
    def run_id(self) -> str:
        return str(self.events[0].fields["run_id"])

    @property
    def seed(self) -> int:
        return int(self.events[0].fields["seed"])

    @property
    def recipe_sha256(self) -> str:
        return str(self.events[0].fields["recipe_sha256"])

    @property
    def steps(self) -> tuple[Event, ...]:
        return tuple(event for event in self.events if event.name == "step")

    @property
    def warmup_s(self) -> float:
        """Seconds of warm-up."""
        return self.get("warmup_stop").monotonic - self.get("warmup_start").monotonic

    @property
    def time_s(self) -> float:
        """The time that ranks: seconds from train_start to train_stop."""
        self.get("train_stop")
        return self.clock_s

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all processes of the run from train_start to train_stop."""
        self.get("train_stop")
        return float(sum(end.fields["cpu_s"] - start.fields["cpu_s"] for start, _, end in self._parts()))

    @property
    def clock_s(self) -> float:
        """Seconds on the clock as far as the log goes; those of a resumed run's parts add up."""
        return sum(last.monotonic - start.monotonic for start, last, _ in self._parts())

    def _parts(self) -> Iterator[tuple[Event, Event, Event]]:
        """Of each process that trained: train_start, its last event on the clock, the one with its cpu_s."""
        start = last = None
        for event in self.events:
            if event.name == "train_start":
                start = last = event
            elif start is not None and event.name in ("step", "train_stop"):
                last = event
            if start is not None and last is not None and event.name in ("resume", "train_stop"):
                yield start, last, event
                start = last = None
        if start is not None and last is not None:
            yield start, last, start


class LogWriter:
    """Appends to a log and holds no file open in between; goes on from what the file holds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._order = _Order()
        if path.exists():
            self._follow(read_log(path).events)

    def write(self, event: str, **fields: Any) -> Event:
        """Append an event, stamped with the clocks; a Problem on a wrong order, NaN, or a full disk."""
        monotonic, utc = time.monotonic(), datetime.now(UTC)
        try:
            self._order.check(event, fields)
            stamps = {"event": event, "monotonic": monotonic, "utc": utc.isoformat(timespec="microseconds")}
            line = json.dumps({**stamps, **fields}, allow_nan=False) + "\n"
        except (TypeError, ValueError) as error:
            raise Problem(f"cannot log {event}: {error}", file=self.path) from error
        self._append(line.encode())
        number = self._order.accept(event, fields)
        return Event(number, event, monotonic, utc, fields)

    def rewind(self, step: int | None = None) -> None:
        """Drop what follows a step (0 = all but run_start), or, without one, what follows the checkpoint.

        So training can go on from the step, and an evaluation can be repeated, or tried again.
        """
        log = read_log(self.path)
        if step is None:
            kept = log.get("checkpoint").line
        else:
            kept = log.steps[step - 1].line if step else log.get("run_start").line
        lines = read_bytes(self.path).splitlines(keepends=True)
        write_atomic(self.path, b"".join(lines[:kept]))
        self._order = _Order()
        self._follow(log.events[:kept])

    def keep(self) -> None:
        """Have the system put on disk what was written so far."""
        try:
            with self.path.open("rb") as handle:
                os.fsync(handle.fileno())
        except OSError as error:
            raise unwritable(self.path, error) from error

    @property
    def stopped(self) -> bool:
        """Whether run_stop was written, after which nothing may be."""
        return self._order.last == "run_stop"

    @property
    def steps(self) -> int:
        """How many steps were written."""
        return self._order.steps

    def _follow(self, events: tuple[Event, ...]) -> None:
        for event in events:
            self._order.accept(event.name, event.fields)

    def _append(self, data: bytes) -> None:
        try:
            with self.path.open("ab", buffering=0) as handle:
                end = os.fstat(handle.fileno()).st_size
                try:
                    while data:
                        data = data[handle.write(data) :]
                except OSError:
                    handle.truncate(end)  # no half line stays behind
                    raise
        except OSError as error:
            raise unwritable(self.path, error) from error


def read_log(path: Path) -> RunLog:
    """Read a log; a Problem names the first line that is malformed or out of order."""
    order = _Order()
    events: list[Event] = []
    for number, entry in read_jsonl(path):
        try:
            event = _event(number, entry)
            order.accept(event.name, event.fields)
            restarts = event.name in ("resume", "eval_start")
            if events and not restarts and event.monotonic < events[-1].monotonic:
                raise ValueError("the monotonic clock runs backwards")
        except ValueError as error:
            raise Problem(str(error), file=path, line=number) from error
        events.append(event)
    if not events:
        raise Problem("the log is empty", file=path)
    return RunLog(path, tuple(events))


def mend_log(path: Path) -> bool:
    """Drop a last line that a crash cut short; returns whether there was one."""
    content = read_bytes(path)
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        write_atomic(path, whole)
    return whole != content


class _Order:
    """Follows a log event by event. `check` and `accept` raise ValueError on what may not come next."""

    def __init__(self) -> None:
        self.last = ""
        self.steps = 0
        self.lines = 0

    def check(self, event: str, fields: dict[str, Any]) -> None:
        if event not in _FIELDS:
            raise ValueError(f"unknown event {event!r}")
        interrupted = event == "run_stop" and fields.get("status") == "interrupted"
        if self.last == "run_stop" or not (event in _FOLLOWERS[self.last] or (interrupted and self.last)):
            raise ValueError(f"{event} cannot follow {self.last or 'the start of the log'}")
        required = dict(_FIELDS[event])
        if interrupted:
            required["reason"] = str
        elif event == "run_stop" and fields.get("status") != "complete":
            raise ValueError(f"run_stop has the unknown status {fields.get('status')!r}")
        _check_fields(event, fields, required)
        if event == "step" and fields["step"] != self.steps + 1:
            raise ValueError(f"step {fields['step']} follows step {self.steps}")
        if event == "resume" and fields["step"] != self.steps:
            raise ValueError(f"resume names step {fields['step']} and follows step {self.steps}")
        if event == "train_stop" and not self.steps:
            raise ValueError("train_stop cannot follow train_start without a step")
        if event == "train_stop" and fields["steps"] != self.steps:
            raise ValueError(f"train_stop counts {fields['steps']} steps, the log has {self.steps}")

    def accept(self, event: str, fields: dict[str, Any]) -> int:
        """Check an event and move past it; returns its line number."""
        self.check(event, fields)
        self.last = event
        self.steps += event == "step"
        self.lines += 1
        return self.lines


def _check_fields(event: str, fields: dict[str, Any], required: dict[str, type]) -> None:
    if missing := sorted(required.keys() - fields.keys()):
        raise ValueError(f"{event} lacks {', '.join(missing)}")
    extra = sorted(fields.keys() - required.keys())
    if extra and event != "step":
        raise ValueError(f"{event} has no field {', '.join(extra)}")
    if event == "step" and {"event", "monotonic", "utc"} & fields.keys():
        raise ValueError("step uses a name that every line has")
    for name, value in fields.items():
        kind = required.get(name, float)
        if not (_is_number(value) if kind is float else type(value) is kind):
            wanted = {float: "a finite number", int: "a whole number", str: "a text"}[kind]
            raise ValueError(f"{event}.{name} must be {wanted}, not {value!r}")


def _is_number(value: object) -> bool:
    """Whether a value is a number that can be added to others, and shown, without leaving the finite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST


def _event(number: int, entry: dict[str, Any]) -> Event:
    fields = dict(entry)
    try:
        name, monotonic, utc = fields.pop("event"), fields.pop("monotonic"), fields.pop("utc")
    except KeyError as error:
        raise ValueError(f"the line lacks {error.args[0]}") from error
    if not isinstance(name, str) or not _is_number(monotonic) or not isinstance(utc, str):
        raise ValueError("event and utc must be texts and monotonic a number")
    moment = datetime.fromisoformat(utc)
    if moment.utcoffset() != timedelta(0):
        raise ValueError(f"utc {utc!r} is not a time in UTC")
    return Event(number, name, float(monotonic), moment, fields)
