"""FIXED: what a search mode is, and how one is loaded."""

import importlib
import random
from typing import Protocol

from harness.errors import Problem
from retro.faults import said
from retro.search.archive import Archive
from retro.search.settings import MODES
from retro.search.world import Start, World

Starts = list[Start]


class Mode(Protocol):
    """One way to search. It is made anew in every process, so it keeps nothing between pieces of work."""

    def choose(self, archive: Archive, weights: dict[int, float], generator: random.Random) -> list[int]:
        """Nodes for one piece of work to play from; none = there is nothing left to do."""

    def explore(self, world: World, starts: Starts, generator: random.Random) -> list[int]:
        """Play until the budget is spent; returns the starts that were exhausted: every action was tried."""


def load_mode(name: str) -> Mode:
    """A mode by its short name, or module:Class; a Problem where there is none."""
    module_name, _, class_name = MODES.get(name, name).partition(":")
    try:
        mode: Mode = getattr(importlib.import_module(module_name), class_name)()
    except (Exception, SystemExit) as error:  # whatever a module of someone else's does
        remedy = f"use {', '.join(MODES)}, or module:Class of your own"
        raise Problem(f"there is no search mode {name!r}: {said(error)}", remedy=remedy) from error
    return mode


def weighted(archive: Archive, weights: dict[int, float], count: int, generator: random.Random) -> list[int]:
    """`count` nodes drawn by weight, with replacement."""
    nodes = list(weights)
    if not nodes or not any(weights.values()):
        return []
    return generator.choices(nodes, weights=list(weights.values()), k=count)
