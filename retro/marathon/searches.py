"""The searches of a marathon: what comes of each is an event for the state machine.

What is found leads on, or takes a place in the run, only after a fresh process has replayed the run with it.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from retro.inputs import format_inputs, parse_inputs
from retro.marathon import machine
from retro.marathon.config import Config
from retro.marathon.disk import SEARCHES, make_room, search_bytes
from retro.marathon.journal import Journal
from retro.marathon.machine import Standing
from retro.marathon.memory import Memory
from retro.marathon.practice import Hinted, Practice, brought_in, open_practice
from retro.marathon.store import Saved
from retro.replay import replay_fresh
from retro.search.archive import Node, Runs
from retro.search.guidance import Guidance
from retro.search.pool import Pool
from retro.search.route import SAVE_EVERY, Piece, RouteSearch, Watcher, runs_of
from retro.search.segment import SegmentSearch, Solution
from retro.search.storage import load_search, save_search
from retro.search.world import Beginning

SAVE_SECONDS = 60.0  # between two savings of the search in work, at most; on a slow machine frames take long


class Searches(RouteSearch):
    """Does the search that is in work in a marathon."""

    def __init__(
        self,
        folder: Path,
        saved: Saved,
        pool: Pool,
        config: Config,
        guidance: Guidance | None,
        watch: Watcher,
    ) -> None:
        super().__init__(folder, saved.route, pool, watch, True, guidance)
        self.saved, self._config = saved, config
        self.journal = Journal(folder, saved.journal)
        self.memory = Memory(folder, self.package.source_sha256)
        self._doubled = 0
        """How often the budget is doubled."""
        self._kept: SegmentSearch | None = None  # the search before, which the next may go on with
        self._hints: list[Runs] = []
        self._counted: tuple[SegmentSearch | None, int] = (None, 0)  # frames that were counted of a search

    @property
    def standing(self) -> Standing:
        assert self.saved.standing is not None
        return self.saved.standing

    def search(self) -> list[machine.Event]:
        """Do it, and say what came of it."""
        now = self.standing
        self._hints = []
        if now.kind == "practice":
            return self._practise(next(p for p in self.saved.practice if p.state == now.state))
        if now.kind == "improve":
            return self._better(self._index(now.state))
        return self._onward()

    def _onward(self) -> list[machine.Event]:
        """From where the run ends."""
        if (left := self._from_practice(self.standing.state)) is not None:
            return [left]
        self._hints = self._ways(self.standing.state)
        search = self._prepared(self._arrive(self.route.pieces), None)
        self._work(search)
        if not search.solutions:
            return [machine.Nothing(_best_place(search) is not None)]
        solution, _ = self._choose(search, len(self.package.states) - 1)
        if not machine.allowed(self.standing, *self._into(solution)):
            return [machine.Nothing(False)]
        if fault := self._add(search, solution):
            tqdm.write(f"{self.standing.state}: {fault}; it is searched again")
            return [machine.Nothing(False)]
        return [self._left()]

    def _left(self) -> machine.Left:
        """The run has one more piece, which leaves its state: with checkpoints it becomes one."""
        pieces, whole = self.route.pieces, self.route.pieces[-1]
        while pieces[-2].state == pieces[-2].entered:
            whole = _joined(pieces[-2], whole)
            pieces[-2:] = [whole]
        self._met()
        self.saved.tally.shaved += max(0, whole.first - whole.frames)
        self._learn(runs_of(self.route.inputs(self._buttons)))
        return machine.Left(whole.entered, whole.ram_hash, whole.entered == self.package.states[-1].name)

    def _met(self) -> None:
        """Practise the levels that the run enters for the first time."""
        known, inputs = {practice.state for practice in self.saved.practice}, list[int]()
        for number, piece in enumerate(self.route.pieces):
            inputs += parse_inputs(piece.inputs, self._buttons)
            if number and piece.entered not in {*known, self.package.states[-1].name}:
                self.saved.practice.append(Practice(piece.entered, format_inputs(inputs, self._buttons)))

    def _better(self, index: int) -> list[machine.Event]:
        """A state within the run, bounded by what it takes there."""
        pieces = self.route.pieces
        old = pieces[index]
        known = Solution(old.frames, self._runs(old), self._arrive(pieces[: index + 1]))
        self._hints = self._ways(old.state)
        search = self._prepared(self._arrive(pieces[:index]), known)
        self._work(search)
        before = self.route.frames
        for solution in search.solutions:
            if self._replace(index, self._piece(search, solution)):
                piece = self.route.pieces[index]
                self.saved.tally.shaved += max(0, piece.first - piece.frames)
                return [self._improved(old.state, before), machine.Gained()]
        return [machine.Nothing(False)]

    def _improved(self, state: str, before: int) -> machine.Replaced:
        saved, tally = before - self.route.frames, self.saved.tally
        tally.improved += 1
        self._note("improved", state, f"{saved:,} fewer, {self.route.frames:,} frames", saved)
        self._met()
        self._learn(runs_of(self.route.inputs(self._buttons)))
        return machine.Replaced(tuple((piece.entered, piece.ram_hash) for piece in self.route.pieces))

    def _practise(self, practice: Practice) -> list[machine.Event]:
        """A state on its own."""
        beginning, known, prefix = open_practice(self._pool, self.package, practice)
        first = parse_inputs(practice.inputs, self._buttons)[-1:]  # hints begin a frame later
        texts = self.package.hints.get(practice.state, ())
        self._hints = [runs_of(first + parse_inputs(text, self._buttons)) for text in texts]
        search = self._prepared(beginning, known)
        self._work(search)
        best = search.solutions[0] if search.solutions else None
        if best is None or (known is not None and best.frames >= known.frames):
            return [machine.Nothing(False)]
        inputs = prefix + [mask for mask, frames in best.runs for _ in range(frames)]
        state, _ = self._into(best)
        shown = replay_fresh(self.route.package, inputs)
        if shown.splits.get(state) != len(inputs):
            return [machine.Nothing(False)]  # found with savestates, and not to be had without
        way = format_inputs(inputs[len(prefix) :], self._buttons)
        better = replace(practice, way=way, entered=state)
        self.saved.practice = [better if one is practice else one for one in self.saved.practice]
        self._learn(runs_of(inputs))
        events: list[machine.Event] = [machine.Practised(practice.state)]
        if (left := self._from_practice(practice.state)) is not None:
            events.append(left)
        elif self.standing.ended and (replaced := self._swapped(better)) is not None:
            events.append(replaced)
        return [*events, machine.Gained()]

    # ---- what practice brings ------------------------------------------------------------------------------

    def _from_practice(self, state: str) -> machine.Left | None:
        """Leave the state at which the run ends in the way that practice knows."""
        practice = next((one for one in self.saved.practice if one.state == state and one.way), None)
        now = self.standing
        if practice is None or now.ended or now.entered[-1].state != state:
            return None
        upto = [piece for piece in self.route.pieces if piece.state != piece.entered]
        pieces = brought_in(self._pool, self.package, upto, practice)
        if pieces is None or not machine.allowed(now, pieces[-1].entered, pieces[-1].ram_hash):
            return None
        shown, at = self._replay(pieces), 0
        for piece in pieces:
            at += piece.frames
            if shown.splits.get(piece.entered) != at:
                return None
        self.route.pieces[:], self._hashes = pieces, list(shown.ram_hashes[:-1])
        return self._left()

    def _swapped(self, practice: Practice) -> machine.Replaced | None:
        """Put the way that practice knows into the run, if that makes it faster."""
        index = next((i for i, one in enumerate(self.route.pieces) if one.state == practice.state), None)
        if index is None:
            return None
        old, before = self.route.pieces, self.route.frames
        new = brought_in(self._pool, self.package, old[:index], practice)
        if new is None:
            return None
        self.route.pieces, replaced = [*new[:-1], *old[index:]], False
        try:
            replaced = self._replace(index, new[-1])
        finally:
            if not replaced:
                self.route.pieces = old
        return self._improved(practice.state, before) if replaced else None

    def _ways(self, state: str) -> list[Runs]:
        """Ways out of a state that practice knows, from its first frame."""
        ways = [one for one in self.saved.practice if one.state == state and one.way]
        return [runs_of(parse_inputs(one.way, self._buttons)[1:]) for one in ways]

    def _way(self, practice: Practice) -> list[int]:
        return parse_inputs(practice.inputs, self._buttons)[:-1] + parse_inputs(practice.way, self._buttons)

    # ---- checkpoints ---------------------------------------------------------------------------------------

    def _mark(self) -> bool:
        """Lead the run to the best place that the last search came to, if that replays."""
        search = self._kept
        node = _best_place(search) if search else None
        if search is None or node is None:
            return False
        inputs = [mask for mask, frames in search.archive.path(node.index) for _ in range(frames)]
        arrived, waited = self._pool.arrive(runs_of([*self.route.inputs(self._buttons), *inputs]))
        state = self.package.states[search.beginning.segment].name
        if waited or arrived.segment != search.beginning.segment:
            return False
        text = format_inputs(inputs, self._buttons)
        counts = (len(inputs), search.frames, search.rounds, len(search.archive.cells))
        rest = (search.archive.dropped, search.deaths)
        piece = Piece(state, state, text, len(inputs), arrived.ram_hash, search.ending, *counts, *rest)
        if self._replay([*self.route.pieces, piece]).ram_hashes[-1] != arrived.ram_hash:
            return False
        self.route.pieces.append(piece)
        return True

    # ---- a search ------------------------------------------------------------------------------------------

    def _prepared(self, beginning: Beginning, known: Solution | None) -> SegmentSearch:
        """The search in work, taken up where it stood, or gone on with, or new."""
        now, base = self.standing, self.route.settings
        told = replace(base, frames=base.frames << self._doubled, patience=base.patience << self._doubled)
        more = replace(told, frames=told.frames + self.saved.spent)
        own, kept, again = self._file(now.begun), self._kept, False
        search = load_search(own, beginning, more if now.again else told) if own.exists() else None
        if search is None and now.again:
            if kept is None and (before := self._file(now.begun - 1)).exists():
                kept = load_search(before, beginning, more)
            again = kept is not None and kept.ending != "exhausted"
            search = kept if again and kept and kept.beginning.ram_hash == beginning.ram_hash else None
        if search is None:
            search = SegmentSearch(beginning, told, f"{self.route.seed}:marathon {now.begun}", known)
        elif again:  # a try of its own, with all that is known
            search.settings, search.ending, search.shaved = more, "searching", 0
            search.improved_at = search.found_at = search.frames
        self._counted = search, search.frames
        return search

    def _open(self, search: SegmentSearch) -> None:
        segment, strength = search.beginning.segment, self._config.memory
        search.archive.near = self.memory.near(segment, strength) if strength else {}
        if self.standing.kind == "run":
            search.barred = frozenset(way for ways in self.standing.barred.values() for way in ways)
        hints, self._hints = self._hints, []
        guide = Hinted(self._guidance, hints) if hints else self._guidance
        search.open(self._pool, guide, [self._runs(piece) for piece in self.route.pieces])

    def _work(self, search: SegmentSearch) -> None:
        """Search to the end, and shave; save now and then."""
        self._open(search)
        saved, when, least = search.frames, time.monotonic(), False
        try:
            while search.ending == "searching":
                search.round(self._pool)
                self._watch("search", search)
                if least := self.standing.kind != "run" and _least(search):  # the run chooses among crossings
                    search.ending = "solved"
                if search.frames - saved >= SAVE_EVERY or time.monotonic() - when >= SAVE_SECONDS:
                    self._keep_search(search)
                    saved, when = search.frames, time.monotonic()
            while not least and search.shave(self._pool):
                self._watch("shave", search)
        finally:  # by Ctrl-C too
            if search.whole:
                self._keep_search(search)
        self._kept = search
        self.saved.spent = 0 if search.ending == "exhausted" else search.frames

    def _keep_search(self, search: SegmentSearch) -> None:
        path = self._file(self.standing.begun)
        path.parent.mkdir(exist_ok=True)
        if make_room(self.folder, self._config.disk, search_bytes(search), {path}):
            save_search(path, search)

    def _file(self, number: int) -> Path:
        return self.folder / SEARCHES / f"{number}.npz"

    def _seed(self, index: int) -> str:
        return f"{self.route.seed}:marathon {self.standing.begun}:{index}"

    # ---- small things --------------------------------------------------------------------------------------

    def _index(self, state: str) -> int:
        return next(i for i, piece in enumerate(self.route.pieces) if piece.state == state)

    def _into(self, solution: Solution) -> tuple[str, str]:
        return self.package.states[solution.into.segment].name, solution.into.ram_hash

    def _note(self, event: str, state: str | None, text: str, saved: int | None = None) -> None:
        self.journal.add(event, state, self.route.frames, text, saved)
        tqdm.write(f"{event}: {state + ': ' if state else ''}{text}")

    def _learn(self, runs: Runs) -> None:
        if self.memory.learn(self._pool, runs):
            self.memory.save()


def _best_place(search: SegmentSearch) -> Node | None:
    """The best rewarded cell but the first, the soonest of them."""
    nodes: Sequence[Node] = [node for node in search.archive.cells.values() if node.parent >= 0]
    return max(nodes, key=lambda node: (node.reward, -node.frames, -node.index), default=None)


def _least(search: SegmentSearch) -> bool:
    """Whether nothing faster is to be expected: the fastest way leaves in the first frame, all that can be
    done there was tried, and no way had fewer frames between the states."""
    tried = search.archive.nodes[0].expanded
    return tried and search.crossed and search.best is not None and search.best <= search.transit + 1


def _joined(one: Piece, other: Piece) -> Piece:
    """Two pieces as one."""
    counts = {
        name: getattr(one, name) + getattr(other, name)
        for name in ("frames", "first", "searched", "rounds", "cells", "dropped", "deaths")
    }
    return replace(other, state=one.state, inputs=f"{one.inputs} {other.inputs}", **counts)
