"""A whole track in one page: square the numbers from 0 to 99.

Evidence is one line a number, in order: {"number": 3, "answer": 9}. The first may have a `source` too, which
says where the evidence comes from, in the names of `Score`.
"""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from harness.errors import Problem
from harness.files import read_json, read_jsonl
from harness.intervals import wilson
from harness.track import HardwareClass, Report, Score, Track

COUNT = 100
DATA = b"0 1 4 9 16 25\n"
_SOURCE = {"hardware_class": str, "recipe": dict, "seed": int}


def score(evidence: Path) -> Score:
    """The share of right answers; a Problem names the line that breaks the form."""
    outcomes: list[float] = []
    source: dict[str, Any] = {}
    for line, entry in read_jsonl(evidence):
        given = entry.pop("source", {})
        if not isinstance(given, dict) or any(type(v) is not _SOURCE.get(n) for n, v in given.items()):
            raise Problem("not a source", file=evidence, line=line)
        source |= given
        expected = {"number": len(outcomes), "answer": entry.get("answer")}
        if len(outcomes) == COUNT or entry != expected or type(entry["answer"]) is not int:
            raise Problem(f"not the answer to number {len(outcomes)} of {COUNT}", file=evidence, line=line)
        outcomes.append(float(entry["answer"] == entry["number"] ** 2))
    if len(outcomes) < COUNT:
        raise Problem(f"{len(outcomes)} answers, not {COUNT}", file=evidence)
    successes = int(sum(outcomes))
    low, high = wilson(successes, COUNT)
    return Score(successes / COUNT, low, high, successes, COUNT, "numbers", tuple(outcomes), **source)


def evidence(right: int) -> str:
    """Evidence with the first `right` answers right and the rest wrong."""
    lines = [f'{{"number": {n}, "answer": {n * n if n < right else -1}}}\n' for n in range(COUNT)]
    return "".join(lines)


def data_files() -> Mapping[str, str]:
    """The one file that training may read."""
    return {"squares.txt": hashlib.sha256(DATA).hexdigest()}


def calibrate() -> float:
    """Seconds for a fixed sum."""
    start = time.perf_counter()
    sum(range(100_000))
    return time.perf_counter() - start


def ready() -> list[str]:
    """Nothing is missing, anywhere."""
    return []


def mistakes(folder: Path) -> str:
    """A list of the numbers that were squared wrongly, a run a line."""
    files = [folder / "evidence.jsonl", folder / "verification/evidence.jsonl"]
    wrong = [
        [n for n, right in enumerate(score(file).outcomes) if not right] for file in files if file.exists()
    ]
    return "".join(f"- {' '.join(map(str, numbers)) or 'none'}\n" for numbers in wrong)


def check_checkpoint(path: Path, recipe: Mapping[str, Any], seed: int) -> None:
    """A checkpoint is a JSON object."""
    if not isinstance(read_json(path), dict):
        raise Problem("is not an object", file=path)


TRACK = Track(
    name="toy_track",
    title="Squares",
    metric="share of right answers",
    target=0.7,
    ruleset="2",
    earlier={"1": lambda track: replace(track, closes=date(2026, 1, 1))},
    classes=(
        HardwareClass("cpu", "any number of CPU cores", None, 0, "", 10.0),
        HardwareClass("1xH100", "one H100", None, 1, "H100", 60.0),
    ),
    fixed_files=("tests/toy_track/track.py",),
    evidence_name="evidence.jsonl",
    checkpoint_name="checkpoint.bin",
    data_files=data_files,
    score=score,
    check_checkpoint=check_checkpoint,
    calibrate=calibrate,
    ready=ready,
    reports=(Report("mistakes.md", "wrong answers", mistakes),),
)
