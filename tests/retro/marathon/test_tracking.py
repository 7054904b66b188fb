"""Figures of marathons in W&B: those of the journal, one run over all starts, and no harm to the search."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.files import canonical_json, read_jsonl
from harness.track import ROOT
from retro.config import CONFIGS
from retro.guidance.policy import POLICY, Export, Policy, write_policy
from retro.marathon import tracking
from retro.marathon.store import MARATHON, read_saved
from retro.marathon.tracking import figures, follow, last_progress, tracked
from retro.packages import load_package
from scripted_game.marathons import QUICK, config, run, without_a_console
from scripted_game.searching import HOPPER
from toy_track.wandb_files import wandb_records, wandb_rows

SMALL = {
    "workers": 0,
    "frames": 20_000,
    "patience": 1_000,
    "lookahead": 0,
    "shave": 500,
    "tracking": '"speed"',
}
SPEED = config(tracking="speed")
COUNTS = {"found": ("piece", "ending"), "improved": ("improved",), "checkpoints": ("checkpoint",)}


def journal(folder: Path) -> list[dict[str, Any]]:
    return [line for _, line in read_jsonl(folder / "journal.jsonl")]


def as_the_journal_says(row: Mapping[str, float], folder: Path) -> None:
    lines = journal(folder)
    told = Counter(line["event"] for line in lines)
    for name, events in {**COUNTS, "stuck": ("stuck",), "starts": ("begun",)}.items():
        assert row[name] == sum(told[event] for event in events)
    assert row["frames"] == lines[-1]["frames"]
    pieces = read_saved(folder / MARATHON).route.pieces
    ends = np.cumsum([piece.frames for piece in pieces]).tolist()
    splits = {name: value for name, value in row.items() if name.startswith("split/")}
    assert splits == {f"split/{piece.entered}": at for piece, at in zip(pieces, ends, strict=True)}
    assert (row["pieces"], row["levels_beaten"]) == (len(pieces), len(pieces) - 1)


@pytest.fixture
def marathon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scripted game's, of a few seconds."""
    without_a_console(monkeypatch)
    run(tmp_path, HOPPER, config(), frames=60_000)
    return tmp_path


class Kept:
    """A sink."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, float, dict[str, float]]] = []
        self.finished = False

    def step(self, step: int, moment: float, numbers: Mapping[str, float]) -> None:
        self.rows.append((step, moment, dict(numbers)))

    def finish(self, results: Mapping[str, float]) -> None:
        self.finished = True


# ---- figures -----------------------------------------------------------------------------------------------


def test_figures_are_those_of_the_journal(marathon: Path) -> None:
    saved = read_saved(marathon / MARATHON)
    lines = journal(marathon)
    gained = [line for line in lines if line["event"] in ("piece", "ending", "improved", "practised")]
    now = datetime.fromisoformat(gained[-1]["utc"]).timestamp() + 1800
    row = figures(marathon, saved, 60.0, now)
    as_the_journal_says(row, marathon)
    assert row["hours_since_progress"] == 0.5
    assert row["run_time_s"] == row["frames"] / 60
    assert row["frames_shaved"] == saved.tally.shaved
    assert not any(name.startswith("policy/") for name in row)


def test_a_policys_figures_are_told_where_one_is_followed(marathon: Path) -> None:
    numbers = {"reward": 1.5, "exits": 3, "exit_rate": 0.25, "entropy": 2.0, "explained_variance": -0.5}
    ones = np.ones(1, np.float32)
    policy = Policy(ones, ones, ((np.ones((1, 2), np.float32), np.ones(2, np.float32)),), (0, 1), 4)
    write_policy(marathon / POLICY, Export((0, "a"), policy, (), numbers))
    saved = read_saved(marathon / MARATHON)
    assert not any(name.startswith("policy/") for name in figures(marathon, saved, 60.0, 0.0)), "of before"
    saved.route.settings = config(QUICK.__class__(**{**vars(QUICK), "guidance": {"policy": 0.2}})).settings
    row = figures(marathon, saved, 60.0, 0.0)
    assert {name: row[f"policy/{name}"] for name in numbers} == numbers


def test_a_line_that_is_being_written_is_not_read_yet(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    assert last_progress(path) is None
    begun = canonical_json({"utc": "2026-01-01T00:00:00Z", "event": "begun"}) + "\n"
    path.write_text(begun + begun.replace(":00Z", ":09Z"))
    first = datetime.fromisoformat("2026-01-01T00:00:00Z").timestamp()
    assert last_progress(path) == first
    piece = canonical_json({"utc": "2026-01-01T00:01:00Z", "event": "piece"}) + "\n"
    path.write_text(begun + piece + begun + piece[:20])
    assert last_progress(path) == first + 60


def test_rows_follow_until_the_search_ends(marathon: Path) -> None:
    sink, ended = Kept(), threading.Event()
    began = time.time() - 1000
    thread = threading.Thread(target=follow, args=[marathon, 60.0, sink, began, ended, 0.01])
    thread.start()
    while len(sink.rows) < 3:
        time.sleep(0.01)
    assert not sink.finished
    ended.set()
    thread.join()
    assert sink.finished
    steps = [step for step, *_ in sink.rows]
    assert steps == sorted(steps)
    assert 1000 <= steps[0] < 1100
    as_the_journal_says(sink.rows[-1][2], marathon)


def test_there_is_no_row_before_there_is_a_marathon(tmp_path: Path) -> None:
    sink, ended = Kept(), threading.Event()
    ended.set()
    follow(tmp_path, 60.0, sink, 0.0, ended)
    assert (sink.rows, sink.finished) == ([], True)


# ---- the process -------------------------------------------------------------------------------------------


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a key."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NETRC", raising=False)
    return tmp_path


def offline(folder: Path) -> list[Path]:
    return sorted(folder.glob("wandb/offline-run-*/*.wandb"))


def test_one_run_goes_on_through_a_kill_with_what_the_journal_says(nobody: Path) -> None:
    pytest.importorskip("wandb")
    text = (CONFIGS / "marathon.toml").read_text()
    for key, value in SMALL.items():
        text = re.sub(rf"^{key} = .*$", f"{key} = {value}", text, count=1, flags=re.MULTILINE)
    (nobody / "small.toml").write_text(text)
    folder, said = nobody / "run", nobody / "said.txt"
    command = [sys.executable, "-m", "retro.run", "marathon", "quarterstep", str(nobody / "small.toml")]
    command += ["--out", str(folder)]
    with said.open("w") as out, subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out) as search:
        while "W&B" not in said.read_text():
            assert search.poll() is None, said.read_text()
            time.sleep(0.05)
        os.kill(search.pid, signal.SIGKILL)
    assert "Tracking: W&B offline (W&B says: No API key configured" in said.read_text()
    assert f"files: {offline(folder)[0].parent}; " in said.read_text()
    subprocess.run([*command, "--frames", "16000"], cwd=ROOT, check=True, capture_output=True)
    assert len(offline(folder)) == 2
    made, rows = [], []
    for path in offline(folder):
        (one,) = (record.run for record in wandb_records(path) if record.WhichOneof("record_type") == "run")
        made.append((one.run_id, one.project, one.display_name))
        rows += wandb_rows(path)
    run_id = json.loads((folder / "tracking.json").read_text())["run"]
    assert made == [(run_id, "speed", "Quarterstep: run")] * 2
    steps = [row["_step"] for row in rows]
    assert steps == sorted(steps)
    as_the_journal_says(rows[-1], folder)
    assert rows[-1]["found"] >= 1
    assert rows[-1]["emulated_frames"] == read_saved(folder / MARATHON).tally.emulated >= 3000


@pytest.mark.parametrize(("key", "says"), [("short", "WANDB_API_KEY invalid: "), ("a" * 40, "")])
def test_where_wandb_refuses_or_does_not_answer_files_are_kept(
    key: str, says: str, nobody: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_API_KEY", key)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")  # where nothing listens
    monkeypatch.setenv("WANDB_INIT_TIMEOUT", "2")
    with tracked(nobody, load_package("quarterstep"), SPEED, patience=60.0):
        pass
    assert capsys.readouterr().out.startswith(f"Tracking: W&B offline (W&B says: {says}")
    (path,) = offline(nobody)
    (made,) = (record.run for record in wandb_records(path) if record.WhichOneof("record_type") == "run")
    told = {update.key: json.loads(update.value_json) for update in made.config.update}
    assert (told["game"], told["seed"]) == ("Quarterstep-Nes-v0", SPEED.seed)
    assert told["search"]["modes"] == SPEED.settings.modes


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("raise SystemExit(1)", ""),
        ("print('what it says')", "what it says\n"),
        ("import os; os.close(0); os.close(1)", ""),
    ],
)
def test_a_process_that_ends_does_no_harm(
    program: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    body(program, tmp_path, monkeypatch)
    with tracked(tmp_path, load_package("quarterstep"), SPEED):
        time.sleep(0.3)
    assert capsys.readouterr().out == says


def test_a_process_that_hangs_is_waited_for_no_longer_than_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pid = tmp_path / "pid"
    body(
        f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)",
        tmp_path,
        monkeypatch,
    )
    began = time.monotonic()
    with tracked(tmp_path, load_package("quarterstep"), SPEED, patience=0.1):
        while not pid.exists() or not pid.read_text():
            time.sleep(0.01)
        searched = time.monotonic()
    assert time.monotonic() - searched < 5 > searched - began
    assert f"process {pid.read_text()} goes on with them" in capsys.readouterr().out
    (reader,) = (thread for thread in threading.enumerate() if "_pass_on" in thread.name)
    os.kill(int(pid.read_text()), signal.SIGKILL)
    reader.join()


def test_a_process_that_cannot_be_started_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tracking.sys, "executable", str(tmp_path / "none"))
    with tracked(tmp_path, load_package("quarterstep"), SPEED):
        pass
    assert capsys.readouterr().out.startswith("Tracking: off: ")


def test_without_a_project_there_is_no_process(tmp_path: Path) -> None:
    with tracked(tmp_path, load_package("quarterstep"), config()):
        assert not list(tmp_path.iterdir())


def test_without_the_library_it_says_so_and_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = "import sys; sys.modules['wandb'] = None; from retro.marathon.tracking import main; main()"
    body(blocked, tmp_path, monkeypatch)
    with tracked(tmp_path, load_package("quarterstep"), SPEED, patience=60.0):
        pass
    assert capsys.readouterr().out.startswith("Tracking: off: this needs the wandb library")


def body(program: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program in the place of the process."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{program}"\n')
    path.chmod(0o755)
    monkeypatch.setattr(tracking.sys, "executable", str(path))
