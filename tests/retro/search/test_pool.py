"""Workers: the same results with any number of them, and when they die."""

import os
import re
import signal
import time
from pathlib import Path

import psutil
import pytest

from harness.errors import Problem
from retro.search.archive import Runs
from retro.search.pool import Item, Processes, Worker, open_pool
from retro.search.segment import SegmentSearch
from retro.search.settings import Settings
from scripted_game import Hopper
from scripted_game.searching import HOPPER, finish, knowledge, segment, settings, start_of

INTO_LEVEL_1: Runs = ((0, 1), (8, 1))


def told(mode: str = "scripted_game.modes:Killed") -> Settings:
    return settings(frames=8_000, patience=8_000, shave=2_000, modes={mode: 1})


def searched(pool: Worker | Processes, settings: Settings) -> SegmentSearch:
    beginning, _ = pool.arrive(INTO_LEVEL_1)
    search = SegmentSearch(beginning, settings, "1")
    search.open(pool)
    return finish(search, pool)  # type: ignore[arg-type]


def course(search: SegmentSearch) -> tuple[object, ...]:
    archive = search.archive
    return (
        *(search.frames, search.rounds, search.deaths, search.first, search.ending, search.solutions),
        *(list(archive.nodes.values()), list(archive.cells), search.seen, search.mode_frames),
        *(list(archive.beaten.items()), search.transit, search.improved_at),
    )


@pytest.fixture
def accident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file whose being there makes a worker that uses the mode Killed die."""
    flag = tmp_path / "accident"
    monkeypatch.setenv("ACCIDENT", str(flag))
    return flag


def ended(pids: list[int]) -> bool:
    """Whether these processes are gone, after a moment."""
    for _ in range(100):
        if not any(psutil.pid_exists(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def test_a_worker_killed_at_work_and_one_killed_at_rest_change_nothing(
    accident: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with open_pool(HOPPER, 0) as pool:
        calm = course(searched(pool, told()))
    assert "worker" not in capfd.readouterr().out
    accident.touch()
    with open_pool(HOPPER, 2) as pool:
        assert isinstance(pool, Processes)
        first = pool.pids
        troubled = searched(pool, told())
        assert course(troubled) == calm
        assert not accident.exists()
        said = capfd.readouterr().out
        assert said.count("A worker died (signal 9); another takes its place and its work") == 1
        assert len(set(first) & set(pool.pids)) == 1

        os.kill(pool.pids[0], signal.SIGKILL)
        assert ended_or_zombie(pool.pids[0])
        assert course(searched(pool, told())) == calm
        assert capfd.readouterr().out.count("A worker died (signal 9)") == 1
        last = pool.pids
    assert ended([*first, *last])


def ended_or_zombie(pid: int) -> bool:
    for _ in range(100):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_a_piece_of_work_that_kills_every_worker_is_a_problem(capfd: pytest.CaptureFixture[str]) -> None:
    with open_pool(HOPPER, 1) as pool:
        with pytest.raises(
            Problem, match=r"a piece of work ended 3 workers, the last with (exit 7|signal 9)"
        ):
            searched(pool, told("scripted_game.modes:Exits"))
        pids = pool.pids
    assert len(re.findall("A worker died", capfd.readouterr().out)) == 3
    assert ended(pids)


def test_a_mistake_in_a_mode_is_shown_where_it_is() -> None:
    with (
        open_pool(HOPPER, 1) as pool,
        pytest.raises(RuntimeError, match="this mode has a mistake") as caught,
    ):
        searched(pool, told("scripted_game.modes:Raises"))
    assert "modes.py" in str(caught.value)
    assert "in explore" in str(caught.value)
    with open_pool(HOPPER, 0) as pool, pytest.raises(ValueError, match="this mode has a mistake"):
        searched(pool, told("scripted_game.modes:Raises"))


def test_a_problem_in_a_worker_is_that_problem() -> None:
    beginning = segment(Hopper())[0].beginning
    with open_pool(HOPPER, 1) as pool, pytest.raises(Problem, match="no search mode 'of no kind'") as caught:
        pool.open(knowledge(0))
        pool.do([Item("of no kind", [start_of(beginning)], "1", 100)])
    assert "walks, frontier, tree" in str(caught.value)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Raises", r"faulty\.py:17: the package fails: ZeroDivisionError: .*retro\.run check"),
        ("Leaves", r"faulty\.py:24: the package fails: SystemExit: 0"),
        ("Halves", r"faulty\.py: Hopper: cell gives \([\d.]+, \d\), which is not a tuple of plain integers"),
        ("Widens", "Hopper: cell gives 3 numbers, and 2 elsewhere"),
        ("NoNumber", "Hopper: the reward of level-1 is nan"),
        ("TooLarge", "Hopper: the reward of level-1 is 1000"),
    ],
)
def test_nonsense_of_a_package_is_a_problem(name: str, said: str, workers: int) -> None:
    if workers and name != "Raises":
        return  # what is said crosses to this process as any Problem does
    with open_pool(f"scripted_game.faulty:{name}", workers) as pool, pytest.raises(Problem, match=said):
        searched(pool, told("walks"))  # type: ignore[arg-type]


def test_workers_that_fail_side_by_side_are_told_once(capfd: pytest.CaptureFixture[str]) -> None:
    with open_pool("scripted_game.faulty:NoNumber", 2) as pool, pytest.raises(Problem, match="is nan"):
        searched(pool, told("walks"))  # type: ignore[arg-type]
    time.sleep(0.5)
    assert "Traceback" not in capfd.readouterr().err


def test_a_package_that_is_not_there_is_a_problem() -> None:
    for workers in (0, 1):
        with (
            pytest.raises(Problem, match="there is no module 'no_such'"),
            open_pool("no_such:Game", workers) as pool,
        ):
            pool.arrive(((0, 1),))


def test_answers_come_back_in_the_order_of_the_work() -> None:
    search, worker = segment(Hopper(), INTO_LEVEL_1)
    start = start_of(search.beginning)
    budgets = [1_500, 3, 700, 1, 200, 30, 5]
    worker.open(knowledge(1))
    items = [Item("walks", [start], str(place), budget) for place, budget in enumerate(budgets)]
    alone = worker.do(items)
    assert [done.result.frames >= budget for done, budget in zip(alone, budgets, strict=True)] == [True] * 7
    with open_pool(HOPPER, 2) as pool:
        pool.open(knowledge(1))
        assert pool.do(items) == alone
        assert pool.do([]) == []
        assert pool.do(items[:1]) == alone[:1]


def test_a_real_console_gives_the_same_with_any_number_of_workers() -> None:
    """Quarterstep's first level, as far as a few rounds come."""
    courses = []
    start: Runs = ((0, 30), (8, 10), (0, 20))
    for workers in (1, 2):
        with open_pool("quarterstep", workers) as pool:
            beginning, _ = pool.arrive(start)
            search = SegmentSearch(beginning, settings(items=5, item_frames=240), "1")
            search.open(pool)
            for _ in range(3):
                search.round(pool)
            archive = search.archive
            places = [
                (node.index, node.parent, node.runs, node.cell, node.reward)
                for node in archive.nodes.values()
            ]
            courses.append((beginning.ram_hash, search.frames, search.seen, search.deaths, places))
    assert courses[0] == courses[1]
    assert len(courses[0][-1]) > 20


def test_the_newest_pictures_are_asked_for_between_rounds(
    accident: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with open_pool(HOPPER, 0) as pool:
        calm = course(searched(pool, told()))
        (picture,) = pool.screens(9)
        assert picture.shape == (1, 128, 3)
        assert pool.screens(0) == []
    with open_pool(HOPPER, 2) as pool:
        assert isinstance(pool, Processes)
        assert pool.screens(1) == []
        beginning, _ = pool.arrive(INTO_LEVEL_1)
        search = SegmentSearch(beginning, told(), "1")
        search.open(pool)
        assert len(pool.screens(9)) == 1
        while search.ending == "searching":
            search.round(pool)
            assert [screen.shape for screen in pool.screens(9)] == [(1, 128, 3)] * 2
        assert len(pool.screens(1)) == 1
        os.kill(pool.pids[0], signal.SIGKILL)
        assert ended_or_zombie(pool.pids[0])
        while search.shave(pool):
            assert len(pool.screens(9)) == 2
        os.kill(pool.pids[1], signal.SIGKILL)
        pool.screens(9)
    assert course(search) == calm
    assert "another takes its place" in capfd.readouterr().out


def test_a_worker_that_dies_before_it_sends_its_picture_is_replaced(
    accident: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with open_pool(HOPPER, 0) as pool:
        calm = course(searched(pool, told()))
    accident.touch()
    with open_pool(HOPPER, 2) as pool:
        pool.screens(9)
        assert course(searched(pool, told())) == calm  # type: ignore[arg-type]
        assert not accident.exists()
    assert "A worker died (signal 9)" in capfd.readouterr().out


def test_pictures_larger_than_what_a_pipe_holds_hold_up_nobody() -> None:
    """With more pieces of work than workers, on a real console, whose pictures are large."""
    courses = []
    for watched in (False, True):
        with open_pool("quarterstep", 2) as pool:
            beginning, _ = pool.arrive(((0, 30), (8, 10), (0, 20)))
            search = SegmentSearch(beginning, settings(items=7, item_frames=120), "1")
            search.open(pool)
            for _ in range(4):
                search.round(pool)
                if watched:
                    assert all(screen.nbytes > 1 << 16 for screen in pool.screens(9))
            courses.append(course(search))
    assert courses[0] == courses[1]
