"""What a record of a pull request is worth: its checks, its place on the board, and what to look at."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

from harness.boards import Entry, in_order
from harness.checks import RecordFolder, check_all
from harness.compare import compare
from harness.errors import Problem
from harness.files import sha256_file
from harness.manifest import read_manifest
from harness.readme import interval
from harness.record import MANIFEST, RECORD, read_record, spent_text
from harness.submission.commits import Change
from harness.submission.summary import RecordSummary
from harness.track import load_track
from harness.verdict import verdict
from harness.verify import remarks_on

LATE = timedelta(days=14)
"""How long after its ruleset closed a pull request may bring a record, of a run from before."""


def summarise(root: Path, folder: str, changed: Sequence[Change], entries: Sequence[Entry]) -> RecordSummary:
    """A record under `root` in texts for people: what its checks say, its place, and what to look at."""
    home = RecordFolder(root / folder, root=root)
    checks = check_all(home)
    passed = sum(check.passed for check in checks)
    fields = ("board", "score", "second", "spent", "rank", "comparison")
    texts = dict.fromkeys(fields, "none") | {"verdict": ""}
    try:
        record = read_record(root / folder / RECORD)
        track = load_track(record.track)
        texts["board"] = f"{record.track} {record.hardware_class}"
        texts["score"] = interval(record.score)
        texts["second"] = interval(record.verification.score) if record.verification else "pending"
        texts["spent"] = spent_text(track, record)
        if passed == len(checks):
            texts |= _place(root / folder, entries)
    except Problem:
        pass  # the checks say what is wrong
    return RecordSummary(
        folder=folder,
        checks=f"{passed} of {len(checks)}",
        failed=tuple(
            f"{check.name}: {check.reason}".replace(f"{root}/", "")
            for check in checks
            if not (check.passed or check.reason.startswith("not checked: needs "))
        ),
        remarks=(
            *_remarks(root, folder, changed),
            *(f"{one.name}: {one.text}" for one in remarks_on(home, checks)),
        ),
        **texts,
    )


def faults_of_date(root: Path, folder: str, today: date) -> Iterator[str]:
    """Why a new record cannot be of the day that its log tells; of it nothing else speaks."""
    try:
        record = read_record(root / folder / RECORD)
        closes = load_track(record.track).under(record.ruleset).closes
    except Problem:
        return  # the checks say what is wrong
    if record.date > today + timedelta(days=1):  # of another time zone's clock
        yield f"{folder}: is of {record.date}, a day that has not come"
    if closes is not None and today > closes + LATE:
        yield (
            f"{folder}: is of ruleset {record.ruleset}, which closed on {closes}; such a record is taken "
            f"{LATE.days} days longer, so run it again under the current ruleset"
        )


def _place(folder: Path, entries: Sequence[Entry]) -> dict[str, str]:
    """Where a record would stand on its board, and how it stands to the best of the others there."""
    own = next((entry for entry in entries if entry.folder == folder), None)
    if own is None or not _competes(own):
        return {}
    place = (own.record.track, own.record.hardware_class)
    board = [
        entry
        for entry in in_order(entries)
        if (entry.record.track, entry.record.hardware_class) == place and _competes(entry)
    ]
    rank = f"{1 + board.index(own)} of {len(board)}"
    best = next((entry for entry in board if entry != own), None)
    if best is None:
        return {"rank": rank, "comparison": "the first of its class"}
    track = load_track(own.record.track)
    theirs = track.spent(best.ranked)
    share = f"{track.spent(own.ranked) / theirs - 1:+.1%} " if theirs else ""
    comparison = f"{share}beside {spent_text(track, best.ranked)} of {best.record.name}"
    said = f"A is this record, B {best.record.name}. {_verdict(own, best)}"
    return {"rank": rank, "comparison": comparison, "verdict": said}


def _competes(entry: Entry) -> bool:
    return entry.valid and entry.comparable and entry.record.verification is not None


def _verdict(own: Entry, best: Entry) -> str:
    try:
        return verdict(compare(own.folder, best.folder))
    except Problem as problem:
        return f"They cannot be compared: {problem.reason}"


def _remarks(root: Path, folder: str, changed: Sequence[Change]) -> Iterator[str]:
    """What a maintainer should look at, though nothing of it is wrong."""
    if any(change.old for change in changed):
        names = ", ".join(change.path.removeprefix(f"{folder}/") for change in changed)
        yield f"it stands already, and this changes {names}"
    else:
        day = Path(folder).name[:10]
        others = RecordFolder(root / folder, root=root).siblings()
        if later := [
            path.name for path in others if re.match("[0-9]{4}-", path.name) and path.name[:10] > day
        ]:
            yield f"it is dated {day}, before {', '.join(later)}, which stood first"
    strange = [
        path
        for path, digest in sorted(ran(root / folder).items())
        if not (root / path).is_file() or sha256_file(root / path) != digest
    ]
    if strange:
        yield f"it ran with other versions of {', '.join(strange)} than there would be"


def ran(record: Path) -> Mapping[str, str]:
    """The open files that a record's run says it ran with, path -> hash; none where that cannot be read."""
    try:
        return read_manifest(record / MANIFEST).open_files
    except Problem:
        return {}
