"""FIXED: what a search may be told; every number that shapes it is here."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from harness.errors import Problem

MODES = {
    "walks": "retro.search.walks:Walks",
    "frontier": "retro.search.frontier:Frontier",
    "tree": "retro.search.tree:Tree",
}
"""The modes that the engine brings, by short name."""

SOURCES = {
    "table": "retro.guidance.table:Table",
    "policy": "retro.guidance.trainer:Trainer",
}
"""The guidance that there is, by short name."""

MOST_ITEMS = 10_000  # a round is planned before any of it is played


@dataclass(frozen=True)
class Settings:
    """How every segment of a run is searched.

    Budgets are emulated frames, not seconds: emulation is nearly all the time there is, and frames give the
    same search on every machine.
    """

    frames: int
    """Frames that the search of one segment may emulate before it is cut off."""
    patience: int
    """Frames emulated without a faster crossing after which a solved segment is left, and without a new or
    faster cell after which one where every action was tried is exhausted."""
    modes: Mapping[str, float]
    """Mode -> its share of the frames; a name of MODES, or module:Class of your own."""
    items: int
    """Pieces of work that a round deals out. Results depend on it, and not on the number of workers."""
    item_frames: int
    """Frames that a piece of work takes."""
    cells: int
    """Cells that an archive holds at most."""
    crossings: int
    """Distinct crossings that compete by how fast the next segment is from them."""
    lookahead: int
    """Frames that the next segment's search gets for each of them."""
    shave: int
    """Frames of shaving when the search has ended; 0 = no shaving at all, during the search neither."""
    settle: int
    """Frames for which a new state must hold before a crossing counts."""
    guidance: Mapping[str, float] = field(default_factory=dict)
    """Guidance -> its share of the decisions of walks and rollouts; a name of SOURCES, or module:Class of
    your own. What is not named is off."""

    def __post_init__(self) -> None:
        for name in (one.name for one in fields(self) if one.name not in ("modes", "guidance")):
            value = getattr(self, name)
            least = 0 if name in ("lookahead", "shave", "settle") else 1
            if type(value) is not int or value < least:
                raise Problem(f"{name} is {value!r}, expected a whole number of at least {least}")
            if name == "items" and value > MOST_ITEMS:
                raise Problem(f"items is {value:,}, expected at most {MOST_ITEMS:,}")
        if not self.modes:
            raise Problem("modes names no mode")
        for name, share in self.modes.items():
            if type(share) not in (int, float) or not (math.isfinite(share) and share >= 0):
                raise Problem(f"the share of mode {name!r} is {share!r}, expected a number of at least 0")
        if not sum(self.modes.values()) > 0:
            raise Problem("the shares of the modes add up to nothing")
        for name, share in self.guidance.items():
            if type(share) not in (int, float) or not 0 <= share <= 1:
                raise Problem(f"the share of guidance {name!r} is {share!r}, expected a number from 0 to 1")
        if sum(self.guidance.values()) > 1 + 1e-9:
            raise Problem("the shares of guidance add up to more than 1")

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Self:
        """From plain values; a Problem names what is missing, unknown or malformed."""
        names = [one.name for one in fields(cls)]
        if unknown := sorted(set(table) - set(names)):
            raise Problem(f"unknown setting {unknown[0]!r}", remedy=f"there are: {', '.join(names)}")
        if missing := [name for name in names if name not in table and name != "guidance"]:
            raise Problem(f"the setting {missing[0]!r} is missing")
        for name in ("modes", "guidance"):
            if not isinstance(table.get(name, {}), Mapping):
                raise Problem(f"{name} is not a table of {'mode' if name == 'modes' else name} = share")
        return cls(**table)
