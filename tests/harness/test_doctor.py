"""The doctor says what there is and never shows a key."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.doctor import KEYS, machine_rows, track_rows
from harness.machine import Machine, inspect
from harness.track import ROOT, available_tracks

MACHINE = Machine(
    cpu="Some CPU",
    logical_cores=16,
    available_cores=12,
    memory_gib=24.0,
    gpus=("NVIDIA H100 80GB HBM3",),
    driver="580.1",
    python="3.11.7",
    platform="Linux",
)


def test_the_machine_is_shown() -> None:
    rows = dict(machine_rows(MACHINE))
    assert rows["Processor"] == "Some CPU, 16 cores present, 12 available to a run"
    assert rows["GPUs"] == "NVIDIA H100 80GB HBM3"
    assert rows["GPU driver"] == "580.1"
    nothing = {"gpus": (), "driver": None, "available_cores": None}
    bare = dict(machine_rows(MACHINE.model_copy(update=nothing)))
    assert (bare["GPUs"], bare["GPU driver"]) == ("none visible", "none")
    assert "any available" in bare["Processor"]


def test_a_ready_track_is_shown_with_its_classes() -> None:
    ((name, finding),) = track_rows("toy_track", MACHINE)
    assert name == "Track toy_track"
    assert finding.splitlines() == [
        "ready",
        "class cpu: GPUs visible: 1, wanted: none",
        "class 1xH100: this machine",
    ]


def test_a_track_that_misses_something_and_one_that_is_broken_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    lacking = (
        "from dataclasses import replace\n"
        "from harness.track import HardwareClass\n"
        "from toy_track.track import TRACK as TOY\n"
        "two = HardwareClass('cpu', 'two CPU cores', 2, 0, '', 60.0)\n"
        "TRACK = replace(TOY, name='lacking', classes=(two,), ready=lambda: ['levels', 'Java'])\n"
    )
    for name, text in (("lacking", lacking), ("broken", "1 / 0")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "track.py").write_text(text)
    machine = MACHINE.model_copy(update={"gpus": ()})
    assert track_rows("lacking", machine)[-1][1] == "missing: levels; Java\nclass cpu: this machine"
    one_core = machine.model_copy(update={"available_cores": 1})
    assert "class cpu: cores available: 1, wanted: exactly 2" in track_rows("lacking", one_core)[-1][1]
    assert track_rows("broken", machine)[-1][1] == "cannot be loaded: division by zero"


def test_the_command_shows_every_track_and_no_key() -> None:
    secret = "sk-1234567890"
    settings = {"OPENAI_API_KEY": secret, "HF_TOKEN": "", "CUDA_VISIBLE_DEVICES": "", "COLUMNS": "200"}
    environment = {**os.environ, **settings}
    environment.pop("WANDB_API_KEY", None)
    command = [sys.executable, "-W", "error", "-m", "harness.doctor"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert secret not in done.stdout + done.stderr
    rows = {name: next(line for line in done.stdout.splitlines() if name in line) for name in KEYS}
    assert "present" in rows["OPENAI_API_KEY"]
    assert "absent" in rows["HF_TOKEN"]
    assert "absent" in rows["WANDB_API_KEY"]
    assert inspect().cpu in done.stdout
    for name in available_tracks():
        assert f"Track {name}" in done.stdout
