"""The journal of a marathon: one JSON object a line for every milestone, appended and flushed.

A line has `utc`, `event`, `state`, `frames` of the run after it, frames `saved`, and a `note`.
"""

import os
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.errors import Problem
from harness.files import canonical_json, parse_json, read_bytes, unwritable, write_atomic

JOURNAL = "journal.jsonl"
SHOWN = 50
"""Lines that are kept at hand."""

Line = dict[str, Any]


class Journal:
    """Lines are gathered by `add`, and written by `flush`, when what they tell of is on disk."""

    def __init__(self, folder: Path, unwritten: Sequence[Line] = ()) -> None:
        """`unwritten` = lines that a process may have left unwritten when it was killed; a line that was cut
        short goes.

        Raises:
            Problem: a line is malformed.
        """
        self._path = folder / JOURNAL
        content = read_bytes(self._path) if self._path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            write_atomic(self._path, whole)
        last = whole.splitlines()[-max(SHOWN, len(unwritten)) :]
        first = whole.count(b"\n") - len(last) + 1
        lines = [self._read(line, number) for number, line in enumerate(last, first)]
        self.recent: deque[Line] = deque(lines, SHOWN)
        """The newest lines."""
        self.unwritten = [line for line in unwritten if line not in lines]
        """Lines that `flush` will write."""
        self.recent.extend(self.unwritten)

    def _read(self, text: bytes, number: int) -> Line:
        try:
            line = parse_json(text, self._path, number)
            if not isinstance(line, dict):
                raise Problem("not a JSON object")
        except Problem as problem:
            remedy = "remove the line: nothing else is lost"
            raise Problem(problem.reason, file=self._path, line=number, remedy=remedy) from problem
        return line

    def add(self, event: str, state: str | None, frames: int, note: str, saved: int | None = None) -> None:
        """Gather a milestone; `frames` are the run's after it."""
        utc = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        line = {"utc": utc, "event": event, "state": state, "frames": frames, "saved": saved, "note": note}
        self.unwritten.append(line)
        self.recent.append(line)

    def flush(self) -> None:
        """Append what was gathered; a Problem where the disk takes no more."""
        text = "".join(canonical_json(line) + "\n" for line in self.unwritten)
        if not text:
            return
        try:
            with self._path.open("a") as handle:
                handle.write(text)
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:
            raise unwritable(self._path, error) from error
        self.unwritten = []
