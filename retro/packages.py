"""FIXED: what a game package is, and how one is loaded.

A package is a class that tells the search all it knows of a game: where things lie in work RAM, which states
a run goes through from power-on to the ending, which buttons are worth trying, and what makes two situations
alike. docs/retro_packages.md builds one step by step.
"""

import importlib
import inspect
import re
import sys
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import stable_retro
from stable_retro.data import Integrations

from harness.errors import Problem
from harness.files import read_bytes, sha256_bytes
from harness.track import ROOT

if TYPE_CHECKING:
    from retro.emulator import Emulator

Ram = Any
"""The values of a package's variables at one moment, by name: `ram.lives`. A named tuple of integers."""

Cell = tuple[int, ...]
"""What the search takes for one situation: the state's index, then what `GamePackage.cell` gives."""


class Variable(NamedTuple):
    """A number in work RAM."""

    address: int
    """As in stable-retro's data.json: in the console's address space."""
    type: str
    """Byte order, kind and size as in stable-retro's data.json: "|u1", ">u2", "<i2"."""


def never(ram: Ram) -> bool:
    """For a state in which nothing is death."""
    return False


def nothing(ram: Ram) -> float:
    """For a state that rewards nothing but being left."""
    return 0.0


@dataclass(frozen=True)
class State:
    """A stage of the run: the time from when `enter` first holds until a later state's does."""

    name: str
    """One word in lower case, with hyphens: "level-1"."""
    goal: str
    """What has to be done in it, in one line."""
    enter: Callable[[Ram], bool]
    """Whether this state holds. Of a package's states at most one holds at a time; where none does, the
    game is in transit, which is waited out without buttons."""
    reward: Callable[[Ram], float] = nothing
    """How far it is done; the search prefers more. Any finite number."""
    dead: Callable[[Ram], bool] = never
    """Whether the run is lost. Looked at in transit too."""
    buttons: Sequence[Sequence[str]] | None = None
    """Combinations worth pressing in it; None = all of the package's."""


class GamePackage:
    """Base class of game packages. A subclass sets the fields and overrides `cell`."""

    name: ClassVar[str]
    """Name of the game as stable-retro has it: "Airstriker-Genesis-v0"."""
    title: ClassVar[str]
    """For people."""
    variables: ClassVar[Mapping[str, Variable]]
    states: ClassVar[Sequence[State]]
    """In the order of the run: the first holds at or after power-on, the last is the ending."""
    buttons: ClassVar[Sequence[Sequence[str]]]
    """Combinations worth pressing, by the console's names of buttons; () is none."""
    holds: ClassVar[Sequence[int]]
    """For how many frames a combination may be held, from short to long."""
    transit_limit: ClassVar[int] = 600
    """Frames in transit after which a branch is given up."""
    hints: ClassVar[Mapping[str, Sequence[str]]] = {}
    """State -> inputs as text (see `retro.inputs`) that are tried first in it."""

    @property
    def integration(self) -> Path:
        """The folder with rom.<extension>, data.json, scenario.json and metadata.json.

        It is the package's own folder where that holds a data.json, else the one that stable-retro ships for
        `name`.
        """
        own = Path(inspect.getfile(type(self))).resolve().parent
        return own if (own / "data.json").is_file() else _shipped(self.name)

    def cell(self, ram: Ram) -> tuple[int, ...]:
        """What distinguishes situations within a state: position in buckets, height, whether airborne,
        what moves nearby. Always of the same length, of plain integers; the first two tell the place."""
        raise NotImplementedError

    def situation(self, ram: Ram) -> tuple[int, ...]:
        """What moves are learned by, see `retro.guidance.table`: the cell without its place, so that what was
        learned in one place is tried in others."""
        return self.cell(ram)[2:]

    # ---- for the engine --------------------------------------------------------------------------------

    @cached_property
    def rom(self) -> Path:
        """The game's ROM in the integration folder; a Problem where there is none."""
        for path in sorted(self.integration.glob("rom.*")):
            if path.suffix in stable_retro.data.EMU_EXTENSIONS and path.is_file():
                return path
        raise Problem(
            "no rom.<extension> of a known console lies here",
            file=self.integration,
            remedy="put the ROM there, named for its console: rom.nes, rom.md",
        )

    @cached_property
    def console_buttons(self) -> tuple[str | None, ...]:
        """Names of the console's buttons in the order of their bits."""
        return tuple(stable_retro.get_system_info(stable_retro.get_romfile_system(self.rom))["buttons"])

    @cached_property
    def ram_type(self) -> type[Any]:
        """Named tuple of the variables, in their order."""
        return namedtuple("Values", tuple(self.variables))

    @cached_property
    def _enters(self) -> tuple[tuple[int, Callable[[Ram], bool]], ...]:
        return tuple((index, state.enter) for index, state in enumerate(self.states))

    def state_of(self, ram: Ram) -> int:
        """Index of the state that holds; -1 in transit."""
        for index, enter in self._enters:
            if enter(ram):
                return index
        return -1

    def state_index(self, name: str) -> int:
        """Index of the state of this name; a Problem that lists the names where there is none."""
        names = [state.name for state in self.states]
        if name not in names:
            raise Problem(f"{self.title} has no state {name!r}", remedy=f"choose one of: {', '.join(names)}")
        return names.index(name)

    def open(self) -> "Emulator":
        """The game, switched on."""
        from retro.emulator import Emulator

        return Emulator(self.rom, self.variables)

    @property
    def source_files(self) -> list[Path]:
        """The Python files that the class is written in: its module, or the package it lies in."""
        path = Path(str(sys.modules[type(self).__module__].__file__))
        return sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]

    @property
    def source_sha256(self) -> str:
        """Of `source_files`."""
        return sha256_bytes(b"".join(read_bytes(file) for file in self.source_files))


# ---- loading -----------------------------------------------------------------------------------------------


def available_packages() -> list[str]:
    """Short names of the packages in retro/games, sorted."""
    return sorted(path.parent.name for path in (ROOT / "retro" / "games").glob("*/__init__.py"))


def load_package(spec: str) -> GamePackage:
    """The package named by "module:Class", or by the name of a folder in retro/games; see `validate`."""
    if re.fullmatch(r"[a-z][a-z0-9_]*", spec):
        if spec not in available_packages():
            raise Problem(
                f"there is no game package {spec!r}",
                remedy=f"choose one of {', '.join(available_packages())}, or write module:Class",
            )
        package = _only_package(_module(f"retro.games.{spec}"))
    elif match := re.fullmatch(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)", spec):
        package = _named_package(_module(match[1]), match[2])
    else:
        raise Problem(
            f"{spec!r} names no game package", remedy="write module:Class, or a folder's name in retro/games"
        )
    try:
        made = package()
    except (Exception, SystemExit) as error:
        raise Problem(f"{package.__name__}() fails: {_said(error)}", remedy="let it take nothing") from error
    validate(made)
    return made


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise Problem(
                f"there is no module {error.name!r}",
                remedy="run where it can be imported, or set PYTHONPATH",
            ) from error
        raise Problem(f"module {name!r} needs the module {error.name!r}", remedy="install it") from error
    except (Exception, SystemExit) as error:
        raise Problem(f"module {name!r} cannot be imported: {_said(error)}") from error


def _only_package(module: Any) -> type[GamePackage]:
    found = [item for item in vars(module).values() if _is_package(item)]
    if len(found) != 1:
        names = ", ".join(item.__name__ for item in found) or "none"
        raise Problem(
            f"module {module.__name__!r} must hold one subclass of GamePackage, and holds {names}",
            remedy="name the one that is meant: module:Class",
        )
    return found[0]  # type: ignore[no-any-return]


def _named_package(module: Any, name: str) -> type[GamePackage]:
    found = getattr(module, name, None)
    if found is None:
        names = ", ".join(sorted(key for key, item in vars(module).items() if _is_package(item))) or "none"
        raise Problem(f"module {module.__name__!r} has no {name!r}", remedy=f"its packages: {names}")
    if not _is_package(found):
        raise Problem(f"{module.__name__}:{name} is not a subclass of GamePackage")
    return found  # type: ignore[no-any-return]


def _is_package(item: object) -> bool:
    return isinstance(item, type) and issubclass(item, GamePackage) and item is not GamePackage


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _shipped(name: str) -> Path:
    for path in Integrations.STABLE.paths:
        folder = Path(stable_retro.data.path(), path, name)
        if folder.is_dir():
            return folder
    raise Problem(
        f"stable-retro ships no game {name!r}",
        remedy="put rom.<extension>, data.json, scenario.json and metadata.json beside the package",
    )


def validate(package: GamePackage) -> None:
    """A Problem that lists all that is wrong with a package, as far as it shows without running the game."""
    from retro.faults import blaming, faults

    with blaming(package):  # of fields that are computed
        found = faults(package)
    if found:
        kind = type(package)
        raise Problem(f"package {kind.__module__}:{kind.__qualname__} is malformed: {'; '.join(found)}")
