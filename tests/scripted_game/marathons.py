"""Marathons of scripted games, which have no console: no .bk2 can be written of them, and no time told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import Problem
from retro.marathon import engine, searches
from retro.marathon.config import Config
from retro.marathon.engine import Marathon
from retro.marathon.machine import Rules
from retro.marathon.store import Saved, open_saved
from retro.packages import load_package
from retro.replay import Replay, replay
from retro.search import route as route_module
from retro.search.pool import open_pool
from retro.search.route import Watcher
from retro.search.settings import Settings
from scripted_game.searching import settings

QUICK = settings(frames=12_000, patience=3_000, shave=2_000, lookahead=0)


def config(told: Settings = QUICK, **changes: Any) -> Config:
    """A small marathon's, but for some."""
    plain: dict[str, Any] = {
        "seed": 1,
        "workers": 0,
        "cluster": None,
        "disk": 50_000_000,
        "rules": Rules(doublings=2, practice=2),
        "memory": 4.0,
        "reference": None,
        "live": False,
        "live_url": None,
        "tracking": None,
        "settings": told,
    }
    return Config(**plain | changes)


def run(
    folder: Path,
    spec: str,
    told: Config,
    frames: int = 0,
    watch: Watcher = lambda doing, search: None,
) -> Saved:
    """Begin a marathon, or go on with it, for so many frames; what it has saved."""
    package = load_package(spec)
    saved = open_saved(folder, spec, package, told)
    with open_pool(spec, told.workers) as pool:
        Marathon(folder, saved, pool, told, None, watch=watch).go(frames=frames)
    return open_saved(folder, spec, package, told)


def without_a_console(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, int]]:
    """Replays in this process, and movies as plain text; returns (path, frames) of each that is written."""
    written: list[tuple[Path, int]] = []

    def write(path: Path, inputs: list[int]) -> None:
        path.write_text(" ".join(map(str, inputs)))
        written.append((path, len(inputs)))

    class Movie:
        def __init__(self, path: Path) -> None:
            if not path.exists():
                raise Problem("there is none")
            self.inputs = tuple(map(int, path.read_text().split()))

    def again(spec: str, inputs: Any) -> Replay:
        return replay(load_package(spec), inputs)

    changes: dict[str, Callable[..., Any]] = {
        "write_movie": write,
        "make_movie": lambda package, inputs, shown: inputs,
        "read_movie": Movie,
        "splits_table": lambda *_: None,
    }
    for name, change in changes.items():
        monkeypatch.setattr(engine, name, change)
    for module in (searches, route_module):
        monkeypatch.setattr(module, "replay_fresh", again)
    return written
