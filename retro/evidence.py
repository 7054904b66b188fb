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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import Problem
from harness.files import canonical_json, read_json, write_atomic
from harness.packed import pack_lines, unpack_lines

LONGEST_LINE = 2**23  # bytes
LONGEST_TEXT = 2**20  # characters of inputs
FOUND_KEYS = {"search", "game", "seed", "inputs"}


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


def expected(seed: int, searches: int, games: Sequence[str]) -> list[Found]:
    """What a run of this seed must have searched, in order, with nothing found."""
    return [
        Found(search, game, search_seed(seed, search), None) for search in range(searches) for game in games
    ]


def movies_bytes(found: Iterable[Found]) -> bytes:
    """The content of movies.json."""
    rows = sorted(found, key=lambda one: one.search)  # games stay in order
    return canonical_json({"searches": [one._asdict() for one in rows]}).encode() + b"\n"


def read_movies(path: Path, seed: int, searches: int, games: Sequence[str]) -> list[Found]:
    """Read movies.json.

    Raises:
        Problem: it cannot be read, is malformed, or a search or game is missing, repeated or out of order, or
            has another seed than the run's gives it.
    """
    content = read_json(path)
    rows = content.get("searches") if isinstance(content, dict) and len(content) == 1 else None
    if not isinstance(rows, list):
        raise Problem("holds no list of searches and nothing else", file=path)
    wanted = expected(seed, searches, games)
    if len(rows) != len(wanted):
        raise Problem(f"holds {len(rows)} searches of games, not {len(wanted)}", file=path)
    try:
        return [read_found(row, one) for row, one in zip(rows, wanted, strict=True)]
    except Problem as problem:
        raise Problem(problem.reason, file=path) from problem


def read_found(row: Any, wanted: Found) -> Found:
    """What a row says was found; a Problem where it is not the row of the `wanted` search."""
    place = f"search {wanted.search} of {wanted.game}"
    if not isinstance(row, dict) or not row.keys() >= FOUND_KEYS:
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


def write_evidence(path: Path, header: Mapping[str, object], rows: Iterable[Mapping[str, object]]) -> None:
    """Write the header and a line for each of `rows`, whole or not at all."""
    write_atomic(path, pack_lines([header, *rows]))


def read_evidence(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number from 1, object) for every line; a Problem as `harness.packed.unpack_lines`."""
    return unpack_lines(path, LONGEST_LINE)
