"""The commands as a user types them, on the games that are here, with settings of a second or two."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import psutil
import pytest

from harness.errors import Problem
from harness.lock import locked
from harness.track import ROOT
from retro.inputs import parse_inputs
from retro.packages import load_package
from retro.run import main
from retro.search.route import read_route
from retro.video import SCALES

CONFIG = """
seed = {seed}
workers = 1
frames = {frames}
patience = 1000
items = 2
item_frames = 300
cells = 1000
crossings = 2
lookahead = 0
shave = 300
settle = 3
modes = {{walks = 60, frontier = 20, tree = 20}}
"""
PATH = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "PYTHONUNBUFFERED": "1", "COLUMNS": "200"}


def config(folder: Path, seed: int = 1, frames: int = 20_000) -> Path:
    path = folder / f"seed{seed}_frames{frames}.toml"
    path.write_text(CONFIG.format(seed=seed, frames=frames))
    return path


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "retro.run", *map(str, words)]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command(*words), cwd=ROOT, env=PATH, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def called(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    """A command in this process."""
    monkeypatch.setattr(sys, "argv", ["retro.run", *map(str, words)])
    return main()


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a search of Quarterstep's title screen, and its movie and video."""
    folder = tmp_path_factory.mktemp("quarterstep")
    (folder / "run").mkdir()
    done = run("search", "quarterstep", config(folder), "--until", "level-1", "--out", folder / "run")
    assert done.returncode == 0, done.stderr
    frames = read_route(folder / "run").frames
    assert re.search(rf"^Quarterstep: {frames} frames \(0:00\.\d\d\) to level-1$", done.stdout, re.MULTILINE)
    assert f"every segment replays from power-on: {folder / 'run'}" in done.stdout
    done = run("play", folder / "run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "The search has not reached the ending: level-1 is next.",
        f"Movie: {folder / 'run' / 'movie.bk2'}",
        f"Video: {folder / 'run' / 'movie.mp4'}",
    ]
    return folder


# ---- search ------------------------------------------------------------------------------------------------


def test_the_same_command_goes_on_and_finds_it_done(found: Path) -> None:
    before = (found / "run" / "route.json").read_bytes()
    done = run("search", "quarterstep", config(found), "--until", "level-1", "--out", found / "run")
    assert done.returncode == 0
    assert f"Going on at level-1: {found / 'run'}" in done.stdout
    assert (found / "run" / "route.json").read_bytes() == before


def test_what_is_found_is_a_movie_from_power_on(found: Path) -> None:
    route = read_route(found / "run")
    assert [(piece.state, piece.entered) for piece in route.pieces] == [
        ("power-on", "title"),
        ("title", "level-1"),
    ]
    assert route.game == "Quarterstep-Nes-v0"
    assert re.fullmatch("[0-9a-f]{64}", route.rom_sha256)
    assert route.pieces[1].inputs.endswith(":START") or "START" in route.pieces[1].inputs


def test_airstriker_is_searched_too(tmp_path: Path) -> None:
    done = run("search", "airstriker", config(tmp_path), "--until", "options", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Airstriker: \d+ frames \(0:0\d\.\d\d\) to options$", done.stdout, re.MULTILINE)
    route = read_route(tmp_path)
    assert [piece.entered for piece in route.pieces] == ["title", "options"]
    assert route.frames > 359, "before that frame the game does not read the pad"


def test_a_search_makes_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "outputs" / "retro" / "own"
    done = run("search", "quarterstep", config(tmp_path), "--until", "title", "--out", folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "route.json").exists()


def test_another_search_in_the_same_folder_is_refused(found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (found / "run" / "route.json").read_bytes()
    out = ("--out", found / "run")
    with pytest.raises(Problem, match="holds a search whose seed is 1, not 2") as caught:
        called(monkeypatch, "search", "quarterstep", config(found, seed=2), *out)
    assert "--out" in str(caught.value)
    with pytest.raises(Problem, match="holds a search whose game is Quarterstep-Nes-v0, not Airstriker"):
        called(monkeypatch, "search", "airstriker", config(found), *out)
    table = json.loads(before)
    table["rom_sha256"] = "0" * 64
    other = found / "other"
    other.mkdir()
    (other / "route.json").write_text(json.dumps(table))
    with pytest.raises(Problem, match="holds a search whose ROM is 0000"):
        called(monkeypatch, "search", "quarterstep", config(found), "--out", other)
    assert (found / "run" / "route.json").read_bytes() == before


def test_two_searches_do_not_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("search", "quarterstep", config(tmp_path), "--until", "title", "--out", tmp_path)
    with locked(tmp_path), pytest.raises(Problem, match="another process works in it"):
        called(monkeypatch, *words)
    with locked(tmp_path), pytest.raises(Problem, match="holds no search"):
        called(monkeypatch, "improve", tmp_path)


def test_a_changed_package_begins_the_segment_in_work_anew(tmp_path: Path) -> None:
    cut = config(tmp_path, frames=400)
    run("search", "quarterstep", cut, "--out", tmp_path)
    saved = tmp_path / "segment.npz"
    assert saved.is_file()
    table = json.loads((tmp_path / "route.json").read_text())
    pieces = len(table["pieces"])
    table["package_sha256"] = "0" * 64
    (tmp_path / "route.json").write_text(json.dumps(table))
    done = run("search", "quarterstep", cut, "--until", table["pieces"][-1]["entered"], "--out", tmp_path)
    assert (
        "The game package has changed: the search of the segment that is in work begins anew" in done.stdout
    )
    assert not saved.exists() and len(read_route(tmp_path).pieces) == pieces
    done = run("search", "quarterstep", cut, "--until", table["pieces"][-1]["entered"], "--out", tmp_path)
    assert "has changed" not in done.stdout, "it is told once"


def test_what_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = config(tmp_path)
    for words, reason in (
        (("search", "tetris", own), "there is no game package 'tetris'"),
        (("search", "quarterstep", "swift"), "there is no configuration 'swift'"),
        (("search", "quarterstep", own, "--until", "level-9"), "Quarterstep has no state 'level-9'"),
        (("info", tmp_path), "holds no search"),
        (("improve", tmp_path), "holds no search"),
        (("play", tmp_path), "holds no search"),
        (("play", tmp_path / "no.bk2"), "cannot be read"),
        (("verify", tmp_path / "no.bk2"), "cannot be read"),
        (("verify", tmp_path), "holds no movie. Remedy: write it"),
        (("search", "quarterstep", own, "--out", own), f"{own}: is not a folder"),
    ):
        with pytest.raises(Problem, match=re.escape(reason)):
            called(monkeypatch, *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("improve", ".", "--passes", "0"), "'0' is not a whole number from 1 to"),
        (("improve", ".", "--workers", "-1"), "'-1' is not a whole number from 0 to 256"),
        (("check", "quarterstep", "--frames", "0"), "'0' is not a whole number from 1 to"),
        (("check", "quarterstep", "--seed", "1.5"), "'1.5' is not a whole number from 0 to"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(
    words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        called(monkeypatch, *words)
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def title(table: dict[str, Any]) -> dict[str, Any]:
    """The piece from the title screen to level 1."""
    piece: dict[str, Any] = table["pieces"][1]
    return piece


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            lambda t: t.update(package="airstriker"),
            "search of Quarterstep-Nes-v0, and the package airstriker is",
        ),
        (
            lambda t: title(t).update(frames=18),
            "piece 2 is none that a search writes: its inputs are of 19 frames",
        ),
        (lambda t: title(t).update(inputs="19:JUMP"), "piece 2 .*'JUMP' is not a button"),
        (lambda t: title(t).update(entered="level-9"), "piece 2 .*has no state 'level-9'"),
        (
            lambda t: title(t).update(state="level-1"),
            "begins in level-1, where the one before has entered title",
        ),
        (
            lambda t: t["pieces"].pop(0),
            "piece 1 .*begins in title, where the one before has entered power-on",
        ),
        (lambda t: t["pieces"][0].update(inputs="1:START 20"), "buttons are pressed in the first frame"),
    ],
)
def test_a_route_that_was_edited_is_refused_by_every_command(
    found: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    edit: Callable[[dict[str, Any]], object],
    said: str,
) -> None:
    table = json.loads((found / "run" / "route.json").read_text())
    edit(table)
    (tmp_path / "route.json").write_text(json.dumps(table))
    words = [("info", tmp_path), ("play", tmp_path), ("improve", tmp_path, "--workers", "0")]
    if table["package"] == "quarterstep":
        words.append(("search", "quarterstep", config(found), "--out", tmp_path))
    for command in words:
        with pytest.raises(Problem, match=said):
            called(monkeypatch, *command)


def test_a_folder_of_a_search_that_has_found_nothing_has_no_movie(
    found: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = json.loads((found / "run" / "route.json").read_text())
    (tmp_path / "route.json").write_text(json.dumps({**table, "pieces": []}))
    with pytest.raises(Problem, match="nothing has been found yet"):
        called(monkeypatch, "play", tmp_path)


def test_a_missing_rom_ends_with_a_message(tmp_path: Path) -> None:
    done = run("search", "scripted_game.lost:Lost", config(tmp_path), "--out", tmp_path)
    assert done.returncode == 2
    assert "no rom.<extension> of a known console lies here" in done.stderr
    assert "Remedy: put the ROM there" in done.stderr


def test_a_search_that_is_cut_off_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = config(tmp_path, frames=1)
    text = told.read_text().replace("workers = 1", "workers = 0")
    told.write_text(text.replace("item_frames = 300", "item_frames = 5"))
    assert called(monkeypatch, "search", "scripted_game.small:Rooms", told, "--out", tmp_path) == 1
    said = capsys.readouterr().out
    assert "The search of first was cut off. More frames in the configuration let it go on" in said


def test_a_search_that_is_exhausted_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = config(tmp_path)
    told.write_text(told.read_text().replace("workers = 1", "workers = 0"))
    assert called(monkeypatch, "search", "scripted_game.small:Closed", told, "--out", tmp_path) == 1
    said = capsys.readouterr().out
    assert "exhausted" in said
    assert "More frames" not in said


def test_ctrl_c_leaves_a_folder_that_goes_on(found: Path) -> None:
    folder = found / "stopped"
    folder.mkdir()
    words = ("search", "quarterstep", config(found, frames=10**9), "--out", folder)
    process = subprocess.Popen(
        command(*words), cwd=ROOT, env=PATH, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        for _ in range(1_200):
            if (folder / "route.json").exists() and len(read_route(folder).pieces) > 1:
                break
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        time.sleep(0.3)
        workers = psutil.Process(process.pid).children(recursive=True)
        assert workers
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
        _, errors = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 130
    assert errors.rstrip().endswith("Stopped by Ctrl-C.")
    assert "Traceback" not in errors
    psutil.wait_procs(workers, timeout=10)
    assert not [worker for worker in workers if worker.is_running()]
    assert [piece.entered for piece in read_route(folder).pieces] == ["title", "level-1"]
    assert read_route(folder).pieces == read_route(found / "run").pieces
    done = run("search", "quarterstep", config(found), "--until", "level-1", "--out", folder)
    assert done.returncode == 0
    assert "Going on at level-1" in done.stdout


# ---- improve, info -----------------------------------------------------------------------------------------


def test_improve_goes_through_every_segment(found: Path) -> None:
    folder = found / "improved"
    folder.mkdir()
    (folder / "route.json").write_bytes((found / "run" / "route.json").read_bytes())
    before = read_route(folder)
    done = run("improve", folder, "--workers", 1, "--config", config(found))
    assert done.returncode == 0, done.stderr
    after = read_route(folder)
    said = re.search(r"^Pass 1: (\d+) frames saved, (\d+) frames", done.stdout + done.stderr, re.MULTILINE)
    assert said is not None
    assert int(said[1]) == before.frames - after.frames >= 0
    assert int(said[2]) == after.frames


def test_info_shows_splits_and_how_each_search_ended(found: Path) -> None:
    done = run("info", found / "run")
    assert done.returncode == 0
    route = read_route(found / "run")
    lines = [re.split(r"\s*│\s*", line)[1:-1] for line in done.stdout.splitlines() if line.startswith("│")]
    assert [line[0] for line in lines] == ["power-on to title", "title to level-1"]
    at = 0
    for line, piece in zip(lines, route.pieces, strict=True):
        at += piece.frames
        assert line[1] == str(piece.frames)
        assert line[2].startswith(f"{at} frames (0:00.")
        assert line[3] == piece.ending
        counts = piece.first, piece.searched, piece.cells, piece.dropped, piece.deaths
        assert [int(cell.replace(",", "")) for cell in line[4:]] == list(counts)
    assert "level-1 is next." in done.stdout


def test_info_cuts_nothing_in_a_pipe(found: Path) -> None:
    environment = {name: value for name, value in PATH.items() if name != "COLUMNS"}
    done = subprocess.run(
        command("info", found / "run"), cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert "…" not in done.stdout


# ---- play, verify ------------------------------------------------------------------------------------------


def test_the_video_shows_every_frame_at_the_true_rate(found: Path) -> None:
    frames = read_route(found / "run").frames
    with av.open(str(found / "run" / "movie.mp4")) as container:
        (video,), (sound,) = container.streams.video, container.streams.audio
        assert (video.codec_context.name, sound.codec_context.name) == ("h264", "aac")
        assert abs(video.average_rate - Fraction(39375000, 655171)) < Fraction(1, 100)
        pictures = [frame.to_ndarray(format="rgb24") for frame in container.decode(video)]
    assert len(pictures) == frames
    height, width, _ = pictures[0].shape
    assert height in (448, 480)
    assert width in (480, 512)
    assert max(picture.std() for picture in pictures) > 5, "the title screen is seen"
    assert not [path.name for path in (found / "run").iterdir() if "partial" in path.name]


def test_a_good_movie_passes(found: Path) -> None:
    done = run("verify", found / "run")  # the movie in it
    assert done.returncode == 0
    route = read_route(found / "run")
    assert done.stdout.splitlines() == [
        f"{route.pieces[0].frames:>8,}  title",
        f"{route.frames:>8,}  level-1",
        f"pass: {route.frames} frames from power-on, as it claims",
    ]


def forged(found: Path, name: str, member: str, before: str, after: str) -> Path:
    """A copy of the movie with one thing changed."""
    path = found / name
    with zipfile.ZipFile(found / "run" / "movie.bk2") as good, zipfile.ZipFile(path, "w") as bad:
        for entry in good.namelist():
            content = good.read(entry)
            if entry == member:
                assert before.encode() in content
                content = content.replace(before.encode(), after.encode(), 1)
            bad.writestr(entry, content)
    return path


def test_a_movie_that_claims_to_be_faster_fails(found: Path) -> None:
    frames = read_route(found / "run").frames
    path = forged(found, "faster.bk2", "Speedrun.json", f'"level-1":{frames}', f'"level-1":{frames - 1}')
    done = run("verify", path)
    assert done.returncode == 1
    assert f"{path}: level-1 is entered at frame {frames - 1}, by the replay at {frames}" in done.stdout
    assert "FAIL" in done.stdout


def test_a_movie_of_other_inputs_fails(found: Path) -> None:
    with zipfile.ZipFile(found / "run" / "movie.bk2") as good:
        log = good.read("Input Log.txt").decode()
    pressed = next(line for line in log.splitlines() if re.search(r"^\|\.\.\|.*S", line))
    path = forged(found, "idle.bk2", "Input Log.txt", pressed, re.sub("[^|.]", ".", pressed))
    done = run("verify", path)
    assert done.returncode == 1
    assert "level-1 is entered at frame" in done.stdout


def test_half_a_movie_is_a_problem(found: Path) -> None:
    path = found / "half.bk2"
    content = (found / "run" / "movie.bk2").read_bytes()
    path.write_bytes(content[: len(content) // 2])
    done = run("verify", path)
    assert done.returncode == 2
    assert str(path) in done.stderr


def test_a_movie_is_shown_by_itself_too(found: Path) -> None:
    path = found / "alone.bk2"
    path.write_bytes((found / "run" / "movie.bk2").read_bytes())
    done = run("play", path, "--scale", 3)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"Video: {path.with_suffix('.mp4')}"
    with av.open(str(path.with_suffix(".mp4"))) as container:
        assert container.streams.video[0].width in (720, 768)


def test_what_is_made_of_a_movie_goes_where_it_is_told(
    found: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "play", found / "run" / "movie.bk2", "--out", tmp_path / "new" / "own") == 0
    assert capsys.readouterr().out.strip() == f"Video: {tmp_path / 'new' / 'own' / 'movie.mp4'}"
    assert (tmp_path / "new" / "own" / "movie.mp4").exists()


def test_nothing_in_records_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    movie = next((ROOT / "records" / "retro" / "movies").glob("Quarterstep*/*/movie.bk2"))
    before = movie.with_suffix(".mp4").stat()
    monkeypatch.setattr("retro.run.OUTPUTS", tmp_path)
    assert called(monkeypatch, "play", movie, "--scale", 1) == 0
    made = tmp_path / movie.parent.name / "movie.mp4"
    assert capsys.readouterr().out.strip() == f"Video: {made}"
    assert made.exists() and movie.with_suffix(".mp4").stat().st_mtime_ns == before.st_mtime_ns


def test_a_movie_and_a_record_are_no_run_folders_and_how_they_are_watched_is_told(
    found: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    movie = found / "run" / "movie.bk2"
    for name in ("info", "improve"):
        with pytest.raises(
            Problem,
            match=re.escape(
                f"is a movie, and no run folder. Remedy: see its splits: python -m retro.run verify {movie}"
            ),
        ):
            called(monkeypatch, name, movie)
    record = next((ROOT / "records" / "retro").glob("*/movies.json")).parent
    for name in ("info", "improve", "play"):
        with pytest.raises(Problem, match="holds the movies of a run, and no search") as caught:
            called(monkeypatch, name, record)
    assert caught.value.remedy is not None
    show, _, play = caught.value.remedy.partition("in its place: ")[2].partition(" && ")
    subprocess.run(show.replace("python", sys.executable, 1), shell=True, cwd=tmp_path, check=True)
    assert play == "python -m retro.run play first.txt --package quarterstep"
    masks = parse_inputs((tmp_path / "first.txt").read_text(), load_package("quarterstep").console_buttons)
    assert len(masks) > 788  # which are the fewest
    (tmp_path / "movies.json").write_text("{}")
    (tmp_path / "best.bk2").write_bytes(b"")
    with pytest.raises(Problem, match=f"watch its best: python -m retro.run play {tmp_path}/best.bk2"):
        called(monkeypatch, "info", tmp_path)


def test_every_scale_that_is_offered_is_taken() -> None:
    done = run("play", "--help")
    offered = re.search(r"--scale \{([\d,]+)\}", done.stdout)
    assert offered is not None
    assert tuple(map(int, offered[1].split(","))) == SCALES


def test_help_names_every_command() -> None:
    done = run("--help")
    assert done.returncode == 0
    for name in ("search", "improve", "info", "play", "verify", "check"):
        assert re.search(rf"^ +{name} ", done.stdout, re.MULTILINE)
    assert run().returncode == 2
