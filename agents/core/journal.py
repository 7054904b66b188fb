"""FIXED: what a run writes down of its episodes, its sleeps and its memory.

- `trajectories.jsonl`: every episode in full, a line each, in order; those of the evaluation come last
- `episodes.jsonl`: the same without the turns
- `sleeps.jsonl`: what each sleep asked, was answered and decided
- `memory/000.json`: the memory at the start; `memory/001.json` after the first sleep, with `001.diff`

Of all values only `seconds` and `clock` (seconds since the run began, pauses between resumes left out) differ
from run to run of the same config and answers. The others are under a hash, `seal`, of a line and all before
it, and a sleep's line holds the hash of the memory after it: what was edited is not gone on from.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from agents.core.checkpoint import as_written, whole_lines
from agents.memory.experience import uses
from agents.memory.trajectory import Trajectory
from agents.methods.base import Sleep
from harness.errors import Problem
from harness.files import canonical_json, read_json, sha256_bytes, sha256_file, unwritable, write_atomic

Part = Literal["learn", "eval"]
Row = dict[str, Any]
"""An episode without its turns; see `episode_row`."""

TRAJECTORIES, EPISODES, SLEEPS, MEMORY = "trajectories.jsonl", "episodes.jsonl", "sleeps.jsonl", "memory"
_MEMORY_FILE = re.compile(r"[0-9]{3,}\.(json|diff)")
TIMES = frozenset(("seconds", "clock"))


class Journal:
    """The files of a run, and what they hold so far."""

    def __init__(self, folder: Path) -> None:
        """Go on from what a folder holds; what a crash left half written is removed."""
        self.folder = folder
        folder.joinpath(MEMORY).mkdir(exist_ok=True)
        lines, self.sleeps = _consistent(
            _checked(folder / TRAJECTORIES, _check_episode),
            _checked(folder / SLEEPS, _check_sleep),
            folder / MEMORY,
        )
        self._seals = {
            name: values[-1]["seal"] if values else ""
            for name, values in ((TRAJECTORIES, lines), (SLEEPS, self.sleeps))
        }
        for number, sleep in enumerate(self.sleeps, start=1):
            with as_written(path := self._memory(number)):
                if sha256_file(path) != sleep["memory"]:
                    raise ValueError(f"{SLEEPS} tells of other content")
        self.rows = [episode_row(line) for line in lines]
        self.pending = [
            Trajectory.from_json(line["trajectory"])
            for line in lines
            if line["part"] == "learn" and line["batch"] >= len(self.sleeps)
        ]
        """Episodes that no sleep has followed yet."""
        for name, values in ((TRAJECTORIES, lines), (SLEEPS, self.sleeps), (EPISODES, self.rows)):
            write_atomic(folder / name, b"".join(map(_line, values)))
        for path in memory_files(folder):
            if int(path.stem) > len(self.sleeps):
                path.unlink()
        self._before = max((line["clock"] for line in (*lines, *self.sleeps)), default=0.0)
        self._start = time.monotonic()

    @property
    def clock(self) -> float:
        """Seconds that the run has taken so far."""
        return self._before + time.monotonic() - self._start

    def count(self, part: Part) -> int:
        """Episodes played of a part."""
        return sum(row["part"] == part for row in self.rows)

    def memory(self) -> dict[str, Any] | None:
        """The memory as of the last sleep; None = the run has not begun."""
        path = self.memory_path
        if not path.exists():
            return None
        value = read_json(path)
        if not isinstance(value, dict):
            raise Problem("not a JSON object", file=path, remedy="restore the file as it was")
        return value

    @property
    def memory_path(self) -> Path:
        """Where the memory as of the last sleep is."""
        return self._memory(len(self.sleeps))

    def begin(self, memory: Mapping[str, Any]) -> None:
        """Note the memory that the run starts with."""
        self._remember(0, memory)

    def add_episode(
        self, part: Part, trajectory: Trajectory, seconds: float, phase: int | None, batch: int | None
    ) -> Row:
        """Write an episode down; returns its row."""
        value = {
            "part": part,
            "phase": phase,
            "batch": batch,
            "seconds": round(seconds, 3),
            "clock": round(self.clock, 3),
            "trajectory": trajectory.to_json(),
        }
        row = episode_row(value)
        self._append(TRAJECTORIES, self._sealed(TRAJECTORIES, value))
        self._append(EPISODES, row)
        self.rows.append(row)
        if part == "learn":
            self.pending.append(trajectory)
        return row

    def add_sleep(self, sleep: Sleep, memory: Mapping[str, Any], seconds: float) -> None:
        """Write a sleep down, and the memory after it."""
        number = len(self.sleeps) + 1
        remembered = self._remember(number, memory)
        write_atomic(self._memory(number).with_suffix(".diff"), sleep.diff and sleep.diff.rstrip("\n") + "\n")
        value = {
            "index": number - 1,
            "episodes": self.count("learn"),
            "seconds": round(seconds, 3),
            "clock": round(self.clock, 3),
            "memory": remembered,
            **sleep.to_json(),
        }
        value = self._sealed(SLEEPS, value)
        self._append(SLEEPS, value)
        self.sleeps.append(value)
        self.pending.clear()

    def _memory(self, number: int) -> Path:
        return self.folder / MEMORY / f"{number:03d}.json"

    def _remember(self, number: int, memory: Mapping[str, Any]) -> str:
        """Write a memory; returns the SHA-256 of the file."""
        content = (json.dumps(memory, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()
        write_atomic(self._memory(number), content)
        return sha256_bytes(content)

    def _sealed(self, name: str, value: dict[str, Any]) -> dict[str, Any]:
        """A line that comes next in a file, with its seal."""
        self._seals[name] = _seal(self._seals[name], value)
        return {**value, "seal": self._seals[name]}

    def _append(self, name: str, value: Mapping[str, Any]) -> None:
        path = self.folder / name
        try:
            with path.open("ab", buffering=0) as handle:
                handle.write(_line(value))
        except OSError as error:
            raise unwritable(path, error) from error


def memory_files(folder: Path) -> list[Path]:
    """The memories and diffs of a run, and nothing else that lies among them."""
    return [path for path in (folder / MEMORY).iterdir() if _MEMORY_FILE.fullmatch(path.name)]


def episode_row(line: Mapping[str, Any]) -> Row:
    """What episodes.jsonl says of a line of trajectories.jsonl."""
    trajectory = Trajectory.from_json(line["trajectory"])
    return {
        **{name: line[name] for name in ("part", "phase", "batch", "seconds", "clock")},
        "index": trajectory.index,
        "task": trajectory.episode.task,
        "seed": trajectory.episode.seed,
        "goal": trajectory.goal,
        "ending": trajectory.ending,
        "success": trajectory.success,
        "score": trajectory.score,
        "return": trajectory.total,
        "steps": trajectory.steps,
        "answers": len(trajectory.turns),
        "unread": sum(not turn.action and turn.error is not None for turn in trajectory.turns),
        "tokens": dict(trajectory.tokens),
        "skills": {name: vars(use) for name, use in uses([trajectory]).items()},
        "details": dict(trajectory.details),
    }


def without_times(value: Any) -> Any:
    """A value of the journal without what differs from run to run."""
    if isinstance(value, dict):
        return {key: without_times(entry) for key, entry in value.items() if key not in TIMES}
    return [without_times(entry) for entry in value] if isinstance(value, list) else value


def _consistent(
    lines: list[dict[str, Any]], sleeps: list[dict[str, Any]], memory: Path
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The longest beginnings that belong together, should the system have lost some lines and kept others."""
    learned = sum(line["part"] == "learn" for line in lines)
    sound = 0
    while (
        sound < len(sleeps)
        and sleeps[sound]["episodes"] <= learned
        and (memory / f"{sound + 1:03d}.json").exists()
    ):
        sound += 1
    batches = max((line["batch"] + 1 for line in lines if line["part"] == "learn"), default=0)
    kept = [
        line for line in lines if (line["batch"] <= sound if line["part"] == "learn" else sound >= batches)
    ]
    return kept, sleeps[:sound]


def _checked(path: Path, check: Callable[[dict[str, Any]], None]) -> list[dict[str, Any]]:
    """The lines of a file, each of them as a run writes it, none edited, lost or moved."""
    lines, seal = whole_lines(path), ""
    for number, line in enumerate(lines, start=1):
        with as_written(path, number):
            check(line)
            seal = _seal(seal, {key: value for key, value in line.items() if key != "seal"})
            if line["seal"] != seal:
                raise ValueError("this line, or one before it, is not what was written")
    return lines


def _seal(before: str, line: Mapping[str, Any]) -> str:
    """SHA-256, in hex, of a line but for its times, and of the seal before."""
    return sha256_bytes(f"{before}{canonical_json(without_times(line))}".encode())


def _check_episode(line: dict[str, Any]) -> None:
    """An error where a line of trajectories.jsonl cannot be gone on from."""
    if line["part"] not in ("learn", "eval"):
        raise ValueError(f"there is no part {line['part']!r}")
    row = episode_row(line)
    _check_numbers(row, ("seconds", "clock", "score", "return"), (int, float))
    _check_numbers(row, ("index", "seed", "steps"), (int,))
    _check_numbers(row["tokens"], ("prompt", "completion"), (int,))
    if line["part"] == "learn":
        _check_numbers(row, ("phase", "batch"), (int,))


def _check_sleep(line: dict[str, Any]) -> None:
    """An error where a line of sleeps.jsonl cannot be gone on from."""
    _check_numbers(line, ("seconds", "clock"), (int, float))
    _check_numbers(line, ("index", "episodes", "steps"), (int,))
    missing = [field.name for field in fields(Sleep) if field.name not in line]
    if missing:
        raise KeyError(missing[0])
    for name in ("errors", "exchanges"):
        if not isinstance(line[name], list):
            raise TypeError(f"{name} is not a list")


def _check_numbers(values: Mapping[str, Any], names: Iterable[str], kinds: tuple[type, ...]) -> None:
    for name in names:
        if type(values[name]) not in kinds:
            raise TypeError(f"{name} is not a {'whole ' if kinds == (int,) else ''}number")


def _line(value: Mapping[str, Any]) -> bytes:
    return canonical_json(value).encode() + b"\n"
