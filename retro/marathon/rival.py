"""A rival: the movie of someone else, whose splits stand beside ours, and whose ways are remembered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import Problem
from harness.files import write_atomic
from retro.emulator import CONSOLES, console_of
from retro.marathon.bizhawk import bizhawk_inputs
from retro.packages import GamePackage, load_package
from retro.replay import replay_fresh, verify
from retro.search.route import Piece
from retro.times import format_frames

SHIFTS = (0, 1, -1, 2, -2, 3, -3, 4, -4)
"""Frames by which a movie of BizHawk is put off."""


@dataclass(frozen=True)
class Rival:
    """A movie, and what its replay showed."""

    inputs: tuple[int, ...]
    splits: Mapping[str, int]
    """State -> frames after which it held for the first time."""


def read_rival(path: Path, spec: str) -> Rival:
    """A .bk2, replayed from power-on in a fresh process; a Problem where it is of another game, starts from a
    savestate, or reaches no state after the first.

    One of BizHawk, whose consoles take another time to start, is also tried some frames sooner or later; the
    way that gets furthest is taken."""
    package = load_package(spec)
    inputs = bizhawk_inputs(path, package.rom.suffix, package.console_buttons)
    if inputs is None:
        shown = verify(path, spec)
        rival = Rival(shown.movie.inputs, shown.replay.splits)
    else:
        rival = _best_shift(inputs, spec, package.states[-1].name)
    if len(rival.splits) < 2:
        raise Problem("the movie leaves no state", file=path, remedy="name another, or none")
    return rival


def _best_shift(inputs: Sequence[int], spec: str, ending: str) -> Rival:
    found: list[Rival] = []
    for shift in SHIFTS:
        begun = [0] * shift + list(inputs[max(0, -shift) :])
        shifted = (0, *begun[1:])  # as every movie here begins
        found.append(Rival(shifted, replay_fresh(spec, shifted).splits))
        if ending in found[-1].splits:
            break
    return max(found, key=lambda rival: len(rival.splits))


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
