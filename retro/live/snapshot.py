"""What the live view tells of a search: `snapshot.json`, and the names and sizes of the files beside it."""

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from harness.errors import Problem
from harness.files import STRICT, canonical_json, parse_json

LIVE = "live"
"""The folder in a run folder."""
SNAPSHOT, FRAME, MOSAIC = "snapshot.json", "frame.png", "mosaic.png"
MOVIE, RAM, COMPARISON = "movie.mp4", "ram.json", "comparison.mp4"

SIZES = {
    SNAPSHOT: 1 << 20,
    FRAME: 4 << 20,
    MOSAIC: 16 << 20,
    RAM: 16 << 20,
    MOVIE: 256 << 20,
    COMPARISON: 256 << 20,
}
"""Every file of a live view -> the bytes that it may have at most."""

JOURNAL = 50  # lines of the journal in a snapshot
SPLITS = 1000

Text = Annotated[str, Field(max_length=300)]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=1 << 53)]
"""JavaScript's numbers are exact up to here."""
Event = Literal[
    "begun", "piece", "improved", "checkpoint", "stuck", "back", "barred", "unbarred", "practised", "ending",
    "stopped", "worker lost",
]  # fmt: skip
Doing = Literal["search", "shave", "look ahead", "improve", "practice", "replay", "idle"]


class Strict(BaseModel):
    """Refuses unknown keys and values of another type."""

    model_config = STRICT


Part = TypeVar("Part", bound=Strict)


class Run(Strict):
    """Which search it is."""

    id: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    game: Text
    title: Text
    rom_sha256: Hash
    seed: Count
    console_rate: Annotated[float, Field(ge=1, le=1000)]
    """Frames a second."""
    began_utc: Text
    updated_utc: Text


class Time(Strict):
    """Of the best movie so far."""

    frames: Count
    """From power-on."""
    start_frame: Count | None
    """First frame of the first state after power-on's: from there a run is timed from Start."""


class Split(Strict):
    """One piece of the best movie."""

    state: Text
    """That is left with it; "power-on" before the first."""
    goal: Text
    frames: Count
    entered: Count
    """Frames from power-on at which the piece begins."""
    best_before: Count | None
    """Frames of the piece before it last got faster."""


class Search(Strict):
    """What is done now."""

    doing: Doing
    state: Text
    goal: Text
    frames: Count
    """Emulated by this search."""
    budget: Count
    """Frames that it may emulate."""
    cells: Count
    dropped: Count
    deaths: Count
    best: Count | None
    """Frames of its fastest crossing."""
    workers: Count
    frames_per_s: Annotated[float, Field(ge=0, le=1e12)]
    attempt: Count
    """Searches of the turn that are done."""


class Counts(Strict):
    """Sums over the whole run."""

    pieces: Count = 0
    levels_beaten: Count = 0
    found: Count = 0
    improved: Count = 0
    checkpoints: Count = 0
    stuck: Count = 0
    frames_shaved: Count = 0


class Line(Strict):
    """A milestone of the journal."""

    utc: Text
    event: Event
    state: Text | None
    frames: Count | None
    """Of the run after it."""
    saved: Annotated[int, Field(ge=-(1 << 53), le=1 << 53)] | None
    """Frames."""
    note: Annotated[str, Field(max_length=1000)]


class Movie(Strict):
    """The video beside the snapshot."""

    sha256: Hash
    """Of the file."""
    frames: Count
    verified: bool
    """Whether a replay from power-on in a fresh process did what the pieces say."""


class Snapshot(Strict):
    """One moment of a search."""

    version: Literal[1] = 1
    run: Run
    time: Time
    splits: Annotated[list[Split], Field(max_length=SPLITS)]
    search: Search
    counts: Counts
    journal: Annotated[list[Line], Field(max_length=JOURNAL)]
    movie: Movie | None


class Ram(Strict):
    """The package's variables while the movie plays, `ram.json`."""

    movie: Hash
    """SHA-256 of the video that they belong to."""
    names: Annotated[list[Text], Field(max_length=1000)]
    every: Annotated[int, Field(ge=1, le=1 << 20)]
    """Frames from one row to the next."""
    values: Annotated[list[list[int]], Field(max_length=100_000)]
    """Row k holds the values that stand while frame k * every, counted from 0, is shown."""


def parse_snapshot(content: bytes, path: Path = Path(SNAPSHOT)) -> Snapshot:
    """A snapshot; a Problem names all fields that are wrong."""
    return _parsed(content, Snapshot, path)


def parse_ram(content: bytes, path: Path = Path(RAM)) -> Ram:
    """Sampled RAM; a Problem where it is malformed or a row's length is not that of the names."""
    ram = _parsed(content, Ram, path)
    if any(len(row) != len(ram.names) for row in ram.values):
        raise Problem(f"a row has not {len(ram.names)} values", file=path)
    if any(abs(value) > 1 << 53 for row in ram.values for value in row):
        raise Problem("a value is too large", file=path)
    return ram


def _parsed(content: bytes, model: type[Part], path: Path) -> Part:
    text = canonical_json(parse_json(content, path, None))
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        found = [f"{'.'.join(map(str, item['loc'])) or 'file'}: {item['msg']}" for item in error.errors()]
        raise Problem("; ".join(found[:5]), file=path) from error
