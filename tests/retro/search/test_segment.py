"""The search of one segment: how it ends, and what it keeps."""

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from retro.search.archive import Found, Runs
from retro.search.pool import Done, Item, Worker
from retro.search.segment import SegmentSearch, Solution
from retro.search.world import NEVER, Beginning, Crossing, Fate, Result
from scripted_game import CLEAR_FRAMES, Hopper, fastest
from scripted_game.searching import HASTY, finish, knowledge, masks_of, play, segment, settings, start_of
from scripted_game.small import RIGHT, Closed, Detour, Hinted, Rooms, Shortcut

INTO_LEVEL_1: Runs = ((0, 1), (8, 1))
THOROUGH = {"frames": 120_000, "patience": 60_000, "shave": 120_000}


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_a_level_is_solved_in_the_fewest_frames(seed: str) -> None:
    search = finish(*segment(Hopper(), INTO_LEVEL_1, settings(**THOROUGH), seed))
    assert search.ending == "solved"
    assert search.best == len(fastest(1)) + CLEAR_FRAMES + 1
    assert search.first is not None
    assert search.first >= search.best


def test_every_crossing_that_is_kept_replays() -> None:
    package = Hopper()
    search = finish(*segment(package, INTO_LEVEL_1))
    assert search.solutions
    for solution in search.solutions:
        masks = [*masks_of(INTO_LEVEL_1), *masks_of(solution.runs)]
        played = play(package, masks)
        assert len(masks) == 2 + solution.frames
        assert played.states[-1] == solution.into.segment == 2
        assert played.states.index(2) == len(masks) - 1
        assert played.hashes[-1] == solution.into.ram_hash
    hashes = [solution.into.ram_hash for solution in search.solutions]
    assert len(set(hashes)) == len(hashes) <= search.settings.crossings
    frames = [solution.frames for solution in search.solutions]
    assert frames == sorted(frames)
    assert frames[-1] < frames[0] + 4


def test_every_cell_of_the_archive_replays() -> None:
    package = Hopper()
    search, worker = segment(package, INTO_LEVEL_1, settings(frames=4_000, cells=150))
    finish(search, worker)
    assert search.archive.dropped > 0
    assert len(search.archive.cells) <= 150
    for cell, node in search.archive.cells.items():
        emulator = package.open()
        for mask in [*masks_of(INTO_LEVEL_1), *masks_of(tuple(search.archive.path(node.index)))]:
            emulator.step(mask)
        assert emulator.frame == 2 + node.frames
        assert (1, *package.cell(emulator.values())) == cell


def test_solved_after_patience() -> None:
    told = settings(modes={"walks": 1}, frames=10**9, patience=5_000, shave=0)
    search = finish(*segment(Rooms(), told=told))
    assert search.ending == "solved"
    assert 5_000 <= search.frames - search.improved_at < 5_000 + 2 * told.items * told.item_frames


def test_solved_when_the_frames_are_used_up() -> None:
    told = settings(modes={"walks": 1}, frames=5_000, patience=10**9, shave=0)
    search = finish(*segment(Rooms(), told=told))
    assert search.ending == "solved"
    assert 5_000 <= search.frames < 5_000 + 2 * told.items * told.item_frames


def test_cut_off_where_nothing_crossed_in_time() -> None:
    search = finish(*segment(Hopper(), INTO_LEVEL_1, HASTY))
    assert (search.ending, search.best, search.solutions) == ("cut off", None, [])
    assert search.shaved == 0


def test_exhausted_where_there_is_no_way_out() -> None:
    search = finish(*segment(Closed()))
    assert (search.ending, search.solutions) == ("exhausted", [])
    assert search.frames < 20_000


def test_a_known_crossing_bounds_the_search() -> None:
    """The fastest is known: nothing slower by the slack is kept, and nothing that cannot be faster."""
    search, worker = segment(Rooms())
    into, _ = worker.arrive(((0, 1), (RIGHT, 10)))
    known = Solution(10, ((RIGHT, 10),), into)
    search = SegmentSearch(search.beginning, settings(), "1", known)
    assert (search.best, search.limit) == (10, 14)
    search.open(worker)
    finish(search, worker)
    assert search.solutions[0].frames == 10
    assert search.ending == "solved"
    assert all(node.frames < 14 for node in search.archive.cells.values())


def test_distinct_crossings_are_kept_and_equal_ones_are_not() -> None:
    search = finish(*segment(Detour()))
    assert [(s.frames, s.into.cell) for s in search.solutions] == [
        (10, (1, 0, 0)),
        (11, (1, 0, 1)),
        (12, (1, 0, 2)),
    ]
    search = finish(*segment(Detour(), told=settings(crossings=2)))
    assert [s.frames for s in search.solutions] == [10, 11]
    assert len(finish(*segment(Rooms())).solutions) == 1


def test_shares_of_the_modes_are_kept() -> None:
    told = settings(frames=60_000, patience=60_000, shave=0)
    search = finish(*segment(Hopper(), INTO_LEVEL_1, told))
    total = sum(search.mode_frames.values())
    assert total == pytest.approx(search.frames, rel=0.1)
    shares = {name: frames / total for name, frames in search.mode_frames.items()}
    for name, share in told.modes.items():
        assert shares[name] == pytest.approx(share / 100, abs=0.05)


def test_a_mode_without_a_share_does_nothing() -> None:
    told = settings(modes={"walks": 1, "frontier": 0}, frames=3_000)
    assert finish(*segment(Hopper(), INTO_LEVEL_1, told)).mode_frames["frontier"] == 0


def test_a_seed_settles_a_search_and_another_gives_another() -> None:
    told = settings(frames=5_000, shave=1_000)

    def course(seed: str) -> tuple[object, ...]:
        search = finish(*segment(Hopper(), INTO_LEVEL_1, told, seed))
        return search.frames, search.archive.known(), search.solutions, search.seen, search.rounds

    assert course("1") == course("1")
    assert course("1") != course("2")


class StopsAtWork(Worker):
    """Every second time that it is given work, the user has pressed Ctrl-C."""

    stops = 0

    def do(self, items: Sequence[Item]) -> list[Done]:
        self.stops += 1
        if self.stops % 2:
            raise KeyboardInterrupt
        return super().do(items)


def test_a_round_that_is_broken_off_was_none() -> None:
    told = settings(frames=8_000, patience=4_000, shave=1_000)
    calm = finish(*segment(Hopper(), INTO_LEVEL_1, told))
    worker = StopsAtWork(Hopper())
    search = SegmentSearch(calm.beginning, told, "1")
    search.open(worker)
    legs = 0
    while search.ending == "searching":
        try:
            search.round(worker)
        except KeyboardInterrupt:
            assert search.whole
            legs += len(search.archive.beaten)
    assert legs
    while search.shaved < told.shave:
        with suppress(KeyboardInterrupt):
            search.shave(worker)
    assert list(search.archive.nodes.values()) == list(calm.archive.nodes.values())
    assert (search.frames, search.solutions, search.transit) == (calm.frames, calm.solutions, calm.transit)


def test_ways_out_do_not_pile_up() -> None:
    """Each is kept once, and only while it is among the fastest: rounds that find nothing add nothing."""
    told = settings(frames=60_000, patience=60_000)
    search = finish(*segment(Rooms(), told=told))
    exits = [node for node in search.archive.nodes.values() if node.cell is None and not node.children]
    assert search.rounds > 5
    assert len(exits) < 10


@pytest.mark.parametrize("level", [1, 2])
def test_no_way_in_the_fewest_frames_is_given_up(level: int) -> None:
    """Not with the tightest bound there is, wherever its inputs are cut into decisions."""
    package, way = Hopper(), fastest(level)
    before = (
        INTO_LEVEL_1 if level == 1 else (*INTO_LEVEL_1, *((m, 1) for m in fastest(1)), (0, CLEAR_FRAMES + 1))
    )
    total = len(way) + CLEAR_FRAMES + 1
    worker = Worker(package)
    beginning, waited = worker.arrive(before)
    assert (beginning.segment, waited) == (level, 0)
    for bound, fate in ((total + 1, Fate.CROSSED), (total, Fate.LATE)):
        world = worker.world
        world.begin(knowledge(level, bound=bound, transit=CLEAR_FRAMES + 1), 10_000)
        world.go(start_of(beginning))
        fates = [world.act(mask, 1) for mask in way]
        assert fates == [Fate.ALIVE] * (len(way) - 1) + [fate]
    assert world.crossings == []


def test_the_shortest_transit_is_known() -> None:
    assert finish(*segment(Hopper(), INTO_LEVEL_1)).transit == CLEAR_FRAMES + 1
    search = finish(*segment(Shortcut(), told=settings(lookahead=0)))
    assert search.transit == 0
    assert [solution.frames for solution in search.solutions] == [10, 12]


def test_the_transit_of_a_crossing_that_was_known_is_learnt() -> None:
    """Else no branch is given up for the transit that it still needs."""
    search, worker = segment(Hopper(), INTO_LEVEL_1)
    known = finish(search, worker).solutions[0]
    again = SegmentSearch(search.beginning, settings(), "2", known)
    again.open(worker)
    assert finish(again, worker).transit == CLEAR_FRAMES + 1


def test_hints_are_tried_first() -> None:
    search, worker = segment(Hinted())
    search.round(worker)
    assert search.best == 40


class Answers:
    """A pool that answers with what it is given."""

    def __init__(self, *results: Result) -> None:
        self.results = results

    def open(self, knowledge: object) -> None: ...

    def tell(self, news: object) -> None: ...

    def do(self, items: list[Item]) -> list[Done]:
        empty = Result([], [], set(), 1, 0)
        return [Done(result, []) for result in (*self.results, *[empty] * len(items))][: len(items)]

    def arrive(self, inputs: Runs) -> tuple[Beginning, int]:
        raise NotImplementedError


def test_a_crossing_counts_though_its_start_was_beaten_in_the_same_round() -> None:
    search, worker = segment(Rooms())
    into, _ = worker.arrive(((0, 1), (RIGHT, 10)))
    state = search.beginning.state
    search.archive.offer(Found(0, ((0, 5), (RIGHT, 3)), 8, (0, 3, 0), state, 3.0, 0))
    start = search.archive.cells[(0, 3, 0)].index
    faster = Result([Found(0, ((RIGHT, 3),), 3, (0, 3, 0), state, 3.0, 0)], [], set(), 3, 0)
    crossed = Result([], [Crossing(start, ((RIGHT, 7),), 15, 0, into)], set(), 7, 0)
    search.round(Answers(faster, crossed))
    assert search.best == 15
    assert masks_of(search.solutions[0].runs) == [0] * 5 + [RIGHT] * 10


def test_crossings_of_one_round_rank_by_frames() -> None:
    search, worker = segment(Rooms())
    into, _ = worker.arrive(((0, 1), (RIGHT, 10)))
    other = replace(into, ram_hash="0" * 16)
    slow, fast = (Crossing(0, ((0, wait), (RIGHT, 10)), wait + 10, 0, into) for wait in (9, 2))
    third = Crossing(0, ((0, 5), (RIGHT, 10)), 15, 0, other)
    search.round(Answers(*(Result([], [crossing], set(), 1, 0) for crossing in (slow, third, fast))))
    assert [(s.frames, s.into.ram_hash) for s in search.solutions] == [
        (12, into.ram_hash),
        (15, other.ram_hash),
    ]
    assert search.limit == 16


def test_without_a_crossing_there_is_no_limit() -> None:
    search, _ = segment(Rooms())
    assert search.limit == NEVER
    assert random.Random(search._seed(0)).random() != random.Random(search._seed(1)).random()
