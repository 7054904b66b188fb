"""FIXED: the host's side of the sandbox: loads, calls and runs model-written code, and counts what it does.

The worker's word counts for nothing but what a skill is free to say: its value and its output. Steps are
served and counted here, and whatever does not fit the protocol ends the worker.
"""

import difflib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self, get_args

from agents.sandbox.call import Call, EpisodeOver, Serve, View, shown
from agents.sandbox.process import Broken, Limits, Process
from agents.sandbox.protocol import OVER, STEPS, cut, encode
from harness.errors import Problem

__all__ = ["EpisodeOver", "Function", "Limits", "Outcome", "Sandbox", "Serve", "SkillError", "check_lockable"]

Json = Any
"""None, a bool, a number, a string, or lists of and mappings from strings to these."""

Kind = Literal["syntax", "load", "crash", "timeout", "memory", "output", "protocol", "missing", "steps"]

_REMEDY = (
    "use Linux 5.13 or newer on x86-64 or aarch64, outside containers that forbid seccomp, with Landlock or "
    "bubblewrap; or write `sandbox: unsafe` in the config, and model-written code runs unconfined"
)


class SkillError(Exception):
    """Model-written code that failed, in words that may be shown to the model."""

    def __init__(
        self,
        kind: Kind,
        message: str,
        trace: str = "",
        *,
        output: str = "",
        steps: int = 0,
        seconds: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.trace = trace
        """Lines of the code alone, outermost first; empty where there is none."""
        self.output = output
        """What it had printed, where that is known."""
        self.steps = steps
        """Steps that were served."""
        self.seconds = seconds

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" + (f"\n{self.trace}" if self.trace else "")


@dataclass(frozen=True)
class Function:
    """A skill that can be called; all of it is the module's own word."""

    name: str
    signature: str
    """With `env` first: "(env, color='red')"."""
    docstring: str


@dataclass
class Outcome:
    """What a call did."""

    value: Json | None
    """What the skill returned; its repr where JSON lacks it."""
    output: str
    """What it printed, its first part if it was long."""
    steps: int
    """Environment steps that were served."""
    seconds: float
    """By the clock, without the serving."""


class Sandbox:
    """Model-written code in one worker process; a worker that had to be killed is replaced at the next use.

    A sandbox is used by one thread at a time; several may be used at once. Names that a module sets live
    until the next `load`, or until its worker is killed.
    """

    def __init__(self, limits: Limits = Limits(), *, unsafe: bool = False) -> None:  # noqa: B008 (frozen)
        """Start a worker.

        Raises:
            Problem: the worker cannot lock itself on this machine, and `unsafe` does not allow for that.
        """
        self.limits = limits
        self._unsafe = unsafe
        self._source: str | None = None
        self._functions: dict[str, Function] = {}
        self._fresh = True
        self._process: Process | None = self._start()
        self.confinement = "unsafe" if unsafe else "+".join(self._process.walls)
        """What really confines the worker: "landlock+seccomp+rlimits", "...+bubblewrap", or "unsafe"."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process number of the worker, as seen from here; None while there is none."""
        return self._process.pid if self._process else None

    def close(self) -> None:
        """End the worker."""
        self._kill()

    def load(self, source: str) -> list[Function]:
        """Run a module in a new worker; its functions may then be called. `_helpers` are not listed.

        Raises:
            SkillError: the source is too long, does not parse, or fails; nothing is loaded then.
        """
        self._source, self._functions = None, {}
        if len(source) > self.limits.source_chars:
            reason = f"the source has {len(source)} characters; {self.limits.source_chars} is the limit"
            raise SkillError("load", reason)
        if not self._fresh:
            self._kill()
        functions = self._load(source)
        self._source, self._functions = source, {function.name: function for function in functions}
        return functions

    def call(
        self,
        name: str,
        args: Sequence[Json],
        kwargs: Mapping[str, Json],
        serve: Serve,
        view: View,
    ) -> Outcome:
        """Call a loaded function with an `env` made from `view` and these arguments.

        `random` is seeded by the call itself. What `serve` raises passes through, and costs the worker; but
        EpisodeOver ends the call, which then returns whatever else the skill does.

        Raises:
            SkillError: it failed; also when it takes too many steps.
        """
        if name not in self._functions:
            close = difflib.get_close_matches(name, self._functions, 1)
            hint = f"; there is {close[0]}" if close else ""
            raise SkillError("missing", f"there is no skill named {cut(name, 100)}{hint}")
        seen, hidden = shown(view)
        request = {"do": "call", "name": name, "args": list(args), "kwargs": dict(kwargs), "view": seen}
        return self._converse(request, serve, hidden)

    def run(self, code: str, data: Mapping[str, Json]) -> Outcome:
        """Run statements in a namespace of the loaded functions and `data`; nothing that they name is kept.

        The value is that of the last statement, if it is an expression.

        Raises:
            SkillError: they failed.
        """
        if len(code) > self.limits.source_chars:
            reason = f"the code has {len(code)} characters; {self.limits.source_chars} is the limit"
            raise SkillError("load", reason)
        return self._converse({"do": "run", "code": code, "data": dict(data)})

    def _start(self) -> Process:
        try:
            process = Process(self.limits, self._unsafe)
        except Broken as error:
            raise Problem(f"model-written code cannot be confined here: {error}", remedy=_REMEDY) from None
        if not self._unsafe and not {"landlock", "bubblewrap"} & set(process.walls):
            process.kill()
            reason = "this kernel has no Landlock, and bubblewrap does not work here"
            raise Problem(f"model-written code cannot be confined here: {reason}", remedy=_REMEDY)
        return process

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
        self._process = None

    def _ready(self) -> Process:
        if self._process is None:
            self._process, self._fresh = self._start(), True
            if self._source is not None:
                self._load(self._source)
        return self._process

    def _load(self, source: str) -> list[Function]:
        value: Any = self._converse({"do": "load", "source": source}).value
        try:
            return [Function(*(cut(text) for text in item)) for item in value]
        except (TypeError, AttributeError):
            self._kill()
            raise SkillError("protocol", "the worker did not list functions") from None

    def _converse(
        self, request: dict[str, Any], serve: Serve | None = None, hidden: dict[str, Any] | None = None
    ) -> Outcome:
        """Send a request, serve steps, and return what the worker answers in the end."""
        text = encode(request)
        request["seed"] = int.from_bytes(hashlib.sha256(text).digest()[:8])
        process = self._ready()
        if not process.begin():  # what an earlier call left behind shall not spoil this one
            self._kill()
            process = self._ready()
            if not process.begin():
                self._kill()
                raise SkillError("protocol", "the module goes on after it was loaded")
        self._fresh = False
        call = Call(process, serve, hidden or {})
        try:
            with process.on_one_core():
                end = call.converse(request)
            outcome = Outcome(end["value"], end["output"], call.steps, process.seconds)
            kind, message, trace = end["kind"], end["message"], end["trace"]
            if not kind and not call.stopped:
                return outcome
            if kind not in ("", *get_args(Kind)):
                raise Broken("protocol", "the worker named no known error")
        except Broken as error:
            self._kill()
            kind, message, trace = error.kind, str(error), ""
            outcome = Outcome(None, "", call.steps, process.seconds)
        except BaseException:
            self._kill()
            raise
        if kind == "memory":
            self._kill()  # what filled it may live on in the module's names
        if call.stopped == OVER:
            return Outcome(None, outcome.output, call.steps, outcome.seconds)
        if call.stopped == STEPS:
            kind, message = "steps", f"the skill asked for more than {self.limits.steps} steps"
        raise SkillError(
            kind, message, trace, output=outcome.output, steps=call.steps, seconds=outcome.seconds
        )


def check_lockable() -> str | None:
    """Why this machine cannot lock a worker down; None if it can."""
    try:
        Sandbox().close()
    except Problem as problem:
        return problem.reason
    return None
