"""FIXED: replies recorded in SQLite, so that a run can be made again without the model.

A request is known by its hash, in which its label takes part: equal requests under other labels are others.
"""

import contextlib
import hashlib
import json
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from agents.llm.messages import Message
from agents.llm.reply import Reply
from harness.errors import Problem
from harness.files import canonical_json, sha256_bytes

Mode = Literal["record", "replay"]

_TABLE = """CREATE TABLE IF NOT EXISTS replies (
    request TEXT PRIMARY KEY, label TEXT NOT NULL, model TEXT NOT NULL, reply TEXT NOT NULL) WITHOUT ROWID"""


def request_hash(label: str, messages: Sequence[Message], model: str, parameters: Mapping[str, Any]) -> str:
    """SHA-256, in hex, of all that decides an answer."""
    value = [label, [[role, content] for role, content in messages], model, dict(parameters)]
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


class Cache:
    """The replies of a run. Thread-safe."""

    def __init__(self, path: Path, mode: Mode = "record") -> None:
        """Open the file, or make it where `mode` is "record"; "replay" changes nothing.

        Raises:
            Problem: there is no such file to replay, or it holds something else.
        """
        self.path, self.mode = path, mode
        if mode == "replay" and not path.is_file():
            raise Problem(
                "there is no recording of a run", file=path, remedy="name the folder of a finished run"
            )
        self._lock = threading.Lock()
        address = f"{path.resolve().as_uri()}?mode={'ro' if mode == 'replay' else 'rwc'}"
        with self._said():
            self._database = sqlite3.connect(address, uri=True, check_same_thread=False, timeout=30)
            if mode == "record":
                with self._database:
                    self._database.execute(_TABLE)
            self._database.execute("SELECT request, label, model, reply FROM replies LIMIT 1").fetchall()

    def get(self, request: str) -> Reply | None:
        """The reply of a request's hash; None = it was never recorded."""
        with self._said(), self._lock:
            row = self._database.execute("SELECT reply FROM replies WHERE request = ?", (request,)).fetchone()
        if row is None:
            return None
        try:
            return Reply.from_json({**json.loads(row[0]), "cached": True})
        except (ValueError, TypeError, KeyError) as error:
            raise Problem(f"holds a damaged reply, of request {request[:12]}", file=self.path) from error

    def put(self, request: str, label: str, model: str, reply: Reply) -> None:
        """Record a reply; the first one of a request stays."""
        row = (request, label, model, canonical_json(reply.to_json()))
        with self._said(), self._lock, self._database:
            self._database.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", row)

    def check_holds(self, replies: Mapping[str, str]) -> None:
        """Refuse a recording that has lost replies, which would be asked and paid for again, or has others.

        `replies`: hash of a request -> that of its reply, `Reply.sha256`.

        Raises:
            Problem: not every one of these requests has this reply.
        """
        with self._said(), self._lock:
            rows = self._database.execute("SELECT request, reply FROM replies").fetchall()
        held = {request: sha256_bytes(str(reply).encode("utf-8", "replace")) for request, reply in rows}
        lost = sum(request not in held for request in replies)
        if lost:
            raise Problem(
                f"lacks {lost} of the replies that calls.jsonl tells of",
                file=self.path,
                remedy="restore this file, or start a run of another name",
            )
        other = sum(held[request] != reply for request, reply in replies.items())
        if other:
            raise Problem(
                f"{other} of its replies are not those that calls.jsonl tells of",
                file=self.path,
                remedy="restore both files as they were, or start a run of another name",
            )

    def missing(self, label: str) -> Problem:
        """What to say of a request that was not recorded."""
        with self._said(), self._lock:
            found = self._database.execute(
                "SELECT COUNT(*) FROM replies WHERE label = ?", (label,)
            ).fetchone()
        reason = f"the recording does not answer {label!r}"
        if found[0]:
            reason += ": that call was made with other messages, another model or other parameters"
        return Problem(
            reason, file=self.path, remedy="replay with the configuration and the code of the recorded run"
        )

    def close(self) -> None:
        self._database.close()

    @contextlib.contextmanager
    def _said(self) -> Any:
        try:
            yield
        except sqlite3.Error as error:
            raise Problem(f"no recording of replies: {error}", file=self.path) from error
