"""FIXED: a run from power-on to the ending, found segment by segment.

Each segment is searched; its fastest distinct crossings are shaved; the next segment is searched for a while
from each of them, and the one whose sum is the smallest stays. After every segment a fresh process replays
all of it from power-on. What does not come out the same is searched again.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from harness.errors import Problem
from harness.files import STRICT, canonical_json, parse_json, read_bytes, write_atomic
from retro.inputs import format_inputs, parse_inputs
from retro.packages import GamePackage, load_package
from retro.replay import Replay, replay_fresh
from retro.search.archive import Runs
from retro.search.guidance import Guidance
from retro.search.pool import Pool
from retro.search.segment import Ending, SegmentSearch, Solution
from retro.search.settings import Settings
from retro.search.storage import load_search, save_search
from retro.search.world import NEVER, Beginning

ROUTE = "route.json"
SEGMENT = "segment.npz"
SAVE_EVERY = 50_000  # frames emulated between two savings of a segment's search, some seconds
ATTEMPTS = 3  # searches of a segment whose replay comes out otherwise

Watcher = Callable[[str, SegmentSearch], None]
"""Called after each round with what is done ("search", "shave", "look ahead", "improve") and the search."""


@dataclass(frozen=True)
class Piece:
    """The inputs of one segment, and how they were found."""

    __pydantic_config__ = STRICT
    state: str
    """Name of the state that is left; "power-on" before the first."""
    entered: str
    inputs: str
    """As text, see `retro.inputs`."""
    frames: int
    ram_hash: str
    """Of work RAM in the first frame of the state that is entered."""
    ending: str
    """How the search ended: solved, exhausted, cut off; "waited" where there was nothing to search."""
    first: int
    """Frames of the fastest crossing when the search ended, before the last shaving."""
    searched: int
    """Frames emulated by the search and by shaving."""
    rounds: int
    cells: int
    dropped: int
    """Cells that did not fit into the archive."""
    deaths: int


@dataclass
class Route:
    """What a run folder holds."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)
    package: str
    """As given to `load_package`."""
    game: str
    rom_sha256: str
    seed: int
    settings: Settings
    package_sha256: str = ""
    """Of the package's source, which says what a cell is."""
    pieces: list[Piece] = field(default_factory=list)
    generation: int = 0
    """How many passes of `improve` were begun."""

    @property
    def frames(self) -> int:
        return sum(piece.frames for piece in self.pieces)

    def inputs(self, buttons: tuple[str | None, ...]) -> list[int]:
        """All inputs from power-on."""
        return [mask for piece in self.pieces for mask in parse_inputs(piece.inputs, buttons)]

    def save(self, folder: Path) -> None:
        write_atomic(folder / ROUTE, (canonical_json(asdict(self)) + "\n").encode())


def read_route(folder: Path) -> Route:
    """The route in a run folder; a Problem where there is none or it is malformed."""
    path = folder / ROUTE
    if not path.is_file():
        raise Problem("holds no search", file=folder, remedy="begin one: python -m retro.run search")
    text = canonical_json(parse_json(read_bytes(path), path, None))
    try:
        return TypeAdapter(Route).validate_json(text)
    except ValidationError as error:
        found = [f"{'.'.join(map(str, item['loc'])) or 'file'}: {item['msg']}" for item in error.errors()]
        raise Problem(f"no route: {'; '.join(found[:5])}", file=path) from error
    except Problem as problem:  # of the settings
        raise Problem(problem.reason, file=path, remedy=problem.remedy) from problem


def read_run(folder: Path) -> tuple[Route, GamePackage]:
    """The route in a run folder, and its package; a Problem as `read_route` and `check_route`."""
    route = read_route(folder)
    package = load_package(route.package)
    check_route(folder, route, package)
    return route, package


def check_route(folder: Path, route: Route, package: GamePackage) -> None:
    """A Problem where a route is of another game than its package, or has pieces that no search writes."""
    if route.game != package.name:
        reason = f"holds a search of {route.game}, and the package {route.package} is of {package.name}"
        raise Problem(reason, file=folder, remedy="restore the file, or begin a new search")
    before = "power-on"
    for number, piece in enumerate(route.pieces, start=1):
        try:
            package.state_index(piece.entered)
            inputs = parse_inputs(piece.inputs, package.console_buttons)
            if len(inputs) != piece.frames:
                raise Problem(f"its inputs are of {len(inputs):,} frames, not {piece.frames:,}")
            if piece.state != before:
                raise Problem(f"it begins in {piece.state}, where the one before has entered {before}")
            if number == 1 and any(inputs[:1]):
                raise Problem("buttons are pressed in the first frame")
        except Problem as problem:
            reason = f"piece {number} is none that a search writes: {problem.reason}"
            raise Problem(
                reason, file=folder / ROUTE, remedy="restore the file, or begin a new search"
            ) from problem
        before = piece.entered


class RouteSearch:
    """Finds a route, or a faster one, and keeps it in a folder."""

    def __init__(
        self,
        folder: Path,
        route: Route,
        pool: Pool,
        watch: Watcher = lambda doing, search: None,
        replays: bool = True,
        guidance: Guidance | None = None,
    ) -> None:
        """`replays` = whether a fresh process replays the run after every segment.

        Raises:
            Problem: the settings ask for guidance, and there is none.
        """
        if any(route.settings.guidance.values()) and guidance is None:
            raise Problem("the settings ask for guidance", remedy="open it: retro.search.guidance")
        self.folder = folder
        self.route = route
        self.package: GamePackage = load_package(route.package)
        self._pool = pool
        self._watch = watch
        self._replays = replays
        self._guidance = guidance
        self._buttons = self.package.console_buttons
        self.ending: Ending = "searching"
        """How the search of the segment ended that was searched last."""
        self._ahead: SegmentSearch | None = None  # begun to choose between crossings, and gone on with
        self._hashes: list[str] = []  # of the replay before, every so many frames

    # ---- from power-on to the ending -----------------------------------------------------------------------

    def run(self, until: int | None = None) -> bool:
        """Search on to state `until` (None = the ending); False where a segment was not solved.

        Raises:
            Problem: a segment does not replay; a file of the folder is corrupt or from another game.
        """
        last = len(self.package.states) - 1 if until is None else until
        beginning = self._arrive(self.route.pieces)
        while beginning.segment < last:
            solution = self._solve(beginning, last)
            if solution is None:
                return False
            beginning = solution.into
        return True

    def _arrive(self, pieces: list[Piece]) -> Beginning:
        """Where some pieces lead, reached from power-on without a savestate."""
        if not pieces:
            beginning, waited = self._pool.arrive(((0, 1),))
            frames = waited + 1  # frame 0 has no buttons
            inputs = format_inputs([0] * frames, self._buttons)
            entered = self.package.states[beginning.segment].name
            hashes = beginning.ram_hash, "waited", frames
            pieces.append(Piece("power-on", entered, inputs, frames, *hashes, *[0] * 5))
            self.route.save(self.folder)
            return beginning
        try:
            for piece in pieces:
                self.package.state_index(piece.entered)
            lengths = [parse_inputs(piece.inputs, self._buttons) for piece in pieces]
        except Problem as problem:
            raise Problem(problem.reason, file=self.folder / ROUTE, remedy=problem.remedy) from problem
        beginning, waited = self._pool.arrive(runs_of([mask for inputs in lengths for mask in inputs]))
        said = [*(piece.frames for piece in pieces), pieces[-1].entered, pieces[-1].ram_hash]
        name = self.package.states[beginning.segment].name
        if waited or said != [*map(len, lengths), name, beginning.ram_hash]:
            raise Problem(
                f"state {pieces[-1].entered} does not begin as it did when this was written",
                file=self.folder / ROUTE,
                remedy="the ROM, the core or the file has changed: begin a new search",
            )
        return beginning

    def _solve(self, beginning: Beginning, last: int) -> Solution | None:
        """Search one segment and add it to the route."""
        name, fault = self.package.states[beginning.segment].name, ""
        for attempt in range(ATTEMPTS):
            search = self._begun(beginning, attempt)
            self._work(search)
            self.ending = search.ending
            if not search.solutions:
                return None
            solution, ahead = self._choose(search, last)
            fault = self._add(search, solution)
            if not fault:
                self._keep(ahead)
                return solution
            print(f"{name}: {fault}; it is searched again", flush=True)
        remedy = f"look for what differs: python -m retro.run check {self.route.package}"
        raise Problem(f"{name} does not replay from power-on: {fault}", remedy=remedy)

    def _begun(self, beginning: Beginning, attempt: int) -> SegmentSearch:
        """The search of a segment, taken up where it stood."""
        ahead, self._ahead = self._ahead, None
        path = self.folder / SEGMENT
        if attempt == 0 and ahead is None and path.is_file():
            ahead = load_search(path, beginning, self.route.settings)
            if ahead is None:
                print(f"{path} holds no search of this segment by this version: it begins anew", flush=True)
        if attempt == 0 and ahead is not None:
            return ahead
        return SegmentSearch(beginning, self.route.settings, f"{self.route.seed}:{attempt}")

    def _open(self, search: SegmentSearch) -> None:
        search.open(self._pool, self._guidance, [self._runs(piece) for piece in self.route.pieces])

    def _work(self, search: SegmentSearch) -> None:
        """Search to the end, and shave; save now and then."""
        self._open(search)
        saved = search.frames
        try:
            while search.ending == "searching":
                search.round(self._pool)
                self._watch("search", search)
                if search.frames - saved >= SAVE_EVERY:
                    save_search(self.folder / SEGMENT, search)
                    saved = search.frames
            while search.shave(self._pool):
                self._watch("shave", search)
        finally:  # by Ctrl-C too
            if search.whole:
                save_search(self.folder / SEGMENT, search)

    def _choose(self, search: SegmentSearch, last: int) -> tuple[Solution, SegmentSearch | None]:
        """The crossing whose next segment is also fast, and that segment's search as far as it has come."""
        settings = self.route.settings
        following: list[tuple[int, int, Solution, SegmentSearch | None]] = []
        best = search.solutions[0]
        if len(search.solutions) == 1 or not settings.lookahead or best.into.segment >= last:
            return best, None
        for solution in search.solutions:
            if solution.into.segment >= last:
                following.append((solution.frames, solution.frames, solution, None))
                continue
            ahead = SegmentSearch(solution.into, settings, f"{self.route.seed}:0")
            self._open(ahead)
            while ahead.ending == "searching" and ahead.frames < settings.lookahead:
                ahead.round(self._pool)
                self._watch("look ahead", ahead)
            following.append((solution.frames + (ahead.best or NEVER), solution.frames, solution, ahead))
        return min(following, key=lambda entry: entry[:2])[2:]

    def _add(self, search: SegmentSearch, solution: Solution) -> str:
        """Replay with the new piece in a fresh process, and keep it; else returns what differs."""
        piece = self._piece(search, solution)
        if fault := self._fault(piece) if self._replays else "":
            return fault
        self.route.pieces.append(piece)
        self.route.save(self.folder)
        return ""

    def _fault(self, piece: Piece) -> str:
        """How the route with one more piece comes out otherwise in a fresh process; "" = it does not."""
        replay = self._replay([*self.route.pieces, piece])
        total = self.route.frames + piece.frames
        if (entered := replay.splits.get(piece.entered)) != total:
            return f"state {piece.entered} is entered at frame {entered}, not {total}"
        *regular, last = replay.ram_hashes
        if last != piece.ram_hash:
            return f"work RAM differs at frame {total}"
        if any(one != other for one, other in zip(regular, self._hashes, strict=False)):
            return "work RAM differs from the replay before"
        self._hashes = regular
        return ""

    def _keep(self, ahead: SegmentSearch | None) -> None:
        """Turn to the next segment on disk too."""
        self._ahead = ahead
        if ahead is None:
            (self.folder / SEGMENT).unlink(missing_ok=True)
        else:
            save_search(self.folder / SEGMENT, ahead)

    # ---- faster --------------------------------------------------------------------------------------------

    def improve(self) -> int:
        """Search every segment again, bounded by its frames; returns the frames that this saved.

        A faster piece replaces the old one if the rest of the route still reaches the ending after it, or
        can be found anew without losing what was gained.
        """
        self.route.generation += 1
        self.route.save(self.folder)  # a pass that gains nothing has drawn its seeds too
        before = self.route.frames
        index = 1
        while index < len(self.route.pieces):  # a way past a segment makes them fewer
            self._improve(index)
            index += 1
        return before - self.route.frames

    def _improve(self, index: int) -> None:
        pieces = self.route.pieces
        old = pieces[index]
        known = Solution(old.frames, self._runs(old), self._arrive(pieces[: index + 1]))
        search = SegmentSearch(self._arrive(pieces[:index]), self.route.settings, self._seed(index), known)
        self._open(search)
        while search.ending == "searching":
            search.round(self._pool)
            self._watch("improve", search)
        while search.shave(self._pool):
            self._watch("shave", search)
        for solution in search.solutions:
            if self._replace(index, self._piece(search, solution)):
                return

    def _replace(self, index: int, piece: Piece) -> bool:
        """Put a faster piece into the route; False where what follows loses the gain again."""
        old = self.route.pieces
        new = [*old[:index], piece]
        while True:
            entered = new[-1].entered
            rest = next(
                (i for i in range(index + 1, len(old)) if not self._before(old[i], entered)), len(old)
            )
            if sum(p.frames for p in new) >= sum(p.frames for p in old[:rest]):
                return False
            joins = entered == (old[rest].state if rest < len(old) else old[-1].entered)
            replay = self._replay([*new, *old[rest:]] if joins else new)
            if replay.splits.get(entered) != sum(p.frames for p in new):
                return False  # found with savestates, and not to be had without
            if joins and (pieces := self._fitted(new, old[rest:], replay)) is not None:
                self.route.pieces, self._hashes = pieces, list(replay.ram_hashes[:-1])
                self.route.save(self.folder)
                return True
            search = SegmentSearch(self._arrive(new), self.route.settings, self._seed(rest))
            self._open(search)
            while search.ending == "searching":
                search.round(self._pool)
                self._watch("search", search)
            while search.shave(self._pool):
                self._watch("shave", search)
            if not search.solutions:
                return False
            new.append(self._piece(search, search.solutions[0]))

    def _before(self, piece: Piece, state: str) -> bool:
        """Whether a piece leaves an earlier state than this one, which the route may never have entered."""
        return self.package.state_index(piece.state) < self.package.state_index(state)

    def _fitted(self, new: list[Piece], rest: list[Piece], replay: Replay) -> list[Piece] | None:
        """The pieces as their replay splits them; None where the replay does not get through them."""
        at, fitted = sum(piece.frames for piece in new), list(new)
        if replay.splits.get(new[-1].entered) != at:
            return None
        for piece in rest:
            entered = replay.splits.get(piece.entered)
            if entered != at + piece.frames:
                return None
            at = entered
            fitted.append(piece)
            inputs = [mask for one in fitted for mask in parse_inputs(one.inputs, self._buttons)]
            fitted[-1] = replace(piece, ram_hash=self._pool.arrive(runs_of(inputs))[0].ram_hash)
        return fitted

    # ---- pieces --------------------------------------------------------------------------------------------

    def _piece(self, search: SegmentSearch, solution: Solution) -> Piece:
        states = self.package.states
        names = states[search.beginning.segment].name, states[solution.into.segment].name
        inputs = [mask for mask, frames in solution.runs for _ in range(frames)]
        counts = (
            search.frames,
            search.rounds,
            len(search.archive.cells),
            search.archive.dropped,
            search.deaths,
        )
        ending, first = search.ending, search.first or solution.frames
        text = format_inputs(inputs, self._buttons)
        return Piece(*names, text, solution.frames, solution.into.ram_hash, ending, first, *counts)

    def _runs(self, piece: Piece) -> Runs:
        return runs_of(parse_inputs(piece.inputs, self._buttons))

    def _replay(self, pieces: list[Piece]) -> Replay:
        inputs = [mask for piece in pieces for mask in parse_inputs(piece.inputs, self._buttons)]
        return replay_fresh(self.route.package, inputs)

    def _seed(self, index: int) -> str:
        return f"{self.route.seed}:improve {self.route.generation}:{index}"


def runs_of(inputs: Sequence[int]) -> Runs:
    """Inputs of single frames as (mask, frames) pairs."""
    return tuple((mask, len(list(same))) for mask, same in groupby(inputs))
