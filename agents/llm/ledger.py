"""FIXED: every call of a run, counted and written down, within a budget that no call exceeds.

A call is reserved before it is asked, at the most it can cost, and settled afterwards at what it did cost, so
that calls side by side cannot spend the same money. What is unknown counts at its most against the budget,
and is in no total.
"""

import json
import math
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any, NamedTuple

from agents.llm.reply import Reply, Usage
from harness.errors import Problem
from harness.files import parse_json, read_bytes, unwritable, write_atomic


@dataclass(frozen=True)
class Budget:
    """The most that a run may take; None = no limit."""

    dollars: float | None = None
    tokens: int | None = None
    """Prompt and completion."""
    calls: int | None = None


class BudgetSpent(Exception):
    """The next call could exceed the budget, so it is not made."""


class Amount(NamedTuple):
    """What counts against a budget."""

    calls: int = 0
    tokens: int = 0
    dollars: float = 0.0

    def plus(self, other: "Amount", sign: int = 1) -> "Amount":
        return Amount(
            self.calls + sign * other.calls,
            self.tokens + sign * other.tokens,
            self.dollars + sign * other.dollars,
        )


NOTHING = Amount()


@dataclass(frozen=True)
class Totals:
    """What calls took, as far as servers told."""

    calls: int = 0
    failed: int = 0
    """Calls without an answer; they are not among `calls`."""
    prompt: int = 0
    completion: int = 0
    reasoning: int = 0
    """Tokens of reasoning, part of `completion`."""
    cached: int = 0
    """Tokens of prompts that the server still knew, part of `prompt`."""
    unmetered: int = 0
    """Calls whose usage the server did not tell; above 0, the tokens are a lower bound."""
    dollars: float = 0.0
    unpriced: int = 0
    """Calls whose dollars are unknown; above 0, the dollars are a lower bound."""
    seconds: float = 0.0
    """Of answered attempts, added up."""
    retries: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and completion."""
        return self.prompt + self.completion

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "tokens": self.tokens}


@dataclass(frozen=True)
class Call:
    """A call that is over."""

    label: str
    hash: str
    """Of all that decides the answer, see `agents.llm.cache.request_hash`."""
    model: str
    """As it was asked for."""
    reply: Reply | None
    error: str | None
    """Why there is no reply."""
    attempts: int
    charged: Amount
    """What it counts against the budget."""
    request: Mapping[str, Any]
    """Messages and parameters."""

    @property
    def phase(self) -> str:
        return self.label.partition("/")[0]

    def to_json(self) -> dict[str, Any]:
        reply = self.reply and {**self.reply.to_json(), "cached": self.reply.cached}
        return {
            "label": self.label,
            "hash": self.hash,
            "model": self.model,
            "reply": reply,
            "error": self.error,
            "attempts": self.attempts,
            "charged": self.charged._asdict(),
            "request": dict(self.request),
        }


class Ledger:
    """Counts calls, by phase (the first part of a label: wake, sleep, eval). Thread-safe."""

    def __init__(self, path: Path | None, budget: Budget = Budget()) -> None:
        """Go on with calls.jsonl at `path`, or begin it; None = nothing is written.

        Raises:
            Problem: the file is no list of calls, or cannot be written.
        """
        self.budget = budget
        self._calls: list[Call] = []
        self._known: dict[str, str] = {}
        self._spent = NOTHING
        self._reserved = NOTHING
        self._changed = threading.Condition()
        self._file: IO[bytes] | None = None
        if path is not None:
            for call in _read(path):
                self._count(call)
            try:
                self._file = path.open("ab")
            except OSError as error:
                raise unwritable(path, error) from error
        self.path = path

    def knows(self, request: str) -> bool:
        """Whether a call of this hash was answered before, in this run or the one that it resumes."""
        with self._changed:
            return request in self._known

    def answered(self) -> dict[str, str]:
        """Hash -> that of the reply, of every call answered in this run or the one that it resumes."""
        with self._changed:
            return dict(self._known)

    def reserve(self, tokens: int, dollars: float) -> Amount:
        """Set aside what a call can take at most; waits while calls under way may leave enough.

        Raises:
            BudgetSpent: not enough is left.
        """
        wanted = Amount(1, tokens, dollars)
        with self._changed:
            while True:
                spent = self._lacking(self._spent.plus(wanted))
                if spent:
                    raise BudgetSpent(f"the budget of {spent} does not cover the next call")
                if not self._lacking(self._spent.plus(self._reserved).plus(wanted)):
                    self._reserved = self._reserved.plus(wanted)
                    return wanted
                self._changed.wait()

    def release(self, reserved: Amount) -> None:
        """Give back what was set aside for a call that was not made."""
        with self._changed:
            self._reserved = self._reserved.plus(reserved, -1)
            self._changed.notify_all()

    def lose(self, reserved: Amount) -> Amount:
        """Count what was set aside as spent, where an attempt failed that may be billed; returns what counts.

        The caller reserves again before the next attempt. To hold one reservation while it waits for another
        could stop two calls for ever.
        """
        lost = reserved._replace(calls=0)
        with self._changed:
            self._reserved = self._reserved.plus(reserved, -1)
            self._spent = self._spent.plus(lost)
            self._changed.notify_all()
        return lost

    def settle(self, reserved: Amount, call: Call, lost: Amount = NOTHING) -> None:
        """Count a call in place of what was set aside for it, and append it to the file.

        `lost` is the part of its charge that `lose` has counted.
        """
        text = json.dumps(call.to_json(), ensure_ascii=False, allow_nan=False)
        line = text.encode("utf-8", "backslashreplace") + b"\n"  # a lone surrogate becomes its JSON escape
        with self._changed:
            self._reserved = self._reserved.plus(reserved, -1)
            self._spent = self._spent.plus(lost, -1)
            self._count(call)
            self._changed.notify_all()
            if self._file is not None and self.path is not None:
                try:
                    self._file.write(line)
                    self._file.flush()
                except OSError as error:
                    raise unwritable(self.path, error) from error

    def totals(self, phase: str | None = None) -> Totals:
        """What the calls of a phase took, or all of them."""
        with self._changed:
            return _add([call for call in self._calls if phase in (None, call.phase)])

    def phases(self) -> dict[str, Totals]:
        """The totals of every phase that made a call, by name."""
        with self._changed:
            names = sorted({call.phase for call in self._calls})
        return {name: self.totals(name) for name in names}

    @property
    def spent(self) -> Amount:
        """What counts against the budget so far."""
        with self._changed:
            return self._spent

    def close(self) -> None:
        """Give the file back.

        Raises:
            Problem: what was still to be written could not be.
        """
        if self._file is not None and self.path is not None:
            try:
                self._file.close()
            except OSError as error:
                raise unwritable(self.path, error) from error

    def _count(self, call: Call) -> None:
        self._calls.append(_light(call))
        self._spent = self._spent.plus(call.charged)
        if call.reply is not None:
            self._known.setdefault(call.hash, call.reply.sha256)

    def _lacking(self, amount: Amount) -> str:
        """What of the budget an amount exceeds; "" = nothing."""
        for field in fields(self.budget):
            limit = getattr(self.budget, field.name)
            if limit is not None and getattr(amount, field.name) > limit:
                return f"${limit:g}" if field.name == "dollars" else f"{limit} {field.name}"
        return ""


def _add(calls: list[Call]) -> Totals:
    replies = [call.reply for call in calls if call.reply is not None]
    usages = [reply.usage for reply in replies]
    return Totals(
        calls=len(replies),
        failed=len(calls) - len(replies),
        prompt=sum(usage.prompt or 0 for usage in usages),
        completion=sum(usage.completion or 0 for usage in usages),
        reasoning=sum(usage.reasoning or 0 for usage in usages),
        cached=sum(usage.cached or 0 for usage in usages),
        unmetered=sum(usage.tokens is None for usage in usages),
        # Exact, so that threads may finish in any order.
        dollars=math.fsum(reply.dollars or 0.0 for reply in replies),
        unpriced=sum(reply.dollars is None for reply in replies),
        seconds=math.fsum(reply.seconds for reply in replies),
        retries=sum(call.attempts - 1 for call in calls if call.attempts),
    )


def _light(call: Call) -> Call:
    """The call without its texts, which are in the file."""
    reply = call.reply and Reply(
        "", call.reply.finish, call.reply.usage, call.reply.dollars, call.reply.seconds, call.reply.model
    )
    return Call(call.label, call.hash, call.model, reply, None, call.attempts, call.charged, {})


def _read(path: Path) -> Iterator[Call]:
    """The calls in a file; a last line that a crash cut short is removed from it."""
    if not path.exists():
        return
    content = read_bytes(path)
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        write_atomic(path, whole)
    for number, line in enumerate(whole.split(b"\n")[:-1], start=1):
        value = parse_json(line, path, number)
        try:
            reply = value["reply"] and {**value["reply"], "usage": Usage(**value["reply"]["usage"])}
            charged = Amount(**value["charged"])
            call = Call(**{**value, "reply": reply and Reply(**reply), "charged": charged})
            _check(call)
        except (TypeError, KeyError, AttributeError) as error:
            raise Problem("no call of a model", file=path, line=number) from error
        yield call


def _check(call: Call) -> None:
    """TypeError where a call that was read has values of other types than one that was made."""
    texts = [call.label, call.hash, call.model]
    counts: list[object] = [call.attempts, call.charged.calls, call.charged.tokens]
    numbers: list[object] = [call.charged.dollars]
    if call.reply is not None:
        texts += [call.reply.text, call.reply.finish, call.reply.model]
        counts += [count for count in vars(call.reply.usage).values() if count is not None]
        numbers += [call.reply.seconds, *([] if call.reply.dollars is None else [call.reply.dollars])]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("what must be text is none")
    if not all(type(count) is int for count in counts) or not all(type(n) in (int, float) for n in numbers):
        raise TypeError("what must be a number is none")
