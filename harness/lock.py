"""One process at a time in a folder."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import Problem
from harness.files import unwritable


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder until the end, or the death, of this process; a Problem where another one holds it."""
    path = folder / ".lock"
    try:
        handle = path.open("ab")
    except OSError as error:
        raise unwritable(path, error) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            remedy = "wait for it to end, or choose another folder"
            raise Problem("another process works in it", file=folder, remedy=remedy) from error
        except OSError as error:  # a file system without locks
            raise unwritable(path, error) from error
        yield
