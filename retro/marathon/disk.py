"""What a run folder may take of the disk."""

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from harness.files import read_bytes, write_atomic
from retro.marathon.journal import JOURNAL
from retro.search.segment import SegmentSearch

VIDEOS = ("live/comparison.mp4", "live/movie.mp4")
SEARCHES = "searches"
TRACKED = "wandb/*run-*"
"""A folder for each start, of W&B."""
_NODE = 200  # bytes of a cell beside its savestate, at most


def used(folder: Path) -> int:
    """Bytes of all files in a folder."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # it may go at any moment
            total += path.stat().st_size if path.is_file() else 0
    return total


def search_bytes(search: SegmentSearch) -> int:
    """What a saved search takes, at most."""
    states = search.archive.state_bytes + sum(len(known.into.state) for known in search.solutions)
    return states + _NODE * (len(search.archive.nodes) + len(search.seen)) + 100_000


def make_room(folder: Path, limit: int, needed: int, keep: Iterable[Path] = ()) -> bool:
    """Remove what can be done without until `needed` more bytes stay within the limit; whether they do.

    First go saved searches but those to `keep`, then videos, then what W&B was told before the last start,
    then the older half of the journal, as often as it takes. Route, movie and memory stay.
    """
    spare = limit - needed - used(folder)
    searches = sorted((folder / SEARCHES).glob("*.npz"), key=lambda path: int(path.stem))
    for path in (*(one for one in searches if one not in keep), *(folder / name for name in VIDEOS)):
        if spare >= 0:
            return True
        if path.exists():
            spare += path.stat().st_size
            path.unlink(missing_ok=True)
    tracked = sorted(folder.glob(TRACKED), key=lambda path: path.name.partition("run-")[2])
    for path in tracked[:-1]:
        if spare >= 0:
            return True
        spare += used(path)
        shutil.rmtree(path, ignore_errors=True)
    path = folder / JOURNAL
    while spare < 0 and path.exists() and len(lines := read_bytes(path).splitlines(keepends=True)) > 1:
        newer = lines[len(lines) // 2 :]
        spare += sum(map(len, lines)) - sum(map(len, newer))
        write_atomic(path, b"".join(newer))
    return spare >= 0
