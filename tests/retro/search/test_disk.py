"""Faults of the disk and of what lies on it: a clear message, and nothing lost that was saved."""

import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import Problem
from harness.track import ROOT
from retro.packing import pack, unpack
from retro.search import route as route_module
from retro.search.pool import Item, open_pool
from retro.search.route import read_route
from scripted_game.searching import HOPPER, find, knowledge, settings, start_of

QUICK = settings(frames=12_000, patience=4_000, shave=3_000, lookahead=0)
CONFIG = """
seed = 1
workers = 0
frames = 12000
patience = 4000
items = 4
item_frames = 500
cells = 4000
crossings = 3
lookahead = 0
shave = 3000
settle = 3
modes = {walks = 60, frontier = 20, tree = 20}
"""


@pytest.mark.parametrize("largest", [300, 20_000])
def test_a_full_disk_is_said_and_costs_nothing_that_was_saved(tmp_path: Path, largest: int) -> None:
    """No file may grow beyond `largest` bytes, which to the program is as if the disk was full."""
    folder, calm = tmp_path / "run", tmp_path / "calm"
    folder.mkdir()
    calm.mkdir()
    (tmp_path / "own.toml").write_text(CONFIG)
    command = [sys.executable, "-m", "retro.run", "search", HOPPER, str(tmp_path / "own.toml")]
    done = subprocess.run(
        [*command, "--out", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    name = "route.json" if largest == 300 else "segment.npz"
    last = done.stderr.splitlines()[-1]
    assert f"{folder / name}: cannot be written: File too large. Remedy: make room" in last
    assert "Traceback" not in done.stderr
    assert not [path.name for path in folder.iterdir() if "partial" in path.name]
    if name == "segment.npz":
        assert [piece.entered for piece in read_route(folder).pieces] == ["title", "level-1"]
        (folder / "segment.npz").unlink(missing_ok=True)
    solved, route = find(folder, told=QUICK)
    assert solved
    assert route.pieces == find(calm, told=QUICK)[1].pieces


def test_a_file_that_cannot_be_written_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find(tmp_path, told=QUICK, until=2)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Problem, match="No space left on device") as caught:
        find(tmp_path, told=QUICK)
    assert str(tmp_path) in str(caught.value)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    monkeypatch.undo()
    solved, _ = find(tmp_path, told=QUICK)
    assert solved


def test_a_segment_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    find(tmp_path, told=QUICK, until=2)
    (tmp_path / route_module.SEGMENT).unlink(missing_ok=True)
    (tmp_path / route_module.SEGMENT).write_bytes(b"")
    with pytest.raises(Problem, match="cut short or corrupt") as caught:
        find(tmp_path, told=QUICK)
    assert str(tmp_path / route_module.SEGMENT) in str(caught.value)


def test_a_foreign_savestate_is_refused_by_a_real_console() -> None:
    """And the message of the worker that found it comes through."""
    with open_pool("quarterstep", 1) as pool:
        beginning, _ = pool.arrive(((0, 1),))
        pool.open(knowledge(beginning.segment))
        good = start_of(beginning)
        (done,) = pool.do([Item("walks", [good], "1", 30)])
        assert done.result.frames >= 30
        state = bytearray(unpack(good.state))
        state[-1] ^= 1
        bad = replace(good, state=pack(bytes(state)))
        with pytest.raises(Problem, match=r"savestate .*corrupt"):
            pool.do([Item("walks", [bad], "1", 30)])


@pytest.mark.parametrize("workers", [0, 1])
def test_a_missing_rom_is_named(workers: int) -> None:
    with (
        pytest.raises(Problem, match=r"no rom\.<extension> of a known console lies here") as caught,
        open_pool("scripted_game.lost:Lost", workers) as pool,
    ):
        pool.arrive(((0, 1),))
    assert "scripted_game" in str(caught.value)
