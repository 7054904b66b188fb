"""Searches of scripted games with small settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from retro.packages import GamePackage
from retro.search.archive import Runs
from retro.search.pool import Worker, open_pool
from retro.search.route import Route, RouteSearch, Watcher, read_route
from retro.search.segment import SegmentSearch
from retro.search.settings import Settings
from retro.search.world import Beginning, Knowledge, Start

HOPPER = "scripted_game:Hopper"
SMALL: Mapping[str, Any] = {
    "frames": 20_000,
    "patience": 10_000,
    "modes": {"walks": 60, "frontier": 20, "tree": 20},
    "items": 4,
    "item_frames": 500,
    "cells": 4_000,
    "crossings": 3,
    "lookahead": 2_000,
    "shave": 20_000,
    "settle": 3,
}


def settings(**changes: Any) -> Settings:
    """Small settings, but for some."""
    return Settings(**{**SMALL, **changes})


def find(
    folder: Path,
    spec: str = HOPPER,
    told: Settings | None = None,
    seed: int = 1,
    workers: int = 0,
    watch: Watcher = lambda doing, search: None,
    until: int | None = None,
    replays: bool = False,
) -> tuple[bool, Route]:
    """Search in a folder, or go on there; whether that solved it, and the route on disk."""
    told = told or settings()
    if (folder / "route.json").exists():
        route = read_route(folder)
        route.settings = told
    else:
        route = Route(spec, "a scripted game", "5" * 64, seed, told)
    with open_pool(spec, workers) as pool:
        solved = RouteSearch(folder, route, pool, watch, replays).run(until)
    return solved, read_route(folder)


def segment(
    package: GamePackage, inputs: Runs = ((0, 1),), told: Settings | None = None, seed: str = "1"
) -> tuple[SegmentSearch, Worker]:
    """A search of the segment that inputs from power-on lead to, in this process."""
    worker = Worker(package)
    beginning, _ = worker.arrive(inputs)
    search = SegmentSearch(beginning, told or settings(), seed)
    search.open(worker)
    return search, worker


def finish(search: SegmentSearch, worker: Worker, rounds: int = 1_000) -> SegmentSearch:
    """Search and shave to the end; fails where that takes too many rounds."""
    while search.ending == "searching":
        assert search.rounds < rounds, f"no end in {rounds} rounds, {search.frames} frames"
        search.round(worker)
    while search.shave(worker):
        assert search.rounds < 2 * rounds
    return search


def knowledge(of: int, **changes: Any) -> Knowledge:
    """What is known of a segment where nothing is."""
    return Knowledge(of, **{"settle": 3, "slack": 4, **changes})


def start_of(beginning: Beginning) -> Start:
    """A segment's first node."""
    return Start(0, 0, beginning.state, beginning.reward)


HASTY = settings(frames=1, items=1, item_frames=10)
"""One round of one short piece of work: too little for a level of Hopper."""


class Played(NamedTuple):
    """Frames played one by one from power-on, after each of which one looked."""

    states: list[int]
    """Index of the state that held after each frame; -1 in transit."""
    dead: list[bool]
    """Whether any state's `dead` held."""
    hashes: list[str]


def play(package: GamePackage, masks: list[int]) -> Played:
    """Play frame by frame."""
    emulator = package.open()
    played = Played([], [], [])
    for mask in masks:
        emulator.step(mask)
        ram = emulator.values()
        played.states.append(package.state_of(ram))
        played.dead.append(any(state.dead(ram) for state in package.states))
        played.hashes.append(emulator.ram_hash())
    return played


def masks_of(runs: Runs) -> list[int]:
    """Button masks, one a frame."""
    return [mask for mask, frames in runs for _ in range(frames)]
