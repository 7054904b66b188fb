"""The benchmark of marathons: starts that are killed, what their movies do, and the figure."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.retro_marathon import draw, progress
from harness.errors import Problem
from harness.files import canonical_json
from harness.track import ROOT
from retro.config import CONFIGS


def journal(folder: Path, *lines: tuple[str, int, int]) -> None:
    """(event, minute, frames) of each line."""
    text = [
        canonical_json({"utc": f"2026-01-01T00:{minute:02}:00Z", "event": event, "frames": frames})
        for event, minute, frames in lines
    ]
    (folder / "journal.jsonl").write_text("\n".join(text) + "\n")


def test_progress_is_told_from_the_ending_on(tmp_path: Path) -> None:
    journal(
        tmp_path,
        ("begun", 1, 21),
        ("piece", 2, 100),
        ("ending", 4, 300),
        ("begun", 5, 300),
        ("improved", 9, 290),
        ("stopped", 11, 290),
    )
    assert progress(tmp_path) == [(3.0, 300), (8.0, 290)]
    text = draw(tmp_path, "A game", [4.0, 10.0])
    assert text.startswith("<?xml")
    assert text == draw(tmp_path, "A game", [4.0, 10.0])


def test_without_an_ending_nothing_is_drawn(tmp_path: Path) -> None:
    journal(tmp_path, ("begun", 1, 21), ("piece", 2, 100))
    with pytest.raises(Problem, match="the ending was not reached"):
        draw(tmp_path, "A game", [4.0])


def test_it_runs(tmp_path: Path) -> None:
    text = (CONFIGS / "marathon.toml").read_text().replace("workers = 2", "workers = 0")
    (tmp_path / "small.toml").write_text(text)
    command = [sys.executable, "-m", "benchmarks.retro_marathon", "quarterstep", str(tmp_path / "small.toml")]
    options = ["--minutes", "0.3", "--kills", "1", "--out", str(tmp_path / "out")]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "as it claims" in done.stdout
    assert "Journal: " in done.stdout
