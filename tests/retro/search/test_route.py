"""A whole run: the optimum, one result whatever happens on the way, crossings that compete, improvement."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.errors import Problem
from harness.track import ROOT
from retro.inputs import format_inputs, parse_inputs
from retro.packages import load_package
from retro.replay import replay
from retro.search import route as route_module
from retro.search.pool import open_pool
from retro.search.route import Piece, Route, RouteSearch, read_route, runs_of
from retro.search.segment import SegmentSearch
from retro.search.settings import Settings
from scripted_game import BUTTONS, fastest, fewest_frames
from scripted_game.searching import HASTY, HOPPER, find, play, settings
from scripted_game.small import RIGHT, A, Detour, Lock, Shortcut

SMALL_GAMES = "scripted_game.small:"
THOROUGH = settings(frames=30_000, patience=15_000, shave=40_000)
QUICK = settings(frames=12_000, patience=4_000, shave=3_000, lookahead=1_500)


def checked(route: Route) -> list[int]:
    """The inputs of a route, after playing them frame by frame: every piece enters its state when it says."""
    package = load_package(route.package)
    inputs = route.inputs(package.console_buttons)
    assert len(inputs) == route.frames
    played = play(package, inputs)
    names = [state.name for state in package.states]
    at = 0
    for piece in route.pieces:
        at += piece.frames
        assert played.states.index(names.index(piece.entered)) == at - 1
        assert played.hashes[at - 1] == piece.ram_hash
    assert not any(played.dead)
    return inputs


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_optimum_is_found_or_improved_to(tmp_path: Path, seed: int) -> None:
    solved, route = find(tmp_path, told=THOROUGH, seed=seed)
    assert solved
    assert route.frames <= fewest_frames() + 8
    with open_pool(HOPPER, 0) as pool:
        search = RouteSearch(tmp_path, route, pool, replays=False)
        while route.frames > fewest_frames() and route.generation < 8:
            search.improve()
    assert route.frames == fewest_frames()
    checked(route)


def test_a_route_is_replayed_in_fresh_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replays = []
    replay_fresh = route_module.replay_fresh

    def watched(spec: str, inputs: Any, *rest: Any) -> Any:
        replays.append(len(inputs))
        return replay_fresh(spec, inputs, *rest)

    monkeypatch.setattr(route_module, "replay_fresh", watched)
    _, route = find(tmp_path, SMALL_GAMES + "Rooms", QUICK, replays=True)
    assert route.frames == 21
    assert replays == [11, 21]


# ---- one result whatever happens on the way ----------------------------------------------------------------


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Route:
    """What QUICK settings find where nothing happens."""
    solved, route = find(tmp_path_factory.mktemp("calm"), told=QUICK)
    assert solved
    return route


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_change_no_result(tmp_path: Path, calm: Route, workers: int) -> None:
    _, route = find(tmp_path, told=QUICK, workers=workers)
    assert route == calm


class Interrupted(Exception):
    """As if a user had pressed Ctrl-C."""


def after(rounds: int) -> Callable[[str, SegmentSearch], None]:
    """A watcher that interrupts after so many rounds."""
    left = iter(range(rounds))

    def watch(doing: str, search: SegmentSearch) -> None:
        if next(left, None) is None:
            raise Interrupted

    return watch


def with_interruptions(folder: Path, spec: str, told: Settings, seed: int) -> tuple[Route, int]:
    """A search that is interrupted again and again; the route, and how often."""
    generator, times = random.Random(seed), 0
    while True:
        try:
            return find(folder, spec, told, watch=after(generator.randrange(1, 12)))[1], times
        except Interrupted:
            times += 1
            assert times < 500


def test_interruptions_change_no_result_where_nothing_was_saved_in_between(
    tmp_path: Path, calm: Route
) -> None:
    solved, times = False, 0
    for rounds in (1, 4, 6, 9, 13, 10**6):
        try:
            solved, _ = find(tmp_path, told=QUICK, watch=after(rounds))
        except Interrupted:
            times += 1
    assert solved
    assert times >= 2
    assert read_route(tmp_path) == calm


@pytest.mark.parametrize("seed", range(3))
def test_interruptions_change_no_result(
    tmp_path: Path, calm: Route, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route_module, "SAVE_EVERY", 1)
    route, times = with_interruptions(tmp_path, HOPPER, QUICK, seed)
    assert times > 1
    assert route == calm


def test_interruptions_change_no_result_where_crossings_compete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route_module, "SAVE_EVERY", 1)
    for name in ("calm", "troubled"):
        (tmp_path / name).mkdir()
    _, calm = find(tmp_path / "calm", SMALL_GAMES + "Detour", QUICK)
    rounds = 0
    for count in (1, 3, 1, 4, 2, 5, 3, 8, 10**6):
        try:
            find(tmp_path / "troubled", SMALL_GAMES + "Detour", QUICK, watch=after(count))
        except Interrupted:
            rounds += 1
    assert rounds > 3
    assert read_route(tmp_path / "troubled").frames == calm.frames == Detour.FEWEST


MASTER = """
import os, sys
from pathlib import Path
import psutil
from retro.search.settings import Settings
from scripted_game.searching import HOPPER, find

folder, rounds, workers = Path(sys.argv[1]), iter(range(int(sys.argv[2]))), int(sys.argv[3])

def watch(doing, search):
    if next(rounds, None) is None:
        print(*(child.pid for child in psutil.Process().children()), flush=True)
        os.kill(os.getpid(), 9)

find(folder, HOPPER, Settings.read(SETTINGS), workers=workers, watch=watch)
"""


@pytest.mark.parametrize(("rounds", "workers"), [(2, 0), (7, 2)])
def test_a_master_that_is_killed_is_taken_up_again(
    tmp_path: Path, calm: Route, rounds: int, workers: int
) -> None:
    program = MASTER.replace("SETTINGS", repr(asdict(QUICK)))
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), str(rounds), str(workers)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    left = [int(pid) for pid in done.stdout.split()]
    assert len(left) >= workers
    for _ in range(200):
        left = [pid for pid in left if psutil.pid_exists(pid)]
        if not left:
            break
        time.sleep(0.05)
    assert not left, "workers end with their master"
    assert read_route(tmp_path).pieces, "what was found before is there"
    solved, route = find(tmp_path, told=QUICK)
    assert solved
    assert route == calm


def test_a_search_stops_at_a_state_and_goes_on(tmp_path: Path, calm: Route) -> None:
    solved, route = find(tmp_path, told=QUICK, until=2)
    assert solved
    assert route.pieces[:2] == calm.pieces[:2]
    assert [piece.entered for piece in route.pieces] == ["title", "level-1", "level-2"]
    solved, route = find(tmp_path, told=QUICK, until=1)
    assert solved
    assert len(route.pieces) == 3
    solved, route = find(tmp_path, told=QUICK)
    assert solved
    assert [piece.entered for piece in route.pieces] == ["title", "level-1", "level-2", "ending"]
    checked(route)


def test_more_frames_let_a_search_go_on_that_was_cut_off(tmp_path: Path) -> None:
    find(tmp_path, until=1)
    solved, route = find(tmp_path, told=HASTY)
    assert not solved
    assert route.pieces[-1].entered == "level-1"
    solved, again = find(tmp_path, told=HASTY)
    assert (solved, again.pieces) == (False, route.pieces)
    solved, route = find(tmp_path, told=settings())
    assert solved
    assert route.settings == settings()
    assert route.pieces[2].searched > 20_000
    checked(route)


def test_settings_may_change_in_the_middle_of_a_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route_module, "SAVE_EVERY", 1)
    for modes, cells in (({"walks": 1}, 200), ({"tree": 1}, 4_000), ({"frontier": 1, "walks": 1}, 100)):
        with pytest.raises(Interrupted):
            find(tmp_path, told=settings(modes=modes, cells=cells), watch=after(7))
    solved, route = find(tmp_path)
    assert solved
    checked(route)


def test_a_segment_file_that_is_damaged_is_named(tmp_path: Path, calm: Route) -> None:
    with pytest.raises(Interrupted):
        find(tmp_path, told=QUICK, watch=after(9))
    path = tmp_path / "segment.npz"
    path.write_bytes(b"damaged")
    with pytest.raises(Problem, match="cut short or corrupt") as caught:
        find(tmp_path, told=QUICK)
    assert str(path) in str(caught.value)
    path.unlink()
    solved, route = find(tmp_path, told=QUICK)
    assert solved
    assert route == calm


# ---- crossings that compete --------------------------------------------------------------------------------


def test_the_crossing_is_chosen_whose_next_segment_is_fast(tmp_path: Path) -> None:
    solved, route = find(tmp_path, SMALL_GAMES + "Detour", QUICK)
    assert solved
    assert [piece.frames for piece in route.pieces] == [1, 12, 10]
    assert route.frames == Detour.FEWEST
    checked(route)


def test_without_a_look_ahead_the_fastest_crossing_is_taken(tmp_path: Path) -> None:
    for place, told in enumerate((replace(QUICK, lookahead=0), replace(QUICK, crossings=1))):
        folder = tmp_path / str(place)
        folder.mkdir()
        _, route = find(folder, SMALL_GAMES + "Detour", told)
        assert [piece.frames for piece in route.pieces] == [1, 10, 20]


def test_what_was_looked_at_ahead_is_gone_on_with(tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []
    find(
        tmp_path,
        SMALL_GAMES + "Detour",
        QUICK,
        watch=lambda doing, search: seen.append((doing, search.frames)),
    )
    ahead = [frames for doing, frames in seen if doing == "look ahead"]
    last = max(place for place, (doing, _) in enumerate(seen) if doing == "look ahead")
    assert len(ahead) >= 3
    doing, frames = seen[last + 1]
    assert doing == "search"
    assert frames > QUICK.lookahead


def test_a_crossing_that_ends_the_run_wins_over_one_that_does_not(tmp_path: Path) -> None:
    solved, route = find(tmp_path, SMALL_GAMES + "Shortcut", QUICK)
    assert solved
    assert route.frames == Shortcut.FEWEST


# ---- what does not replay ----------------------------------------------------------------------------------


def test_a_segment_that_does_not_replay_is_searched_again_and_then_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = settings(frames=1_000, patience=500, shave=0)
    with pytest.raises(
        Problem, match="first does not replay from power-on: state second is entered"
    ) as caught:
        find(tmp_path, SMALL_GAMES + "Forgetful", told, replays=True)
    assert "python -m retro.run check scripted_game.small:Forgetful" in str(caught.value)
    assert capsys.readouterr().out.count("it is searched again") == 3
    assert [piece.entered for piece in read_route(tmp_path).pieces] == ["first"]


def test_a_flicker_does_not_spoil_a_run(tmp_path: Path) -> None:
    told = settings(patience=1_000, shave=0, modes={"scripted_game.modes:HoldsBoth": 1, "walks": 1})
    solved, route = find(tmp_path, SMALL_GAMES + "Flicker", told, replays=True)
    assert solved
    checked(route)


def test_a_route_of_another_game_is_a_problem(tmp_path: Path) -> None:
    find(tmp_path, SMALL_GAMES + "Rooms", QUICK)
    table = json.loads((tmp_path / "route.json").read_text())
    table["package"] = SMALL_GAMES + "Closed"
    (tmp_path / "route.json").write_text(json.dumps(table))
    with pytest.raises(Problem, match=r"does not begin as it did|no state holds"):
        find(tmp_path, told=QUICK)


# ---- improvement -------------------------------------------------------------------------------------------


def route_of(spec: str, *pieces: tuple[str, str, list[int]]) -> Route:
    """A route of inputs, as if a search had found it."""
    route = Route(spec, "a scripted game", "5" * 64, 1, QUICK)
    done: list[int] = []
    for state, entered, inputs in pieces:
        done += inputs
        ram_hash = play(load_package(spec), done).hashes[-1]
        text = format_inputs(inputs, BUTTONS)
        counts = dict.fromkeys(("searched", "rounds", "cells", "dropped", "deaths"), 0)
        route.pieces.append(
            Piece(state, entered, text, len(inputs), ram_hash, "solved", len(inputs), **counts)
        )
    checked(route)
    return route


def improved(folder: Path, route: Route, told: Settings = QUICK, passes: int = 1) -> list[int]:
    """What each pass saves."""
    route.settings = told
    route.save(folder)
    with open_pool(route.package, 0) as pool:
        search = RouteSearch(folder, read_route(folder), pool)
        return [search.improve() for _ in range(passes)]


def rooms(*first: tuple[int, int]) -> list[int]:
    return [mask for mask, frames in first for _ in range(frames)]


START = ("power-on", "first", [0])


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Replays need no process of their own, but for one test: nothing here keeps anything between runs."""
    if "fresh_processes" not in request.node.name:
        monkeypatch.setattr(
            route_module, "replay_fresh", lambda spec, inputs: replay(load_package(spec), inputs)
        )


def test_improve_shortens_a_slow_route_and_keeps_what_follows(tmp_path: Path) -> None:
    slow = [0] * 12
    ending = [0] * 6
    route = route_of(
        HOPPER,
        ("power-on", "title", [0]),
        ("title", "level-1", [0, 0, 8]),
        ("level-1", "level-2", [*slow, *fastest(1), *ending]),
        ("level-2", "ending", [*fastest(2), *ending]),
    )
    assert route.frames == fewest_frames() + 2 + 12
    saved = improved(tmp_path, route, THOROUGH)
    again = read_route(tmp_path)
    assert saved == [14]
    assert again.frames == fewest_frames()
    assert again.generation == 1
    assert again.pieces[-1].inputs == route.pieces[-1].inputs
    checked(again)


def test_improve_never_loses(tmp_path: Path) -> None:
    ending = [0] * 6
    route = route_of(
        HOPPER,
        ("power-on", "title", [0]),
        ("title", "level-1", [8]),
        ("level-1", "level-2", [*fastest(1), *ending]),
        ("level-2", "ending", [*fastest(2), *ending]),
    )
    assert improved(tmp_path, route, passes=2) == [0, 0]
    again = read_route(tmp_path)
    assert again.pieces == route.pieces


def test_improve_keeps_the_route_where_what_is_gained_is_lost_again(tmp_path: Path) -> None:
    """The gate opens at frame 64, whenever one comes to it."""
    spec = SMALL_GAMES + "SlowGate"
    route = route_of(
        spec, START, ("first", "second", rooms((0, 5), (RIGHT, 10))), ("second", "ending", [RIGHT] * 48)
    )
    assert improved(tmp_path, route) == [0]
    assert read_route(tmp_path).pieces == route.pieces


def test_improve_finds_what_follows_anew_where_it_does_not_fit(tmp_path: Path) -> None:
    """The gate opens every 4 frames; of 6 frames that are gained in the first room, 4 stay."""
    spec = SMALL_GAMES + "Gate"
    route = route_of(
        spec, START, ("first", "second", rooms((0, 6), (RIGHT, 10))), ("second", "ending", [RIGHT] * 11)
    )
    assert route.frames == 28
    assert improved(tmp_path, route) == [4]
    again = read_route(tmp_path)
    assert again.frames == 24
    checked(again)


def test_improve_keeps_the_route_where_what_follows_is_not_found(tmp_path: Path) -> None:
    spec = SMALL_GAMES + "Lock"
    first = rooms((0, 6), (RIGHT, 10))
    route = route_of(spec, START, ("first", "second", first), ("second", "ending", Lock.key(1 + len(first))))
    assert improved(tmp_path, route) == [0]
    assert read_route(tmp_path).pieces == route.pieces


def test_improve_passes_over_what_does_not_replay(tmp_path: Path) -> None:
    spec = SMALL_GAMES + "Leaky"
    route = route_of(
        spec, START, ("first", "second", rooms((A, 4), (RIGHT, 10))), ("second", "ending", [RIGHT] * 10)
    )
    assert improved(tmp_path, route) == [0]
    assert read_route(tmp_path).pieces == route.pieces


def test_improve_takes_a_way_past_what_follows(tmp_path: Path) -> None:
    spec = SMALL_GAMES + "Shortcut"
    route = route_of(spec, START, ("first", "second", [RIGHT] * 10), ("second", "ending", [RIGHT] * 40))
    assert improved(tmp_path, route) == [route.frames - Shortcut.FEWEST]
    checked(read_route(tmp_path))


def test_improve_through_a_state_that_was_passed_by_goes_on_to_the_ending(tmp_path: Path) -> None:
    """Into the second room it is half as far as past it, and slower on the whole."""
    spec = SMALL_GAMES + "Slowcut"
    past = rooms((RIGHT, 8), (A, 1), (0, 12))
    route = route_of(spec, START, ("first", "ending", past))
    assert improved(tmp_path, route) == [0]
    assert read_route(tmp_path).pieces == route.pieces
    late = route_of(spec, START, ("first", "ending", [0] * 12 + past))
    assert improved(tmp_path, late) == [late.frames - (1 + 10 + 20)]
    again = read_route(tmp_path)
    assert [piece.entered for piece in again.pieces] == ["first", "second", "ending"]
    checked(again)


def test_improve_counts_its_passes_so_that_each_has_seeds_of_its_own(tmp_path: Path) -> None:
    spec = SMALL_GAMES + "Rooms"
    route = route_of(spec, START, ("first", "second", [RIGHT] * 10), ("second", "ending", [RIGHT] * 10))
    route.save(tmp_path)
    seeds: list[str] = []
    with open_pool(spec, 0) as pool:
        search = RouteSearch(tmp_path, route, pool, lambda doing, search: seeds.append(search.seed))
        search.improve()
        first = set(seeds)
        seeds.clear()
        search.improve()
    assert len(first) == 2
    assert not first & set(seeds)


def test_improve_begun_again_draws_other_seeds(tmp_path: Path) -> None:
    spec = SMALL_GAMES + "Rooms"
    route = route_of(spec, START, ("first", "second", [RIGHT] * 10), ("second", "ending", [RIGHT] * 10))
    assert improved(tmp_path, route) == [0]
    assert read_route(tmp_path).generation == 1


# ---- the file ----------------------------------------------------------------------------------------------


def test_a_route_comes_back_equal(tmp_path: Path, calm: Route) -> None:
    calm.save(tmp_path)
    assert read_route(tmp_path) == calm
    text = (tmp_path / "route.json").read_text()
    read_route(tmp_path).save(tmp_path)
    assert (tmp_path / "route.json").read_text() == text


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "null", "{}", "\xff", "1", '{"settings": null}'),
        '{"settings": {}}',
    ],
)
def test_a_malformed_route_is_a_problem_that_names_the_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "route.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(Problem) as caught:
        read_route(tmp_path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "value"),
    [
        *(("pieces", [3]), ("frames", 3)),
        pytest.param("settings.frames", -1),
        pytest.param("piece.inputs", "3:"),
        pytest.param("piece.inputs", "3:JUMP"),
        pytest.param("piece.inputs", 3),
        pytest.param("piece.frames", "ten"),
        pytest.param("piece.entered", "no such state"),
        pytest.param("pieces", {}),
        pytest.param("generation", None),
        pytest.param("package", 3),
        pytest.param("seed", "one"),
    ],
)
def test_a_route_with_a_malformed_field_is_a_problem_that_names_the_file(
    tmp_path: Path, calm: Route, change: str, value: object
) -> None:
    calm.save(tmp_path)
    path = tmp_path / "route.json"
    table = json.loads(path.read_text())
    where, _, key = change.rpartition(".")
    target = {"": table, "piece": table["pieces"][1], "settings": table["settings"]}[where]
    target[key] = value
    path.write_text(json.dumps(table))
    with pytest.raises(Problem) as caught:
        find(tmp_path, told=QUICK)
    assert str(path) in str(caught.value)


def test_a_folder_without_a_route_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="holds no search"):
        read_route(tmp_path)


def test_inputs_as_runs() -> None:
    assert runs_of([]) == ()
    assert runs_of([0, 0, 4, 5, 5, 5]) == ((0, 2), (4, 1), (5, 3))
    assert parse_inputs("", BUTTONS) == []
