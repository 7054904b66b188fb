"""Rewiring: what led on from a slower way into a cell is played from the faster one, and gains spread."""

import random
from dataclasses import replace

import pytest

from retro.packages import GamePackage
from retro.search.archive import Found, Runs
from retro.search.pool import Done, Item, Worker
from retro.search.rewire import Rewire
from retro.search.segment import SegmentSearch
from retro.search.world import Result
from scripted_game.searching import knowledge, masks_of, play, segment, settings, start_of
from scripted_game.small import LEFT, RIGHT, A, Blink, Mortal, Rooms, Ways

IDLE = settings(modes={"scripted_game.modes:Idle": 1}, shave=0)
"""Nothing is played but what rewiring plays."""
INTO_SECOND: Runs = ((0, 1), (RIGHT, 10))


def rewired(package: GamePackage, before: Runs, *legs: Runs, budget: int = 1_000) -> Result:
    """Play legs from where some inputs within the first segment lead, as node 7."""
    world = Worker(package).world
    beginning, _ = world.arrive((*((0, 1),), *before))
    world.begin(knowledge(beginning.segment), budget)
    frames = len(masks_of(before))
    start = replace(start_of(beginning), index=7, frames=frames, legs=legs)
    assert Rewire().explore(world, [start], random.Random(1)) == []
    return world.result()


@pytest.mark.parametrize("budget", [1, 1_000])
def test_each_leg_is_played_from_the_start(budget: int) -> None:
    """And to its end, though the frames of the work are spent."""
    result = rewired(Rooms(), ((RIGHT, 3),), ((RIGHT, 4),), ((LEFT, 1), (RIGHT, 8)), ((A, 2),), budget=budget)
    assert {(found.cell, found.frames) for found in result.found} == {
        ((0, 7, 0), 7),
        ((0, 2, 0), 4),
        ((0, 3, 0), 5),
    }
    assert [(crossing.start, crossing.runs, crossing.frames) for crossing in result.crossings] == [
        (7, ((LEFT, 1), (RIGHT, 8)), 12)
    ]
    assert all(found.start == 7 for found in result.found)


def test_death_ends_a_leg_and_not_those_after_it() -> None:
    result = rewired(Mortal(), ((RIGHT, 2),), ((RIGHT, 1), (LEFT, 2)), ((LEFT, 1),))
    assert result.deaths == 1
    assert [found.cell for found in result.found] == [(0, 1, 0)]


def test_a_transit_within_a_leg_is_played_once() -> None:
    leg: Runs = ((RIGHT, 2), (0, 3), (RIGHT, 6))
    inputs = [0, RIGHT, RIGHT, *masks_of(leg)]
    assert play(Blink(), inputs).states == [0] * 4 + [-1] * 3 + [0] * 6 + [1]
    result = rewired(Blink(), ((RIGHT, 2),), leg)
    assert [(crossing.runs, crossing.frames) for crossing in result.crossings] == [(leg, 13)]


def chain(package: GamePackage, inputs: Runs, *legs: tuple[Runs, int]) -> tuple[SegmentSearch, Worker]:
    """A search in which nothing is known but cells that follow from each other, by (inputs, x)."""
    search, worker = segment(package, inputs, IDLE)
    index, frames, done = 0, 0, inputs
    for runs, x in legs:
        done, frames = (*done, *runs), frames + len(masks_of(runs))
        at, _ = worker.arrive(done)
        assert at.cell == (search.beginning.segment, x, 0)
        assert search.archive.offer(Found(index, runs, frames, at.cell, at.state, at.reward, 0))
        index = search.archive.cells[at.cell].index
    return search, worker


def reach(search: SegmentSearch, worker: Worker, inputs: Runs, runs: Runs) -> None:
    """Find a way from the segment's start into a cell."""
    at, _ = worker.arrive((*inputs, *runs))
    assert search.archive.offer(Found(0, runs, len(masks_of(runs)), at.cell, at.state, at.reward, 0))


def test_a_gain_near_the_start_spreads_to_all_that_came_of_it() -> None:
    search, worker = chain(
        Rooms(), ((0, 1),), (((0, 9), (RIGHT, 3)), 3), (((0, 2), (RIGHT, 3)), 6), (((RIGHT, 3),), 9)
    )
    search.open(worker)
    reach(search, worker, ((0, 1),), ((RIGHT, 3),))
    for _ in range(4):
        search.round(worker)
    assert search.archive.known() == {(0, 0, 0): 0, (0, 3, 0): 3, (0, 6, 0): 8, (0, 9, 0): 11}
    assert search.archive.path(search.archive.cells[0, 9, 0].index) == [
        *((RIGHT, 3), (0, 2)),
        *((RIGHT, 3), (RIGHT, 3)),
    ]
    assert len(search.archive.nodes) == 4
    assert not search.archive.beaten


def test_a_gain_of_one_frame_goes_through_a_long_transit() -> None:
    """Its 6 frames are more than a crossing may be late."""
    search, worker = chain(Ways(), INTO_SECOND, (((0, 1), (RIGHT, 3)), 3), (((RIGHT, 3),), 6))
    search.open(worker)
    start = search.archive.cells[1, 6, 0].index
    out: Runs = ((RIGHT, 4), (0, 6))
    crossing = rewired_from(worker, search, start, out)
    assert (crossing.crossings[0].frames, crossing.crossings[0].transit) == (17, 6)
    merge(search, worker, crossing)
    assert search.best == 17
    reach(search, worker, INTO_SECOND, ((RIGHT, 3),))
    for _ in range(3):
        search.round(worker)
    assert search.best == 16
    assert masks_of(search.solutions[0].runs) == [RIGHT] * 10 + [0] * 6


def rewired_from(worker: Worker, search: SegmentSearch, index: int, leg: Runs) -> Result:
    worker.world.begin(knowledge(search.beginning.segment), 1_000)
    Rewire().explore(worker.world, [replace(search._start(index), legs=(leg,))], random.Random(1))
    return worker.world.result()


def merge(search: SegmentSearch, worker: Worker, result: Result) -> None:
    search._merge(worker, [Item("scripted_game.modes:Idle", [], "", 1)], [Done(result, [])])
    search.open(worker)


def test_what_cannot_be_in_time_is_not_tried() -> None:
    search, worker = chain(Rooms(), ((0, 1),), (((0, 9), (RIGHT, 3)), 3), (((0, 9), (RIGHT, 3)), 6))
    search.open(worker)
    reach(search, worker, ((0, 1),), ((0, 1), (RIGHT, 3)))
    assert search.archive.legs(16, 0, 1_000) == {}
    assert not search.archive.beaten


def test_a_crossing_found_again_and_again_is_kept_once() -> None:
    search, worker = chain(Rooms(), ((0, 1),), (((RIGHT, 3),), 3))
    search.open(worker)
    result = rewired_from(worker, search, 1, ((RIGHT, 7),))
    for _ in range(5):
        merge(search, worker, result)
    assert len(search.solutions) == 1
    assert len(search.archive.nodes) == 3
    from_start = rewired_from(worker, search, 0, ((RIGHT, 10),))
    merge(search, worker, replace(from_start, crossings=[replace(from_start.crossings[0], frames=9)]))
    assert len(search.archive.nodes) == 3, "the segment's start is never reached faster"
