"""FIXED: the search of one segment: rounds of work on an archive, until it is solved, exhausted or cut off.

A round deals out a fixed number of pieces of work, planned from what was known when it began, and merges
what they found in the order in which they were dealt. So one seed gives one result, with any number of
workers, and also when the search is interrupted and taken up again.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from retro.search.archive import Archive, Runs
from retro.search.guidance import Guidance
from retro.search.modes import Mode, load_mode
from retro.search.pool import Done, Item, News, Pool
from retro.search.settings import Settings
from retro.search.world import NEVER, Beginning, Knowledge, Start

SHAVINGS = 10  # times the frames of a crossing that a piece of work on it takes
SLACK = 4  # a crossing up to so many frames slower than the fastest may be better for the next segment
HINTS, REWIRE, SHAVE = (f"retro.search.{name}" for name in ("hints:Hints", "rewire:Rewire", "shave:Shave"))

Ending = Literal["searching", "solved", "exhausted", "cut off"]


@dataclass(frozen=True, slots=True)
class Solution:
    """A crossing with all its inputs."""

    frames: int
    runs: Runs
    """From the segment's start."""
    into: Beginning


class SegmentSearch:
    """Finds ways out of one segment that take few frames."""

    def __init__(
        self, beginning: Beginning, settings: Settings, seed: str, known: Solution | None = None
    ) -> None:
        """`known` is a crossing to beat."""
        self.beginning = beginning
        self.settings = settings
        self.seed = seed
        self.archive = Archive(settings.cells)
        self.archive.begin(beginning.cell, beginning.state, beginning.reward)
        self.solutions = [known] if known else []
        """The fastest crossings, distinct by the work RAM that they lead to; the fastest first."""
        self.seen: set[tuple[int, int]] = set()
        self.rounds = 0
        self.frames = 0
        """Emulated so far."""
        self.improved_at = 0
        """`frames` when the fastest crossing was found."""
        self.found_at = 0
        """`frames` when a cell was last new, or reached faster."""
        self.deaths = 0
        self.transit = 0
        """Frames of the shortest transit of a crossing that was found here; 0 = none was."""
        self.crossed = False
        """Whether a crossing was found here; that of `known` was not."""
        self.mode_frames = dict.fromkeys(settings.modes, 0)
        self.first: int | None = None
        """Frames of the fastest crossing when the search ended, before the last shaving."""
        self.shaved = 0
        """Frames spent on shaving."""
        self.ending: Ending = "searching"
        self.whole = True
        """False while a round is being merged."""
        self.barred: frozenset[str] = frozenset()
        """Hashes of work RAM that no crossing may lead to; not saved."""
        self._modes: dict[str, Mode] = {}
        self._guidance: Guidance | None = None

    @property
    def best(self) -> int | None:
        """Frames of the fastest crossing."""
        return self.solutions[0].frames if self.solutions else None

    @property
    def limit(self) -> int:
        """Crossings that take so many frames or more are of no use."""
        return NEVER if self.best is None else self.best + SLACK

    @property
    def last_frame(self) -> int | None:
        """A cell that takes so many frames is of no use; None before the first crossing."""
        return None if self.best is None else self.limit - self.transit

    def open(self, pool: Pool, guidance: Guidance | None = None, pieces: Sequence[Runs] = ()) -> None:
        """Turn the pool to this segment, and what guides the search; `pieces` are as for `Source.begin`."""
        self._guidance = guidance
        knowledge = Knowledge(
            self.beginning.segment,
            self.settings.settle,
            SLACK,
            self.archive.known(),
            set(self.seen),
            self.limit,
            self.transit,
            guidance.begin(pool, self.beginning, pieces) if guidance else (),
        )
        pool.open(knowledge)

    def round(self, pool: Pool) -> None:
        """Deal out one round, and merge what comes back."""
        items = self._plan()
        if not self.rounds:
            items.insert(0, Item(HINTS, [self._start(0)], "", self.settings.item_frames))
        for runs in self._guidance.exits() if self._guidance else ():
            items.insert(0, Item(HINTS, [self._start(0)], "", self.settings.item_frames, runs))
        if not items:
            self.ending = "solved" if self.solutions else "exhausted"
            return
        if self._merge(pool, items, pool.do(items)):
            self.found_at = self.frames
        idle = self.frames - self.found_at >= self.settings.patience
        stale = self.frames - self.improved_at >= self.settings.patience
        if self.solutions and (stale or self.frames >= self.settings.frames):
            self.ending = "solved"
        elif self.frames >= self.settings.frames:
            self.ending = "cut off"
        elif not self.solutions and idle and next(self.archive.unexpanded(), None) is None:
            self.ending = "exhausted"

    def shave(self, pool: Pool) -> bool:
        """One round of shortening the crossings by trial; False once its frames are used up."""
        if not self.solutions or self.shaved >= self.settings.shave:
            return False
        if self.first is None:
            self.first = self.best
        before = self.frames
        items = self._shaving(self.settings.items)
        self._merge(pool, items, pool.do(items))
        self.shaved += self.frames - before
        return True

    def _shaving(self, count: int) -> list[Item]:
        """Pieces of work on the fastest crossings in turn, the first of them most often."""
        best = self.solutions[0].frames
        close = [solution for solution in self.solutions if solution.frames <= best + 1]
        items = []
        for place in range(count):
            solution = close[(self.rounds + place) % len(close)]
            budget = max(self.settings.item_frames, SHAVINGS * solution.frames)
            items.append(Item(SHAVE, [self._start(0)], self._seed(place) + ":shave", budget, solution.runs))
        return items

    def _plan(self) -> list[Item]:
        weights = self.archive.weights(self.last_frame)
        total = sum(self.settings.modes.values())
        planned = dict(self.mode_frames)
        items = self._rewiring()
        if self.solutions and self.settings.shave:
            items += self._shaving(1)
        for place in range(self.settings.items):
            generator = random.Random(self._seed(place))
            spent = sum(planned.values()) + self.settings.item_frames
            behind = {
                name: share / total * spent - planned[name] for name, share in self.settings.modes.items()
            }
            for name in sorted(behind, key=lambda name: -behind[name]):
                if not self.settings.modes[name]:
                    continue
                nodes = self._mode(name).choose(self.archive, weights, generator)
                if nodes:
                    planned[name] += self.settings.item_frames
                    starts = [self._start(node) for node in nodes]
                    items.append(Item(name, starts, self._seed(place) + ":play", self.settings.item_frames))
                    break
        return items

    def _rewiring(self) -> list[Item]:
        """Work on the cells that the round before reached faster, if there are any."""
        budget = self.settings.item_frames
        legs = self.archive.legs(self.limit, self.transit, budget * self.settings.items)
        items: list[Item] = []
        length = budget
        for index, runs in legs.items():
            if length >= budget:
                items.append(Item(REWIRE, [], "", budget))
                length = 0
            items[-1].starts.append(replace(self._start(index), legs=tuple(runs)))
            length += sum(frames for leg in runs for _, frames in leg)
        return items

    def _merge(self, pool: Pool, items: list[Item], done: list[Done]) -> int:
        """Take in what came back; returns how many cells are new or faster."""
        self.whole = False
        cells: dict[tuple[int, ...], int] = {}
        seen: set[tuple[int, int]] = set()
        # A start may be beaten, and go, by what is merged before the crossings from it.
        paths = {c.start: self.archive.path(c.start) for d in done for c in d.result.crossings}
        for start in (start for item in items if item.mode == REWIRE for start in item.starts):
            del self.archive.beaten[start.index]  # not before: a round that is broken off was none
        for item, (result, exhausted) in zip(items, ((d.result, d.exhausted) for d in done), strict=True):
            self.frames += result.frames
            self.deaths += result.deaths
            if item.mode in self.mode_frames:  # what ends early counts as whole, or it would come up forever
                self.mode_frames[item.mode] += max(result.frames, item.budget)
            for start in item.starts:
                if node := self.archive.nodes.get(start.index):
                    node.visits += 1
            for crossing in result.crossings:
                runs = (*paths[crossing.start], *crossing.runs)
                self.transit = min(self.transit, crossing.transit) if self.crossed else crossing.transit
                self.crossed = True
                if self._solve(Solution(crossing.frames, runs, crossing.into)):
                    self.archive.keep_exit(crossing.start, crossing.runs, crossing.frames)
            for found in result.found:
                if self.archive.offer(found):
                    cells[found.cell] = found.frames
            for index in exhausted:
                if node := self.archive.nodes.get(index):
                    node.expanded = True
            seen |= result.seen
        seen -= self.seen
        self.seen |= seen
        gone = self.archive.shrink(self.last_frame)
        for cell in gone:
            cells.pop(cell, None)
        self.rounds += 1
        self.whole = True
        guides = self._guidance.news() if self._guidance else None
        pool.tell(News(cells, gone, seen, self.limit, self.transit, guides))
        return len(cells)

    def _solve(self, solution: Solution) -> bool:
        """Take in a crossing, if it belongs to the fastest distinct ones; whether it is one more of them."""
        if solution.into.ram_hash in self.barred:
            return False
        if self.best is None or solution.frames < self.best:
            self.improved_at = self.frames
        distinct = {known.into.ram_hash: known for known in self.solutions}
        known = distinct.get(solution.into.ram_hash)
        if known is not None and known.frames <= solution.frames:
            return False
        distinct[solution.into.ram_hash] = solution
        ranked = sorted(distinct.values(), key=lambda s: (s.frames, s.into.ram_hash))
        self.solutions = ranked[: self.settings.crossings]
        return solution in self.solutions

    def _start(self, index: int) -> Start:
        node = self.archive.nodes[index]
        return Start(index, node.frames, node.state, node.reward)

    def _mode(self, name: str) -> Mode:
        if name not in self._modes:
            self._modes[name] = load_mode(name)
        return self._modes[name]

    def _seed(self, place: int) -> str:
        return f"{self.seed}:{self.beginning.segment}:{self.rounds}:{place}"
