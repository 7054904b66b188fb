"""A search of `retro.run` that is watched: its rounds become snapshots, its pieces milestones."""

import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from harness.track import ROOT
from retro.live.keys import UPLOAD, read_key
from retro.live.publisher import Publisher
from retro.live.relay import LAST, checked_url
from retro.live.snapshot import JOURNAL, Counts
from retro.packages import GamePackage
from retro.search.pool import Pool
from retro.search.route import Route, Watcher
from retro.search.segment import SegmentSearch


@contextmanager
def watched(
    live: str, folder: Path, route: Route, pool: Pool, workers: int, package: GamePackage, watch: Watcher
) -> Iterator[Watcher]:
    """`watch`, and a live view beside it; live: the URL of a backend, or "" = it is not uploaded.

    Raises:
        Problem: there is no key for the uploads, or the URL is none.
    """
    with (
        relaying(folder, live or None),
        Publisher(
            folder, route.package, route.seed, rom_sha256=route.rom_sha256, workers=max(1, workers),
            screens=pool.screens,
        ) as publisher,
    ):  # fmt: skip
        watching = _Watching(publisher, route, package, watch)
        watching.tell("begun", "a search begins, or goes on")
        try:
            yield watching.watch
        finally:
            watching.end()


class _Watching:
    """Counts pieces as they come."""

    def __init__(self, publisher: Publisher, route: Route, package: GamePackage, beside: Watcher) -> None:
        earlier = publisher.earlier
        self._beside = beside
        self._publisher, self._route, self._ending = publisher, route, package.states[-1].name
        self._counts = earlier.counts if earlier else Counts()
        self._journal = deque((line.model_dump() for line in earlier.journal) if earlier else (), JOURNAL)
        self._known = list(route.pieces)
        self._search: SegmentSearch | None = None
        self._doing = "search"

    def watch(self, doing: str, search: SegmentSearch) -> None:
        self._beside(doing, search)
        self._doing, self._search = doing, search
        self._compare()
        self._publish(doing)

    def end(self) -> None:
        self._compare()
        self.tell("stopped", "the search has ended or was stopped")

    def tell(self, event: str, note: str, state: str | None = None, saved: int | None = None) -> None:
        """Add a milestone."""
        utc = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        line = {"utc": utc, "event": event, "state": state, "frames": self._route.frames, "saved": saved}
        self._journal.append({**line, "note": note})
        self._publish("idle" if event == "stopped" else self._doing)

    def _compare(self) -> None:
        """Tell what has changed in the route."""
        known, pieces = self._known, self._route.pieces
        if known == pieces:
            return
        self._known = list(pieces)
        before, now = (sum(piece.frames for piece in part) for part in (known, pieces))
        grown = pieces[len(known) :] if pieces[: len(known)] == known else []
        for piece in grown:
            self._add(found=1)
            note = f"{piece.frames:,} frames to {piece.entered}"
            self.tell("ending" if piece.entered == self._ending else "piece", note, piece.state)
        if not grown and now < before:
            one = next((new for old, new in zip(known, pieces, strict=False) if old != new), pieces[-1])
            self._add(improved=1)
            self.tell("improved", f"{before - now:,} frames fewer: {now:,}", one.state, before - now)

    def _add(self, **more: int) -> None:
        counts = {name: getattr(self._counts, name) + number for name, number in more.items()}
        pieces = self._route.pieces
        beaten, shaved = max(0, len(pieces) - 1), sum(piece.first - piece.frames for piece in pieces)
        counts |= {"pieces": len(pieces), "levels_beaten": beaten, "frames_shaved": max(0, shaved)}
        self._counts = self._counts.model_copy(update=counts)

    def _publish(self, doing: str) -> None:
        self._publisher.update(doing, self._search, self._route.pieces, self._counts, self._journal)


@contextmanager
def relaying(folder: Path, url: str | None) -> Iterator[None]:
    """A relay in a process of its own that uploads what is published in a run folder; None = none does.

    Raises:
        Problem: there is no key, or the URL is none.
    """
    if url is None:
        yield
        return
    checked_url(url)
    read_key(UPLOAD, None, of_backend=True)
    command = [sys.executable, "-m", "retro.live.relay", str(folder.resolve()), "--url", url, "--with-caller"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=ROOT) as relay:
        assert relay.stdin is not None
        patience = LAST + 10
        try:
            yield
        except BaseException:
            patience = 5.0  # whoever stops a search wants it to stop
            raise
        finally:
            relay.stdin.close()  # tells it to upload what is left, and to end
            try:
                relay.wait(patience)
            except subprocess.TimeoutExpired:
                relay.kill()
