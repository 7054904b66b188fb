"""A full disk and a read-only folder, real ones: a clear problem each time, and a run that can go on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.log import read_log
from harness.track import ROOT

PAGE = 4096
TOY = f"{sys.executable} -m toy_track.slow"


def in_small_disk(folder: Path, script: str) -> str:
    """What a shell script says in a file system of 64 pages of its own, mounted where the folder is."""
    mount = f"mount -t tmpfs -o size={64 * PAGE} none {folder} && cd {folder}"
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("this system does not let a test mount")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = ["unshare", "-m", "sh", "-c", f"{mount}\n{script}"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def test_a_disk_that_is_full_before_there_is_a_run(tmp_path: Path) -> None:
    said = in_small_disk(
        tmp_path,
        f"""
        head -c {64 * PAGE} /dev/zero > filler 2> /dev/null
        {TOY}; echo status $?
        rm filler; rmdir outputs; echo status $?
        """,
    )
    assert "speedrun.py: cannot be written: No space left on device. Remedy: make room" in said
    assert said.count("status 2") == said.count("status 0") == 1, said


def test_a_disk_that_gets_full_in_training(tmp_path: Path) -> None:
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    said = in_small_disk(
        disk,
        f"""
        mkdir outputs; head -c {53 * PAGE} /dev/zero > filler
        {TOY} --recipe.pause 0.001 --save-every 0; echo status $?
        rm filler
        {TOY} --resume outputs/*; echo status $?
        cp -r outputs {kept}
        """,
    )
    assert "cannot be written: No space left on device. Remedy: make room" in said
    assert "training goes on after step" in said
    assert said.count("status 2") == 1 and said.count("status 0") == 1, said
    (run,) = kept.iterdir()
    assert read_log(run / "log.jsonl").status == "complete" and not list(run.glob(".*.partial"))


def test_a_read_only_folder(tmp_path: Path) -> None:
    said = in_small_disk(
        tmp_path,
        f"""
        {TOY} --smoke > /dev/null
        mount -o remount,ro {tmp_path}
        {TOY}; echo status $?
        {sys.executable} - <<'END'
import pathlib
from harness.errors import run_command
from harness.run import Run
run_command(lambda: Run.open(next(pathlib.Path("outputs").iterdir())) and None)
END
        echo status $?
        """,
    )
    assert said.count("status 2") == 2, said
    assert said.count("cannot be written: Read-only file system. Remedy: ") == 2
