"""What a live view keeps for the next start: the pieces that it knew, and the comparison that was to be made.

A process may be killed before a video is made, or before it has heard of a faster piece. Beside the files
that are shown, in `<run folder>/live/`.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from harness.errors import Problem
from harness.files import STRICT, canonical_json, parse_json, read_bytes, write_atomic
from retro.search.route import Piece

PIECES, WANTED = "pieces.json", "wanted.json"

Kept = TypeVar("Kept")


class Comparison(BaseModel):
    """Two ways to be shown side by side, as inputs in text."""

    model_config = STRICT

    before: str
    """From power-on to where both begin."""
    old: str
    new: str
    title: str


def keep_pieces(folder: Path, pieces: Sequence[Piece]) -> None:
    write_atomic(folder / PIECES, canonical_json([asdict(piece) for piece in pieces]) + "\n")


def kept_pieces(folder: Path) -> list[Piece]:
    """Empty where nothing is kept; a Problem where the file is malformed."""
    return _read(folder / PIECES, TypeAdapter(list[Piece])) or []


def keep_wanted(folder: Path, wanted: Comparison | None) -> None:
    """None = it has been made."""
    if wanted is None:
        (folder / WANTED).unlink(missing_ok=True)
    else:
        write_atomic(folder / WANTED, canonical_json(wanted.model_dump()) + "\n")


def kept_wanted(folder: Path) -> Comparison | None:
    """A Problem where the file is malformed."""
    return _read(folder / WANTED, TypeAdapter(Comparison))


def forget(folder: Path) -> None:
    """It is of another run."""
    for name in (PIECES, WANTED):
        (folder / name).unlink(missing_ok=True)


def _read(path: Path, model: TypeAdapter[Kept]) -> Kept | None:
    if not path.exists():
        return None
    try:
        return model.validate_json(canonical_json(parse_json(read_bytes(path), path, None)))
    except ValidationError as error:
        found = [f"{'.'.join(map(str, item['loc'])) or 'file'}: {item['msg']}" for item in error.errors()]
        raise Problem("; ".join(found[:5]), file=path, remedy="remove the file") from error
