"""True records to mutate, and what of them a verdict depends on."""

import hashlib
import json
import lzma
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.checks import RecordFolder
from harness.files import canonical_json
from harness.record import CURVE, LOG, MANIFEST, README, RECORD, SECOND, SOURCE
from harness.track import Score, Track, load_track

RUNS = ("", f"{SECOND}/")
_WORDS = {"number", "name", "description", "contributors"}
_PROVEN = (
    *("run_id", "ruleset", "track", "hardware_class", "recipe_name", "recipe", "recipe_sha256", "seed"),
    *("seed_source", "verifies", "open_files", "data", "flags", "overriding_environment", "smoke", "resumed"),
)
_HASH = re.compile(r"\b[0-9a-f]{64}\b")


@dataclass(frozen=True)
class TrueRecord:
    """A record that passes every check: where it stands in the checkout `root`, and its files."""

    root: Path
    place: Path
    files: Mapping[str, bytes]
    """Name from the record's folder -> content."""

    @classmethod
    def read(cls, place: Path, root: Path) -> "TrueRecord":
        """The record that stands at `place`."""
        paths = sorted(path for path in place.rglob("*") if path.is_file())
        return cls(root, place, {path.relative_to(place).as_posix(): path.read_bytes() for path in paths})

    @property
    def name(self) -> str:
        """The track and the folder's name."""
        return f"{self.place.parent.name}/{self.place.name}"

    @cached_property
    def track(self) -> Track:
        """The track, as its record's ruleset has it."""
        record = json.loads(self.files[RECORD])
        return load_track(record["track"]).under(record["ruleset"]).of_class(record["hardware_class"])

    @property
    def derived(self) -> set[str]:
        """The files that `harness.boards` makes anew, which it and no check of a record compares."""
        return {CURVE, *(report.name for report in self.track.reports)}

    @cached_property
    def claims(self) -> str:
        """The claims of its files."""
        return claims(self.files, self.track, {run: self._score(run) for run in RUNS})

    def home(self, folder: Path, name: str) -> RecordFolder:
        """A copy in `folder`, held to the rules as if it stood in this record's place under `name`."""
        return RecordFolder(folder, root=self.root, place=self.place.with_name(name), replaces=self.place)

    def _score(self, run: str) -> Score:
        return self.track.score(self.place / run / self.track.evidence_name)


def claims(files: Mapping[str, bytes], track: Track, scores: Mapping[str, Score]) -> str:
    """All that a record says and files prove: two records are worth the same where these are equal.

    That is all of record.json but the author's words and the hashes; of each manifest what says which run it
    was and makes it eligible; the order of the log's events, its whole milliseconds on the clock and of the
    processors, and the score that it tells; and what the evidence is worth, unit by unit.
    """
    record = json.loads(files[RECORD])
    said: dict[str, Any] = {key: value for key, value in record.items() if key not in _WORDS | {"files"}}
    said["files"] = sorted(record["files"])
    for run in RUNS:
        manifest = json.loads(files[run + MANIFEST])
        said[run + MANIFEST] = {key: manifest[key] for key in _PROVEN if key in manifest}
        said[run + MANIFEST]["fixed_files"] = sorted(manifest["fixed_files"])
        events = [json.loads(line) for line in files[run + LOG].splitlines()]
        last = {event["event"]: event for event in events}
        start, stop = last["train_start"], last["train_stop"]
        said[run + LOG] = {
            "events": [event["event"] for event in events],
            "run": {key: last["run_start"][key] for key in ("run_id", "seed", "recipe_sha256")},
            "date": last["run_start"]["utc"][:10],
            "time_s": round(stop["monotonic"] - start["monotonic"], 3),
            "cpu_s": round(stop["cpu_s"] - start["cpu_s"], 3),
            "score": {key: last["eval_stop"][key] for key in ("value", "low", "high")},
        }
        said[run + track.evidence_name] = dict(vars(scores[run]))
    return canonical_json(json.loads(json.dumps(said, default=dict)))


def differing(record: TrueRecord, files: Mapping[str, bytes]) -> set[str]:
    """Which files say something else than the true ones, hashes of one another aside, and however written."""
    names = record.files.keys() | files.keys()
    return {name for name in names if meaning(name, record.files.get(name)) != meaning(name, files.get(name))}


def meaning(name: str, content: bytes | None) -> object:
    """What a file says: parsed and unpacked where it is JSON, without SHA-256s; its bytes where it is not."""
    if content is None or not name.endswith((".json", ".jsonl", ".xz")):
        return content
    try:
        if name.endswith(".json"):
            value = json.loads(content)
            if name == RECORD:
                value["files"] = sorted(value["files"])
            return _HASH.sub("", canonical_json(value))
        text = payload(content).decode()
        return [_HASH.sub("", canonical_json(json.loads(line))) for line in text.splitlines()]
    except (ValueError, TypeError, KeyError, RecursionError):
        return content


def payload(content: bytes) -> bytes:
    """What an xz stream holds; other content as it is."""
    try:
        return lzma.decompress(content, lzma.FORMAT_XZ)
    except lzma.LZMAError:
        return content


def kind_of(record: TrueRecord, name: str) -> str:
    """What a file of a record is, for a table."""
    track, plain = record.track, name.removeprefix(f"{SECOND}/")
    kinds = {
        RECORD: "the author's words in record.json",
        README: "the author's words in README.md",
        SOURCE: "the source, its recipe being the same",
        MANIFEST: "what the manifest notes of machine and packages",
        LOG: "what steps logged, and clocks within what is tolerated",
        track.checkpoint_name: "the checkpoint",
        track.evidence_name: "play that is worth the same",
    }
    return (
        "figures and reports, compared by harness.boards"
        if name in record.derived
        else kinds.get(plain, name)
    )


def sha256(content: bytes) -> str:
    """SHA-256 in lowercase hex."""
    return hashlib.sha256(content).hexdigest()
