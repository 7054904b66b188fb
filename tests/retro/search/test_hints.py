"""Hints: played once from the segment's start, exactly as they are written."""

import random

from retro.packages import GamePackage
from retro.search.hints import Hints
from retro.search.pool import Worker
from retro.search.world import Result
from scripted_game.searching import knowledge, segment, settings, start_of
from scripted_game.small import LEFT, RIGHT, Blink, Hinted, Mortal, Rooms


def played(package: GamePackage, *texts: str, budget: int = 1_000) -> Result:
    package.hints = {"first": texts}  # type: ignore[misc]
    world = Worker(package).world
    beginning, _ = world.arrive(((0, 1),))
    world.begin(knowledge(0), budget)
    assert Hints().explore(world, [start_of(beginning)], random.Random(1)) == []
    return world.result()


def test_each_hint_is_played_from_the_start_and_to_its_end() -> None:
    for budget in (1, 1_000):
        result = played(Rooms(), "2:RIGHT 3", "10:RIGHT 5:LEFT", "4:RIGHT", budget=budget)
        assert {(found.cell[1], found.frames) for found in result.found} == {(x, x) for x in range(1, 10)}
        assert [(crossing.runs, crossing.frames) for crossing in result.crossings] == [(((RIGHT, 10),), 10)]


def test_a_hint_that_dies_spoils_no_other() -> None:
    result = played(Mortal(), "9:RIGHT", "2:RIGHT 2:LEFT")
    assert result.deaths == 1
    assert {found.cell[1] for found in result.found} == {0, 1, 2}


def test_a_hint_counts_the_frames_of_a_transit() -> None:
    result = played(Blink(), "4:RIGHT 3 1:RIGHT 1:LEFT 6:RIGHT")
    (crossing,) = result.crossings
    assert crossing.runs == ((RIGHT, 4), (0, 3), (RIGHT, 1), (LEFT, 1), (RIGHT, 6))


def test_a_state_without_hints_costs_nothing() -> None:
    assert played(Rooms()).frames == 0


def test_hints_are_played_in_the_first_round_only() -> None:
    search, worker = segment(Hinted(), told=settings(modes={"scripted_game.modes:Idle": 1}, shave=0))
    search.round(worker)
    assert (search.best, search.frames) == (40, 43)
    search.round(worker)
    assert search.frames == 43
