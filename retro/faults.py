"""FIXED: what is wrong with a game package: as it shows before the game runs, and where it fails in play."""

import math
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from keyword import iskeyword
from pathlib import Path
from typing import Any, TypeGuard

from harness.errors import Problem
from harness.files import read_json
from retro.inputs import parse_inputs
from retro.packages import GamePackage, Ram, State, Variable

INTEGRATION_FILES = ("data.json", "scenario.json", "metadata.json")

LONGEST_HOLD = 3_600  # frames, a minute
LONGEST_TRANSIT = 36_000  # frames, ten minutes

_TYPE = re.compile(r"[|<>=][uidn][1-8]")
_STATE_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def faults(package: GamePackage) -> list[str]:
    """One line for each fault, in the order of the fields; empty = well formed.

    The functions of a package are also called once with all variables 0, which finds misspelled names.
    """
    missing = [name for name in _FIELDS if not hasattr(package, name)]
    if missing:
        return [f"{name} is missing" for name in missing]
    found = [
        f"{name} must be {kind}" for name, (kind, fits) in _FIELDS.items() if not fits(getattr(package, name))
    ]
    if found:
        return found
    found = [*_variables(package), *_states(package)]
    try:
        if not isinstance(folder := package.integration, Path):
            return [*found, "integration must be a path"]
        for name in INTEGRATION_FILES:
            read_json(folder / name)
        buttons = package.console_buttons
    except Problem as problem:
        return [*found, str(problem)]
    found += [*_buttons(package, buttons), *_hints(package, buttons)]
    return found or list(_calls(package))


@contextmanager
def blaming(package: GamePackage | None) -> Iterator[None]:
    """Turn an exception that comes out of the package's own code into a Problem with its file and line."""
    try:
        yield
    except Problem:
        raise
    except (Exception, SystemExit) as error:
        place = place_of(package, error) if package is not None else None
        if place is None:
            raise
        remedy = "mend it; python -m retro.run check plays it at random"
        raise Problem(
            f"the package fails: {said(error)}", file=place[0], line=place[1], remedy=remedy
        ) from error


def place_of(package: GamePackage, error: BaseException) -> tuple[str, int | None] | None:
    """File and line of the package's own classes that an exception came out of; None where it did not."""
    kinds = [
        kind for kind in type(package).__mro__ if issubclass(kind, GamePackage) and kind is not GamePackage
    ]
    own = {sys.modules[kind.__module__].__file__ for kind in kinds}
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in own]
    return (frames[-1].filename, frames[-1].lineno) if frames else None


def said(error: BaseException) -> str:
    """The kind of an exception and its words, if it has any."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0


def are_combinations(value: object) -> TypeGuard[Sequence[Sequence[str]]]:
    """Whether it has the form of combinations of buttons."""
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and len(value) > 0
        and all(isinstance(item, Sequence) and not isinstance(item, str) for item in value)
    )


def _is_count(value: object, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


_FIELDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "name": ("a word", lambda value: isinstance(value, str) and bool(value.strip())),
    "title": ("a text", lambda value: isinstance(value, str) and bool(value.strip())),
    "variables": (
        "a dictionary, name -> Variable(address, type)",
        lambda value: (
            isinstance(value, Mapping)
            and len(value) > 0
            and all(isinstance(item, Variable) for item in value.values())
        ),
    ),
    "states": (
        "a list of at least two State(...)",
        lambda value: _is_list(value) and len(value) > 1 and all(isinstance(item, State) for item in value),
    ),
    "buttons": (
        "a list of tuples of names of buttons",
        lambda value: are_combinations(value),
    ),
    "holds": (
        f"a list of different numbers of frames, each from 1 to {LONGEST_HOLD:,}",
        lambda value: (
            _is_list(value)
            and all(_is_count(hold, LONGEST_HOLD) for hold in value)
            and len(set(value)) == len(value)
        ),
    ),
    "transit_limit": (
        f"a number of frames, from 1 to {LONGEST_TRANSIT:,}",
        lambda value: _is_count(value, LONGEST_TRANSIT),
    ),
    "hints": (
        "a dictionary, state -> list of inputs as text",
        lambda value: (
            isinstance(value, Mapping)
            and all(isinstance(item, Sequence) and not isinstance(item, str) for item in value.values())
        ),
    ),
}


def _variables(package: GamePackage) -> Iterator[str]:
    for name, (address, kind) in package.variables.items():
        if not isinstance(name, str) or not name.isidentifier() or iskeyword(name) or name.startswith("_"):
            yield f"variable {name!r} is not a name that Python takes as ram.name"
        if type(address) is not int or address < 0:
            yield f"variable {name!r} has the address {address!r}, which is not an address"
        if not isinstance(kind, str) or not _TYPE.fullmatch(kind):
            yield f'variable {name!r} has the unknown type {kind!r} (types look like "|u1", ">u2", "<i2")'


def _states(package: GamePackage) -> Iterator[str]:
    names = [state.name for state in package.states]
    for index, state in enumerate(package.states):
        if not isinstance(state.name, str) or not _STATE_NAME.fullmatch(state.name):
            yield f"state {index} has the name {state.name!r}, which is not lower case with hyphens"
        elif names.index(state.name) < index:
            yield f"two states have the name {state.name!r}"
        if not isinstance(state.goal, str) or not state.goal.strip() or "\n" in state.goal:
            yield f"state {state.name!r} needs its goal in one line"
        for field in ("enter", "reward", "dead"):
            if not callable(getattr(state, field)):
                yield f"state {state.name!r}: {field} must be a function of the variables"


def _buttons(package: GamePackage, console: Sequence[str | None]) -> Iterator[str]:
    yield from _combinations("buttons", package.buttons, console)
    for state in package.states:
        if state.buttons is not None:
            yield from _combinations(f"state {state.name!r}: buttons", state.buttons, console)


def _combinations(what: str, given: object, console: Sequence[str | None]) -> Iterator[str]:
    if not are_combinations(given):
        yield f"{what} must be a list of tuples of names of buttons"
        return
    known = ", ".join(name for name in console if name)
    for combination in given:
        for name in combination:
            if not isinstance(name, str) or name not in console:
                yield f"the console has no button {name!r} (it has {known})"
        if any(combination.count(name) > 1 for name in combination):
            yield f"the combination {tuple(combination)} repeats a button"
    if len({frozenset(map(str, combination)) for combination in given}) != len(given):
        yield f"{what} repeats a combination"


def _hints(package: GamePackage, console: tuple[str | None, ...]) -> Iterator[str]:
    names = {state.name for state in package.states}
    for name, texts in package.hints.items():
        if name not in names:
            yield f"there are hints for the unknown state {name!r}"
        for number, text in enumerate(texts, start=1):
            try:
                if not isinstance(text, str):
                    raise Problem(f"{text!r} is not text")
                parse_inputs(text, console)
            except Problem as problem:
                yield f"hint {number} of state {name!r}: {problem}"


def _calls(package: GamePackage) -> Iterator[str]:
    zeros = package.ram_type(*[0] * len(package.variables))
    for state in package.states:
        yield from _call(f"state {state.name!r}: enter", state.enter, zeros, is_bool, "True or False")
        yield from _call(f"state {state.name!r}: reward", state.reward, zeros, is_finite, "a finite number")
        yield from _call(f"state {state.name!r}: dead", state.dead, zeros, is_bool, "True or False")
    yield from _call("cell", package.cell, zeros, is_cell, f"a {CELL}")


def _call(
    what: str, function: Callable[[Ram], object], ram: Ram, fits: Callable[[object], bool], kind: str
) -> Iterator[str]:
    try:
        value = function(ram)
    except NotImplementedError:
        yield f"{what} is missing"
    except (Exception, SystemExit) as error:
        yield f"{what} fails where all variables are 0: {said(error)}"
    else:
        if not fits(value):
            yield f"{what} must give {kind}, not {value!r:.80}"


CELL = "tuple of plain integers of at most 64 bits"


def is_bool(value: object) -> bool:
    """Whether a state's `enter` or `dead` may give this."""
    return type(value) is bool


def is_finite(value: object) -> bool:
    """Whether a state's `reward` may give this."""
    try:
        return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]
    except OverflowError:  # a whole number too large for a floating-point one
        return False


def is_cell(value: object) -> bool:
    """Whether a package's `cell` may give this."""
    return type(value) is tuple and all(type(item) is int and -(2**63) <= item < 2**63 for item in value)
