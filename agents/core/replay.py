"""FIXED: a replay: a run made again from another's recorded answers, and whether both ended the same."""

from pathlib import Path
from shlex import quote
from typing import Any, get_args

from agents.core.checkpoint import MANIFEST, as_written, whole_lines
from agents.core.journal import EPISODES, MEMORY, SLEEPS, TRAJECTORIES, memory_files, without_times
from agents.core.loop import End, Extent, Status
from agents.core.report_text import CLOCK
from harness.errors import Problem
from harness.files import read_bytes, read_json

REPORT, REPORT_TEXT = "report.json", "report.md"


def extent_of(folder: Path) -> Extent:
    """How far the run in a folder went.

    Raises:
        Problem: it has not ended.
    """
    if not (folder / REPORT).is_file() or not (folder / MANIFEST).is_file():
        raise Problem(
            "no run has ended in this folder",
            file=folder,
            remedy=f"let it end first: --resume {quote(str(folder))}",
        )
    report = read_json(folder / REPORT)
    parts = []
    for number, row in enumerate(whole_lines(folder / EPISODES), start=1):
        with as_written(folder / EPISODES, number):
            parts.append(row["part"])
    with as_written(folder / REPORT):
        end = End(report["status"], report["reason"])
        if end.status not in get_args(Status):
            raise ValueError(f"there is no status {end.status!r}")
    return Extent(
        learned=parts.count("learn"),
        evaluated=parts.count("eval"),
        sleeps=len(whole_lines(folder / SLEEPS)),
        end=end,
    )


def unequal(first: Path, second: Path) -> list[str]:
    """The files in which two runs differ by more than times, and the name of the run."""
    found = [
        name
        for name in (TRAJECTORIES, EPISODES, SLEEPS)
        if without_times(whole_lines(first / name)) != without_times(whole_lines(second / name))
    ]
    names = sorted({path.name for folder in (first, second) for path in memory_files(folder)})
    found += [f"{MEMORY}/{name}" for name in names if _bytes(first, name) != _bytes(second, name)]
    before, after = (read_json(folder / REPORT) for folder in (first, second))
    # Answers to what did not end are in no trajectory, so a replay asks for nothing of them.
    if before["status"] == "complete":
        found += [REPORT] if _comparable(before) != _comparable(after) else []
        found += [REPORT_TEXT] if _comparable_text(first) != _comparable_text(second) else []
    return found


def _bytes(folder: Path, name: str) -> bytes | None:
    path = folder / MEMORY / name
    return read_bytes(path) if path.exists() else None


def _comparable(report: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in report.items() if key not in ("clock", "name")}


def _comparable_text(folder: Path) -> str:
    text = read_bytes(folder / REPORT_TEXT).decode().partition(CLOCK)[0]
    return "\n".join(line for line in text.splitlines() if not line.startswith("| run |"))
