"""Playing within a segment, against the same inputs played frame by frame from power-on."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from harness.errors import Problem
from retro.packages import GamePackage
from retro.packing import pack, unpack
from retro.search.archive import Runs
from retro.search.pool import Worker
from retro.search.world import NEVER, Fate, World
from scripted_game import Hopper
from scripted_game.searching import knowledge, masks_of, play, start_of
from scripted_game.small import DEAD, LEFT, RIGHT, A, Flicker, Rooms, Ways

INTO_LEVEL_1: Runs = ((0, 1), (8, 1))
INTO_SECOND: Runs = ((0, 1), (RIGHT, 10))


def world_in(package: GamePackage, inputs: Runs, budget: int = 10_000, **known: int) -> World:
    """A world at the begin of the segment that inputs lead to."""
    world = World(package)
    beginning, waited = world.arrive(inputs)
    assert not waited
    world.begin(knowledge(beginning.segment, **known), budget)
    world.go(start_of(beginning))
    return world


def expected(package: GamePackage, inputs: Runs, actions: Sequence[tuple[int, int]], limit: int) -> tuple:
    """(fate, frames since the segment's start, index of the last action) by playing frame by frame."""
    masks = masks_of(inputs)
    begun = len(masks)
    segment = play(package, masks).states[-1]
    for index, (mask, hold) in enumerate(actions):
        for _ in range(hold):
            masks.append(mask)
            played = play(package, masks)
            if played.states[-1] == segment and not played.dead[-1]:
                continue
            waited = 0
            while played.states[-1] == -1 and not played.dead[-1] and waited < limit:
                masks.append(0)
                waited += 1
                played = play(package, masks)
            now = played.states[-1]
            if played.dead[-1] or now < segment:
                return Fate.DEAD, None, index, None
            if now == segment:
                break
            return Fate.CROSSED, len(masks) - begun, index, played.hashes[-1]
    return Fate.ALIVE, len(masks) - begun, len(actions) - 1, played.hashes[-1]


def compare(package: GamePackage, inputs: Runs, actions: list[tuple[int, int]]) -> Fate:
    world = world_in(package, inputs, settle=0)
    fate, frames, last, ram_hash = expected(package, inputs, actions, package.transit_limit)
    for index, action in enumerate(actions):
        got = world.act(*action)
        if got is not Fate.ALIVE:
            assert index == last
            break
    assert got is fate
    if fate is Fate.CROSSED:
        (crossing,) = world.crossings
        assert (crossing.frames, crossing.into.ram_hash) == (frames, ram_hash)
        assert sum(length for _, length in crossing.runs) == frames
        assert world.left <= frames
    elif fate is Fate.ALIVE:
        assert (world.frames, world.emulator.ram_hash()) == (frames, ram_hash)
    assert world.deaths == (fate is Fate.DEAD)
    return fate


HOPPER_ACTIONS = st.lists(st.tuples(st.sampled_from([0, 1, 2, 4, 4, 5, 5]), st.integers(1, 16)), min_size=1)
WAYS_ACTIONS = st.lists(
    st.tuples(st.sampled_from([0, A, LEFT, RIGHT, RIGHT, RIGHT]), st.integers(1, 9)), min_size=1, max_size=8
)


@given(HOPPER_ACTIONS)
@examples(max_examples=60)
def test_what_comes_of_actions_is_exact_to_the_frame(actions: list[tuple[int, int]]) -> None:
    compare(Hopper(), INTO_LEVEL_1, actions)


@given(WAYS_ACTIONS)
@examples(max_examples=60)
def test_deaths_transits_and_ways_back_are_exact_to_the_frame(actions: list[tuple[int, int]]) -> None:
    compare(Ways(), INTO_SECOND, actions)


@pytest.mark.parametrize("hold", range(1, 17))
@pytest.mark.parametrize("before", [0, 1, 5])
def test_a_crossing_is_as_fast_with_any_hold(hold: int, before: int) -> None:
    world = world_in(Rooms(), ((0, 1),))
    while (fate := world.act(RIGHT, hold)) is Fate.ALIVE:
        if world.frames == hold and before:
            assert world.act(0, before) is Fate.ALIVE
    assert fate is Fate.CROSSED
    (crossing,) = world.crossings
    assert crossing.frames == world.frames == 10 + (before if hold < 10 else 0)
    assert crossing.into.segment == 1


def test_ways_out_of_the_small_game() -> None:
    """The same as by brute force, but said in numbers."""
    at = [(RIGHT, 2)]
    assert compare(Ways(), INTO_SECOND, [(LEFT, 1)]) is Fate.DEAD
    assert compare(Ways(), INTO_SECOND, [*at, (A, 3)]) is Fate.DEAD
    assert compare(Ways(), INTO_SECOND, [*at, (RIGHT, 1), (A, 1)]) is Fate.DEAD
    assert compare(Ways(), INTO_SECOND, [*at, (RIGHT, 2), (A, 2)]) is Fate.DEAD
    world = world_in(Ways(), INTO_SECOND)
    assert world.act(RIGHT, 16) is Fate.CROSSED
    assert world.frames == 10 + 6
    assert world.left == 10
    assert world.crossings[0].runs == ((RIGHT, 10), (0, 6))


def test_a_transit_without_end_is_given_up() -> None:
    world = world_in(Ways(), INTO_SECOND)
    world.act(RIGHT, 3)
    assert world.act(A, 1) is Fate.DEAD
    assert world.spent == 3 + 1 + Ways.transit_limit


@pytest.mark.parametrize(("settle", "fate"), [(0, Fate.CROSSED), (1, Fate.CROSSED), (2, Fate.DEAD)])
def test_a_state_that_flickers_does_not_count(settle: int, fate: Fate) -> None:
    world = world_in(Flicker(), ((0, 1),), settle=settle)
    assert world.act(RIGHT, 4) is Fate.ALIVE
    assert world.act(RIGHT | A, 1) is fate
    assert len(world.crossings) == (fate is Fate.CROSSED)


@pytest.mark.parametrize("hold", [2, *(hold for hold in (3, 4, 5))])
def test_a_flicker_within_a_hold_is_seen_too(hold: int) -> None:
    world = world_in(Flicker(), ((0, 1),), settle=2)
    assert world.act(RIGHT, 4) is Fate.ALIVE
    assert world.act(RIGHT | A, hold) is Fate.DEAD


class Mortal(Rooms):
    """Death holds for one frame, in the state itself, at 3; and again in the first frame of the second room
    where A was held."""

    states = (
        replace(Rooms.states[0], dead=lambda ram: ram.x == 3),
        replace(Rooms.states[1], dead=lambda ram: ram.item == 1 and ram.x == 0),
        Rooms.states[2],
    )

    @staticmethod
    def advance(now, mask):  # type: ignore[no-untyped-def]
        return Rooms.advance(now, mask)._replace(item=mask & A)


@pytest.mark.parametrize("hold", [1, 3, *(hold for hold in (2, 4, 8, 16))])
def test_death_within_a_hold_is_seen(hold: int) -> None:
    world = world_in(Mortal(), ((0, 1),))
    while (fate := world.act(RIGHT, hold)) is Fate.ALIVE:
        pass
    assert fate is Fate.DEAD
    assert not world.crossings


@pytest.mark.parametrize("settle", [0, 1])
def test_a_crossing_into_death_does_not_count(settle: int) -> None:
    package = Mortal()
    world = world_in(package, ((0, 1), (RIGHT, 4)), settle=settle)
    assert world.act(RIGHT | A, 6) is Fate.DEAD


def test_a_crossing_sets_the_bound_for_the_rest_of_the_work() -> None:
    world = world_in(Rooms(), ((0, 1),), slack=4)
    begun = world.mark()
    assert world.act(RIGHT, 10) is Fate.CROSSED
    assert world.bound == 10 + 4
    world.back(begun)
    assert world.act(0, 4) is Fate.ALIVE
    assert world.act(RIGHT, 10) is Fate.LATE
    world.back(begun)
    assert world.act(0, 3) is Fate.ALIVE
    assert world.act(RIGHT, 10) is Fate.CROSSED
    assert [crossing.frames for crossing in world.crossings] == [10, 13]


@pytest.mark.parametrize(("bound", "fate"), [(10, Fate.LATE), (11, Fate.CROSSED)])
def test_a_crossing_takes_fewer_frames_than_the_bound(bound: int, fate: Fate) -> None:
    world = world_in(Rooms(), ((0, 1),), bound=bound)
    assert world.act(RIGHT, 10) is fate
    world = world_in(Ways(), INTO_SECOND, bound=bound + 6)
    assert world.act(RIGHT, 10) is fate


def test_what_is_late_is_not_kept() -> None:
    world = world_in(Rooms(), ((0, 1),), bound=5)
    assert world.act(RIGHT, 4) is Fate.ALIVE
    assert world.act(RIGHT, 1) is Fate.LATE
    assert {found.cell for found in world.result().found} == {(0, 4, 0)}


def test_the_budget_ends_the_work() -> None:
    world = world_in(Rooms(), ((0, 1),), budget=4)
    assert world.act(RIGHT, 3) is Fate.ALIVE
    assert world.act(RIGHT, 1) is Fate.SPENT
    result = world.result()
    assert result.frames == 4
    assert {found.cell: found.frames for found in result.found} == {(0, 3, 0): 3, (0, 4, 0): 4}


@given(HOPPER_ACTIONS)
@examples(max_examples=40)
def test_whatever_comes_back_replays(actions: list[tuple[int, int]]) -> None:
    """Every cell and crossing: its inputs from the segment's start give its frames, cell, reward and hash."""
    package = Hopper()
    world = world_in(package, INTO_LEVEL_1)
    begun = world.mark()
    for action in actions:
        if world.act(*action) is not Fate.ALIVE:
            world.back(begun)
    result = world.result()
    emulator = package.open()
    for entry in (*result.found, *result.crossings):
        emulator.power_on()
        masks = [*masks_of(INTO_LEVEL_1), *masks_of(entry.runs)]
        assert entry.frames == len(masks_of(entry.runs))
        for mask in masks:
            emulator.step(mask)
        state = entry.state if hasattr(entry, "state") else entry.into.state
        ram = emulator.values()
        index = package.state_of(ram)
        cell, reward = (index, *package.cell(ram)), package.states[index].reward(ram)
        if hasattr(entry, "state"):
            assert (entry.cell, entry.reward) == (cell, reward)
        else:
            assert (entry.into.segment, entry.into.cell, entry.into.reward) == (index, cell, reward)
            assert entry.into.ram_hash == emulator.ram_hash()
        assert unpack(state) == emulator.save()
    assert result.frames == world.spent
    assert result.deaths == world.deaths


def test_a_cell_is_kept_at_its_fastest_and_not_if_it_is_known_faster() -> None:
    world = world_in(Rooms(), ((0, 1),))
    begun = world.mark()
    world.act(0, 5)
    world.act(RIGHT, 3)
    assert world.new
    world.back(begun)
    world.act(RIGHT, 3)
    assert world.new
    world.back(begun)
    world.act(RIGHT, 3)
    assert not world.new
    assert {found.cell: found.frames for found in world.result().found} == {(0, 0, 0): 5, (0, 3, 0): 3}

    world = world_in(Rooms(), ((0, 1),))
    world.knowledge.frames = {(0, 3, 0): 3, (0, 4, 0): 5}
    world.act(RIGHT, 3)
    assert not world.new
    world.act(RIGHT, 1)
    assert world.new
    assert [found.cell for found in world.result().found] == [(0, 4, 0)]


def test_values_never_seen_are_counted_once() -> None:
    world = world_in(Rooms(), ((0, 1),))
    world.knowledge.seen = {(0, 0), (2, 0), (3, 0)}
    world.act(RIGHT, 1)
    world.act(RIGHT, 1)
    world.act(LEFT, 1)
    result = world.result()
    assert [found.novelty for found in result.found] == [1, 1]
    assert result.seen == {(1, 1), (1, 2)}


def test_marks_bring_everything_back() -> None:
    world = world_in(Hopper(), INTO_LEVEL_1)
    world.act(4, 5)
    mark = world.mark()
    world.act(5, 7)
    after = world.mark()
    world.back(mark)
    assert world.mark() == mark
    world.act(5, 7)
    assert world.mark() == after


def test_a_piece_of_work_knows_nothing_of_the_one_before() -> None:
    world = world_in(Rooms(), ((0, 1),))
    world.act(RIGHT, 10)
    begun, _ = world.arrive(((0, 1),))
    world.begin(knowledge(0), 10_000)
    world.go(start_of(begun))
    assert world.bound == NEVER
    assert world.act(0, 3) is Fate.ALIVE
    result = world.result()
    assert (len(result.found), result.crossings, result.frames, result.deaths) == (1, [], 3, 0)


def test_play_goes_on_from_each_start_in_turn() -> None:
    """Two starts of one piece of work are not taken for each other."""
    world = world_in(Rooms(), ((0, 1),))
    world.act(RIGHT, 4)
    (found,) = world.result().found
    begun, _ = world.arrive(((0, 1),))
    world.begin(knowledge(0), 10_000)
    starts = [start_of(begun), replace(start_of(begun), index=7, frames=4, state=found.state)]
    for start in (*starts, *starts):
        world.go(start)
        assert (world.start, world.frames) == (start.index, start.frames)
        assert world.emulator.values().x == start.frames
        world.act(RIGHT, 1)
        assert world.frames == start.frames + 1
    assert {(f.start, f.frames) for f in world.result().found} == {(0, 1), (7, 5)}


def test_arrival_waits_for_a_state_to_hold() -> None:
    worker = Worker(Ways())
    beginning, waited = worker.arrive((*INTO_SECOND, (RIGHT, 10)))
    assert (beginning.segment, waited) == (2, 6)
    emulator = worker.world.emulator
    assert emulator.frame == 1 + 10 + 10 + 6
    assert beginning.ram_hash == emulator.ram_hash()
    assert unpack(beginning.state) == emulator.save()


def test_an_arrival_nowhere_is_a_problem() -> None:
    with pytest.raises(Problem, match="no state holds for 20 frames"):
        Worker(Ways()).arrive((*INTO_SECOND, (RIGHT, 2), (A, 1)))
    assert DEAD not in range(3)


class Own(Rooms):
    """The second room has buttons of its own."""

    states = (Rooms.states[0], replace(Rooms.states[1], buttons=((), ("START", "A"))), Rooms.states[2])


def test_a_state_may_have_buttons_of_its_own() -> None:
    assert world_in(Own(), ((0, 1),)).masks == [0, LEFT, RIGHT, A, RIGHT | A]
    assert world_in(Own(), INTO_SECOND).masks == [0, 8 | A]


def test_a_foreign_savestate_is_a_problem() -> None:
    world = world_in(Rooms(), ((0, 1),))
    begun, _ = world.arrive(((0, 1),))
    for state in (pack(b"not one of this game"), pack(b"")):
        world.begin(knowledge(0), 10_000)
        with pytest.raises(Problem, match="no savestate"):
            world.go(replace(start_of(begun), state=state))
