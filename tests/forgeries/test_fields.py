"""Every field that a record's files hold is compared with something, or is named here as only told.

A field counts as compared where another value of it, as valid as the true one and with all hashes and the
README made to agree, fails a check.
"""

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from harness.log import read_log
from harness.machine import Machine
from harness.manifest import Git, Manifest, read_manifest
from harness.record import Record, RunEntry, ScoreEntry, read_record
from toy_track.forging import Forged, failing

ONLY_TOLD = {
    "manifest.packages": "what was installed cannot be looked up afterwards",
    "manifest.git.commit": "a contributor's commit need not be known here; the fixed files are hashed",
    "manifest.git.dirty": "files that are not fixed may differ",
    "manifest.git.diff_sha256": "the same",
    "manifest.machine.driver": "tells readers why two machines of a class differ",
    "manifest.machine.python": "the same",
    "manifest.machine.platform": "the same",
    "log.step.numbers": "what training says of itself; it is drawn, and proves nothing",
    "record.description": "the author's words, held to a form",
    "record.contributors": "the author's word",
}
"""Field -> why no check compares it."""

GIT = {"commit": "0" * 40, "dirty": True, "diff_sha256": "0" * 64, "dirty_files": ["README.md"]}
OTHERS: dict[str, Any] = {
    "manifest.git": GIT | {"dirty_files": ["tests/toy_track/track.py"]},
    "manifest.git.dirty_files": ["tests/toy_track/track.py"],
    "manifest.machine": None,
    "manifest.machine.available_cores": 99,
    "manifest.machine.gpus": ["T4"],
    "manifest.machine.driver": "590.1",
    "manifest.verifies": "f" * 32,
    "manifest.packages": {"torch": "0.1"},
    "manifest.recipe": {"right": 1},
    "manifest.fixed_files": {"a.py": "0" * 64},
    "manifest.open_files": {"a.py": "0" * 64},
    "manifest.data": {"a.txt": "0" * 64},
    "manifest.environment": {"OMP_NUM_THREADS": "1"},
    "record.track": "no_such_track",
    "record.date": "2026-01-02",
    "record.files": {},
    "record.verification": None,
    "record.cost": 7.0,
    "record.verification.cost": 7.0,
}
"""Other values of fields for which `other` makes none that is valid."""

OF_ANY_MACHINE = {
    f"manifest.machine.{name}" for name in ("cpu", "memory_gib", "logical_cores", "available_cores")
}
"""Compared with record.json for the first run alone; the second may run on another machine of the class."""


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value + 60.0
    if isinstance(value, list):
        return [*value, "more"]
    if isinstance(value, str) and len(value) in (32, 64) and set(value) <= set("0123456789abcdef"):
        return value[::-1]
    if isinstance(value, str) and value[:2] == "20" and "T" in value:
        return (datetime.fromisoformat(value) + timedelta(hours=1)).isoformat()
    assert isinstance(value, str), value
    return f"{value}-more"


def fields(model: type[BaseModel], prefix: str, **inner: type[BaseModel]) -> Iterator[str]:
    """Names of all fields of a model; of those in `inner` the fields of what they hold."""
    for name in model.model_fields:
        if name in inner:
            yield from fields(inner[name], f"{prefix}.{name}")
        yield f"{prefix}.{name}"


IN_MANIFEST = [*fields(Manifest, "manifest", machine=Machine, git=Git)]
IN_RECORD = [
    *fields(Record, "record", score=ScoreEntry, published=ScoreEntry.__base__ or ScoreEntry),
    *fields(RunEntry, "record.verification", score=ScoreEntry),
]
IN_LOG = {
    "run_start": ("run_id", "seed", "recipe_sha256"),
    "warmup_start": (),
    "warmup_stop": (),
    "train_start": ("cpu_s",),
    "step": ("numbers",),
    "train_stop": ("cpu_s",),
    "checkpoint": ("sha256",),
    "eval_start": ("checkpoint_sha256",),
    "eval_stop": ("evidence_sha256", "value", "low", "high"),
    "run_stop": (),
}
"""Event -> its fields, but for those that the log's order already fixes: steps and status."""


def caught(forged: Forged, change: Callable[[], object]) -> bool:
    """Whether a change that leaves all files readable fails a check."""
    change()
    read_manifest(forged / "manifest.json")
    read_log(forged / "log.jsonl")
    read_record(forged.path / "record.json")
    forged.finish()
    return bool(failing(forged.checks()))


@pytest.mark.parametrize("part", ["", "verification"])
@pytest.mark.parametrize("name", IN_MANIFEST)
def test_a_field_of_the_manifest_is_compared_or_only_told(name: str, part: str, forged: Forged) -> None:
    forged.part = part
    *parents, last = name.split(".")[1:]
    if parents == ["git"]:
        forged.manifest(git=GIT)
    content = forged.read_manifest()
    place = content[parents[0]] if parents else content
    place[last] = OTHERS[name] if name in OTHERS else other(place[last])
    if name == "manifest.machine":
        place[last] = forged.read_manifest()["machine"] | {"gpus": ["T4"]}
    seen = caught(forged, lambda: forged.manifest(**content))
    assert seen != (name in ONLY_TOLD or (part != "" and name in OF_ANY_MACHINE))


@pytest.mark.parametrize("name", IN_RECORD)
def test_a_field_of_the_record_is_compared_or_only_told(name: str, forged: Forged) -> None:
    value = json.loads((forged.path / "record.json").read_text())
    for key in name.split(".")[1:]:
        value = value.get(key)
    if name in OTHERS:
        value = OTHERS[name]
    else:
        value = value | {"value": 0.5} if isinstance(value, dict) else other(value)
    seen = caught(forged, lambda: forged.record(name.removeprefix("record."), value))
    assert seen != (name in ONLY_TOLD)


@pytest.mark.parametrize("part", ["", "verification"])
@pytest.mark.parametrize(
    ("event", "field"),
    [(event, field) for event, own in IN_LOG.items() for field in ("monotonic", "utc", *own)],
)
def test_a_field_of_the_log_is_compared_or_only_told(
    event: str, field: str, part: str, forged: Forged
) -> None:
    forged.part = part

    def change(events: list[dict[str, Any]]) -> None:
        place = next(one for one in events if one["event"] == event)
        name = "solve_rate" if field == "numbers" else field
        if field == "monotonic" and event in ("run_start", "eval_start"):  # where the clock starts is free
            place[name] -= 60.0
        elif field == "monotonic":  # the clock goes on from there
            for later in events[events.index(place) :]:
                later["monotonic"] += 60.0
        else:
            place[name] = other(place[name])

    seen = caught(forged, lambda: forged.log(change))
    assert seen != (f"log.{event}.{field}" in ONLY_TOLD)


def test_the_list_names_fields_that_there_are() -> None:
    in_log = {f"log.{event}.{field}" for event, own in IN_LOG.items() for field in own}
    assert set(ONLY_TOLD) | set(OTHERS) <= {*IN_MANIFEST, *IN_RECORD, *in_log}


def test_the_fields_of_the_log_are_all_of_them(forged: Forged) -> None:
    ordered = {"event", "monotonic", "utc", "step", "steps", "status"}
    for line in (forged / "log.jsonl").read_text().splitlines():
        event = json.loads(line)
        own = {"numbers"} if event["event"] == "step" else event.keys() - ordered
        assert own == set(IN_LOG[event["event"]])
