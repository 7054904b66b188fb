"""What goes first where a run folder would take more than it may."""

from pathlib import Path

import pytest

from retro.marathon.disk import make_room, search_bytes, used
from retro.packages import load_package
from retro.search.storage import save_search
from scripted_game.searching import HOPPER, segment


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """1,000 bytes of everything, and a journal of 10 lines of 100."""
    for name in (
        "searches/9.npz",
        "searches/10.npz",
        "live/movie.mp4",
        "live/comparison.mp4",
        "movie.bk2",
        "memory.json",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 1000)
    (tmp_path / "journal.jsonl").write_bytes(b"".join(b"%099d\n" % number for number in range(10)))
    return tmp_path


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_nothing_goes_while_there_is_room(folder: Path) -> None:
    before = left(folder)
    assert used(folder) == 7000
    assert make_room(folder, 7500, 500)
    assert left(folder) == before


@pytest.mark.parametrize(
    ("limit", "gone"),
    [
        (6500, {"9.npz"}),
        (5500, {"9.npz", "comparison.mp4"}),
        (4500, {"9.npz", "comparison.mp4", "movie.mp4"}),
    ],
)
def test_old_searches_go_first_then_videos(folder: Path, limit: int, gone: set[str]) -> None:
    before = left(folder)
    assert make_room(folder, limit, 0, [folder / "searches/10.npz"])
    assert before - left(folder) == gone
    assert used(folder) <= limit


def test_what_was_tracked_before_the_last_start_goes_before_the_journal(folder: Path) -> None:
    starts = [f"{mode}-2026010{day}_000000-id" for day, mode in enumerate(["run", "offline-run", "run"], 1)]
    for name in starts:
        (folder / "wandb" / name / "files").mkdir(parents=True)
        (folder / "wandb" / name / "files" / "one").write_bytes(b"x" * 1000)
    (folder / "wandb" / "latest-run").symlink_to(starts[-1])
    assert make_room(folder, 5000, 0)
    assert {path.name for path in (folder / "wandb").iterdir()} == {*starts[1:], "latest-run"}
    assert make_room(folder, 4000, 0)
    assert {path.name for path in (folder / "wandb").iterdir()} == {starts[2], "latest-run"}
    assert {"journal.jsonl", "movie.bk2"} <= left(folder)


def test_then_the_older_half_of_the_journal_and_no_more(folder: Path) -> None:
    assert make_room(folder, 2600, 0)
    lines = (folder / "journal.jsonl").read_bytes().split()
    assert [int(line) for line in lines] == [5, 6, 7, 8, 9]
    assert not make_room(folder, 100, 0)
    assert left(folder) == {"movie.bk2", "memory.json", "journal.jsonl"}
    assert [int(line) for line in (folder / "journal.jsonl").read_bytes().split()] == [9]


def test_a_search_takes_no_more_than_was_thought(tmp_path: Path) -> None:
    search, worker = segment(load_package(HOPPER), ((0, 1), (8, 1)))
    for _ in range(6):
        search.round(worker)
        save_search(tmp_path / "1.npz", search)
        assert used(tmp_path) <= search_bytes(search)
