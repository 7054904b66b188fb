"""What an engine calls to be watched: files in `<run folder>/live/`, each written whole or not at all.

A call of `Publisher.update` takes some microseconds, and once a second some milliseconds; files are written
by a thread, and videos made by processes that give way to the search. Nothing is ever raised into the
search: what goes wrong, a full disk for example, is told once.
"""

import queue
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from harness.errors import Problem
from harness.files import read_bytes, sha256_file, write_atomic
from retro.emulator import CONSOLES, console_of
from retro.live import snapshot as shown
from retro.live.films import Films
from retro.live.kept import forget, keep_pieces, kept_pieces
from retro.live.pictures import MOST, mosaic, png
from retro.live.snapshot import FRAME, LIVE, MOSAIC, MOVIE, SNAPSHOT, Counts, Snapshot, parse_snapshot
from retro.packages import load_package
from retro.search.route import Piece
from retro.search.segment import SegmentSearch

EVERY = 1.0  # seconds between two snapshots, at least
_WINDOW = 15.0  # seconds over which the speed is measured

Screens = Callable[[int], list[NDArray[np.uint8]]]
"""As `Pool.screens`."""


class Publisher:
    """Shows one run. Leave it as a context manager: its last state is written then, and its movie made."""

    def __init__(
        self, folder: Path, spec: str, seed: int, *, rom_sha256: str, workers: int, screens: Screens
    ) -> None:
        """folder: the run folder. spec: the package, as in `load_package`.

        Raises:
            Problem: there is no such package.
        """
        self._folder = folder / LIVE
        self._package = load_package(spec)
        self._workers, self._screens = workers, screens
        self._told: set[str] = set()
        self._due = 0.0
        self._speed: deque[tuple[float, int]] = deque()
        self._emulated, self._counted = 0, 0
        self._search: SegmentSearch | None = None
        self._pieces: list[Piece] = []  # as they were looked at last, also before a restart
        self._looked = False  # at the pieces, since the start
        self._before: dict[str, int] = {}
        self._last: tuple[Any, ...] | None = None
        self._tasks: queue.Queue[tuple[Snapshot, list[NDArray[np.uint8]]] | None] = queue.Queue()
        self.earlier: Snapshot | None = None
        """What the folder showed when this began, of the same run."""
        self._guard(lambda: self._folder.mkdir(parents=True, exist_ok=True))
        self._films = Films(self._folder, spec, self._tell)
        now = _utc()
        rate = float(CONSOLES[console_of(self._package.rom)].frame_rates[0])
        self._run = shown.Run(
            id=secrets.token_hex(16), game=self._package.name, title=self._package.title[:300],
            rom_sha256=rom_sha256, seed=seed, console_rate=rate, began_utc=now, updated_utc=now,
        )  # fmt: skip
        self._guard(self._go_on)
        self._writer = threading.Thread(target=self._write, name="live view", daemon=True)
        self._writer.start()

    def _go_on(self) -> None:
        """Take over what the folder shows of this run."""
        path = self._folder / SNAPSHOT
        earlier = parse_snapshot(read_bytes(path), path) if path.exists() else None
        same = ("game", "rom_sha256", "seed")
        if earlier is None or any(getattr(earlier.run, one) != getattr(self._run, one) for one in same):
            forget(self._folder)
            return
        self.earlier = earlier
        self._run = self._run.model_copy(update={"id": earlier.run.id, "began_utc": earlier.run.began_utc})
        self._before = {s.state: s.best_before for s in earlier.splits if s.best_before is not None}
        film = self._folder / MOVIE
        if earlier.movie and film.exists() and sha256_file(film) == earlier.movie.sha256:
            self._films.movie = earlier.movie
        self._guard(self._films.go_on)
        self._pieces = kept_pieces(self._folder)

    def __enter__(self) -> "Publisher":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(wait=kind is None)

    # ---- for the engine ------------------------------------------------------------------------------------

    def update(
        self,
        doing: str,
        search: SegmentSearch | None,
        pieces: Sequence[Piece],
        counts: Counts,
        journal: Iterable[Mapping[str, Any]],
        attempt: int = 0,
    ) -> None:
        """Say how things stand, as often as one likes, between two rounds of the search.

        doing: as `snapshot.Doing`. pieces: of the best route. journal: its last lines, at least. All of it is
        looked at during the call alone, but for `close`, which looks at what was said last.
        """
        self._last = (doing, search, pieces, counts, journal, attempt)
        self._guard(lambda: self._count(search))
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + EVERY
            self._guard(lambda: self._publish(doing, search, pieces, counts, journal, attempt))

    def close(self, wait: bool = True) -> None:
        """Write the last state, and the movie too if `wait`. Nothing is published after it."""
        if self._last is not None:
            _, *rest = self._last
            self._guard(lambda: self._publish("idle", *rest))
            if wait:
                self._films.wait()
                self._guard(lambda: self._publish("idle", *rest))
        self._tasks.put(None)
        self._writer.join()

    # ---- in the engine's thread ----------------------------------------------------------------------------

    def _count(self, search: SegmentSearch | None) -> None:
        if search is not None:
            if search is self._search:
                self._emulated += search.frames - self._counted
            elif search.rounds <= 1:  # it has just begun, and was not taken up from a file
                self._emulated += search.frames
            self._search, self._counted = search, search.frames

    def _publish(
        self,
        doing: str,
        search: SegmentSearch | None,
        pieces: Sequence[Piece],
        counts: Counts,
        journal: Iterable[Mapping[str, Any]],
        attempt: int,
    ) -> None:
        self._film(pieces)
        now = time.monotonic()
        self._speed.append((now, self._emulated))
        while len(self._speed) > 2 and now - self._speed[1][0] > _WINDOW:
            self._speed.popleft()
        since, emulated = self._speed[0]
        speed = (self._emulated - emulated) / (now - since) if now > since else 0.0
        frames = [piece.frames for piece in pieces]
        goals = {state.name: state.goal[:300] for state in self._package.states}
        splits = [
            shown.Split(
                state=piece.state, goal=goals.get(piece.state, ""), frames=piece.frames,
                entered=sum(frames[:place]), best_before=self._before.get(piece.state),
            )
            for place, piece in enumerate(pieces[: shown.SPLITS])
        ]  # fmt: skip
        state = self._package.states[search.beginning.segment] if search else None
        status = shown.Search.model_validate(
            {
                "doing": doing,
                "state": state.name if state else "",
                "goal": goals[state.name] if state else "",
                "frames": search.frames if search else 0,
                "budget": search.settings.frames if search else 0,
                "cells": len(search.archive.cells) if search else 0,
                "dropped": search.archive.dropped if search else 0,
                "deaths": search.deaths if search else 0,
                "best": search.best if search else None,
                "workers": self._workers,
                "frames_per_s": 0.0 if doing == "idle" else round(speed, 1),
                "attempt": attempt,
            }
        )
        lines = [
            shown.Line.model_validate({**line, "note": str(line["note"])[:1000]})
            for line in list(journal)[-shown.JOURNAL :]
        ]
        snapshot = Snapshot(
            run=self._run.model_copy(update={"updated_utc": _utc()}),
            time=shown.Time(frames=sum(frames), start_frame=sum(frames[:2]) if len(frames) > 1 else None),
            splits=splits, search=status, counts=counts, journal=lines, movie=self._films.movie,
        )  # fmt: skip
        if self._tasks.empty() or doing == "idle":  # else the disk is slower than this, and misses one
            self._tasks.put((snapshot, self._screens(MOST)))

    def _film(self, pieces: Sequence[Piece]) -> None:
        """Have the videos made that the pieces call for."""
        if not pieces:
            return
        known, self._pieces = self._pieces, list(pieces)
        first_look, self._looked = not self._looked, True
        same = [p.inputs for p in known] == [p.inputs for p in pieces]
        movie = self._films.movie
        made = movie is not None and movie.verified and movie.frames == sum(piece.frames for piece in pieces)
        if (known and not same) or (first_look and not made):
            self._films.show(pieces)
        if not same:
            self._side_by_side(known, pieces)
            keep_pieces(self._folder, pieces)

    def _side_by_side(self, known: Sequence[Piece], pieces: Sequence[Piece]) -> None:
        """Have a piece that got faster compared with what stood in its place."""
        pairs = enumerate(zip(known, pieces, strict=False))
        first = next((place for place, (one, other) in pairs if one.inputs != other.inputs), None)
        if first is None or (new := pieces[first]).state != known[first].state:
            return
        end = next((place for place, piece in enumerate(known) if piece.entered == new.entered), None)
        if end is None or end < first:
            return
        old = known[first : end + 1]
        if new.frames < (taken := sum(piece.frames for piece in old)):
            self._before[new.state] = taken
            self._films.compare(pieces[:first], old, [new], new.state)

    # ---- in a thread of its own ----------------------------------------------------------------------------

    def _write(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._guard(partial(self._save, *task))

    def _save(self, snapshot: Snapshot, screens: list[NDArray[np.uint8]]) -> None:
        if screens:
            write_atomic(self._folder / FRAME, png(screens[0]))
            write_atomic(self._folder / MOSAIC, png(mosaic(screens)))
        write_atomic(self._folder / SNAPSHOT, snapshot.model_dump_json() + "\n")

    # ---- what goes wrong -----------------------------------------------------------------------------------

    def _guard(self, do: Callable[[], object]) -> None:
        try:
            do()
        except Exception as error:
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        kind = error.reason if isinstance(error, Problem) else f"{type(error).__name__}: {error}"
        if kind not in self._told and len(self._told) < 20:
            self._told.add(kind)
            tqdm.write(f"The live view misses something: {error}")


def _utc() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
