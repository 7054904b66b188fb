"""What a backend keeps: runs in SQLite, files beside it by their hash, all within a bounded room on disk.

<data>/live.sqlite     runs, which files they have, when they were last heard of
<data>/files/<run>/    <sha256>.png, .mp4, .json
<data>/partial/        uploads that are not whole: <run>.<name>.<sha256>
"""

import shutil
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import Problem
from harness.files import sha256_file
from retro.live.content import check_content
from retro.live.snapshot import SIZES, SNAPSHOT, parse_snapshot

KEPT = 2  # versions of a file: whoever looks may still be loading the one before
_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, title TEXT NOT NULL, heard REAL NOT NULL);
CREATE TABLE IF NOT EXISTS files (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, name TEXT NOT NULL, sha256 TEXT NOT NULL,
    size INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (run, name, number)
);
"""


class Refusal(Exception):
    """Why an upload is not taken: a status of HTTP, and for 409 how many bytes lie here."""

    def __init__(self, status: int, reason: str, received: int | None = None) -> None:
        super().__init__(reason)
        self.status, self.received = status, received


class Upload(NamedTuple):
    """A file that is being uploaded; all fields are checked by `Store.receive`."""

    run: str
    name: str
    sha256: str
    size: int


class Store:
    """One process at a time may use a folder. Of calls of `receive` for one run none may overlap."""

    def __init__(self, folder: Path, most_bytes: int = 4 << 30, most_runs: int = 100) -> None:
        self._files, self._partial = folder / "files", folder / "partial"
        self._most_bytes, self._most_runs = most_bytes, most_runs
        self._changing = threading.Lock()
        for path in (self._files, self._partial):
            path.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(
            folder / "live.sqlite", check_same_thread=False, isolation_level=None
        )
        self._database.executescript("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON;" + _SCHEMA)

        for path in self._files.glob("*/*"):  # left by a crash
            query = "SELECT 1 FROM files WHERE run = ? AND sha256 = ?"
            if self._database.execute(query, (path.parent.name, path.stem)).fetchone() is None:
                path.unlink()

    def close(self) -> None:
        self._database.close()

    # ---- looking -------------------------------------------------------------------------------------------

    def runs(self) -> list[dict[str, Any]]:
        """Every run, that heard of last first: id, title, seconds since it was heard of."""
        rows = self._database.execute("SELECT id, title, heard FROM runs ORDER BY heard DESC")
        return [{"id": id, "title": title, "heard_s": time.time() - heard} for id, title, heard in rows]

    def files(self, run: str) -> dict[str, str]:
        """Name -> SHA-256 of the newest version of every file of a run."""
        query = "SELECT name, sha256 FROM files WHERE run = ? ORDER BY number"
        return dict(self._database.execute(query, (run,)).fetchall())

    def path(self, run: str, name: str, sha256: str) -> Path | None:
        """Where a version of a file lies; None = it is not, or no more, here."""
        query = "SELECT 1 FROM files WHERE run = ? AND name = ? AND sha256 = ?"
        if self._database.execute(query, (run, name, sha256)).fetchone() is None:
            return None
        return self._place(run, name, sha256)

    # ---- uploads -------------------------------------------------------------------------------------------

    def receive(self, upload: Upload, offset: int, chunk: bytes) -> bool:
        """Take a part of a file, the next one; whether it is whole now, checked, and there to be seen.

        Raises:
            Refusal: 404 unknown run; 409 another part is the next; 413 too large; 422 not what it claims to
                be, and forgotten; 507 no room.
        """
        if not 0 < upload.size <= SIZES[upload.name]:
            raise Refusal(413, f"{upload.name} may have 1 to {SIZES[upload.name]:,} bytes")
        known = self._database.execute("SELECT 1 FROM runs WHERE id = ?", (upload.run,)).fetchone()
        if known is None and upload.name != SNAPSHOT:
            raise Refusal(404, "there is no such run: begin with its snapshot")
        if self.files(upload.run).get(upload.name) == upload.sha256:
            self._hear(upload.run)
            return True
        path = self._part(upload)
        received = path.stat().st_size if path.exists() else 0
        if received < upload.size:
            self._append(upload, path, received, offset, chunk)
            if received + len(chunk) < upload.size:
                return False
        self._finish(upload, path)
        return True

    def _append(self, upload: Upload, path: Path, received: int, offset: int, chunk: bytes) -> None:
        if received != offset:
            raise Refusal(409, f"{received} bytes lie here", received)
        if len(chunk) > upload.size - offset:
            raise Refusal(413, "more bytes than the file should have")
        if offset == 0:
            for old in self._partial.glob(f"{upload.run}.{upload.name}.*"):
                old.unlink()  # a version that will not be finished
            with self._changing:
                self._make_room(upload)
        with path.open("ab") as handle:
            handle.write(chunk)

    def _finish(self, upload: Upload, path: Path) -> None:
        try:
            if sha256_file(path) != upload.sha256:
                raise Problem("its SHA-256 is not what was announced")
            check_content(upload.name, path, upload.run)
            title = parse_snapshot(path.read_bytes()).run.title if upload.name == SNAPSHOT else None
        except Problem as problem:
            path.unlink()
            raise Refusal(422, str(problem)) from problem
        place = self._place(upload.run, upload.name, upload.sha256)
        place.parent.mkdir(exist_ok=True)
        path.replace(place)
        try:
            with self._changing:
                gone = self._enter(upload, title)
        except sqlite3.IntegrityError as error:
            raise Refusal(404, "the run was forgotten meanwhile") from error
        self._hear(upload.run)
        for sha256 in gone - {upload.sha256}:
            self._place(upload.run, upload.name, sha256).unlink(missing_ok=True)

    def _enter(self, upload: Upload, title: str | None) -> set[str]:
        """Make a file the newest of its name; the versions that are not kept any more."""
        database, mine = self._database, (upload.run, upload.name)
        with database:
            database.execute("BEGIN")
            if title is not None:
                insert = "INSERT INTO runs VALUES (?, ?, 0) ON CONFLICT (id) DO UPDATE SET title = ?"
                database.execute(insert, (upload.run, title, title))
            query = "SELECT coalesce(max(number), 0) + 1 FROM files WHERE run = ? AND name = ?"
            (number,) = database.execute(query, mine).fetchone()
            old = "FROM files WHERE run = ? AND name = ? AND (number <= ? OR sha256 = ?)"
            which = (*mine, number - KEPT, upload.sha256)
            gone = {sha256 for (sha256,) in database.execute(f"SELECT sha256 {old}", which)}
            database.execute(f"DELETE {old}", which)
            row = (*mine, upload.sha256, upload.size, number)
            database.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?)", row)
        return gone

    def _hear(self, run: str) -> None:
        self._database.execute("UPDATE runs SET heard = ? WHERE id = ?", (time.time(), run))

    def _make_room(self, upload: Upload) -> None:
        """Forget the runs heard of longest ago until this file has room."""
        known = {run["id"] for run in self.runs()} | {upload.run}
        for path in self._partial.iterdir():
            if path.name.partition(".")[0] not in known:
                path.unlink()
        while True:
            sizes = dict(self._database.execute("SELECT run, sum(size) FROM files GROUP BY run").fetchall())
            if sizes.get(upload.run, 0) + upload.size > self._most_bytes:
                raise Refusal(507, "there is no room for it")
            parts = sum(path.stat().st_size for path in self._partial.iterdir())
            others = [run["id"] for run in self.runs() if run["id"] != upload.run]
            full = sum(sizes.values()) + parts + upload.size > self._most_bytes
            if not (full or len(others) >= self._most_runs):
                return
            if not others:
                raise Refusal(507, "there is no room for it")
            self._forget(others[-1])

    def _forget(self, run: str) -> None:
        self._database.execute("DELETE FROM runs WHERE id = ?", (run,))
        shutil.rmtree(self._files / run, ignore_errors=True)
        for path in self._partial.glob(f"{run}.*"):
            path.unlink()

    def _place(self, run: str, name: str, sha256: str) -> Path:
        return self._files / run / f"{sha256}{Path(name).suffix}"

    def _part(self, upload: Upload) -> Path:
        return self._partial / f"{upload.run}.{upload.name}.{upload.sha256}"
