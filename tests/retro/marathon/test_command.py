"""The command on a real core: killed and started again, its movie is there, true and never worse."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import Problem
from harness.files import read_jsonl
from harness.track import ROOT
from retro.config import CONFIGS
from retro.marathon.rival import read_rival, splits_table
from retro.packages import load_package
from retro.replay import verify
from retro.run import package_rate
from retro.search.route import read_run
from retro.times import format_frames

SPEC = "quarterstep"
SMALL = {"workers": 1, "frames": 20_000, "patience": 1_000, "lookahead": 0, "shave": 0, "practice": 2}


def configuration(folder: Path, **changes: object) -> Path:
    """The shipped configuration, made small."""
    text = (CONFIGS / "marathon.toml").read_text()
    for key, value in {**SMALL, **changes}.items():
        text = re.sub(rf"^{key} = .*$", f"{key} = {value}", text, count=1, flags=re.MULTILINE)
    path = folder / "small.toml"
    path.write_text(text)
    return path


def start(folder: Path, config: Path, *more: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "retro.run", "marathon", SPEC, str(config), "--out", str(folder), *more]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def lines(folder: Path) -> list[str]:
    path = folder / "journal.jsonl"
    return [line["event"] for _, line in read_jsonl(path)] if path.exists() else []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A marathon that was killed three times, each time a little later, and stopped by its bound."""
    folder = tmp_path_factory.mktemp("marathon")
    config = configuration(tmp_path_factory.mktemp("config"))
    best = (0, 0)
    for milestones, wait in ((1, 0.0), (3, 0.2), (4, 1.5)):
        with start(folder, config) as process:
            deadline = time.monotonic() + 120
            while len(lines(folder)) < milestones and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(wait)
            os.kill(process.pid, signal.SIGKILL)
        if (folder / "movie.bk2").exists():
            shown = verify(folder / "movie.bk2", SPEC)
            assert not shown.differences
            now = (len(shown.replay.splits), -shown.replay.frames)
            assert now >= best
            best = now
    with start(folder, config, "--frames", "6000") as process:
        said = process.communicate(timeout=120)[0]
    assert process.returncode == 0, said
    assert "verified: " in said
    (emulated,) = re.findall(r"its bound is reached; ([\d,]+) frames emulated", said)
    assert int(emulated.replace(",", "")) >= 6000
    shown = verify(folder / "movie.bk2", SPEC)
    assert not shown.differences
    assert (len(shown.replay.splits), -shown.replay.frames) >= best
    return folder


def test_it_goes_on_after_every_kill(folder: Path) -> None:
    told = lines(folder)
    assert told.count("begun") == 4
    assert told[-1] == "stopped"
    assert told.count("piece") == len(verify(folder / "movie.bk2", SPEC).replay.splits) - 1
    route, package = read_run(folder)
    assert verify(folder / "movie.bk2").movie.inputs == tuple(route.inputs(package.console_buttons))
    assert (folder / "splits.md").read_text().startswith("# Quarterstep: ")


def test_a_damaged_movie_is_written_again(folder: Path, tmp_path: Path) -> None:
    before = (folder / "movie.bk2").read_bytes()
    for damaged in (b"", before[: len(before) // 2]):
        (folder / "movie.bk2").write_bytes(damaged)
        with start(folder, configuration(tmp_path), "--frames", "1") as process:
            process.communicate(timeout=120)
        assert (folder / "movie.bk2").read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_it_and_sigterm(folder: Path, tmp_path: Path, number: signal.Signals) -> None:
    before = len(lines(folder))
    with start(folder, configuration(tmp_path)) as process:
        while len(lines(folder)) == before:
            time.sleep(0.05)
        process.send_signal(number)
        said = process.communicate(timeout=60)[0]
    assert process.returncode == 130
    route, package = read_run(folder)
    at = f"{route.pieces[-1].entered}, {format_frames(route.frames, package_rate(package))}"
    assert said.startswith(f"Going on at {at}: {folder}\n")
    assert f"Movie: {folder / 'movie.bk2'}\nThe same command goes on: {folder}\n" in said
    assert lines(folder)[before:] == ["begun", "stopped"]


def test_a_second_one_in_the_folder_is_refused_while_the_first_works(folder: Path, tmp_path: Path) -> None:
    before = len(lines(folder))
    with start(folder, configuration(tmp_path)) as first:
        while len(lines(folder)) == before:
            time.sleep(0.05)
        with start(folder, configuration(tmp_path)) as second:
            said = second.communicate(timeout=60)[0]
        assert second.returncode == 2
        assert "another process works in it" in said
        first.kill()


def test_no_other_search_works_in_its_folder(folder: Path) -> None:
    command = [sys.executable, "-m", "retro.run"]
    for words in (["improve", str(folder)], ["search", SPEC, "brief", "--out", str(folder)]):
        done = subprocess.run([*command, *words], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "holds a marathon. Remedy: go on with it: python -m retro.run marathon" in done.stderr


def test_a_rivals_splits_stand_beside_ours(folder: Path, tmp_path: Path) -> None:
    rival = read_rival(folder / "movie.bk2", SPEC)
    route, package = read_run(folder)
    splits_table(tmp_path / "splits.md", package, route.pieces, rival)
    text = (tmp_path / "splits.md").read_text()
    assert "| entered | frames | at | reference | behind it by |" in text
    assert text.count("| +0 |") == len(route.pieces)
    entered = route.pieces[0].entered
    faster = replace(rival, splits={entered: rival.splits[entered] - 2})
    splits_table(tmp_path / "splits.md", package, route.pieces, faster)
    assert "| +2 |" in (tmp_path / "splits.md").read_text()


def test_a_movie_of_another_game_is_no_rival(folder: Path) -> None:
    assert load_package("airstriker").name != load_package(SPEC).name
    with pytest.raises(Problem, match="a movie of Quarterstep"):
        read_rival(folder / "movie.bk2", "airstriker")


def test_a_new_one_stops_at_its_bound(tmp_path: Path) -> None:
    with start(tmp_path / "new", configuration(tmp_path), "--frames", "2000") as process:
        said = process.communicate(timeout=120)[0]
    assert process.returncode == 0, said
    assert "its bound is reached" in said
