"""The board of the fastest movies takes what reaches the ending, and says of it what a replay says."""

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import Problem
from harness.readme import find_block
from harness.track import ROOT
from retro.evidence import fastest, movie_inputs
from retro.movie import write_movie
from retro.movies import FOLDER, LARGEST_VIDEO, About, add, board, main, read_movies, verify_all
from retro.packages import load_package
from retro.replay import make_movie, replay_fresh
from retro.task import GAMES
from retro.times import format_time

GAME = GAMES[0]
DAY = datetime.date(2026, 11, 30)


@pytest.fixture(scope="module")
def optimum(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The proven optimum as a movie."""
    path = tmp_path_factory.mktemp("movie") / "optimum.bk2"
    inputs = movie_inputs(fastest(GAME))
    shown = replay_fresh(GAME.package, inputs)
    write_movie(path, make_movie(load_package(GAME.package), inputs, shown))
    return path


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The optimum ten frames later, and with sixty frames at its end."""
    path = tmp_path_factory.mktemp("movie") / "slow.bk2"
    inputs = [0] * 10 + movie_inputs(fastest(GAME)) + [0] * 60
    shown = replay_fresh(GAME.package, inputs)
    write_movie(path, make_movie(load_package(GAME.package), inputs, shown))
    return path


def put(path: Path, root: Path, name: str = "low-road", **changes: Any) -> Path:
    words: dict[str, Any] = {"contributors": ["Ada", "Bob"], "description": "Proven", "date": DAY}
    return add(path, name=name, root=root, **{**words, **changes})


def write_about(root: Path, **changes: Any) -> Path:
    """A movie.json without a movie, which is all that a board reads."""
    about = About.model_validate(
        {
            "game": "Pong-Nes-v0", "frames": 600, "frame_rate": "60/1", "movie_sha256": "0" * 64,
            "name": "a", "date": DAY, "contributors": ("Ada",), "description": "By hand", **changes,
        }
    )  # fmt: skip
    path = root / FOLDER / about.folder / "movie.json"
    path.parent.mkdir(parents=True)
    path.write_text(about.model_dump_json())
    return path


def test_a_movie_gets_a_row_and_is_verified(
    optimum: Path, slow: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    video = tmp_path / "any.mp4"
    video.write_bytes(b"film")
    place = put(slow, tmp_path, "late", video=video)
    assert place == tmp_path / f"records/retro/movies/{GAME.name}/{GAME.best + 10}_late"
    put(optimum, tmp_path)
    assert sorted(path.name for path in place.iterdir()) == ["movie.bk2", "movie.json", "movie.mp4"]
    header, _, first, second = board(tmp_path).split("\n")
    rate = 39375000 / 655171  # frames a second of the NES
    link = f"records/retro/movies/{GAME.name}/{GAME.best}_low-road"
    assert first == (
        f"| {GAME.name} | {GAME.best} | {format_time(GAME.best, rate)} | 0, proven "
        f"| low-road · [bk2]({link}/movie.bk2) | 2026-11-30 | Ada, Bob | Proven |"
    )
    assert f"| {GAME.best + 10} |" in second and f"| +10 ({1000 / GAME.best:.1f}%) |" in second
    assert "/movie.mp4) |" in second and len(header.split("|")) == len(first.split("|"))
    assert verify_all(tmp_path) == 0
    assert capsys.readouterr().out == f"pass {link}\npass {place.relative_to(tmp_path)}\n"


def test_rows_are_sorted_by_game_and_frames(tmp_path: Path) -> None:
    for game, frames, name in (("Z", 5, "a"), ("A", 1000, "b"), ("A", 999, "c")):
        write_about(tmp_path, game=game, frames=frames, name=name)
    rows = [row.split(" | ") for row in board(tmp_path).split("\n")[2:]]
    assert [(row[0], row[1], row[3]) for row in rows] == [
        ("| A", "999", "not known"), ("| A", "1,000", "not known"), ("| Z", "5", "not known"),
    ]  # fmt: skip
    assert [row[2] for row in rows] == ["0:16.65", "0:16.66", "0:00.08"]
    assert board(tmp_path / "nowhere") == "No movie yet."


def refuse(action: Callable[[], object], reason: str, root: Path) -> None:
    before = sorted(root.rglob("*"))
    with pytest.raises(Problem, match=reason):
        action()
    assert sorted(root.rglob("*")) == before


def test_what_cannot_stand_on_the_board_is_refused(optimum: Path, tmp_path: Path) -> None:
    put(optimum, tmp_path)
    refuse(lambda: put(optimum, tmp_path, "other"), "is on the board already", tmp_path)
    for changes, reason in [
        ({"name": "Low Road"}, "cannot be a name"),
        ({"contributors": []}, "contributors are not named"),
        ({"description": "a | b"}, "description holds"),
    ]:
        refuse(lambda changes=changes: put(optimum, tmp_path / "x", **changes), reason, tmp_path)
    big = tmp_path / "big.mp4"
    big.write_bytes(bytes(LARGEST_VIDEO + 1))
    refuse(lambda: put(optimum, tmp_path / "x", video=big), "is larger than 4 MiB", tmp_path)


def test_a_movie_that_does_not_reach_the_ending_is_refused(optimum: Path, tmp_path: Path) -> None:
    inputs = movie_inputs(fastest(GAME))[:-1]
    short = tmp_path / "short.bk2"
    write_movie(short, make_movie(load_package(GAME.package), inputs, replay_fresh(GAME.package, inputs)))
    refuse(lambda: put(short, tmp_path), f"does not reach the ending in {GAME.best - 1} frames", tmp_path)
    refuse(lambda: put(tmp_path / "no.bk2", tmp_path), "cannot be read", tmp_path)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda place: (place / "movie.bk2").write_bytes(b""), "is not the movie that movie.json names"),
        (lambda place: (place / "movie.bk2").unlink(), "cannot be read"),
        (lambda place: (place / "notes.txt").write_text(""), "holds notes.txt"),
        (lambda place: (place / "movie.mp4").write_bytes(bytes(LARGEST_VIDEO + 1)), "is larger than 4 MiB"),
        (lambda place: edit(place, frame_rate="60/1"), "expected .*Fraction"),
    ],
)
def test_verification_names_what_is_wrong(
    optimum: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    damage: Callable[[Path], object], reason: str,
) -> None:  # fmt: skip
    damage(put(optimum, tmp_path))
    assert main(["verify"], root=tmp_path) == 1
    line = capsys.readouterr().out
    assert line.startswith("FAIL ")
    with pytest.raises(Problem, match=reason):
        raise Problem(line)


def edit(place: Path, **changes: Any) -> None:
    content = json.loads((place / "movie.json").read_text()) | changes
    (place / "movie.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"frames": 0}, "frames: "),
        ({"frames": "600"}, "frames: "),
        ({"frame_rate": "60/0"}, "frame_rate: "),
        ({"game": "../x"}, "game: "),
        ({"note": ""}, "note: "),
        ({"contributors": ["<b>"]}, "contributors have one"),
        ({"name": "b"}, "expected 'Pong-Nes-v0/600_b'"),
        ({"frames": 601}, "expected 'Pong-Nes-v0/601_a'"),
    ],
)
def test_a_movie_json_that_cannot_be_shown_is_named(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    path = write_about(tmp_path)
    edit(path.parent, **changes)
    with pytest.raises(Problem, match=reason) as caught:
        read_movies(tmp_path)
    assert caught.value.file == str(path)


def test_the_command_adds_and_says_what_comes_next(
    optimum: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--name", "low-road", "--contributor", "Ada", "--contributor", "Bob", "--description", "Proven"]
    assert main(["add", str(optimum), *words], root=tmp_path) == 0
    assert "Next: commit it; make boards shows it" in capsys.readouterr().out
    assert read_movies(tmp_path)[0].about.contributors == ("Ada", "Bob")


def test_all_movies_of_this_checkout_replay(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify_all(ROOT) == 0, capsys.readouterr().out


def test_the_readme_shows_the_board() -> None:
    block = find_block((ROOT / "README.md").read_text(), "board:retro:movies", file="README.md")
    assert block.text == board()
