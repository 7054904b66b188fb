"""FIXED: the movies that the searches of a run found, as they found them and as they were replayed.

`movies.json` is the checkpoint: for each search, for each game, the inputs as text (see `retro.inputs`), or
null where the search found no way to the ending.

    {"searches":[{"game":"Quarterstep-Nes-v0","inputs":"20 3:START 57:RIGHT","search":0,"seed":1903}]}

`evidence.jsonl.xz` repeats them with what a replay from power-on showed. It is one xz stream of JSON lines
with sorted keys. The first, see `retro.track.evidence_header`, says what was replayed and where; then comes a
line a search and game, in order:

    {"frames":812,"game":"Quarterstep-Nes-v0","inputs":"20 3:START 57:RIGHT","ram":["9a0d...","31c7..."],
        "screen":"77e1...","search":0,"seed":1903,"splits":{"title":12,"level-1":44,"ending":812}}

`frames` is when the ending holds for the first time, or null; `ram` are the hashes of work RAM every
`hash_every` frames; `splits` is when each state was entered; `screen` is the hash of the last picture.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.errors import Problem
from harness.files import canonical_json, read_json, write_atomic
from harness.packed import pack_lines, unpack_lines
from retro.task import CHECKPOINT, GAMES, HASH_EVERY, MOST_FRAMES, SEARCHES, Benchmark, benchmark

if TYPE_CHECKING:
    from retro.replay import Replay

LONGEST_LINE = 2**23  # bytes
LONGEST_TEXT = 2**20  # characters of inputs
VERSIONS = {"stable-retro", "fceumm", "genesis_plus_gx"}
"""What `retro.emulator.versions` names."""
SHOWN = {"frames", "ram", "splits", "screen"}


class Found(NamedTuple):
    """What one search found in one game."""

    search: int
    """From 0."""
    game: str
    seed: int
    """The search's own."""
    inputs: str | None
    """From power-on, as text; None = no way to the ending."""


def search_seed(seed: int, search: int) -> int:
    """The seed of a run's k-th search, 31 bits of SHA-256."""
    digest = hashlib.sha256(f"{seed} {search}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF


def expected(seed: int) -> list[Found]:
    """What a run of this seed must have searched, in order, with nothing found."""
    return [
        Found(search, game.name, search_seed(seed, search), None)
        for search in range(SEARCHES)
        for game in GAMES
    ]


def fastest(game: Benchmark) -> Found:
    """The optimum of a game, as if a search had found it."""
    return Found(0, game.name, 0, game.best_inputs)


def movies_bytes(found: Iterable[Found]) -> bytes:
    """The content of movies.json."""
    order = [game.name for game in GAMES]
    rows = sorted(found, key=lambda one: (one.search, order.index(one.game)))
    return canonical_json({"searches": [one._asdict() for one in rows]}).encode() + b"\n"


def read_movies(path: Path, seed: int) -> list[Found]:
    """Read movies.json.

    Raises:
        Problem: it cannot be read, is malformed, or a search or game is missing, repeated or out of order, or
            has another seed than the run's gives it.
    """
    content = read_json(path)
    rows = content.get("searches") if isinstance(content, dict) and len(content) == 1 else None
    if not isinstance(rows, list):
        raise Problem("should hold a list of searches and nothing else", file=path)
    wanted = expected(seed)
    if len(rows) != len(wanted):
        raise Problem(f"holds {len(rows)} searches of games, not {len(wanted)}", file=path)
    try:
        found = [_read_found(row, one) for row, one in zip(rows, wanted, strict=True)]
    except Problem as problem:
        raise Problem(problem.reason, file=path) from problem
    return found


def _read_found(row: Any, wanted: Found) -> Found:
    """What a row says was found; a Problem where it is not the row of the `wanted` search."""
    place = f"search {wanted.search} of {wanted.game}"
    if not isinstance(row, dict) or row.keys() != set(Found._fields):
        raise Problem(f"this must be {place}, with its seed and inputs")
    for name in ("search", "game", "seed"):
        value = getattr(wanted, name)
        if type(row[name]) is not type(value) or row[name] != value:
            raise Problem(f"{name} is {row[name]!r:.60}, expected {value!r}: this must be {place}")
    inputs = row["inputs"]
    if inputs is not None and not isinstance(inputs, str):
        raise Problem(f"inputs of {place} are neither text nor null")
    if inputs is not None and len(inputs) > LONGEST_TEXT:
        raise Problem(f"inputs of {place} have more than {LONGEST_TEXT:,} characters")
    return wanted._replace(inputs=inputs)


def evidence_header(
    hardware_class: str, seed: int, checkpoint_sha256: str, versions: Mapping[str, str]
) -> dict[str, Any]:
    """The first line of evidence: which run searched what, and what replayed it."""
    return {
        "class": hardware_class,
        "seed": seed,
        "searches": SEARCHES,
        "games": {game.name: game.rom_sha256 for game in GAMES},
        "hash_every": HASH_EVERY,
        "checkpoint_sha256": checkpoint_sha256,
        "versions": dict(versions),
    }


def evidence_row(found: Found, replay: "Replay | None") -> dict[str, Any]:
    """What evidence says of one search and game; `replay` is that of its inputs, None where it has none."""
    shown: dict[str, Any] = {"frames": None, "ram": [], "splits": {}, "screen": None}
    if replay is not None:
        shown = {
            "frames": replay.splits.get(replay.ending),
            "ram": list(replay.ram_hashes),
            "splits": dict(replay.splits),
            "screen": replay.screen_hash,
        }
    return {**found._asdict(), **shown}


def write_evidence(path: Path, header: Mapping[str, object], rows: Iterable[Mapping[str, object]]) -> None:
    """Write the header and a line for each of `rows`, whole or not at all."""
    write_atomic(path, pack_lines([header, *rows]))


class Line(NamedTuple):
    """A line of evidence after the first, in the right form but not yet replayed."""

    number: int
    """Of the line, from 1."""
    found: Found
    row: dict[str, Any]


def read_evidence(path: Path) -> tuple[dict[str, Any], list[Line]]:
    """The header, and a line for each search and game, in order.

    Raises:
        Problem: with file and line: no strict JSON lines in one xz stream; a header that names other games,
            ROMs or searches than the task's; a search missing, repeated, out of order or with another seed
            than the run's gives it; inputs in another than their one form, or not those of the checkpoint
            beside it.
    """
    most = 1 + SEARCHES * len(GAMES)
    lines = list(islice(unpack_lines(path, LONGEST_LINE), most + 1))
    header = lines[0][1] if lines else {}
    with at(path, 1):
        _check_header(header)
        wanted = expected(header["seed"])
        if len(lines) != most:
            bound = "at least " if len(lines) > most else ""
            found = f"{bound}{len(lines) - 1} lines of searches and games"
            raise Problem(f"{found} follow, not {len(wanted)}")
    read = []
    for (number, row), one in zip(lines[1:], wanted, strict=True):
        with at(path, number):
            read.append(Line(number, _check_row(row, one), row))
    checkpoint = path.with_name(CHECKPOINT)
    for line, one in zip(read, read_movies(checkpoint, header["seed"]), strict=True):
        if line.found != one:
            raise Problem(f"inputs are not those of {CHECKPOINT}", file=path, line=line.number)
    return header, read


def movie_inputs(found: Found) -> list[int]:
    """The button masks of what a search found, one a frame.

    Raises:
        Problem: they are not in the one form that inputs have as text, too many, or press buttons in frame 0.
    """
    from retro.inputs import format_inputs, parse_inputs
    from retro.packages import load_package

    buttons = load_package(benchmark(found.game).package).console_buttons
    inputs = parse_inputs(found.inputs or "", buttons)
    if not 0 < len(inputs) <= MOST_FRAMES:
        raise Problem(f"inputs of {len(inputs):,} frames, expected 1 to {MOST_FRAMES:,}")
    if inputs[0]:
        raise Problem("inputs press buttons in frame 0, which is always run without")
    if format_inputs(inputs, buttons) != found.inputs:
        raise Problem("inputs are not written as `retro.inputs.format_inputs` writes them")
    return inputs


@contextmanager
def at(file: Path, line: int) -> Iterator[None]:
    """Say where in the evidence a Problem is, unless it is in another file."""
    try:
        yield
    except Problem as problem:
        if problem.file is not None:
            raise
        raise Problem(problem.reason, file=file, line=line, remedy=problem.remedy) from problem


def _check_header(header: dict[str, Any]) -> None:
    seed, digest, versions = (header.get(name) for name in ("seed", "checkpoint_sha256", "versions"))
    if type(seed) is not int or not 0 <= seed < 2**31:
        raise Problem("seed is not a number of 31 bits")
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise Problem("checkpoint_sha256 is not a SHA-256")
    if not isinstance(versions, dict) or not {"stable-retro"} <= versions.keys() <= VERSIONS:
        raise Problem("versions does not name those of the emulator and its cores and no others")
    for name, text in versions.items():
        if not isinstance(text, str) or not re.fullmatch(r"[\w.+!-]{1,40}", text):
            raise Problem(f"versions gives {name} as {text!r:.60}, which is not a version")
    if not isinstance(header.get("class"), str):
        raise Problem("class is not a name")
    wanted = evidence_header(header["class"], seed, digest, versions)
    for name, value in wanted.items():
        if name not in header or canonical_json(header[name]) != canonical_json(value):
            raise Problem(f"{name} is {str(header.get(name))[:80]}, expected {value!r}")
    if len(header) > len(wanted):
        raise Problem(f"the first line holds more than {', '.join(wanted)}")


def _check_row(row: dict[str, Any], wanted: Found) -> Found:
    """What a line says was found, once its form is right."""
    if row.keys() != set(Found._fields) | SHOWN:
        names = ", ".join([*Found._fields, *sorted(SHOWN)])
        raise Problem(f"search {wanted.search} of {wanted.game} must have exactly {names}")
    found = _read_found({name: row[name] for name in Found._fields}, wanted)
    if found.inputs is not None:
        movie_inputs(found)
    return found
