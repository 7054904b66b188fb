"""The modes of search: each finds what it should, stops when it should, and says when nothing is left."""

import random

import pytest

from harness.errors import Problem
from retro.packages import GamePackage
from retro.search.archive import Runs
from retro.search.frontier import Frontier, spread
from retro.search.modes import Mode, load_mode, weighted
from retro.search.pool import Worker
from retro.search.settings import MODES
from retro.search.tree import Tree
from retro.search.walks import Walks
from retro.search.world import NEVER, Result
from scripted_game import Hopper, fewest_frames
from scripted_game.searching import finish, knowledge, segment, settings, start_of
from scripted_game.small import Brittle, Closed, ManyHolds, Rooms, SingleHold, Trap

INTO_LEVEL_1: Runs = ((0, 1), (8, 1))
BUILT_IN = [Walks(), Frontier(), Tree()]


def explore(
    mode: Mode, package: GamePackage, inputs: Runs = ((0, 1),), budget: int = 2_000, seed: str = "1"
) -> tuple[Result, list[int]]:
    """One piece of work from the begin of a segment."""
    world = Worker(package).world
    beginning, _ = world.arrive(inputs)
    world.begin(knowledge(beginning.segment), budget)
    exhausted = mode.explore(world, [start_of(beginning)], random.Random(seed))
    return world.result(), exhausted


@pytest.mark.parametrize("mode", BUILT_IN)
def test_a_mode_finds_cells_and_a_way_out(mode: Mode) -> None:
    result, _ = explore(mode, Rooms())
    assert {found.cell[1] for found in result.found} >= {0, 2, 4, 8}
    if not isinstance(mode, Frontier):  # which looks no further than its depth
        assert result.crossings
    assert all(found.start == 0 and found.frames > 0 for found in result.found)


@pytest.mark.parametrize("mode", BUILT_IN)
def test_a_piece_of_work_is_settled_by_its_seed(mode: Mode) -> None:
    assert explore(mode, Hopper(), INTO_LEVEL_1) == explore(mode, Hopper(), INTO_LEVEL_1)
    if not isinstance(mode, Frontier):  # which draws nothing
        assert explore(mode, Hopper(), INTO_LEVEL_1) != explore(mode, Hopper(), INTO_LEVEL_1, seed="2")


@pytest.mark.parametrize("mode", BUILT_IN)
@pytest.mark.parametrize("budget", [1, 10, 100, 1_000])
def test_a_piece_of_work_keeps_to_its_budget(mode: Mode, budget: int) -> None:
    result, _ = explore(mode, Hopper(), INTO_LEVEL_1, budget)
    longest = 2 * max(Hopper.holds) * len(Hopper.buttons) + 10
    assert result.frames <= budget + longest
    assert result.frames >= budget or isinstance(mode, Frontier)


@pytest.mark.parametrize("mode", BUILT_IN)
def test_a_mode_ends_where_every_action_ends_in_death(mode: Mode) -> None:
    result, _ = explore(mode, Trap())
    assert result.deaths > 0
    assert not result.found
    assert not result.crossings


@pytest.mark.parametrize(
    ("modes", "optimum"), [({"walks": 1}, None), ({"frontier": 1}, 10), ({"tree": 1}, None)]
)
def test_one_mode_alone_solves_a_segment(modes: dict[str, int], optimum: int | None) -> None:
    search = finish(*segment(Rooms(), told=settings(modes=modes, shave=0)))
    assert search.best is not None
    assert search.ending == "solved"
    assert 10 <= search.best <= (optimum or 12)
    assert set(search.mode_frames) == set(modes)


@pytest.mark.parametrize("mode", sorted(MODES))
def test_one_mode_alone_leaps_the_pits(mode: str) -> None:
    told = settings(modes={mode: 1}, frames=60_000, patience=60_000)
    search = finish(*segment(Hopper(), INTO_LEVEL_1, told))
    assert search.best is not None
    assert search.best >= (fewest_frames() - 2) // 2


def test_the_frontier_tries_every_action_from_each_start() -> None:
    package = Rooms()
    world = Worker(package).world
    beginning, _ = world.arrive(((0, 1),))
    actions: list[tuple[int, int]] = []
    act = world.act
    world.act = lambda mask, hold: (actions.append((mask, hold)), act(mask, hold))[1]  # type: ignore[method-assign]
    world.begin(knowledge(beginning.segment), 100_000)
    assert Frontier().explore(world, [start_of(beginning)], random.Random(1)) == [0]
    first = len(package.buttons) * len(spread(package.holds, 3))
    assert {mask for mask, _ in actions[:first]} == set(world.masks)
    assert {hold for _, hold in actions[:first]} == {1, 4, 8}
    assert len(set(actions[:first])) == first


def test_the_frontier_says_when_nothing_is_left() -> None:
    search = finish(*segment(Closed(), told=settings(modes={"frontier": 1})))
    assert search.ending == "exhausted"
    assert {cell[1] for cell in search.archive.cells} == set(range(6))
    assert all(node.expanded for node in search.archive.cells.values())
    assert search.frames < 20_000
    assert search.best is None


def test_a_trap_is_exhausted() -> None:
    search = finish(*segment(Trap()))
    assert search.ending == "exhausted"
    assert search.rounds < 10


def test_the_frontier_gets_through_a_start_that_costs_more_than_a_piece_of_work() -> None:
    search = finish(*segment(ManyHolds(), told=settings(modes={"frontier": 1}, item_frames=150)))
    assert any(node.expanded for node in search.archive.nodes.values())


def test_a_package_may_have_one_length_of_a_hold() -> None:
    told = settings(modes={"walks": 80, "tree": 20}, frames=40_000, patience=40_000)
    finish(*segment(SingleHold(), told=told))


def test_a_mode_that_plays_nothing_does_not_stop_the_others() -> None:
    modes = {"walks": 1, "scripted_game.modes:Idle": 1}
    assert finish(*segment(Rooms(), told=settings(modes=modes))).best == 10


def test_a_round_is_worth_its_while() -> None:
    """A tree that finds death everywhere is soon done; the rounds must not dwindle to a few frames each."""
    modes = {"walks": 80, "tree": 20}
    told = settings(modes=modes, frames=10**9, patience=10**9)
    search, worker = segment(Brittle(), told=told)
    for _ in range(200):
        search.round(worker)
    assert search.frames / search.rounds > told.item_frames


def test_modes_by_name() -> None:
    assert isinstance(load_mode("walks"), Walks)
    assert isinstance(load_mode("retro.search.tree:Tree"), Tree)
    for name in (
        "nothing",
        "retro.search.walks",
        "retro.search.walks:Runs_",
        "no.such:Mode",
        "",
        ":",
        "os:sep",
    ):
        with pytest.raises(Problem, match="there is no search mode") as caught:
            load_mode(name)
        assert repr(name) in str(caught.value)
        assert "walks, frontier, tree" in str(caught.value)


def test_draws_by_weight() -> None:
    search, _ = segment(Rooms())
    generator = random.Random(1)
    assert weighted(search.archive, {}, 5, generator) == []
    assert weighted(search.archive, {1: 0.0, 2: 0.0}, 5, generator) == []
    assert weighted(search.archive, {1: 0.0, 2: 1.0}, 3, generator) == [2, 2, 2]
    drawn = weighted(search.archive, {1: 1.0, 2: 3.0}, 4_000, generator)
    assert 2_850 < drawn.count(2) < 3_150


def test_no_mode_chooses_what_is_too_late() -> None:
    search, _ = segment(Rooms())
    weights = search.archive.weights(0)
    assert set(weights.values()) == {0.0}
    for mode in BUILT_IN:
        assert mode.choose(search.archive, weights, random.Random(1)) == []
        assert mode.choose(search.archive, search.archive.weights(NEVER), random.Random(1))


def test_holds_are_spread_from_the_first_to_the_last() -> None:
    assert spread((1, 2, 4, 8, 16), 3) == [1, 4, 16]
    assert spread((1, 2, 4, 8), 3)[::2] == [1, 8]
    assert spread((1, 2), 3) == [1, 2]
    assert spread((), 2) == []
