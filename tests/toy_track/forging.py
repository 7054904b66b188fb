"""The tools of a forger who knows the format: change a record in one place and make the rest agree."""

import json
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from harness.checks import Check, RecordFolder, check_all
from harness.eligibility import derived_seed
from harness.errors import Problem
from harness.files import canonical_json, sha256_bytes, sha256_file
from harness.readme import RESULTS, replace_block, results_block
from harness.record import read_record, worse
from toy_track.track import TRACK, evidence

Event = dict[str, Any]


class Forged:
    """A copy of a true record in a checkout of its own. `part` is the run at hand: "" or "verification"."""

    def __init__(self, original: Path, checkout: Path, root: Path) -> None:
        self.root, self.part = root, ""
        self.path = self._place = root / "records/toy_track" / original.name
        shutil.copytree(original, self.path)
        shutil.copytree(checkout / "tests", root / "tests")
        self._content = {path: path.read_bytes() for path in _files(root)}

    def restore(self) -> None:
        """Undo every forgery."""
        self.path, self.part = self._place, ""
        for path in sorted(self.root.rglob("*"), reverse=True):
            if path.is_symlink() or not path.is_dir():
                if path not in self._content or path.is_symlink() or not path.is_file():
                    path.unlink()
            elif not any(path in file.parents for file in self._content):
                path.rmdir()
        for path, content in self._content.items():
            if not path.is_file() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)

    def __truediv__(self, name: str) -> Path:
        return self.path / self.part / name

    def checks(self) -> list[Check]:
        """What the checks say of it."""
        return check_all(RecordFolder(self.path, root=self.root))

    def record(self, field: str, value: object) -> None:
        """Set a field of record.json, such as "verification.score.low"."""
        content = place = json.loads((self.path / "record.json").read_text())
        *parents, last = field.split(".")
        for parent in parents:
            place = place[parent]
        place[last] = value
        (self.path / "record.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    def own(self, field: str, value: object) -> None:
        """Set what record.json says of the run at hand."""
        self.record(f"verification.{field}" if self.part else field, value)

    def read_manifest(self) -> dict[str, Any]:
        """The manifest of the run at hand."""
        content: dict[str, Any] = json.loads((self / "manifest.json").read_text())
        return content

    def manifest(self, **changes: object) -> None:
        """Set fields of the manifest."""
        (self / "manifest.json").write_text(json.dumps(self.read_manifest() | changes))

    def log(self, change: Callable[[list[Event]], object]) -> None:
        """Change the list of events of the log in place."""
        events = [json.loads(line) for line in (self / "log.jsonl").read_text().splitlines()]
        change(events)
        (self / "log.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))

    def event(self, name: str, **changes: object) -> None:
        """Set fields of the first event of this name."""
        self.log(lambda events: events[position(events, name)].update(changes))

    def shift(self, name: str, seconds: float, *clocks: str) -> None:
        """Let the first event called `name`, and all after it, come so many seconds later by these clocks."""

        def change(events: list[Event]) -> None:
            for event in events[position(events, name) :]:
                if "monotonic" in clocks:
                    event["monotonic"] += seconds
                if "utc" in clocks:
                    event["utc"] = (
                        datetime.fromisoformat(event["utc"]) + timedelta(seconds=seconds)
                    ).isoformat()

        self.log(change)

    def retime(self) -> None:
        """Let record.json tell the time that the log tells."""

        def read(events: list[Event]) -> None:
            start, stop = (
                events[position(events, name)]["monotonic"] for name in ("train_start", "train_stop")
            )
            self.own("time_s", round(stop - start, 3))

        self.log(read)

    def replay(self, right: int) -> None:
        """Put other evidence in place, with so many right answers and all that follows in log and record."""
        (self / "evidence.jsonl").write_text(evidence(right))
        score = TRACK.score(self / "evidence.jsonl")
        values = {name: getattr(score, name) for name in ("value", "low", "high")}
        self.event("eval_stop", evidence_sha256=sha256_file(self / "evidence.jsonl"), **values)
        self.own("score", {**values, "count": score.count})

    def publish(self) -> None:
        """Publish the worse of the scores that record.json tells."""
        record = read_record(self.path / "record.json")
        second = record.verification.score if record.verification else None
        self.record("published", worse(TRACK, record.score, second).model_dump())

    def recipe(self, **changes: object) -> None:
        """Another recipe, with its hash in manifest and log."""
        recipe = self.read_manifest()["recipe"] | changes
        digest = sha256_bytes(canonical_json(recipe).encode())
        self.manifest(recipe=recipe, recipe_sha256=digest)
        self.event("run_start", recipe_sha256=digest)

    def reseed(self, seed: int) -> None:
        """Another seed, in manifest, log and record."""
        self.manifest(seed=seed)
        self.event("run_start", seed=seed)
        self.own("seed", seed)

    def follow_first(self) -> None:
        """Give the second run the seed that follows from the first run as it is."""
        self.part = ""
        seed = derived_seed(sha256_file(self / "evidence.jsonl"), self.read_manifest()["recipe_sha256"])
        self.part = "verification"
        self.reseed(seed)

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text, once, in a file of the run at hand."""
        text = (self / name).read_text()
        assert old in text
        (self / name).write_text(text.replace(old, new, 1))

    def rename(self, name: str) -> None:
        """Call the record's folder by another name."""
        self.path = self.path.rename(self.path.with_name(name))

    def finish(self) -> None:
        """Hash again what was changed and let the README repeat record.json, as far as both can be read."""
        try:
            record = read_record(self.path / "record.json")
        except Problem:
            return
        for name in record.files:
            if (self.path / name).is_file():
                record.files[name] = sha256_file(self.path / name)
        (self.path / "record.json").write_text(record.dump())
        readme = self.path / "README.md"
        if readme.is_file() and f"{RESULTS}:start" in readme.read_text():
            results = results_block(record, TRACK)
            readme.write_text(replace_block(readme.read_text(), RESULTS, results, file="README.md"))


def failing(checks: list[Check]) -> dict[str, str]:
    """Name -> reason of the checks that found something wrong themselves."""
    return {
        c.name: c.reason for c in checks if not c.passed and not c.reason.startswith("not checked: needs ")
    }


Step = Callable[[Forged], object]


def write(name: str, content: str | bytes) -> Step:
    """Other content in a file, or a new file."""
    return lambda f: (f / name).write_bytes(content.encode() if isinstance(content, str) else content)


def append(name: str, text: str) -> Step:
    """More text at the end of a file."""
    return lambda f: (f / name).write_text((f / name).read_text() + text)


def cut(name: str) -> Step:
    """A file without its last five bytes."""
    return lambda f: (f / name).write_bytes((f / name).read_bytes()[:-5])


def remove(name: str) -> Step:
    """A file less."""
    return lambda f: (f / name).unlink()


def link(name: str) -> Step:
    """A link to the same content in the place of a file or folder."""

    def forge(f: Forged) -> None:
        (f / name).rename(f.root / "elsewhere")
        (f / name).symlink_to(f.root / "elsewhere")

    return forge


def set_record(field: str, value: object) -> Step:
    """Another value in record.json."""
    return lambda f: f.record(field, value)


def set_hash(name: str, digest: str) -> Step:
    """Another hash in record.json, or one more."""
    return lambda f: f.record("files", read_record(f.path / "record.json").files | {name: digest})


def edit(name: str, old: str, new: str) -> Step:
    """A text replaced, once, in a file."""
    return lambda f: f.edit(name, old, new)


def in_second(step: Step) -> Step:
    """The step, done to the second run."""

    def forge(f: Forged) -> None:
        f.part = "verification"
        step(f)
        f.part = ""

    return forge


def then(*steps: Step) -> Step:
    """One step after the other."""
    return lambda f: [step(f) for step in steps]


def position(events: list[Event], name: str) -> int:
    """Index of the first event of this name."""
    return next(index for index, event in enumerate(events) if event["event"] == name)


def _files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]
