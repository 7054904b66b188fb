"""The tools of a forger who knows the format: change a record in one place and make the rest agree."""

import contextlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from harness.checks import Check, RecordFolder, check_all
from harness.eligibility import second_seed
from harness.errors import Problem
from harness.files import canonical_json, sha256_bytes, sha256_file
from harness.manifest import read_manifest
from harness.packed import pack_lines, read_unpacked
from harness.readme import RESULTS, replace_block, results_block
from harness.record import read_record, worse
from harness.track import ROOT, Score, Track, load_track
from toy_track.track import evidence

Event = dict[str, Any]
Row = dict[str, Any]


class Forged:
    """A copy of a true record in a checkout of its own. `part` is the run at hand: "" or "verification"."""

    def __init__(self, original: Path, checkout: Path, root: Path) -> None:
        record = read_record(original / "record.json")
        self.track = load_track(record.track).under(record.ruleset).of_class(record.hardware_class)
        self.root, self._original, self._checkout = root, original, checkout
        self.restore()

    def restore(self) -> None:
        """Undo every forgery."""
        for path in self.root.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        self.part = ""
        self.path = self.root / "records" / self.track.name / self._original.name
        shutil.copytree(self._original, self.path)
        for folder in {Path(name).parts[0] for name in self.track.fixed_files}:
            (self.root / folder).symlink_to(self._checkout / folder)

    def fixed(self, name: str) -> Path:
        """A file of the checkout, which may be changed without changing that of any other."""
        folder = self.root / Path(name).parts[0]
        if folder.is_symlink():
            folder.unlink()
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(self._checkout / folder.name, folder, ignore=ignored)
        return self.root / name

    def __truediv__(self, name: str) -> Path:
        return self.path / self.part / name

    def checks(self) -> list[Check]:
        """What the checks say of it."""
        home = RecordFolder(self.path, root=self.root)
        with contextlib.suppress(Exception):  # a record that names no track is judged without its help
            vars(home)["track"] = replace(home.track, score=_remembering(home.track))
        return check_all(home)

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

    def rows(self) -> list[Row]:
        """The lines of the evidence."""
        content = read_unpacked(self / self.track.evidence_name)
        return [json.loads(line) for line in content.splitlines()]

    def play(self, change: Callable[[list[Row]], object]) -> None:
        """Change the lines of the evidence in place, and let all that follows from it agree."""
        rows = self.rows()
        change(rows)
        self.write_rows(rows)

    def write_rows(self, rows: list[Row]) -> None:
        """Other evidence, in the form in which it is written, and all that follows from it."""
        packed = self.track.evidence_name.endswith(".xz")
        content = pack_lines(rows) if packed else "".join(map(_line, rows)).encode()
        self.write_evidence(content)

    def write_evidence(self, content: bytes) -> None:
        """Other evidence with its hash in the log, and its score where it has one."""
        path = self / self.track.evidence_name
        path.write_bytes(content)
        self.event("eval_stop", evidence_sha256=sha256_file(path))
        with contextlib.suppress(Problem):
            self.rescore()

    def rescore(self) -> None:
        """Let log and record tell the score and the cost of the evidence."""
        score = _remembering(self.track)(self / self.track.evidence_name)
        values = {name: getattr(score, name) for name in ("value", "low", "high")}
        self.event("eval_stop", **values)
        self.own("score", {**values, "count": score.count})
        if score.cost is not None:
            self.own("cost", score.cost)
        self.publish()

    def save(self, content: bytes) -> None:
        """Another checkpoint, with its hash in log and evidence."""
        (self / self.track.checkpoint_name).write_bytes(content)
        digest = sha256_bytes(content)
        self.event("checkpoint", sha256=digest)
        self.event("eval_start", checkpoint_sha256=digest)
        if "checkpoint_sha256" in self.rows()[0]:
            self.play(lambda rows: rows[0].update(checkpoint_sha256=digest))

    def replay(self, right: int) -> None:
        """Evidence of the toy track with so many right answers, and all that follows from it."""
        self.write_evidence(evidence(right).encode())

    def publish(self) -> None:
        """Publish the worse of the scores that record.json tells."""
        record = read_record(self.path / "record.json")
        second = record.verification.score if record.verification else None
        self.record("published", worse(self.track, record.score, second).model_dump())

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
        seed = second_seed(self / self.track.evidence_name, read_manifest(self / "manifest.json"), self.track)
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
                record.files[name] = sha256_file(self.path / name, links=True)
        (self.path / "record.json").write_text(record.dump())
        readme = self.path / "README.md"
        if readme.is_file() and f"{RESULTS}:start" in readme.read_text():
            results = results_block(record, self.track)
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


def both(step: Step) -> Step:
    """The step, done to each of the two runs."""

    def forge(f: Forged) -> None:
        for f.part in ("", "verification"):
            step(f)
        f.part = ""

    return forge


def play(change: Callable[[list[Row]], object]) -> Step:
    """Other lines of evidence, and all that follows from them."""
    return lambda f: f.play(change)


def update(line: int, **changes: object) -> Step:
    """Other fields in a line of evidence, and all that follows from them."""
    return play(lambda rows: rows[line].update(changes))


def copy_play(source: str, *, header: int = 1) -> Step:
    """The evidence at a path from the folder of the track's records, under the header of the run at hand."""

    def forge(f: Forged) -> None:
        other = read_unpacked(f.path.parent / source.replace("*", f.path.name)).splitlines()
        f.play(lambda rows: rows.__setitem__(slice(header, None), map(json.loads, other[header:])))

    return forge


def shorten(events: list[Event]) -> None:
    """Cut the second half of the steps out of a log, and count them anew."""
    steps = [event for event in events if event["event"] == "step"]
    del events[position(events, "step") + len(steps) // 2 : position(events, "train_stop")]
    events[position(events, "train_stop")]["steps"] = len(steps) // 2


def sibling(track: str, name: str) -> Step:
    """Another standing record beside this one."""
    return lambda f: shutil.copytree(ROOT / "records" / track / name, f.path.with_name(name))


def _line(row: Row) -> str:
    return json.dumps(row, separators=(",", ":")) + "\n"


_SCORES: dict[tuple[object, ...], Score] = {}


def _remembering(track: Track) -> Callable[[Path], Score]:
    """The track's score, which the same evidence beside the same checkpoint is given without a replay."""

    def score(path: Path) -> Score:
        files = (path, path.with_name(track.checkpoint_name))
        key = (track.score, *(sha256_file(file) if file.is_file() else None for file in files))
        if key not in _SCORES:
            _SCORES[key] = track.score(path)
        return _SCORES[key]

    return score
