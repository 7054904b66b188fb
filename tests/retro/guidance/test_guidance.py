"""Guidance in a search: which sources there are, what they are told, and that a search follows them."""

from pathlib import Path

import pytest

from harness.errors import Problem
from retro.search.guidance import load_source, open_guidance
from retro.search.pool import Item, News, Worker, open_pool
from retro.search.route import Route, RouteSearch
from retro.search.segment import HINTS, SegmentSearch
from retro.search.settings import SOURCES
from retro.search.world import World
from scripted_game import Hopper
from scripted_game.guiding import Insists, Knows
from scripted_game.searching import HOPPER, knowledge, settings, start_of

KNOWS = "scripted_game.guiding:Knows"


def test_no_share_is_no_guidance(tmp_path: Path) -> None:
    for shares in ({}, {"table": 0.0, "policy": 0}):
        with open_guidance(HOPPER, shares, 1, tmp_path) as guidance:
            assert guidance is None


@pytest.mark.parametrize("name", ["tables", "no.module:Class", "retro.guidance.table:Chair", "", ":"])
def test_an_unknown_source_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(Problem) as caught, open_guidance(HOPPER, {name: 0.5}, 1, tmp_path):
        pass
    assert caught.value.reason.startswith(f"there is no guidance {name!r}: ")
    assert caught.value.remedy == "use table, policy, or module:Class of your own"


def test_settings_that_ask_for_it_need_it(tmp_path: Path) -> None:
    route = Route(HOPPER, "a scripted game", "5" * 64, 1, settings(guidance={"table": 0.3}))
    with open_pool(HOPPER, 0) as pool, pytest.raises(Problem, match="the settings ask for guidance"):
        RouteSearch(tmp_path, route, pool)


def test_a_search_is_told_ways_out_and_newer_guides(tmp_path: Path) -> None:
    worker = Worker(Hopper())
    beginning, _ = worker.arrive(((0, 1),))
    search = SegmentSearch(beginning, settings(items=1), "1")
    with open_guidance(HOPPER, {KNOWS: 0.5}, 1, tmp_path) as guidance:
        assert guidance is not None
        (source,) = guidance._sources.values()
        assert isinstance(source, Knows)
        search.open(worker, guidance, [((0, 1),)])
        assert source.pieces == [((0, 1),)]
        assert worker.knowledge.guides == ()
        search.round(worker)
        assert search.best == 1
        assert worker.knowledge.guides == ()
        search.round(worker)
        assert worker.knowledge.guides == (Insists(0.5, (8, 1)),)
        search.round(worker)
        assert worker.knowledge.guides == (Insists(0.5, (8, 1)),)
        assert not source.closed
    assert source.closed


def test_inputs_that_are_told_are_played_in_place_of_the_hints() -> None:
    worker = Worker(Hopper())
    beginning, _ = worker.arrive(((0, 1),))
    worker.open(knowledge(0))
    (done,) = worker.do([Item(HINTS, [start_of(beginning)], "", 100, ((0, 5), (8, 2)))])
    (crossing,) = done.result.crossings
    assert crossing.frames == 6


@pytest.mark.parametrize("mode", ["walks", "tree"])
def test_walks_and_rollouts_do_nothing_but_follow_a_guide_with_all_decisions(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(Hopper())
    beginning, _ = worker.arrive(((0, 1), (8, 1)))
    worker.open(knowledge(1, guides=(Insists(1.0, (4, 3)),)))
    moves: list[tuple[int, int]] = []
    act = World.act
    monkeypatch.setattr(
        World, "act", lambda self, mask, hold: moves.append((mask, hold)) or act(self, mask, hold)
    )
    worker.do([Item(mode, [start_of(beginning)], "3", 400)])
    own = sum(move != (4, 3) for move in moves)
    assert own == 0 if mode == "walks" else 0 < own < len(moves) / 2


def test_news_leave_guides_as_they_were_or_replace_them() -> None:
    known = knowledge(0, guides=(Insists(0.1, (1, 1)),))
    News({}, [], set(), 9, 0).tell(known)
    assert known.guides == (Insists(0.1, (1, 1)),)
    News({}, [], set(), 9, 0, ()).tell(known)
    assert known.guides == ()


def test_the_sources_of_the_engine_are_there() -> None:
    for name in SOURCES:
        assert callable(load_source(name))
