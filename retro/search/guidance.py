"""FIXED: guidance of a search: moves that something learned proposes, and ways out that are tried first.

A source lives in the main process. It gives the workers a guide for each segment, whose moves the decisions
of walks and rollouts follow as often as its share says. Without guidance no random number is drawn for it.
"""

import importlib
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harness.errors import Problem
from retro.packages import GamePackage, Ram
from retro.search.archive import Runs
from retro.search.settings import SOURCES

if TYPE_CHECKING:
    from retro.search.pool import Pool
    from retro.search.world import Beginning

Move = tuple[int, int]
"""A decision: button mask, and frames for which it is held."""


class Guide(Protocol):
    """What a source sends to the workers: plain data, little of it."""

    @property
    def share(self) -> float:
        """Of the decisions, those that follow it."""

    def propose(self, package: GamePackage, ram: Ram, generator: random.Random) -> Move | None:
        """A move for this situation; None where it knows of none."""


class Source(Protocol):
    """Where guides come from. Made with the package's name, the share, the search's seed and its folder."""

    def begin(self, pool: "Pool", beginning: "Beginning", pieces: Sequence[Runs]) -> Guide | None:
        """Turn to a segment; `pieces` are the inputs of those that are solved, in order from power-on."""

    def news(self) -> Guide | None:
        """A newer guide for the segment; None where there is none."""

    def exits(self) -> list[Runs]:
        """Ways out of the segment, from its start, that were not told before."""

    def close(self) -> None:
        """End what it has started."""


class Guidance:
    """The sources of a search, together."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._sources = sources
        self._guides: dict[str, Guide] = {}

    def begin(self, pool: "Pool", beginning: "Beginning", pieces: Sequence[Runs]) -> tuple[Guide, ...]:
        """See `Source.begin`."""
        found = {name: source.begin(pool, beginning, pieces) for name, source in self._sources.items()}
        self._guides = {name: guide for name, guide in found.items() if guide is not None}
        return tuple(self._guides.values())

    def news(self) -> tuple[Guide, ...] | None:
        """All guides, if any of them is new."""
        found = {name: source.news() for name, source in self._sources.items()}
        new = {name: guide for name, guide in found.items() if guide is not None}
        self._guides |= new
        return tuple(self._guides.values()) if new else None

    def exits(self) -> list[Runs]:
        """See `Source.exits`."""
        return [runs for source in self._sources.values() for runs in source.exits()]


@contextmanager
def open_guidance(
    spec: str, shares: Mapping[str, float], seed: int, folder: Path
) -> Iterator[Guidance | None]:
    """The sources that `Settings.guidance` names, until the end; None where it names none.

    Raises:
        Problem: there is no such source, or something that it needs is missing.
    """
    sources: dict[str, Source] = {}
    try:
        for name, share in shares.items():
            if share:
                sources[name] = load_source(name)(spec, share, seed, folder)
        yield Guidance(sources) if sources else None
    finally:
        for source in sources.values():
            source.close()


class Maker(Protocol):
    """The class of a source."""

    def __call__(self, spec: str, share: float, seed: int, folder: Path, /) -> Source: ...


def load_source(name: str) -> Maker:
    """The class of a source by its short name, or module:Class; a Problem where there is none."""
    module, _, kind = SOURCES.get(name, name).partition(":")
    try:
        made: Maker = getattr(importlib.import_module(module), kind)
    except (ImportError, AttributeError, ValueError) as error:
        remedy = f"use {', '.join(SOURCES)}, or module:Class of your own"
        raise Problem(f"there is no guidance {name!r}: {error}", remedy=remedy) from error
    return made
