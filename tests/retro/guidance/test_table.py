"""The table of moves: it learns what pieces did, and proposes it as often as it is told to."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

from retro.guidance.table import MoveTable, Table, play, table_of
from retro.search.archive import Runs
from retro.search.pool import Worker, open_pool
from retro.search.world import World
from scripted_game import Hopper
from scripted_game.searching import HOPPER, find, knowledge, settings, start_of
from scripted_game.small import RIGHT, Rooms

A = 1
ROOMS = "scripted_game.small:Rooms"
POWER_ON: Runs = ((0, 1),)


def test_each_frame_of_a_piece_teaches_its_situation_the_move_and_what_is_left_of_it() -> None:
    world = World(Hopper())
    _, state = play(world, (b"", ((0, 1), (8, 1))))
    lessons, _ = play(world, (state, ((4, 5), (5, 2))))
    # y and airborne tell the situation; A leaps by 5 in the frame in which it is pressed on the ground.
    assert lessons == {
        ((0, 0), (4, 4)): 2,  # 5 and 4 frames are left
        ((0, 0), (4, 2)): 2,
        ((0, 0), (4, 1)): 1,
        ((0, 0), (5, 2)): 1,
        ((5, 1), (5, 1)): 1,
    }


def test_what_comes_before_the_first_state_teaches_nothing() -> None:
    lessons, state = play(World(Hopper()), (b"", ((0, 9),)))
    assert not lessons
    assert state


def test_a_table_holds_moves_that_the_state_allows() -> None:
    lessons = Counter({((0,), (4, 2)): 3, ((0,), (1, 2)): 1, ((7,), (8, 1)): 5})
    assert table_of(lessons, {4, 8}, 0.3) == MoveTable(0.3, {(0,): ([(4, 2)], [3]), (7,): ([(8, 1)], [5])})
    assert table_of(lessons, {2}, 0.3) is None


@pytest.mark.parametrize("share", [0.1, 0.3, 1.0])
def test_decisions_follow_it_as_often_as_its_share_says(share: float) -> None:
    world = World(Rooms())
    beginning, _ = world.arrive(POWER_ON)
    table = MoveTable(share, {(): ([(RIGHT, 8), (A, 1)], [3, 4])})
    world.begin(knowledge(0, guides=(table,)), 10**9)
    world.go(start_of(beginning))
    generator = random.Random(5)
    count = 4_000
    moves = Counter(world.guided(2, 4, generator) for _ in range(count))
    for move, part in (((RIGHT, 8), 0.75 * share), ((A, 1), 0.25 * share), ((2, 4), 1 - share)):
        low, high = (binom.ppf(chance, count, part) for chance in (1e-6, 1 - 1e-6))
        assert low <= moves[move] <= high


def test_an_unknown_situation_and_no_guide_leave_the_move_as_it_was() -> None:
    world = World(Rooms())
    beginning, _ = world.arrive(POWER_ON)
    for guides, draws in ((), 0), ((MoveTable(1.0, {(5,): ([(RIGHT, 8)], [1])}),), 1):
        world.begin(knowledge(0, guides=guides), 10**9)
        world.go(start_of(beginning))
        generator, other = random.Random(5), random.Random(5)
        assert world.guided(2, 4, generator) == (2, 4)
        for _ in range(draws):
            other.random()
        assert generator.getstate() == other.getstate()


def test_pieces_are_played_once_and_forgotten_with_the_route(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(Rooms())
    beginning, _ = worker.arrive(POWER_ON)
    asked: list[Any] = []
    ask = worker.ask
    monkeypatch.setattr(worker, "ask", lambda call, job: asked.append(job) or ask(call, job))
    table = Table(ROOMS, 0.3, 1, Path())
    assert table.begin(worker, beginning, [POWER_ON]) is None
    pieces: list[Runs] = [POWER_ON, ((RIGHT, 10),), ((RIGHT, 10),)]
    assert table.begin(worker, beginning, pieces[:2]) is not None
    whole = table.begin(worker, beginning, pieces)
    assert len(asked) == 3
    other = table.begin(worker, beginning, [POWER_ON, ((0, 1), (RIGHT, 10)), pieces[2]])
    assert len(asked) == 5
    assert table.begin(worker, beginning, pieces) == whole != other
    assert len(asked) == 7
    # Twice ten frames of walking right: 3 with 8 or more left, 4 with 4 to 7, 2 with 2 and 3, 1 with 1.
    assert whole == MoveTable(0.3, {(): ([(4, 1), (4, 2), (4, 4), (4, 8)], [2, 6, 14, 20])})


def test_one_seed_gives_one_result_with_any_number_of_workers(tmp_path: Path) -> None:
    told = settings(guidance={"table": 0.5}, frames=6_000, patience=3_000, shave=500, lookahead=1_000)
    routes = []
    for workers in (0, 1, 3):
        (tmp_path / str(workers)).mkdir()
        routes.append(guided(tmp_path / str(workers), told, workers))
    assert routes[0].pieces == routes[1].pieces == routes[2].pieces
    assert routes[0].pieces[-1].entered == "ending"
    (tmp_path / "none").mkdir()
    _, unguided = find(
        tmp_path / "none", told=settings(frames=6_000, patience=3_000, shave=500, lookahead=1_000)
    )
    assert unguided.pieces[-1].searched != routes[0].pieces[-1].searched


def guided(folder: Path, told: Any, workers: int) -> Any:
    from retro.search.guidance import open_guidance
    from retro.search.route import Route, RouteSearch

    route = Route(HOPPER, "a scripted game", "5" * 64, 1, told)
    with (
        open_pool(HOPPER, workers) as pool,
        open_guidance(HOPPER, told.guidance, 1, folder) as guidance,
    ):
        assert RouteSearch(folder, route, pool, replays=False, guidance=guidance).run()
    return route
