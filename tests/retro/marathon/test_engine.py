"""Marathons of scripted games: to the optimum, through kills and stuck states, with practice."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from harness.errors import Problem
from harness.files import read_jsonl
from retro.inputs import format_inputs, parse_inputs
from retro.marathon import engine, searches
from retro.marathon.journal import Journal
from retro.marathon.machine import Left, Nothing, Rules, Standing, begin, step
from retro.marathon.memory import Memory
from retro.marathon.practice import Practice
from retro.marathon.rival import Rival
from retro.marathon.store import MARATHON, Saved, open_saved
from retro.packages import load_package
from retro.search.pool import open_pool
from retro.search.route import Piece, read_route, runs_of
from retro.search.segment import SegmentSearch
from scripted_game import BUTTONS, HOPPER_INPUTS, fewest_frames
from scripted_game.marathons import QUICK, config, run, without_a_console
from scripted_game.searching import HASTY, HOPPER, finish, masks_of, play, segment
from scripted_game.small import Gate

SMALL_GAMES = "scripted_game.small:"


@pytest.fixture(autouse=True)
def movies(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, int]]:
    return without_a_console(monkeypatch)


def events(folder: Path) -> list[str]:
    return [line["event"] for _, line in read_jsonl(folder / "journal.jsonl")]


def checked(saved: Saved) -> None:
    """Every piece of the route enters its state when it says, frame by frame from power-on."""
    package = load_package(saved.route.package)
    played = play(package, saved.route.inputs(package.console_buttons))
    names, at = [state.name for state in package.states], 0
    for piece in saved.route.pieces:
        at += piece.frames
        assert played.hashes[at - 1] == piece.ram_hash
        if piece.state != piece.entered:
            assert played.states.index(names.index(piece.entered)) == at - 1
    assert not any(played.dead)


class Killed(Exception):
    """As if the process had been killed."""


def after(rounds: int) -> Callable[[str, SegmentSearch], None]:
    left = iter(range(rounds))

    def watch(doing: str, search: SegmentSearch) -> None:
        if next(left, None) is None:
            raise Killed

    return watch


def test_it_goes_from_power_on_to_the_ending_and_on_to_the_optimum(
    tmp_path: Path, movies: list[tuple[Path, int]]
) -> None:
    saved = run(tmp_path, HOPPER, config(), frames=60_000)
    checked(saved)
    while saved.route.frames > fewest_frames() and saved.tally.emulated < 1_500_000:
        saved = run(tmp_path, HOPPER, config(), frames=100_000)
    assert saved.route.frames == fewest_frames()
    checked(saved)
    assert movies[-1] == (tmp_path / "movie.bk2", fewest_frames())
    told = events(tmp_path)
    assert told[:5] == ["begun", "piece", "piece", "ending", *told[4:5]]
    assert told.count("begun") == told.count("stopped") == saved.tally.starts
    lengths = [frames for _, frames in movies]
    assert lengths[3:] == sorted(lengths[3:], reverse=True)


def test_killed_after_any_round_it_goes_on_and_never_gets_worse(tmp_path: Path) -> None:
    generator, frames, reached = random.Random(1), 1 << 30, 0
    for _ in range(30):
        with pytest.raises(Killed):
            run(tmp_path, HOPPER, config(), watch=after(generator.randrange(1, 25)))
        saved = json.loads((tmp_path / MARATHON).read_text())
        states, now = saved["best"]
        assert (states, -now) >= (reached, -frames)
        reached, frames = states, now
        assert not list(tmp_path.glob("*.partial"))
        assert len(list((tmp_path / "searches").glob("*.npz"))) <= 2
    saved = run(tmp_path, HOPPER, config(), frames=20_000)
    checked(saved)
    assert saved.standing is not None and saved.standing.ended
    assert saved.route.frames <= frames
    assert saved.route.frames <= fewest_frames() + 6


@pytest.mark.parametrize("moment", ["save", "flush", "write_movie", "_learn", "_left", "_fault"])
def test_killed_between_two_files_it_goes_on(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after each of the steps by which a piece gets to the disk."""
    target = {"save": Saved, "flush": Journal}.get(moment, engine.Marathon)
    holder = engine if moment == "write_movie" else target
    done = getattr(holder, moment)
    for late in (False, True):
        for number in (1, 2, 4, 7):
            calls = iter(range(number))

            def killing(*values: Any, late: bool = late, calls: Iterator[int] = calls) -> Any:
                last = next(calls, None) is None
                if last and not late:
                    raise Killed
                answer = done(*values)
                if last:
                    raise Killed
                return answer

            with monkeypatch.context() as patch:
                patch.setattr(holder, moment, killing)
                with suppress(Killed):
                    run(tmp_path, HOPPER, config(), frames=30_000)
    saved = run(tmp_path, HOPPER, config(), frames=10_000)
    checked(saved)
    assert saved.standing is not None and saved.standing.ended
    movie = (tmp_path / "movie.bk2").read_text()
    assert list(map(int, movie.split())) == saved.route.inputs(BUTTONS)
    lines = [line for _, line in read_jsonl(tmp_path / "journal.jsonl")]
    assert [line["state"] for line in lines if line["event"] in ("piece", "ending")] == [
        "title",
        "level-1",
        "level-2",
    ], "no milestone is lost or told twice"
    assert read_route(tmp_path) == saved.route


def test_ctrl_c_is_told_and_gone_on_from(tmp_path: Path) -> None:
    def press(doing: str, search: SegmentSearch) -> None:
        if search.rounds == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, HOPPER, config(), watch=press)
    assert events(tmp_path) == ["begun", "stopped"]
    assert (tmp_path / "searches" / "1.npz").exists()
    rounds = []
    run(tmp_path, HOPPER, config(), frames=1, watch=lambda doing, search: rounds.append(search.rounds))
    assert rounds[0] == 2


@pytest.mark.parametrize("cut", [0, 5])
def test_ctrl_c_while_the_journal_is_written_tells_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    """The first line is there, or but for its last characters."""
    flush, calls = Journal.flush, iter(range(1))

    def pressed(journal: Journal) -> None:
        lines = list(journal.unwritten)
        flush(journal)
        if next(calls, None) is not None:
            path = tmp_path / "journal.jsonl"
            path.write_bytes(path.read_bytes()[: -cut or None])
            journal.unwritten = lines
            raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "flush", pressed)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, HOPPER, config())
    assert events(tmp_path) == ["begun", "stopped"]


def test_a_state_that_is_too_hard_is_marked_stuck_barred_and_practised(tmp_path: Path) -> None:
    """HASTY gives a search one round of ten frames; doubling it four times is enough in the end."""
    told = config(HASTY, rules=Rules(doublings=14, practice=2))
    saved = run(tmp_path, HOPPER, told, frames=60_000)
    seen = set(events(tmp_path))
    assert {"checkpoint", "stuck", "back", "barred"} <= seen
    assert saved.tally.checkpoints and saved.tally.stuck
    checked(saved)


def test_killed_while_it_is_stuck_it_goes_on_where_it_stood(tmp_path: Path) -> None:
    told = config(replace(HASTY, shave=0), rules=Rules(doublings=14, practice=2))
    generator = random.Random(2)
    for _ in range(25):
        with suppress(Killed):
            run(tmp_path, HOPPER, told, frames=20_000, watch=after(generator.randrange(1, 20)))
        checked(open_saved(tmp_path, HOPPER, load_package(HOPPER), told))
    assert {"checkpoint", "stuck", "back", "barred"} <= set(events(tmp_path))


def test_what_failed_and_was_marked_and_barred_is_known_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed again and again; the next start begins with the very search, which knows what is barred."""
    told = config(replace(HASTY, shave=0), rules=Rules(doublings=14, practice=2))
    search, began, left = engine.Marathon.search, dict[int, Standing](), list[Standing]()

    def standing() -> Standing:
        found = open_saved(tmp_path, HOPPER, load_package(HOPPER), told).standing
        assert found is not None
        return found

    def searched(marathon: engine.Marathon) -> Any:
        assert marathon.standing == standing(), "it is on disk before it is searched"
        began.setdefault(marathon.saved.tally.starts, marathon.standing)
        return search(marathon)

    def watch(doing: str, found: SegmentSearch) -> None:
        now = standing()
        if now.kind == "run":
            assert found.barred == {way for ways in now.barred.values() for way in ways}
        stop(doing, found)

    monkeypatch.setattr(engine.Marathon, "search", searched)
    for _ in range(40):
        stop = after(3)
        with pytest.raises(Killed):
            run(tmp_path, HOPPER, told, watch=watch)
        left.append(standing())
    assert list(began.values())[1:] == left[:-1]
    assert {1, 2} <= {count for now in left for count in now.failures.values()}
    assert any(now.checkpoints for now in left)
    assert any(now.barred for now in left)
    assert any(now.searches for now in left)


def test_a_practised_way_is_brought_into_the_run(tmp_path: Path) -> None:
    saved = run(tmp_path, HOPPER, config(), frames=300_000)
    assert "practised" in events(tmp_path)
    assert [practice.state for practice in saved.practice] == ["level-1", "level-2"]
    package = load_package(HOPPER)
    for practice in saved.practice:
        prefix = parse_inputs(practice.inputs, BUTTONS)
        if practice.way:
            played = play(package, prefix[:-1] + parse_inputs(practice.way, BUTTONS))
            assert package.states[played.states[-1]].name == practice.entered


def test_a_level_that_was_passed_by_is_practised_once_the_run_leads_through_it(tmp_path: Path) -> None:
    """The run leads past the second room, and waits before; through it is faster then."""
    spec, past = SMALL_GAMES + "Slowcut", [0] * 12 + [4] * 8 + [1] + [0] * 12
    package = load_package(spec)
    hashes = play(package, [0, *past]).hashes
    saved = open_saved(tmp_path, spec, package, config())
    for state, entered, inputs, ram_hash in (
        ("power-on", "first", [0], hashes[0]),
        ("first", "ending", past, hashes[-1]),
    ):
        counts = (len(inputs), 0, 0, 0, 0, 0)
        text = format_inputs(inputs, BUTTONS)
        saved.route.pieces.append(Piece(state, entered, text, len(inputs), ram_hash, "solved", *counts))
    left = Left("ending", hashes[-1], True)
    saved.standing, _ = step(begin("first", hashes[0]), left, config().rules)
    saved.save(tmp_path)
    saved = run(tmp_path, spec, config(), frames=20_000)
    checked(saved)
    assert [piece.entered for piece in saved.route.pieces] == ["first", "second", "ending"]
    assert saved.route.frames == 1 + 10 + 20
    (practice,) = saved.practice
    assert (practice.state, parse_inputs(practice.inputs, BUTTONS)) == (
        "second",
        saved.route.inputs(BUTTONS)[:11],
    )
    assert saved.standing is not None and saved.standing.known == ("second",)


def test_a_retry_has_twice_the_frames_of_the_try_before(tmp_path: Path) -> None:
    """Nothing leads out of the first state: 200 frames, then 400 and 800 more, over restarts."""
    told = config(replace(HASTY, frames=200), rules=Rules(doublings=14, practice=0))
    spent: dict[int, int] = {}

    def watch(doing: str, search: SegmentSearch) -> None:
        spent[search.settings.frames] = search.frames
        if search.rounds % 7 == 3:
            raise Killed

    while len(spent) < 4:
        with suppress(Killed):
            run(tmp_path, SMALL_GAMES + "Wall", told, watch=watch)
    first, second, third = list(spent.values())[:3]
    for frames, budget in ((first, 200), (second - first, 400), (third - second, 800)):
        assert budget <= frames < budget + 50


def test_a_state_that_is_left_in_its_first_frame_takes_next_to_nothing_of_the_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hopper's title is left by START in the first frame; its levels take all that they are given."""
    spent: dict[str, list[int]] = {}
    work = engine.Marathon._work

    def counted(marathon: engine.Marathon, search: SegmentSearch) -> None:
        kind, state, before = marathon.standing.kind, marathon.standing.state, search.frames
        work(marathon, search)
        spent.setdefault(f"{kind} {state}", []).append(search.frames - before)

    monkeypatch.setattr(engine.Marathon, "_work", counted)
    saved = run(tmp_path, HOPPER, config(), frames=250_000)
    checked(saved)
    most = (QUICK.items + 1) * (QUICK.item_frames + 50)  # a round, and the shaving and the hints in it
    assert len(spent["improve title"]) >= 3
    assert all(frames <= 2 * most for frames in spent["improve title"])
    assert min(spent["improve level-1"]) >= QUICK.patience


def test_a_search_that_leaves_in_the_first_frame_is_done_once_all_was_tried_there() -> None:
    search, worker = segment(load_package(HOPPER), told=QUICK)
    assert not searches._least(search)
    while not search.archive.nodes[0].expanded:
        search.round(worker)
    assert (search.best, search.transit) == (1, 0)
    assert searches._least(search)
    search.transit, (only,) = 2, search.solutions
    search.solutions = [replace(only, frames=3)]  # through two frames in which no state holds
    assert searches._least(search)
    search.solutions = [replace(only, frames=4)]
    assert not searches._least(search), "it waits for a frame, or a shorter way between the states is known"
    search.solutions, search.crossed = [replace(only, frames=1)], False
    assert not searches._least(search), "nothing was found here"


def test_what_follows_is_looked_for_among_several_crossings_before_the_ending_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent: list[int] = []
    work = engine.Marathon._work

    def counted(marathon: engine.Marathon, search: SegmentSearch) -> None:
        work(marathon, search)
        spent.append(search.frames)
        raise Killed

    monkeypatch.setattr(engine.Marathon, "_work", counted)
    with pytest.raises(Killed):
        run(tmp_path, HOPPER, config())
    assert spent[0] >= QUICK.patience


def test_where_arrivals_differ_a_replay_decides(tmp_path: Path) -> None:
    """The gate opens every 4 frames since power-on, so what practice finds fits at one arrival in four."""
    saved = run(tmp_path, SMALL_GAMES + "Gate", config(), frames=60_000)
    checked(saved)
    fewest = -(-21 // Gate.PERIOD) * Gate.PERIOD
    assert saved.route.frames == fewest


def test_crossings_in_a_barred_way_do_not_count() -> None:
    package = load_package(SMALL_GAMES + "Detour")
    search, worker = segment(package, told=QUICK)
    fastest = finish(search, worker).solutions[0]
    barred, worker = segment(package, told=QUICK)
    barred.barred = frozenset([fastest.into.ram_hash])
    found = finish(barred, worker).solutions
    assert found
    assert fastest.into.ram_hash not in [solution.into.ram_hash for solution in found]
    assert found[0].frames > fastest.frames


def test_hints_of_the_package_are_played_in_practice_too_after_the_frame_that_enters_the_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[list[int]] = []

    def work(marathon: engine.Marathon, search: SegmentSearch) -> None:
        given.extend(masks_of(runs) for runs in marathon._hints)

    monkeypatch.setattr(engine.Marathon, "_work", work)
    saved = open_saved(tmp_path, HOPPER, load_package(HOPPER), config())
    saved.practice = [Practice("level-1", format_inputs([0, 8], BUTTONS))]
    saved.standing = replace(begin("title", "a"), kind="practice", state="level-1", known=("level-1",))
    with open_pool(HOPPER, 0) as pool:
        marathon = engine.Marathon(tmp_path, saved, pool, config(), None)
        marathon.package.hints = {"level-1": (format_inputs([4, 4, 5], BUTTONS),)}
        assert marathon.search() == [Nothing(False)]
    assert given == [[8, 4, 4, 5]]


def test_a_rivals_ways_are_remembered_and_its_splits_are_told_in_a_marathon_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Rival | None] = []
    monkeypatch.setattr(engine, "splits_table", lambda path, package, pieces, rival: told.append(rival))
    run(tmp_path, HOPPER, config(), frames=100)
    assert told == [None]
    package, rival = load_package(HOPPER), Rival(tuple(HOPPER_INPUTS), {})
    saved = open_saved(tmp_path, HOPPER, package, config())
    with open_pool(HOPPER, 0) as pool:
        engine.Marathon(tmp_path, saved, pool, config(), None, rival=rival).go(frames=1)
        assert told == [None, rival]
        remembered = Memory(tmp_path, package.source_sha256)
        seeded = Memory(tmp_path / "none", package.source_sha256)
        assert seeded.learn(pool, runs_of(HOPPER_INPUTS)) > 10
    assert seeded.frames.items() <= remembered.frames.items()


def test_a_live_view_is_told_which_search_of_a_turn_is_at_work_and_of_the_end(tmp_path: Path) -> None:
    class Publisher:
        told: ClassVar[list[tuple[str, int, str]]] = []

        def update(self, doing: str, *rest: Any) -> None:
            *_, journal, attempt = rest
            self.told.append((doing, attempt, journal[-1]["event"]))

    package, told = load_package(HOPPER), config()
    saved = open_saved(tmp_path, HOPPER, package, told)
    with open_pool(HOPPER, 0) as pool:
        engine.Marathon(tmp_path, saved, pool, told, None, cast(Any, Publisher())).go(frames=60_000)
    assert Publisher.told[0] == ("search", 0, "begun")
    assert {attempt for _, attempt, _ in Publisher.told} == {0, 1, 2}
    assert Publisher.told[-1][::2] == ("idle", "stopped")


@pytest.mark.parametrize("strength", [0.0, 4.0])
def test_searches_weigh_cells_by_route_memory_as_much_as_is_told(tmp_path: Path, strength: float) -> None:
    weighed: dict[int, float] = {}

    def watch(doing: str, search: SegmentSearch) -> None:
        segment, near = search.beginning.segment, search.archive.near
        assert all(cell[0] == segment for cell in near)
        weighed[segment] = max(weighed.get(segment, 0.0), *near.values(), 0.0)

    run(tmp_path, HOPPER, config(memory=strength), frames=60_000, watch=watch)
    package = load_package(HOPPER)
    remembered = Memory(tmp_path, package.source_sha256)
    assert {cell[0] for cell in remembered.frames} == {0, 1, 2}
    most = max(weighed.values())  # of a cell at the exit, but for the frames between two levels
    assert 4 < most <= 5 if strength else most == 0


def test_another_marathon_in_the_folder_is_a_problem(tmp_path: Path) -> None:
    run(tmp_path, SMALL_GAMES + "Rooms", config(), frames=2_000)
    with pytest.raises(Problem, match="holds a marathon whose seed is 1, not 2"):
        run(tmp_path, SMALL_GAMES + "Rooms", config(seed=2), frames=1)
    with pytest.raises(Problem, match="holds a marathon whose game"):
        run(tmp_path, HOPPER, config(), frames=1)
    (tmp_path / MARATHON).write_text("{}")
    with pytest.raises(Problem, match="no marathon: route: Field required"):
        run(tmp_path, SMALL_GAMES + "Rooms", config(), frames=1)


def test_a_search_of_another_kind_in_the_folder_is_a_problem(tmp_path: Path) -> None:
    run(tmp_path, SMALL_GAMES + "Rooms", config(), frames=2_000)
    (tmp_path / MARATHON).unlink()
    with pytest.raises(Problem, match="holds another search"):
        run(tmp_path, SMALL_GAMES + "Rooms", config(), frames=1)


def test_it_keeps_to_the_disk_that_it_is_given(tmp_path: Path) -> None:
    """Too little for a saved search: none is written, and all else is."""
    saved = run(tmp_path, HOPPER, config(replace(QUICK, frames=4_000), disk=60_000), frames=60_000)
    checked(saved)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 60_000
    assert not list((tmp_path / "searches").glob("*.npz"))
