"""Rules about the folder itself: its name, what lies in it, record.json, hashes and text files."""

import re
from pathlib import Path

from harness.checks.base import SIZE_LIMIT, RecordFolder, Rule, rule
from harness.errors import Problem
from harness.files import read_bytes
from harness.record import CURVE, LOG, MANIFEST, README, RECORD, SECOND, SOURCE, FolderName, Record
from harness.track import Track

_TEXT = {".json", ".jsonl", ".md", ".py", ".svg", ".txt"}
_CONFLICT = re.compile(rb"(?:<{7}|>{7}|\|{7}|={7})(?:[ \r]|$)")


@rule()
def plain_files(home: RecordFolder) -> str:
    """A record is a folder of plain files, none larger than 8 MiB, with no links."""
    if home.path.is_symlink() or not home.path.is_dir():
        raise Problem(f"{home.path.name} is not a folder")
    faults = []
    names = _names(home.path)
    for name in names:
        try:
            home.file(name)
        except Problem as problem:
            faults.append(f"{name} {problem.reason}")
    if faults:
        raise Problem("; ".join(faults))
    return f"{len(names)} plain files, none over {SIZE_LIMIT // 2**20} MiB"


@rule()
def schema(home: RecordFolder) -> str:
    """record.json has exactly the fields of the schema."""
    record = home.record
    return f"record {record.number} of {record.track}, ruleset {record.ruleset}"


@rule("schema")
def canonical(home: RecordFolder) -> str:
    """record.json is written as the tools write it, so that no field can hide and none is given twice."""
    found, expected = home.text(RECORD).splitlines(), home.record.dump().splitlines()
    for line, (have, want) in enumerate(zip(found, expected, strict=False), start=1):
        if have != want:
            raise Problem(f"found {_short(have)}, expected {_short(want)}", file=RECORD, line=line)
    if home.text(RECORD) != home.record.dump():
        raise Problem(f"has {len(found)} lines or other line ends, expected {len(expected)}", file=RECORD)
    return "record.json is in the form that the tools write"


@rule("schema")
def track_(home: RecordFolder) -> str:
    """The track exists here and has, or had, the record's ruleset."""
    return f"{home.track.title}, ruleset {home.track.ruleset}"


@rule()
def folder_name(home: RecordFolder) -> str:
    """The folder is called `<YYYY-MM-DD>_<NN>_<name>`."""
    return str(FolderName.parse(home.place.name))


@rule("schema", "folder_name")
def name_matches(home: RecordFolder) -> str:
    """The folder's name and place say what record.json says."""
    record = home.record
    if home.place.name != record.folder_name:
        raise Problem(f"the folder is {home.place.name!r}, expected {record.folder_name!r} by record.json")
    place = "/".join(home.place.parts[-3:-1])
    if place != f"records/{record.track}":
        raise Problem(f"the folder lies in {place!r}, expected 'records/{record.track}'")
    return f"{place}/{record.folder_name}"


@rule("track")
def folder_contents(home: RecordFolder) -> str:
    """The folder holds the files of a record, all of them and no others."""
    found = set(_names(home.path))
    derived = {RECORD, README, CURVE, *(report.name for report in home.track.reports)}
    expected = hashed_files(home.record, home.track) | derived
    faults = [f"{name} is missing" for name in sorted(expected - found)]
    faults += [f"{name} does not belong here" for name in sorted(found - expected)]
    if faults:
        raise Problem("; ".join(faults))
    return f"{len(found)} files, as expected"


@rule("folder_name")
def number_unique(home: RecordFolder) -> str:
    """No other record of the track has this number."""
    number = FolderName.parse(home.place.name).number
    for other in home.siblings():
        parts = other.name.split("_")
        if len(parts) > 1 and parts[1].isdecimal() and int(parts[1]) == number:
            raise Problem(f"number {number} is taken by {other.name}, expected one that is free")
    return f"{number} is free"


@rule("track")
def file_hashes(home: RecordFolder) -> str:
    """record.json names every file but itself and what is made from them, each with its sha256."""
    expected = hashed_files(home.record, home.track)
    listed = set(home.record.files)
    faults = [f"{name} is not listed in record.json" for name in sorted(expected - listed)]
    faults += [f"record.json lists {name!r}, which is not expected" for name in sorted(listed - expected)]
    for name in sorted(expected & listed):
        try:
            found = home.sha256(name)
        except Problem as problem:
            faults.append(f"{name} {problem.reason}")
            continue
        if found != home.record.files[name]:
            faults.append(f"{name} has sha256 {found}, expected {home.record.files[name]} by record.json")
    if faults:
        raise Problem("; ".join(faults))
    return f"{len(listed)} files have the hashes in record.json"


@rule("plain_files")
def text_files(home: RecordFolder) -> str:
    """Text is UTF-8 with LF line ends and, but for JSON lines, without control or direction characters."""
    count = 0
    for name in _text_names(home):
        count += 1
        for line, text in enumerate(home.text(name).split("\n"), start=1):
            strange = [] if text.isprintable() else [c for c in text if not c.isprintable() and c != "\t"]
            if strange and not name.endswith(".jsonl"):
                raise Problem(f"holds the character {strange[0]!r}, expected text", file=name, line=line)
            if "\r" in strange:
                raise Problem("ends in CR LF, expected LF", file=name, line=line)
    return f"{count} text files"


@rule("plain_files")
def conflict_markers(home: RecordFolder) -> str:
    """No file holds the marks of a merge that was not finished."""
    for name in _text_names(home):
        for line, text in enumerate(read_bytes(home.file(name)).split(b"\n"), start=1):
            if _CONFLICT.match(text):
                raise Problem(f"found a conflict marker {text[:80].decode()!r}", file=name, line=line)
    return "none found"


def hashed_files(record: Record, track: Track) -> set[str]:
    """The files whose hashes record.json must hold; those in verification/ once there is a second run."""
    run = {MANIFEST, LOG, track.evidence_name, track.checkpoint_name}
    second = {f"{SECOND}/{name}" for name in run} if record.verification else set()
    return run | second | {SOURCE}


def _names(path: Path) -> list[str]:
    """Every entry of the folder, and of verification/ where that is a folder and not a link to one."""
    names = []
    for entry in sorted(path.iterdir()):
        if entry.name == SECOND and entry.is_dir() and not entry.is_symlink():
            names += [f"{SECOND}/{inner.name}" for inner in sorted(entry.iterdir())]
        else:
            names.append(entry.name)
    return names


def _text_names(home: RecordFolder) -> list[str]:
    return [name for name in _names(home.path) if Path(name).suffix in _TEXT]


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")


RULES: tuple[Rule[RecordFolder], ...] = (
    plain_files,
    schema,
    canonical,
    track_,
    folder_name,
    name_matches,
    folder_contents,
    number_unique,
    file_hashes,
    text_files,
    conflict_markers,
)
