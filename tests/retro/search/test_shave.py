"""Shaving: never slower, always true, and drifting where it gains nothing."""

import random

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from retro.packages import GamePackage
from retro.search.archive import Runs
from retro.search.pool import Worker
from retro.search.segment import SegmentSearch, Solution
from retro.search.shave import Shave, Way, change, detour, frame_by_frame, mutate
from retro.search.shave import play as follow
from retro.search.world import Result
from scripted_game import CLEAR_FRAMES, Hopper, fastest
from scripted_game.searching import finish, knowledge, masks_of, play, segment, settings, start_of
from scripted_game.small import LEFT, RIGHT, Rooms

START: Runs = ((0, 1),)
INTO_LEVEL_1: Runs = ((0, 1), (8, 1))
LEAPS: Runs = ((0, 9), *((mask, 1) for mask in fastest(1)), (0, CLEAR_FRAMES + 1))


def shaved(package: GamePackage, before: Runs, crossing: Runs, budget: int = 5_000, seed: int = 1) -> Result:
    world = Worker(package).world
    beginning, _ = world.arrive(before)
    world.begin(knowledge(beginning.segment), budget, crossing)
    assert Shave().explore(world, [start_of(beginning)], random.Random(seed)) == []
    return world.result()


def crossing_frames(package: GamePackage, before: Runs, crossing: Runs) -> int:
    """Frames until a later state holds, by playing frame by frame."""
    masks = [*masks_of(before), *masks_of(crossing)]
    states = play(package, masks).states
    begun = len(masks_of(before))
    return next(at for at in range(begun, len(masks)) if states[at] > states[begun - 1]) - begun + 1


@pytest.mark.parametrize("seed", range(4))
def test_a_slow_crossing_is_shaved_to_the_fastest(seed: int) -> None:
    dawdling: Runs = ((0, 7), (RIGHT, 4), (LEFT, 3), (0, 2), (RIGHT, 9))
    assert crossing_frames(Rooms(), START, dawdling) == 25
    result = shaved(Rooms(), START, dawdling, seed=seed)
    assert min(crossing.frames for crossing in result.crossings) == 10


@given(st.lists(st.tuples(st.sampled_from([0, LEFT, RIGHT]), st.integers(1, 4)), max_size=6), st.integers())
@examples(max_examples=40)
def test_shaving_never_makes_a_crossing_slower(dawdling: list[tuple[int, int]], seed: int) -> None:
    crossing = (*dawdling, (RIGHT, 40))
    frames = crossing_frames(Rooms(), START, crossing)
    result = shaved(Rooms(), START, crossing, 800, seed)
    assert result.crossings[0].frames == frames, "the first is the one to be shaved"
    assert min(other.frames for other in result.crossings) <= frames
    for other in result.crossings:
        assert crossing_frames(Rooms(), START, other.runs) == other.frames
        assert len(masks_of(other.runs)) == other.frames


def test_inputs_drift_where_they_gain_nothing() -> None:
    """The fastest way cannot be shortened; but A does nothing, and comes and goes."""
    result = shaved(Rooms(), START, ((RIGHT, 10),), 20_000)
    same = {crossing.runs for crossing in result.crossings if crossing.frames == 10}
    assert min(crossing.frames for crossing in result.crossings) == 10
    assert len(same) > 3
    kept = [runs for runs in same if len(runs) > 3]
    assert kept, "changes add up: what is as fast is changed again"


def test_a_leap_is_shaved_and_still_carries() -> None:
    package = Hopper()
    frames = crossing_frames(package, INTO_LEVEL_1, LEAPS)
    result = shaved(package, INTO_LEVEL_1, LEAPS, 20_000)
    best = min(result.crossings, key=lambda crossing: crossing.frames)
    assert best.frames == frames - 9, "what it began with was for nothing, and the rest cannot be faster"
    assert crossing_frames(package, INTO_LEVEL_1, best.runs) == best.frames
    assert best.into.segment == 2


def test_what_crosses_no_more_is_left_alone() -> None:
    result = shaved(Rooms(), START, ((LEFT, 5),), 500)
    assert not result.crossings
    assert 500 <= result.frames < 520


def test_a_search_shaves_a_crossing_that_it_is_given() -> None:
    search, worker = segment(Rooms())
    slow: Runs = ((0, 30), (RIGHT, 10))
    into, _ = worker.arrive((*START, *slow))
    search = SegmentSearch(search.beginning, settings(), "1", Solution(40, slow, into))
    search.open(worker)
    while search.shave(worker):
        pass
    assert (search.first, search.best) == (40, 10)
    assert search.shaved >= settings().shave
    assert not search.shave(worker)


def test_a_crossing_longer_than_a_piece_of_work_is_shaved_too() -> None:
    search, worker = segment(Rooms())
    slow: Runs = ((0, 200), (RIGHT, 10))
    into, _ = worker.arrive((*START, *slow))
    search = SegmentSearch(search.beginning, settings(item_frames=100), "1", Solution(210, slow, into))
    search.open(worker)
    while search.shave(worker):
        pass
    assert search.best is not None
    assert search.best < 210


def test_nothing_to_shave() -> None:
    search, worker = segment(Rooms())
    assert not search.shave(worker)
    assert finish(*segment(Rooms(), told=settings(shave=0))).shaved == 0


@given(st.integers())
@examples(max_examples=25)
def test_what_is_known_of_a_way_is_true_of_it(seed: int) -> None:
    """After any trials: its inputs cross, its marks lie on it, and its cells are where it says."""
    package = Hopper()
    world = Worker(package).world
    beginning, _ = world.arrive(INTO_LEVEL_1)
    world.begin(knowledge(1), 10**9, LEAPS)
    world.go(start_of(beginning))
    way = follow(world, [world.mark()], frame_by_frame(LEAPS), {})
    generator, kinds = random.Random(seed), set()
    for _ in range(60):
        assert way is not None
        check_way(package, way)
        world.bound = world.crossings[-1].frames + 1
        trial = generator.choice((detour, change))
        after = trial(world, way, generator)
        if after is not None:
            assert len(after.inputs) <= len(way.inputs)
            kinds.add(trial)
        way = after or way
    assert kinds


def check_way(package: GamePackage, way: Way) -> None:
    emulator = package.open()
    for mask in masks_of(INTO_LEVEL_1):
        emulator.step(mask)
    saved, cells = [emulator.save()], [(1, *package.cell(emulator.values()))]
    for mask in way.inputs:
        assert package.state_of(emulator.values()) == 1
        emulator.step(mask)
        saved.append(emulator.save())
        cells.append((1, *package.cell(emulator.values())))
    assert package.state_of(emulator.values()) == -1, "up to where the state is left, and no further"
    assert way.marks[0].frames == 0
    assert [mark.frames for mark in way.marks] == sorted({mark.frames for mark in way.marks})
    for mark in way.marks:
        assert mark.state == saved[mark.frames]
        assert masks_of(mark.runs) == way.inputs[: mark.frames]
    for cell, frames in way.cells.items():
        assert cells[frames] == cell


MASKS = [0, 1, 2, 4, 5]


@given(st.lists(st.sampled_from([0, 1, 4, 8]), min_size=1, max_size=60), st.integers())
def test_changes_of_inputs(inputs: list[int], seed: int) -> None:
    before = list(inputs)
    trial, first = mutate(inputs, MASKS, random.Random(seed))
    assert inputs == before
    assert trial
    assert 0 <= first <= len(trial)
    assert trial[:first] == inputs[:first], "what was played so far stays true"
    assert set(trial) <= {*inputs, *MASKS}
    assert abs(len(trial) - len(inputs)) <= 36
    assert (trial, first) == mutate(inputs, MASKS, random.Random(seed))


def test_changes_of_every_kind_come_up() -> None:
    inputs = [4] * 20 + [5] * 5 + [4] * 20
    trials = [mutate(inputs, MASKS, random.Random(seed))[0] for seed in range(300)]
    lengths = [len(trial) for trial in trials]
    assert min(lengths) < 40
    assert max(lengths) > 50
    assert any(8 not in trial and 2 in trial for trial in trials)
    edges = {trial.index(5) for trial in trials if len(trial) == 45 and set(trial) == {4, 5}}
    assert min(edges) < 20 < max(edges)
