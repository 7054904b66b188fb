"""The marathon: does what the state machine orders, and keeps what comes of it.

Between two searches everything is saved at once, see `retro.marathon.store`; the search in work is saved now
and then, and on Ctrl-C. So a marathon may be stopped or killed at any time.
"""

import time
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import Problem
from retro.inputs import parse_inputs
from retro.marathon import machine
from retro.marathon.config import Config
from retro.marathon.disk import SEARCHES, make_room
from retro.marathon.journal import Journal
from retro.marathon.rival import Rival, splits_table
from retro.marathon.searches import Searches
from retro.marathon.store import MOVIE, Saved
from retro.movie import read_movie, write_movie
from retro.replay import Replay, make_movie
from retro.search.guidance import Guidance
from retro.search.pool import Pool
from retro.search.route import Piece, Watcher, runs_of
from retro.search.segment import SegmentSearch

if TYPE_CHECKING:
    from retro.live.publisher import Publisher

SPLITS = "splits.md"
_FOUND = "piece", "ending"
_DOING = {"practice": "practice", "improve": "improve", "run": "search"}


class Enough(Exception):
    """The bound that was set for this start is reached."""


class Marathon(Searches):
    """One marathon in its folder."""

    def __init__(
        self,
        folder: Path,
        saved: Saved,
        pool: Pool,
        config: Config,
        guidance: Guidance | None,
        publisher: "Publisher | None" = None,
        watch: Watcher = lambda doing, search: None,
        rival: Rival | None = None,
    ) -> None:
        super().__init__(folder, saved, pool, config, guidance, self._watched)
        self._publisher, self._report, self._rival = publisher, watch, rival
        self._safe = saved  # as it is on disk
        self._compared = False  # with the rival, since the start
        self._shown: tuple[list[int], Replay] | None = None  # the replay before
        self._emulated, self._began, self._bounds = 0, time.monotonic(), (0.0, 0)
        self._lost = pool.lost

    # ---- from start to stop --------------------------------------------------------------------------------

    def go(self, hours: float = 0, frames: int = 0) -> None:
        """Search without end, or until so many hours have passed or frames were emulated; 0 = no bound.

        Raises:
            Problem: a file of the folder is corrupt, or the game is another one.
        """
        self._bounds = hours * 3600, frames
        try:
            self._take_up()
            orders = self._step(machine.Resumed())
            while True:
                self._do(orders)
                self._commit()
                orders = self._step(*self.search())
        except Enough:
            self._stop("its bound is reached")
        except KeyboardInterrupt:
            self._stop("it was stopped")
            raise

    def _take_up(self) -> None:
        """Begin, or see that everything on disk is of the moment that was saved."""
        self.saved.tally.starts += 1
        self._meet()
        self.saved.save(self.folder)
        beginning = self._arrive(self.route.pieces)
        if self.saved.standing is None:
            name = self.package.states[beginning.segment].name
            self.saved.standing = machine.begin(name, beginning.ram_hash)
        if not self.memory.frames:
            for practice in self.saved.practice:
                self.memory.learn(self._pool, runs_of(self._way(practice)))
            self.memory.learn(self._pool, runs_of(self.route.inputs(self._buttons)))
        if self._rival is not None:
            self.memory.learn(self._pool, runs_of(self._rival.inputs))
        self.memory.save()
        again = self.saved.tally.starts > 1
        self._note("begun", None, "the marathon goes on" if again else "a marathon begins")
        self._commit()

    def _meet(self) -> None:
        """Let go of saved searches if another version of the package named their cells."""
        if self.route.package_sha256 != self.package.source_sha256:
            for path in (self.folder / SEARCHES).glob("*.npz"):
                path.unlink()
            self.route.package_sha256 = self.package.source_sha256

    def _stop(self, why: str) -> None:
        """Leave things as they were saved last: what is being changed is done again."""
        emulated, saved = self.saved.tally.emulated, self._safe
        if saved.standing is None:  # nothing has begun
            return
        saved.tally.emulated = emulated
        self.saved, self.route = saved, saved.route
        self.journal = Journal(self.folder, saved.journal)  # Ctrl-C may have come while it was written
        self._note("stopped", None, f"{why}; {self._emulated:,} frames emulated since the start")
        self._commit()
        if self._publisher is not None and (search := self._counted[0]) is not None:
            self._publish(self._publisher, "idle", search)

    def _step(self, *events: machine.Event) -> machine.Orders:
        orders: list[machine.Order] = []
        for event in events:
            self.saved.standing, more = machine.step(self.standing, event, self._config.rules)
            orders += more
        return tuple(orders)

    def _do(self, orders: machine.Orders) -> None:
        """All that is ordered but the search, which comes last and is done by `search`."""
        tally = self.saved.tally
        for order in orders:
            match order:
                case machine.Note(event, state, text):
                    tally.stuck += event == "stuck"
                    tally.checkpoints += event == "checkpoint"
                    tally.found += event in _FOUND
                    text += f", {self.route.frames:,} frames" if event in _FOUND else ""
                    self._note(event, state, text)
                case machine.GoBack(pieces):
                    while self.route.pieces[-1].state == self.route.pieces[-1].entered:
                        self.route.pieces.pop()
                    del self.route.pieces[len(self.route.pieces) - pieces :]
                    self._hashes = []
                case machine.Mark():
                    self._do(self._step(machine.Marked(self._mark())))
                case machine.Search(doubled):
                    self._doubled = doubled

    # ---- on disk -------------------------------------------------------------------------------------------

    def _commit(self) -> None:
        """Save this moment, then all that is made of it."""
        reached = self.package.state_index(self.route.pieces[-1].entered), self.route.frames
        best = self.saved.best
        if best is None or (reached[0], -reached[1]) > (best[0], -best[1]):
            self.saved.best = best = reached
        self.saved.journal = list(self.journal.unwritten)
        self._safe = deepcopy(self.saved)
        self.saved.save(self.folder)
        self.journal.flush()
        if best == reached:
            self._keep_movie()
        for path in (self.folder / SEARCHES).glob("*.npz"):
            if int(path.stem) not in (self.standing.begun, self.standing.begun - 1):
                path.unlink(missing_ok=True)
        make_room(self.folder, self._config.disk, 0, [self._file(self.standing.begun)])

    def _keep_movie(self) -> None:
        """Write the route as a movie, unless it is there, and its splits."""
        path, inputs = self.folder / MOVIE, self.route.inputs(self._buttons)
        with suppress(Problem):  # there is none yet, or it is damaged
            if list(read_movie(path).inputs) == inputs:
                if self._rival is not None and not self._compared:  # who may be new
                    self._compare()
                return
        known = self._shown
        shown = known[1] if known is not None and known[0] == inputs else self._replay(self.route.pieces)
        write_movie(path, make_movie(self.package, inputs, shown))
        self._compare()

    def _compare(self) -> None:
        splits_table(self.folder / SPLITS, self.package, self.route.pieces, self._rival)
        self._compared = True

    def _replay(self, pieces: list[Piece]) -> Replay:
        shown = super()._replay(pieces)
        self._shown = [mask for piece in pieces for mask in parse_inputs(piece.inputs, self._buttons)], shown
        return shown

    # ---- what is seen of it --------------------------------------------------------------------------------

    def _watched(self, doing: str, search: SegmentSearch) -> None:
        """After every round."""
        played = search.frames - (self._counted[1] if self._counted[0] is search else 0)
        self._emulated += played
        self.saved.tally.emulated += played
        self._counted = search, search.frames
        doing = _DOING[self.standing.kind] if doing == "search" else doing
        self._report(doing, search)
        for _ in range(self._pool.lost - self._lost):
            self._note("worker lost", None, "another takes its place")
        self._lost = self._pool.lost
        if self._publisher is not None:
            self._publish(self._publisher, doing, search)
        seconds, frames = self._bounds
        late = seconds and time.monotonic() - self._began >= seconds
        if late or (frames and self._emulated >= frames):
            raise Enough

    def _publish(self, publisher: "Publisher", doing: str, search: SegmentSearch) -> None:
        from retro.live.snapshot import Counts  # videos and pictures, which most marathons do not want

        counts, attempt = Counts(**self.saved.counts), self.standing.searches
        publisher.update(doing, search, self.route.pieces, counts, self.journal.recent, attempt)
