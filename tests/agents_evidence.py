"""Evidence of the agents track in miniature: a few steps in a few episodes of BabyAI, with made-up calls."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.benchmarks import load_benchmark
from agents.core.provenance import told_hashes
from agents.evidence import CallRow, evidence_header
from agents.task import TASKS, episodes, versions
from agents.traces import Played, play
from harness.packed import pack_lines

HASH = "0" * 64
RECIPE = {
    "method": "react",
    "model": "scripted",
    "temperature": 0.7,
    "max_tokens": 512,
    "turn_limit": 30,
    "history": 8,
}
ACTIONS = ("turn left", "go forward", "sing", "go forward")
ANSWER = CallRow("eval/000000/000", HASH, "Action: sing", "stop", prompt=100, completion=7, lost=0)


@contextmanager
def few_episodes(name: str = "babyai", tasks: tuple[str, ...] | None = None) -> Iterator[None]:
    """The class has one test episode of each task in here, or of `tasks` alone."""
    task = TASKS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, name, replace(task, tasks=tasks or task.tasks, episodes_a_task=1))
        yield


def header(**changes: Any) -> dict[str, Any]:
    """A first line."""
    made = evidence_header(
        "babyai",
        seed=3,
        checkpoint_sha256=HASH,
        prompts=told_hashes(load_benchmark("babyai")),
        recipe=RECIPE,
        versions=versions("babyai"),
    )
    return made | changes


def some_play() -> list[Played]:
    """ACTIONS in each test episode of BabyAI."""
    environment = load_benchmark("babyai").make()
    return [play(environment, one, dict(enumerate(ACTIONS)).get).played for one in episodes("babyai")]


def some_calls(count: int) -> list[CallRow]:
    """One of waking, one of sleeping, and one for each of so many episodes."""
    train = [ANSWER._replace(label="wake/000000/000"), ANSWER._replace(label="sleep/0/plan", completion=1000)]
    return train + [ANSWER._replace(label=f"eval/{index:06d}/000") for index in range(count)]


def rows() -> list[dict[str, Any]]:
    """All lines of evidence that keeps the rules."""
    played = some_play()
    return [header(), *(call.line() for call in some_calls(len(played))), *(one.line() for one in played)]


def write_rows(path: Path, lines: list[Mapping[str, Any]]) -> Path:
    path.write_bytes(pack_lines(lines))
    return path
