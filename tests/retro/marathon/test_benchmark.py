"""The benchmark of marathons: starts that are killed, what their movies do, and the figure."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import live_views
import pytest
from rich.console import Console

from benchmarks.live_page import Look
from benchmarks.retro_marathon import Start, draw, progress, seen
from harness.errors import Problem
from harness.files import canonical_json
from harness.track import ROOT
from retro.config import CONFIGS
from retro.marathon.config import read_config
from retro.search.route import Route


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


LINES: list[dict[str, Any]] = [
    {"utc": "2026-01-01T00:00:00Z", "event": "begun", "state": None, "note": "a marathon begins"},
    {"utc": "2026-01-01T00:01:00Z", "event": "piece", "state": "title", "note": "to level-1"},
]
JOURNAL = frozenset(
    {
        ("2026-01-01T00:00:00Z", "begun", "a marathon begins"),
        ("2026-01-01T00:01:00Z", "piece", "title: to level-1"),
    }
)
AT_REST = Look(
    "at rest", "5" * 32, "6" * 64, "0:00.66", "40", "40 frames, verified from power-on",
    (("power-on", "21"), ("title", "19")), JOURNAL,
)  # fmt: skip


@pytest.mark.parametrize(
    ("look", "played", "faults"),
    [
        (AT_REST, True, []),
        (AT_REST, False, ["the movie did not play in the last start"]),
        (AT_REST._replace(journal=frozenset()), True, ["lines of the journal were not seen"]),
        (AT_REST._replace(frames="41"), True, ["frames at the end are not those on disk"]),
        (AT_REST._replace(splits=()), True, ["splits at the end are not those on disk"]),
        (
            AT_REST._replace(movie="21 frames, verified from power-on"),
            True,
            ["the movie at the end is not the"],
        ),
    ],
)
def test_what_the_page_shows_is_what_is_on_disk(
    tmp_path: Path, look: Look, played: bool, faults: list[str]
) -> None:
    route = Route("quarterstep", "Quarterstep-Nes-v0", "5" * 64, 1, read_config("marathon").settings)
    route.pieces = live_views.route("21 1:START 18")
    assert [piece.frames for piece in route.pieces] == [21, 19]
    route.save(tmp_path)
    start = Start(60.0, "its bound", 40, "level-1", [], [look], 1.5, played)
    console = Console(width=100, quiet=True)
    found = seen(console, [start], tmp_path, LINES, [])
    assert len(found) == len(faults)
    assert all(one.startswith(fault) for one, fault in zip(found, faults, strict=True))
    other = start._replace(looks=[AT_REST._replace(run="4" * 32), look], live_after=None)
    assert seen(console, [other], tmp_path, LINES, ["a script failed"])[:2] == [
        "the page showed several runs",
        "a start was not seen live",
    ]
