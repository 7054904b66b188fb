"""The review of a pull request: what it changes, and what its records are worth. None of it is run."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.boards import Entry, own_files, read_records, shared_files
from harness.checks.recipe import lies_in
from harness.errors import Problem
from harness.files import sha256_bytes, sha256_file
from harness.record import README, RECORD, SOURCE, read_record
from harness.submission import paths
from harness.submission.commits import (
    Change,
    Tree,
    changes,
    commit_of,
    merge_base,
    read_file,
    read_history,
    read_tree,
    touched,
    write_files,
)
from harness.submission.links import faults_of_links
from harness.submission.summary import Summary
from harness.submission.worth import faults_of_date, ran, summarise
from harness.track import ROOT, available_tracks, load_track


def review(repository: Path, base: str, head: str, number: int | None = None) -> Summary:
    """Review what the commit `head` would bring to `base`; both are names of commits in the repository.

    The records of `head` are laid over the files of `base` in a temporary folder, and checked there by the
    code that runs now. Nothing that `head` brings is run.

    Raises:
        Problem: a commit is not there, or the two share none.
    """
    tip, top = commit_of(repository, base), commit_of(repository, head)
    start = merge_base(repository, tip, top)
    old, new, target = (read_tree(repository, commit) for commit in (start, top, tip))
    changed = changes(old, new)
    found = paths.sort_changes(changed, old, new, target)
    faults = list(found.faults)
    faults += _changed_back(
        touched(repository, tip, top) - {change.path for change in changed}, found.folders
    )
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        write_files(repository, {p: b for p, b in target.items() if b.mode.startswith("100")}, root)
        faults += [fault for name in found.records for fault in _rewritten(root, name, found.records[name])]
        new_folders = [name for name in sorted(found.records) if not (root / name).exists()]
        ours = {c.path: c.new for name in found.records for c in found.records[name] if c.new}
        write_files(repository, ours, root)
        for name in new_folders:
            faults += faults_of_date(root, name, datetime.now(UTC).date())
        brought = [name for name in found.folders if not paths.within(name, old)]
        for change in found.recipes:
            if fault := _fault_of_recipe(repository, root, change, new, brought):
                faults.append(f"{change.path}: {fault}")
            elif change.new:
                write_files(repository, {change.path: change.new}, root)
        for name in new_folders:
            faults += _unseen(repository, root, name, tip)
        for name in sorted(found.records):
            for file in sorted((root / name).rglob("*.md")):
                shown = file.relative_to(root)
                faults += [f"{shown}: {fault}" for fault in faults_of_links(file, root)]
        entries, undrawn = _entries(root)
        faults += undrawn
        faults += _derived(repository, root, entries, found, old)
        records = tuple(summarise(root, name, found.records[name], entries) for name in sorted(found.records))
    if not changed:
        faults.append("nothing differs: what is not committed is not seen")
    return Summary(number, tip, top, len(changed), tuple(faults), records)


def _changed_back(paths_between: Collection[str], folders: Sequence[str]) -> Iterator[str]:
    """Faults of fixed files, of any track, that are as before at the end, and were not in between.

    What a commit held counts as a version of ours once it is merged, see `harness.accepted`.
    """
    patterns: set[str] = set()
    for track in {*available_tracks(ROOT), *(folder.split("/")[1] for folder in folders)}:
        with suppress(Problem):  # there is no such track; the checks say so
            patterns.update(load_track(track).fixed_files)
    fixed = [path for path in sorted(paths_between) if any(lies_in(path, one) for one in patterns)]
    if fixed:
        shown = ", ".join([*fixed[: paths.SHOWN], *["..."] * (len(fixed) > paths.SHOWN)])
        yield f"{shown}: changed by a commit and changed back; put all into one commit"


def _rewritten(root: Path, folder: str, changed: Sequence[Change]) -> Iterator[str]:
    """Faults of a record that stands already: what its runs left behind may not change."""
    if not (root / folder / RECORD).is_file():
        return
    kept = read_record(root / folder / RECORD).files
    for change in changed:
        if change.path.removeprefix(f"{folder}/") in kept:
            yield f"{change.path}: is the evidence of a record that stands; it may not change"


def _fault_of_recipe(
    repository: Path, root: Path, change: Change, new: Tree, folders: Sequence[str]
) -> str | None:
    """Why a changed file in a track's folder is refused: it must be what a new record of the track ran.

    What one that stands ran could be long outdone.
    """
    track = change.path.split("/")[0]
    here = [folder for folder in folders if folder.split("/")[1] == track]
    if change.path == f"{track}/{SOURCE}":
        if any(new.get(f"{folder}/{SOURCE}") == change.new for folder in here):
            return None
        return f"is not the {SOURCE} of a new record in this pull request; leave it out"
    if change.new is None or not _is_open(track, change.path):
        return "is not part of a record; leave it to a pull request of its own"
    digest = sha256_bytes(read_file(repository, change.new))
    if any(ran(root / folder).get(change.path) == digest for folder in here):
        return None
    return "is not what a new record in this pull request ran; leave it out"


def _is_open(track: str, path: str) -> bool:
    """Whether a path is one of the files that a recipe of the track may change besides speedrun.py.

    A fixed file may lie among them, and is none.
    """
    rules = load_track(track)
    is_fixed = any(lies_in(path, pattern) for pattern in rules.fixed_files)
    return not is_fixed and any(lies_in(path, pattern) for pattern in rules.open_files)


def _unseen(repository: Path, root: Path, folder: str, tip: str) -> Iterator[str]:
    """Faults of a new record whose open files nobody has: it could not be read, and not be run again."""
    track = folder.split("/")[1]
    if track not in available_tracks(root):
        return  # the checks say so
    differing = {
        path: digest
        for path, digest in sorted(ran(root / folder).items())
        if _is_open(track, path) and not ((root / path).is_file() and sha256_file(root / path) == digest)
    }
    if len(differing) > paths.CHANGES_LIMIT:
        yield f"{folder}: ran with other versions of {len(differing)} open files"
        return
    for path, digest in differing.items():
        if digest not in map(sha256_bytes, read_history(repository, tip, path)):
            yield f"{folder}: ran with a {path} that is not here and never was on the base branch; add it"


def _entries(root: Path) -> tuple[list[Entry], list[str]]:
    try:
        return read_records(root), []
    except Problem as problem:
        return [], [f"no board can be drawn: {_plain(problem, root)}"]


def _derived(
    repository: Path, root: Path, entries: Sequence[Entry], found: paths.Sorted, old: Tree
) -> Iterator[str]:
    """Faults of what is made from records: right in their folders, right or left out elsewhere."""
    for entry in entries:
        if entry.folder.relative_to(root).as_posix() in found.records:
            remedy = f"run python -m harness.boards --records and commit {entry.folder.name}"
            yield from _differing(root, partial(own_files, entry), remedy)
    if not found.generated:
        return
    for change in found.generated:
        assert change.new is not None
        (root / change.path).parent.mkdir(parents=True, exist_ok=True)
        write_files(repository, {change.path: change.new}, root)
    wanted = {root / change.path for change in found.generated}
    remedy = "leave README.md and docs/figures out, or merge the base branch and run make boards"

    def made() -> dict[Path, str]:
        if README not in old:
            raise Problem("there is none on the base branch", file=README)
        return shared_files(read_file(repository, old[README]).decode(), entries, root)

    yield from _differing(root, made, remedy, wanted)


def _differing(
    root: Path, make: Callable[[], Mapping[Path, str]], remedy: str, only: set[Path] | None = None
) -> Iterator[str]:
    """Faults of the files that `make` makes, or of `only` those, where they are not so in `root`."""
    try:
        made = make()
    except Problem as problem:
        yield f"cannot be made anew: {_plain(problem, root)}"
        return
    except Exception as error:  # a record that cannot be drawn is refused like one that cannot be checked
        yield f"cannot be made anew: {type(error).__name__}: {error}"
        return
    for path in sorted(made.keys() if only is None else only):
        shown = path.relative_to(root)
        if path not in made:
            yield f"{shown}: is made from no record; leave it out"
        elif not path.is_file() or path.read_bytes() != made[path].encode():
            yield f"{shown}: is not what the records say; {remedy}"


def _plain(problem: Problem, root: Path) -> str:
    return str(problem).replace(f"{root}/", "")
