"""Who follows a run, and what they are told when it changes."""

import asyncio
import json
from collections.abc import AsyncIterator

from retro.live.snapshot import SNAPSHOT
from retro.live.store import Store

MOST = 200
"""Followers at a time."""
_KEEP = 15.0  # seconds after which something is sent, so that nothing between takes the line for dead


class TooMany(Exception):
    """No more followers are taken."""


class Events:
    """Followers of runs; all calls from the thread of the event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def changed(self, run: str) -> None:
        """Wake whoever follows a run."""
        for event in self._waiting.get(run, ()):
            event.set()

    def follow(self, run: str) -> AsyncIterator[str]:
        """Server-sent events with the state of a run; raises TooMany."""
        if sum(map(len, self._waiting.values())) >= MOST:
            raise TooMany(f"{MOST} are looking already")
        return self._follow(run)

    async def _follow(self, run: str) -> AsyncIterator[str]:
        changed = asyncio.Event()
        self._waiting.setdefault(run, set()).add(changed)
        try:
            while self._store.files(run):
                changed.clear()
                yield f"data: {self._state(run)}\n\n"
                while not changed.is_set():
                    try:
                        await asyncio.wait_for(changed.wait(), _KEEP)
                    except TimeoutError:
                        yield ": still here\n\n"
        finally:
            self._waiting[run].discard(changed)
            if not self._waiting[run]:
                del self._waiting[run]

    def _state(self, run: str) -> str:
        """The snapshot, and which versions of the files there are, as one line of JSON."""
        files = self._store.files(run)
        path = self._store.path(run, SNAPSHOT, files[SNAPSHOT])
        assert path is not None
        heard = next(known["heard_s"] for known in self._store.runs() if known["id"] == run)
        return json.dumps({"snapshot": json.loads(path.read_bytes()), "files": files, "heard_s": heard})
