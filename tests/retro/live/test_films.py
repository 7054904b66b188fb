"""Videos of the live view on a real console: what the movie shows, its RAM, and two ways side by side."""

import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import psutil
import pytest
from live_views import route
from numpy.typing import NDArray
from retro_runs import slower

from harness.errors import Problem
from harness.files import read_bytes, sha256_file
from harness.track import ROOT
from retro.inputs import parse_inputs
from retro.live import films as films_module
from retro.live.films import BAR, GAP, REST, Films, movie_job
from retro.live.kept import forget, kept_wanted
from retro.live.snapshot import parse_ram
from retro.packages import load_package
from retro.search.route import Piece
from retro.task import GAMES
from retro.trace import trace

GAME = GAMES[0]


@pytest.fixture(scope="module")
def pieces() -> list[Piece]:
    """From power-on into level 2, as fast as can be."""
    return route(GAME.best_inputs)[:3]


def filmed(folder: Path) -> Films:
    def fail(error: Exception) -> None:
        raise AssertionError(error) from error

    return Films(folder, "quarterstep", fail)


def pictures(path: Path) -> list[NDArray[np.uint8]]:
    with av.open(str(path)) as container:
        assert container.streams.video[0].codec_context.name == "h264"
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def test_the_movie_is_verified_and_its_ram_is_of_every_frame(tmp_path: Path, pieces: list[Piece]) -> None:
    films = filmed(tmp_path)
    films.show(pieces)
    films.wait()
    frames = sum(piece.frames for piece in pieces)
    assert films.movie is not None
    assert films.movie.model_dump() == {
        "sha256": sha256_file(tmp_path / "movie.mp4"),
        "frames": frames,
        "verified": True,
    }
    assert len(pictures(tmp_path / "movie.mp4")) == frames
    ram = parse_ram(read_bytes(tmp_path / "ram.json"))
    names = tuple(load_package("quarterstep").variables)
    assert (ram.movie, ram.every, tuple(ram.names)) == (films.movie.sha256, 1, names)
    text = " ".join(piece.inputs for piece in pieces)
    masks = parse_inputs(text, load_package("quarterstep").console_buttons)
    assert ram.values == trace("quarterstep", masks, names)[:, 1:].tolist()


def test_a_movie_that_does_not_do_what_is_claimed_is_told(tmp_path: Path, pieces: list[Piece]) -> None:
    films = filmed(tmp_path)
    films.show([replace(pieces[0], ram_hash="0" * 16)])
    films.wait()
    assert films.movie is not None
    assert not films.movie.verified


def test_two_ways_are_shown_side_by_side_until_the_slower_has_come_to_its_end(
    tmp_path: Path, pieces: list[Piece]
) -> None:
    slow = route(slower(10))[:3]
    films = filmed(tmp_path)
    films.compare(pieces[:1], slow[1:], pieces[1:], "title")
    films.wait()
    shown = pictures(tmp_path / "comparison.mp4")
    old, new = (sum(piece.frames for piece in part[1:]) for part in (slow, pieces))
    assert old == new + 10
    rate = 60.0988
    assert len(shown) == old + round(REST * rate)
    middle = (shown[0].shape[1] + GAP) // 2
    (early, level, done, rest), (its_early, its_level, its_done, its_rest) = (
        [shown[at][BAR:, left : left + middle - GAP].astype(int) for at in (0, 25, new - 1, -1)]
        for left in (0, middle)
    )

    def apart(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
        return float(np.abs(one - other).mean())

    assert apart(early, its_early) < 2  # both are on the title
    assert apart(level, its_level) > 8  # the one is in the level 10 frames before the other
    assert apart(its_done, its_rest) < 2  # the faster rests in its last frame
    assert apart(rest, its_rest) < 2  # which is where both come to
    assert done.shape == its_done.shape


ASKED = """
import os, pickle, signal, sys
from pathlib import Path
from retro.live import films
films.run_fresh = lambda call, job: os.kill(os.getpid(), signal.SIGKILL)
asking = films.Films(Path(sys.argv[1]), "quarterstep", print)
asking.compare(*pickle.load(sys.stdin.buffer))
asking.wait()
"""


def test_two_ways_that_a_killed_process_was_asked_to_compare_are_compared_after_the_restart(
    tmp_path: Path, pieces: list[Piece]
) -> None:
    slow = route(slower(10))[:3]
    asked = pickle.dumps((pieces[:1], slow[1:2], pieces[1:2], "title"))
    killed = subprocess.run([sys.executable, "-c", ASKED, tmp_path], input=asked, cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "comparison.mp4").exists()
    films = filmed(tmp_path)
    films.go_on()
    films.wait()
    assert len(pictures(tmp_path / "comparison.mp4")) == slow[1].frames + round(REST * 60.0988)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["comparison.mp4"], "it is not made again"
    filmed(tmp_path).go_on()


def test_what_cannot_be_compared_is_tried_again_after_the_next_start_alone(
    tmp_path: Path, pieces: list[Piece], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Exception] = []

    def fail(call: str, job: object) -> None:
        raise Problem("there is no room")

    with monkeypatch.context() as patch:
        patch.setattr(films_module, "run_fresh", fail)
        films = Films(tmp_path, "quarterstep", told.append)
        films.compare([], pieces[:1], pieces[:1], "title")
        films.wait()
    assert [str(error) for error in told] == ["there is no room"]
    wanted = kept_wanted(tmp_path)
    assert wanted is not None and (wanted.before, wanted.new) == ("", pieces[0].inputs)
    (tmp_path / "wanted.json").write_text('{"before": ""}')
    with pytest.raises(Problem, match="old: Field required"):
        filmed(tmp_path).go_on()
    forget(tmp_path)
    assert kept_wanted(tmp_path) is None


def test_of_several_wishes_the_last_counts_and_trouble_is_told(tmp_path: Path, pieces: list[Piece]) -> None:
    told: list[Exception] = []
    films = Films(tmp_path, "quarterstep", told.append)
    for _ in range(20):
        films.show(pieces)
    films.show(pieces[:1])
    films.wait()
    assert films.movie is not None
    assert films.movie.frames == pieces[0].frames
    assert told == []
    missing = Films(tmp_path / "missing", "quarterstep", told.append)
    missing.show(pieces[:1])
    missing.wait()
    assert len(told) == 1
    assert missing.movie is None


def test_ctrl_c_is_for_the_search_alone(tmp_path: Path, pieces: list[Piece]) -> None:
    films = filmed(tmp_path)
    films.show(pieces[:1])
    deadline = time.monotonic() + 60
    while not (makers := psutil.Process().children()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for _ in range(10):  # while it starts, and when it works
        for maker in makers:
            maker.send_signal(signal.SIGINT)
        time.sleep(0.05)
    films.wait()
    assert films.movie is not None and films.movie.verified


def test_of_a_long_movie_every_so_many_frames_are_sampled(
    tmp_path: Path, pieces: list[Piece], monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(path: Path, *_: object, **__: object) -> None:
        path.write_bytes(b"a video")

    monkeypatch.setattr(films_module, "ROWS", 30)
    monkeypatch.setattr(films_module, "write_video", write)
    monkeypatch.setattr(films_module.os, "nice", lambda by: None)
    claims = [(piece.entered, piece.frames, piece.ram_hash) for piece in pieces]
    text = " ".join(piece.inputs for piece in pieces)
    job = {"package": "quarterstep", "folder": str(tmp_path), "inputs": text, "claims": claims}
    assert movie_job(job)["verified"]
    ram = parse_ram(read_bytes(tmp_path / "ram.json"))
    masks = parse_inputs(text, load_package("quarterstep").console_buttons)
    assert ram.every == -(-len(masks) // 30)
    assert ram.values == trace("quarterstep", masks, ram.names)[:: ram.every, 1:].tolist()
