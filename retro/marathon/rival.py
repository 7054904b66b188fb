"""A rival: the movie of someone else, whose splits stand beside ours, and whose ways are remembered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import Problem
from harness.files import write_atomic
from retro.emulator import CONSOLES, console_of
from retro.packages import GamePackage
from retro.replay import verify
from retro.search.route import Piece
from retro.times import format_frames


@dataclass(frozen=True)
class Rival:
    """A movie, and what its replay showed."""

    inputs: tuple[int, ...]
    splits: Mapping[str, int]
    """State -> frames after which it held for the first time."""


def read_rival(path: Path, spec: str) -> Rival:
    """A .bk2, replayed from power-on in a fresh process; a Problem where it is of another game, starts from a
    savestate, or reaches no state after the first."""
    shown = verify(path, spec)
    if len(shown.replay.splits) < 2:
        raise Problem("the movie leaves no state", file=path, remedy="name another, or none")
    return Rival(shown.movie.inputs, shown.replay.splits)


def splits_table(path: Path, package: GamePackage, pieces: Sequence[Piece], rival: Rival | None) -> None:
    """Write when each state is entered, beside the rival's, as a table of Markdown; + = behind, - = ahead."""
    rate = CONSOLES[console_of(package.rom)].frame_rates[0]
    lines = [f"# {package.title}: {format_frames(sum(piece.frames for piece in pieces), rate)}", ""]
    lines += ["| entered | frames | at |", "| --- | ---: | ---: |"]
    if rival is not None:
        lines[-2] += " reference | behind it by |"
        lines[-1] += " ---: | ---: |"
    at = 0
    for piece in pieces:
        at += piece.frames
        row = f"| {piece.entered} | {piece.frames:,} | {at:,} |"
        if rival is not None:
            theirs = rival.splits.get(piece.entered)
            row += " | |" if theirs is None else f" {theirs:,} | {at - theirs:+,} |"
        lines.append(row)
    write_atomic(path, "\n".join(lines) + "\n")
