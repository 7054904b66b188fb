"""A marathon on disk: one file that is written whole or not at all, so that it is always of one moment.

route.json and movie.bk2 beside it are made of it; where a process was killed in between, they are made again.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from harness.errors import Problem
from harness.files import canonical_json, parse_json, read_bytes, sha256_file, write_atomic
from retro.marathon.config import Config
from retro.marathon.machine import Standing
from retro.marathon.practice import Practice
from retro.packages import GamePackage
from retro.search.route import ROUTE, Route

MARATHON, MOVIE = "marathon.json", "movie.bk2"
_REMEDY = "put a copy of it back, or choose another folder with --out: the movie here stays"


@dataclass
class Tally:
    """Sums over the whole marathon."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)
    found: int = 0
    """Pieces that led on."""
    improved: int = 0
    checkpoints: int = 0
    stuck: int = 0
    shaved: int = 0
    """Frames that shaving saved."""
    emulated: int = 0
    """Frames."""
    starts: int = 0
    """How often it was started."""


@dataclass
class Saved:
    """All that a marathon knows between two searches."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)
    route: Route
    standing: Standing | None = None
    """None before the first state was reached."""
    practice: list[Practice] = field(default_factory=list)
    best: tuple[int, int] | None = None
    """Of the movie: index of the state that it reaches, and its frames."""
    tally: Tally = field(default_factory=Tally)
    spent: int = 0
    """Frames that the search in work has from before its present try."""
    journal: list[dict[str, Any]] = field(default_factory=list)
    """Lines of the journal that tell of what is new in this file."""

    @property
    def counts(self) -> dict[str, int]:
        """What the live view and tracking show."""
        tally, standing = self.tally, self.standing
        return {
            "pieces": len(self.route.pieces),
            "levels_beaten": 0 if standing is None else len(standing.entered) - 1,
            "found": tally.found,
            "improved": tally.improved,
            "checkpoints": tally.checkpoints,
            "stuck": tally.stuck,
            "frames_shaved": tally.shaved,
        }

    def save(self, folder: Path) -> None:
        """Write it whole or not at all, and the route beside it."""
        write_atomic(folder / MARATHON, canonical_json(asdict(self)) + "\n")
        self.route.save(folder)


def open_saved(folder: Path, spec: str, package: GamePackage, config: Config) -> Saved:
    """What a folder holds, to go on with, or a marathon that has not begun; hold its lock first.

    Raises:
        Problem: the folder holds something else, or its file is malformed.
    """
    rom, path = sha256_file(package.rom, links=True), folder / MARATHON
    if not path.exists():
        if (folder / ROUTE).exists() or (folder / MOVIE).exists():
            raise Problem("holds another search", file=folder, remedy="choose another folder with --out")
        return Saved(Route(spec, package.name, rom, config.seed, config.settings, package.source_sha256))
    saved = read_saved(path)
    for name, here, there in (
        ("game", package.name, saved.route.game),
        ("ROM", rom, saved.route.rom_sha256),
        ("seed", config.seed, saved.route.seed),
    ):
        if here != there:
            remedy = "choose another folder with --out, or remove this one"
            raise Problem(f"holds a marathon whose {name} is {there}, not {here}", file=folder, remedy=remedy)
    if wrong := _wrong(saved):
        raise Problem(f"no marathon: {wrong}", file=path, remedy=_REMEDY)
    saved.route.package, saved.route.settings = spec, config.settings
    return saved


def read_saved(path: Path) -> Saved:
    """A marathon's file; a Problem where it is missing or malformed."""
    try:
        return TypeAdapter(Saved).validate_json(canonical_json(parse_json(read_bytes(path), path, None)))
    except ValidationError as error:
        found = [f"{'.'.join(map(str, item['loc'])) or 'file'}: {item['msg']}" for item in error.errors()]
        raise Problem(f"no marathon: {'; '.join(found[:5])}", file=path, remedy=_REMEDY) from error
    except Problem as problem:  # of the settings, or it is no JSON
        remedy = problem.remedy or _REMEDY
        raise Problem(problem.reason, file=path, line=problem.line, remedy=remedy) from problem


def _wrong(saved: Saved) -> str:
    """What of a marathon does not fit the rest; "" = all does."""
    now = saved.standing
    if now is None:
        return ""
    practised = {practice.state for practice in saved.practice if practice.inputs}
    entered = [place.state for place in now.entered]
    pieces = [piece.entered for piece in saved.route.pieces if piece.state != piece.entered]
    if not entered or entered != pieces:
        return "route and standing enter other states"
    if missing := sorted({*now.known} - practised):
        return f"the practice of {missing[0]} is missing"
    searched = {"run": entered[-1:], "practice": list(practised), "improve": entered[:-1]}
    if now.state not in searched[now.kind]:
        return f"{now.state!r} is in work, and cannot be"
    counts = [*now.failures.values(), *now.turns.values(), now.begun, now.searches, saved.spent]
    return "a count is below 0" if min(counts) < 0 else ""
