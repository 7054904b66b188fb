"""What a pull request with records may touch, judged by paths, modes and sizes before any file is read."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from harness.checks.base import SIZE_LIMIT
from harness.errors import Problem
from harness.record import README, SOURCE, FolderName
from harness.standing import LEDGER
from harness.submission.commits import PLAIN, Blob, Change, Tree

RECORD_LIMIT = 24 * 2**20  # bytes of a record, all files together
NEW_RECORDS_LIMIT = 1
CHANGES_LIMIT = 300
PATH_LIMIT = 200
SHOWN = 5  # names in one fault
_KINDS = {"100755": "executable", "120000": "a link", "160000": "a submodule"}
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_HISTORY = re.compile(r"docs/figures/[a-z_]+_history\.svg")


@dataclass(frozen=True)
class Sorted:
    """The changes of a pull request by what they are."""

    records: Mapping[str, Sequence[Change]]
    """Folder "records/<track>/<record>" -> what changes in it, where nothing of it is refused."""
    folders: Sequence[str]
    """All folders of records in which something changes."""
    generated: Sequence[Change]
    """README.md and the figures of docs/, which may be left out."""
    recipes: Sequence[Change]
    """speedrun.py, and whatever else lies in a track's folder."""
    faults: Sequence[str]
    """Everything that is refused, with its reason."""


def sort_changes(changes: Sequence[Change], old: Tree, new: Tree, base: Tree) -> Sorted:
    """Sort what changes from `old`, the commit that both sides share, to `new`; `base` is where it goes."""
    if len(changes) > CHANGES_LIMIT:
        return Sorted({}, (), (), (), [f"{len(changes)} files change, at most {CHANGES_LIMIT} may"])
    records: dict[str, list[Change]] = defaultdict(list)
    generated, recipes, faults, refused = [], [], [], set()
    tracks = {path.split("/")[0] for path in base if re.fullmatch(rf"[a-z_]+/{SOURCE}", path)}
    for change in changes:
        parts = PurePosixPath(change.path).parts
        folder = "/".join(parts[:3])
        if len(parts) > 3 and parts[0] == "records" and _is_record(parts[2]):
            records[folder].append(change)
        elif change.path == README or _HISTORY.fullmatch(change.path):
            generated.append(change)
        elif len(parts) > 1 and parts[0] in tracks:
            recipes.append(change)
            if fault := _changed_since(change, base):  # a merge would mix both, and neither was reviewed
                faults.append(fault)
                refused.add(change.path)
        else:
            why = "is the maintainers' ledger" if parts[-1] == LEDGER else "is not part of a record"
            faults.append(f"{change.path}: {why}; leave it to a pull request of its own")
            continue
        if fault := _fault_of_file(change):
            faults.append(f"{change.path}: {fault}")
            refused.add(change.path)
    folders = sorted(records)
    new_folders = [folder for folder in folders if not within(folder, old)]
    if len(new_folders) > NEW_RECORDS_LIMIT:
        told = ", ".join([*new_folders[:SHOWN], *["..."] * (len(new_folders) > SHOWN)])
        few = f"at most {NEW_RECORDS_LIMIT} may be; give each a pull request of its own"
        faults.append(f"{len(new_folders)} records are new, {few}: {told}")
        for folder in new_folders:
            del records[folder]
    for folder in list(records):
        found = _faults_of_record(folder, records[folder], old, new, base)
        faults += found
        if found or refused.intersection(change.path for change in records[folder]):
            del records[folder]
    generated = [change for change in generated if change.path not in refused]
    recipes = [change for change in recipes if change.path not in refused]
    if collisions := _collisions([change.path for change in changes if change.new], new):
        return Sorted({}, folders, (), (), [*faults, *collisions])
    return Sorted(records, folders, generated, recipes, faults)


def _is_record(name: str) -> bool:
    try:
        FolderName.parse(name)
    except Problem:
        return False
    return True


def _fault_of_file(change: Change) -> str | None:
    parts = change.path.split("/")
    if not all(_NAME.fullmatch(part) for part in parts):
        return "has a name with other characters than letters, digits, dot, hyphen and underscore"
    if len(change.path) > PATH_LIMIT:
        return f"has a name of {len(change.path)} characters, at most {PATH_LIMIT} are allowed"
    if change.new is None:
        return "is deleted; records and what belongs to them stay" if parts[0] == "records" else "is deleted"
    if change.new.mode != PLAIN:
        return f"is {_KINDS.get(change.new.mode, f'of mode {change.new.mode}')}, expected a plain file"
    if change.new.size > SIZE_LIMIT:
        return f"has {change.new.size:,} bytes, at most {SIZE_LIMIT:,} are allowed"
    return None


def _faults_of_record(folder: str, changes: Sequence[Change], old: Tree, new: Tree, base: Tree) -> list[str]:
    """Why the changes of one record's folder are refused as a whole."""
    there = within(folder, new)
    faults = []
    if (size := sum(blob.size for blob in there.values())) > RECORD_LIMIT:
        faults.append(f"{folder}: has {size:,} bytes, at most {RECORD_LIMIT:,} are allowed")
    if not within(folder, old) and within(folder, base):
        faults.append(f"{folder}: another record of this name has been merged since; renumber this one")
    return faults + [fault for change in changes if change.old and (fault := _changed_since(change, base))]


def _changed_since(change: Change, base: Tree) -> str | None:
    """The fault of a file that is no longer on the base branch as it was where both sides part."""
    if base.get(change.path) == change.old:
        return None
    return f"{change.path}: has been changed by others since; merge the base branch first"


def within(folder: str, tree: Tree) -> dict[str, Blob]:
    """The files of a tree that lie in a folder."""
    return {path: blob for path, blob in tree.items() if path.startswith(f"{folder}/")}


def _collisions(added: Iterable[str], tree: Tree) -> list[str]:
    """Names that are one where case or the form of letters does not count, or of a file and a folder."""
    names: dict[str, set[str]] = defaultdict(set)
    for path in tree:
        for place in _path_and_parents(path):
            names[_folded(place)].add(place)
    faults = set()
    for path in added:
        for place in _path_and_parents(path):
            if len(same := names[_folded(place)]) > 1:
                faults.add(f"{' and '.join(sorted(same))}: are one file where case does not count")
            if place != path and place in tree:
                faults.add(f"{place}: is both a file and a folder")
    return sorted(faults)


def _path_and_parents(path: str) -> list[str]:
    return [path, *map(str, PurePosixPath(path).parents)][:-1]


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()
