"""What an engine publishes: at most once a second, without ever a word to the search that anything failed."""

import io
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from live_views import route, wait_for
from numpy.typing import NDArray
from PIL import Image
from retro_runs import slower

from harness.errors import Problem
from retro.inputs import parse_inputs
from retro.live import publisher as publisher_module
from retro.live.kept import kept_pieces
from retro.live.pictures import mosaic, png
from retro.live.publisher import Publisher
from retro.live.snapshot import Counts, Movie, Snapshot, parse_snapshot
from retro.packages import load_package
from retro.search.pool import open_pool
from retro.search.route import Piece, runs_of
from retro.search.segment import SegmentSearch
from retro.task import GAMES
from scripted_game.searching import settings

LINE: dict[str, Any] = {
    **{"utc": "2026-11-30T17:00:00Z", "event": "piece", "state": "title"},
    **{"frames": 40, "saved": None, "note": "x"},
}


@pytest.fixture(scope="module")
def pieces() -> list[Piece]:
    return route(GAMES[0].best_inputs)


@pytest.fixture(autouse=True)
def no_films(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is asked of the films, which are not made."""
    asked: list[tuple[Any, ...]] = []

    class Films:
        movie = None

        def __init__(self, *_: object) -> None: ...

        def go_on(self) -> None:
            asked.append(("go on",))

        def show(self, pieces: list[Piece]) -> None:
            asked.append(("show", sum(piece.frames for piece in pieces)))

        def compare(self, *ways: Any) -> None:
            asked.append(("compare", *ways))

        def wait(self) -> None: ...

    monkeypatch.setattr(publisher_module, "Films", Films)
    return asked


def screens(count: int) -> list[NDArray[np.uint8]]:
    return [np.full((4, 6, 3), 20 * place, np.uint8) for place in range(count)]


def open_publisher(folder: Path, seed: int = 1) -> Publisher:
    return Publisher(folder, "quarterstep", seed, rom_sha256="5" * 64, workers=2, screens=screens)


def published(folder: Path) -> Snapshot:
    return parse_snapshot((folder / "live" / "snapshot.json").read_bytes())


def test_splits_and_times_follow_from_the_pieces(tmp_path: Path, pieces: list[Piece]) -> None:
    with open_publisher(tmp_path) as publisher:
        publisher.update("practice", None, pieces, Counts(pieces=7, stuck=2), [LINE] * 60, attempt=3)
    shown = published(tmp_path)
    assert [(split.state, split.entered) for split in shown.splits] == [
        *(("power-on", 0), ("title", 21), ("level-1", 40), ("level-2", 182), ("level-3", 339)),
        *(("level-4", 485), ("level-5", 584)),
    ]
    assert [split.entered + split.frames for split in shown.splits][-1] == 788
    assert (shown.time.frames, shown.time.start_frame) == (788, 40)
    assert shown.splits[2].goal == "reach the exit: 1 TAKE-OFF"
    assert (shown.counts.stuck, shown.search.attempt, len(shown.journal)) == (2, 3, 50)
    assert shown.run.console_rate == pytest.approx(60.0988, abs=1e-4)
    assert shown.search.doing == "idle"
    with Image.open(tmp_path / "live" / "frame.png") as frame:
        assert frame.size == (6, 4)


def test_what_the_search_does_counts_and_milestones_are_told_by_name(
    tmp_path: Path, pieces: list[Piece]
) -> None:
    package = load_package("quarterstep")
    entered = [mask for piece in pieces[:2] for mask in parse_inputs(piece.inputs, package.console_buttons)]
    counts = {"pieces": 7, "levels_beaten": 6, "found": 1, "improved": 2, "checkpoints": 3, "stuck": 4}
    with open_pool("quarterstep", 0) as pool, open_publisher(tmp_path) as publisher:
        search = SegmentSearch(pool.arrive(runs_of(entered))[0], settings(items=2), "1")
        search.open(pool)
        for _ in range(2):
            search.round(pool)
        publisher.update("practice", search, pieces, Counts(**counts, frames_shaved=5), [LINE], 2)
        wait_for((tmp_path / "live" / "snapshot.json").exists, 60)
        shown = published(tmp_path)
    speed = shown.search.frames_per_s
    assert shown.search.model_dump() == {
        **{"doing": "practice", "state": "level-1", "goal": "reach the exit: 1 TAKE-OFF"},
        **{"frames": search.frames, "budget": search.settings.frames, "best": search.best},
        **{"cells": len(search.archive.cells), "dropped": search.archive.dropped, "deaths": search.deaths},
        **{"workers": 2, "frames_per_s": speed, "attempt": 2},
    }
    assert search.frames > 0 and len(search.archive.cells) > 1
    assert shown.counts.model_dump() == {**counts, "frames_shaved": 5}
    assert [line.model_dump() for line in shown.journal] == [LINE]
    assert published(tmp_path).search.doing == "idle"


def test_at_most_once_a_second(tmp_path: Path, pieces: list[Piece], monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = 0.0, 0

    def counted(count: int) -> list[NDArray[np.uint8]]:
        nonlocal asked
        asked += 1
        return screens(count)

    monkeypatch.setattr(publisher_module.time, "monotonic", lambda: now)
    with Publisher(tmp_path, "quarterstep", 1, rom_sha256="5" * 64, workers=2, screens=counted) as publisher:
        for tenth in range(95):
            now = tenth / 10
            publisher.update("search", None, pieces, Counts(), [])
            while not publisher._tasks.empty():
                time.sleep(0.001)
    assert asked == 10 + 2  # at 0 to 9 seconds, and when it was closed, before and after the films


def test_a_faster_piece_is_compared_with_the_one_before(
    tmp_path: Path, pieces: list[Piece], no_films: list[tuple[Any, ...]]
) -> None:
    slow = route(slower(10))
    for known in (slow, pieces):
        with open_publisher(tmp_path) as publisher:  # as if the search had been started again between
            publisher.update("search", None, slow, Counts(), [])
            publisher._due = 0.0
            publisher.update("search", None, known, Counts(), [])
    assert no_films == [
        ("show", 798), ("go on",), ("show", 798), ("show", 788),
        ("compare", slow[:1], slow[1:2], pieces[1:2], "title"),
    ]  # fmt: skip
    assert [split.best_before for split in published(tmp_path).splits] == [None, 29] + [None] * 5


@pytest.mark.parametrize(("seed", "compared"), [(1, 1), (2, 0)])
def test_a_piece_that_got_faster_before_a_restart_is_compared_after_it(
    tmp_path: Path, pieces: list[Piece], no_films: list[tuple[Any, ...]], seed: int, compared: int
) -> None:
    """As if the search had been killed when the piece was saved, and the live view had not heard of it."""
    slow = route(slower(10))
    with open_publisher(tmp_path) as publisher:
        publisher.update("search", None, slow, Counts(), [])
    with open_publisher(tmp_path, seed) as publisher:  # another seed is another run
        publisher.update("search", None, pieces, Counts(), [])
    comparison = ("compare", slow[:1], slow[1:2], pieces[1:2], "title")
    assert [call for call in no_films if call[0] == "compare"] == [comparison] * compared
    assert kept_pieces(tmp_path / "live") == pieces
    assert no_films.count(("go on",)) == compared


@pytest.mark.parametrize("made", [798, 788])
def test_a_movie_that_was_not_made_before_a_restart_is_made_after_it(
    tmp_path: Path, pieces: list[Piece], no_films: list[tuple[Any, ...]], made: int
) -> None:
    with open_publisher(tmp_path) as publisher:
        publisher.update("search", None, pieces, Counts(), [])
    no_films.clear()
    with open_publisher(tmp_path) as publisher:
        publisher._films.movie = Movie(sha256="0" * 64, frames=made, verified=True)
        publisher.update("search", None, pieces, Counts(), [])
    assert no_films == [("go on",), ("show", 788)][: 2 if made == 798 else 1]


def test_what_is_kept_of_pieces_and_malformed_is_told(
    tmp_path: Path, pieces: list[Piece], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        with open_publisher(tmp_path) as publisher:
            publisher.update("search", None, pieces, Counts(), [])
        (tmp_path / "live" / "pieces.json").write_text('[{"state": 1}]')
    assert "0.state: Input should be a valid string" in capsys.readouterr().out
    assert published(tmp_path).time.frames == 788


def test_pieces_that_one_faster_piece_leaves_out_are_compared_with_it(
    tmp_path: Path, pieces: list[Piece], no_films: list[tuple[Any, ...]]
) -> None:
    leap = replace(pieces[2], entered="level-4", frames=99, inputs="99")
    with open_publisher(tmp_path) as publisher:
        publisher.update("search", None, pieces, Counts(), [])
        publisher._due = 0.0
        publisher.update("search", None, [*pieces[:2], leap, *pieces[5:]], Counts(), [])
    assert no_films[-1] == ("compare", pieces[:2], pieces[2:5], [leap], "level-1")


def test_a_run_goes_on_under_its_name_and_another_gets_its_own(tmp_path: Path, pieces: list[Piece]) -> None:
    names = []
    for seed in (1, 1, 2):
        with open_publisher(tmp_path, seed) as publisher:
            assert (publisher.earlier is None) == (names == [] or seed == 2)
            publisher.update("search", None, pieces, Counts(found=4), [])
        names.append(published(tmp_path).run.id)
    assert names[0] == names[1] != names[2]


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, content: object) -> None:
        raise Problem("cannot be written: No space left on device", file=path)

    monkeypatch.setattr(publisher_module, "write_atomic", refuse)


def test_a_full_disk_is_told_once(
    tmp_path: Path, pieces: list[Piece], full_disk: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_publisher(tmp_path) as publisher:
        for _ in range(5):
            publisher._due = 0.0
            publisher.update("search", None, pieces, Counts(), [])
            while not publisher._tasks.empty():
                time.sleep(0.001)
    assert capsys.readouterr().out.count("No space left on device") == 1


@pytest.mark.parametrize(
    ("update", "said"),
    [
        (("juggle", None, [], Counts(), []), "search"),
        (("search", None, [], Counts(), [{"event": "begun"}]), "note"),
        (("search", None, [], Counts(), [{**LINE, "event": "slept"}]), "event"),
        (("search", object(), [], Counts(), []), "beginning"),
        (("search", None, [None], Counts(), []), "inputs"),
    ],
)
def test_nothing_is_raised_into_the_search(
    tmp_path: Path, update: tuple[Any, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_publisher(tmp_path) as publisher:
        publisher.update(*update)
    assert said in capsys.readouterr().out


def test_a_folder_that_cannot_be_made_and_a_snapshot_that_cannot_be_read_are_told(
    tmp_path: Path, pieces: list[Piece], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "live").write_text("a file")
    with open_publisher(tmp_path) as publisher:
        publisher.update("search", None, pieces, Counts(), [])
    assert "live" in capsys.readouterr().out
    (tmp_path / "live").unlink()
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "snapshot.json").write_text("{")
    with open_publisher(tmp_path) as publisher:
        publisher.update("search", None, pieces, Counts(), [])
    assert "not JSON" in capsys.readouterr().out
    assert published(tmp_path).time.frames == 788


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Publisher]:
    with open_publisher(tmp_path) as publisher:
        yield publisher


def test_a_call_between_two_publications_costs_microseconds(watched: Publisher, pieces: list[Piece]) -> None:
    watched.update("search", None, pieces, Counts(), [])
    watched._due = float("inf")
    began = time.process_time()
    for _ in range(10_000):
        watched.update("search", None, pieces, Counts(), [])
    assert time.process_time() - began < 1.0  # 100 microseconds each, on any machine


def test_frames_of_all_searches_count_but_those_of_before(watched: Publisher) -> None:
    for frames, rounds in ((500, 1), (900, 2)):
        begun = SimpleNamespace(frames=frames, rounds=rounds)
        watched._search = begun if rounds > 1 else None  # type: ignore[assignment]
        watched._count(begun)  # type: ignore[arg-type]
    assert watched._emulated == 900
    taken_up = SimpleNamespace(frames=70_000, rounds=90)
    watched._count(taken_up)  # type: ignore[arg-type]
    taken_up.frames += 300
    watched._count(taken_up)  # type: ignore[arg-type]
    assert watched._emulated == 1200


@pytest.mark.parametrize("count", range(1, 13))
def test_a_mosaic_holds_the_first_nine_in_order(count: int) -> None:
    shown = [np.full((4, 6, 3), 20 * place + 20, np.uint8) for place in range(count)]
    if count > 1:  # a lower one is in the middle of its place
        shown[0] = np.full((2, 6, 3), 20, np.uint8)
    picture = mosaic(shown)
    side = int(np.ceil(np.sqrt(min(count, 9))))
    rows = -(-min(count, 9) // side)
    assert picture.shape == (rows * 8 - 4, side * 10 - 4, 3)
    for place in range(min(count, 9)):
        top, left = place // side * 8, place % side * 10
        assert (picture[top + 1 : top + 3, left : left + 6] == 20 * place + 20).all()
    with Image.open(io.BytesIO(png(picture))) as read:
        assert (np.asarray(read) == picture).all()


def test_files_are_whole_whenever_they_are_read(tmp_path: Path, pieces: list[Piece]) -> None:
    with open_publisher(tmp_path) as publisher:
        for _ in range(20):
            publisher._due = 0.0
            publisher.update("search", None, pieces, Counts(), [LINE])
            if (tmp_path / "live" / "snapshot.json").exists():
                published(tmp_path)
    names = sorted(path.name for path in (tmp_path / "live").iterdir())
    assert names == [
        "frame.png",
        "mosaic.png",
        "pieces.json",
        "snapshot.json",
    ]
