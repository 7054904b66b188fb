"""FIXED: the worker process: loads skills, calls them, and asks the host for every step they take.

Whatever runs here may be hostile, so nothing that this process says is trusted by the host; what confines it
is the lock. The names that skills are not given are a help to honest code.
"""

import ast
import builtins
import importlib
import inspect
import os
import random
import sys
import traceback
import types
from typing import Any, NoReturn

from agents.sandbox import lock
from agents.sandbox.allowed import FORBIDDEN_NAMES, MODULES, importable
from agents.sandbox.env import Channel, Env, EpisodeOver, StepsOver
from agents.sandbox.protocol import DEEPEST, cut, json_text, too_deep

_RECURSION = sys.getrecursionlimit()
_NEEDED_LATER = ("__future__", "collections.abc", "encodings.ascii", "encodings.latin_1", "unicodedata")
"""What Python itself loads when it is asked for, which it cannot any more then."""
_FRAMES = 5
"""Of a trace, at most."""


class Failure(Exception):
    """What an answer says of code that failed."""

    def __init__(self, kind: str, message: str, trace: str = "") -> None:
        self.report = {"kind": kind, "message": cut(message), "trace": cut(trace)}


class Printed:
    """Stands in for stdout and stderr, and keeps the first characters."""

    def __init__(self, chars: int) -> None:
        self._chars, self._lost = chars, 0
        self._parts: list[str] = []

    def write(self, text: str) -> int:
        kept = text[: self._chars]
        if kept:
            self._parts.append(kept)
        self._chars -= len(kept)
        self._lost += len(text) - len(kept)
        return len(text)

    def flush(self) -> None:
        pass

    def text(self) -> str:
        lost = f"\n… ({self._lost} more characters were printed)" if self._lost else ""
        return cut("".join(self._parts), sys.maxsize) + lost


class Worker:
    """Answers requests one by one."""

    def __init__(self, channel: Channel, output_chars: int, value_chars: int) -> None:
        self._channel = channel
        self._output_chars, self._value_chars = output_chars, value_chars
        self._skills: dict[str, Any] = {}
        self._sources: dict[str, list[str]] = {}

    def serve(self) -> NoReturn:
        while True:
            request = self._channel.receive()
            if request["do"] == "idle":
                self._channel.send("idle", True)
                continue
            printed = Printed(self._output_chars)
            sys.stdout = sys.stderr = printed
            sys.setrecursionlimit(_RECURSION)
            random.seed(request.get("seed", 0))
            end: dict[str, Any]
            try:
                end = {"value": self._sized(getattr(self, request["do"])(request))}
            except Failure as failure:
                end = failure.report
            except BaseException as error:
                end = self._report("crash", error).report
            end["output"] = printed.text()
            self._channel.send("end", end)

    def load(self, request: dict[str, Any]) -> list[list[str]]:
        """Run a module, and return name, signature and docstring of each of its functions."""
        self._skills = _namespace("skills")
        code = self._compile(request["source"], "<skills>")
        try:
            exec(code, self._skills)
        except BaseException as error:
            raise self._report("load", error) from None
        return [
            [name, str(inspect.signature(value)), inspect.getdoc(value) or ""]
            for name, value in self._skills.items()
            if inspect.isfunction(value) and value.__globals__ is self._skills and not name.startswith("_")
        ]

    def call(self, request: dict[str, Any]) -> Any:
        env = Env(self._channel, request["view"])
        try:
            return self._skills[request["name"]](env, *request["args"], **request["kwargs"])
        except EpisodeOver:
            return None

    def run(self, request: dict[str, Any]) -> Any:
        """Run statements beside the skills and some data; the value is that of a last line without a name."""
        tree = self._parse(request["code"], "<code>")
        last = tree.body[-1] if tree.body else None
        if isinstance(last, ast.Expr):
            tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("_value", ast.Store())], last.value), last)
            ast.fix_missing_locations(tree)
        namespace = _namespace("code")
        namespace |= {name: value for name, value in self._skills.items() if not name.startswith("__")}
        namespace |= {**request["data"], "_value": None}
        exec(self._compile(tree, "<code>"), namespace)
        return namespace["_value"]

    def _parse(self, source: str, file: str) -> ast.Module:
        self._sources[file] = source.splitlines()
        try:
            return ast.parse(source, file)
        except SyntaxError as error:
            line = f" (line {error.lineno})" if error.lineno else ""
            raise Failure("syntax", f"{error.msg}{line}", (error.text or "").strip()) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise Failure("syntax", _describe(error)) from None

    def _compile(self, source: str | ast.Module, file: str) -> types.CodeType:
        tree = self._parse(source, file) if isinstance(source, str) else source
        try:
            return compile(tree, file, "exec")
        except SyntaxError as error:
            line = f" (line {error.lineno})" if error.lineno else ""
            raise Failure("syntax", f"{error.msg}{line}") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise Failure("syntax", _describe(error)) from None

    def _sized(self, value: Any) -> Any:
        """A value that JSON has, or its repr; refused where it is too large."""
        try:
            text = json_text(value)
        except (TypeError, ValueError, RecursionError):
            value = cut(repr(value), self._value_chars + 1)
            text = value
        if len(text) > self._value_chars:
            raise Failure(
                "output", f"the value takes {len(text)} characters; {self._value_chars} is the limit"
            )
        if too_deep(value):
            raise Failure("output", f"the value is nested more than {DEEPEST} deep, which is the limit")
        return value

    def _report(self, kind: str, error: BaseException) -> Failure:
        if isinstance(error, StepsOver):
            return Failure("steps", "the skill took too many steps")
        if isinstance(error, MemoryError):
            return Failure("memory", "MemoryError: no memory is left")
        lines = []
        for frame in traceback.extract_tb(error.__traceback__):
            source = self._sources.get(frame.filename)
            if source and frame.lineno:
                text = source[frame.lineno - 1].strip() if frame.lineno <= len(source) else ""
                lines.append(f"line {frame.lineno}, in {frame.name}: {text}")
        return Failure(kind, _describe(error), "\n".join(lines[-_FRAMES:]))


def _describe(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # model-written exceptions may fail to say what they are
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _namespace(name: str) -> dict[str, Any]:
    """The globals of a new module: builtins without those that cannot work here."""
    names = {key: value for key, value in vars(builtins).items() if key not in FORBIDDEN_NAMES}
    names |= {"__import__": _import}
    module = sys.modules[name] = types.ModuleType(name)  # dataclasses look a class's module up there
    vars(module)["__builtins__"] = names
    return vars(module)


def _import(name: str, *arguments: Any) -> Any:
    if not importable(name):
        raise ImportError(f"{name} cannot be imported here; these can: {', '.join(MODULES)}")
    return builtins.__import__(name, *arguments)


class _Random(random.Random):
    """A generator that is seeded by the call where code gives it no seed."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(random.getrandbits(64) if seed is None else seed)


def main() -> NoReturn:
    """`worker reading writing memory_mb output_chars value_chars locked|unsafe`, with private descriptors."""
    reading, writing, memory_mb, output_chars, value_chars = map(int, sys.argv[1:6])
    channel = Channel(reading, writing)
    for module in (*MODULES, *_NEEDED_LATER):
        importlib.import_module(module)
    random.Random = _Random  # type: ignore[assignment, misc]
    os.environ.clear()
    sys.path.clear()
    try:
        lock.die_with_parent()
        lock.limit(memory_mb)
        walls = lock.lock(reading, writing) if sys.argv[6] == "locked" else []
    except (lock.LockError, OSError, ValueError) as error:
        channel.send("refused", str(error))
        os._exit(1)
    channel.send("ready", walls)
    Worker(channel, output_chars, value_chars).serve()
