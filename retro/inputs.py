"""FIXED: inputs as text. `12` is twelve frames of nothing, `3:RIGHT+A` three of both; runs join by spaces."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from harness.errors import Problem

LONGEST = 2_000_000  # frames, over nine hours: bounds the memory that a run's length can ask for

_WORD = re.compile(r"\S+")
_RUN = re.compile(r"([0-9]{1,9})(?::(.+))?", re.ASCII)


def mask(names: Iterable[str], buttons: Sequence[str | None]) -> int:
    """Bits of the named buttons, bit i for the i-th of `buttons`; a Problem on a name not among them."""
    bits = 0
    for name in names:
        if not name or name not in buttons:
            known = " ".join(button for button in buttons if button)
            raise Problem(f"{name!r} is not a button of this console", remedy=f"choose from: {known}")
        bits |= 1 << buttons.index(name)
    return bits


def names_of(bits: int, buttons: Sequence[str | None]) -> list[str]:
    """Names of the buttons in a mask, in the console's order; a Problem on bits that are no button."""
    names = [name for place, name in enumerate(buttons) if name and bits >> place & 1]
    if bits < 0 or mask(names, buttons) != bits:
        raise Problem(f"the mask {bits} has bits that are not buttons of this console")
    return names


def format_inputs(inputs: Iterable[int], buttons: Sequence[str | None]) -> str:
    """The text of button masks, one a frame: as few runs as there can be. A Problem as `names_of`."""
    runs = ((names_of(bits, buttons), sum(1 for _ in group)) for bits, group in groupby(inputs))
    return " ".join(f"{count}:{'+'.join(names)}" if names else str(count) for names, count in runs)


def parse_inputs(text: str, buttons: Sequence[str | None]) -> list[int]:
    """Button masks, one a frame, of a text; runs may be parted by any white space.

    Raises:
        Problem: a run is malformed, of no frames or of an unknown button, or there are more than `LONGEST`
            frames. It names the line and the column.
    """
    inputs: list[int] = []
    for word in _WORD.finditer(text):
        match = _RUN.fullmatch(word[0])
        try:
            if match is None:
                raise Problem(
                    f"{word[0][:40]!r} is not a run of inputs", remedy="write frames:BUTTON+BUTTON, or frames"
                )
            pressed = match[2].split("+") if match[2] else []
            if len(set(pressed)) != len(pressed):
                raise Problem(f"{word[0][:40]!r} names a button twice")
            count, bits = int(match[1]), mask(pressed, buttons)
            if not 0 < count <= LONGEST - len(inputs):
                raise Problem(f"a run must have at least one frame, and all together {LONGEST:,} at most")
        except Problem as problem:
            line = text.count("\n", 0, word.start()) + 1
            column = word.start() - text.rfind("\n", 0, word.start())
            raise Problem(
                f"inputs, line {line}, column {column}: {problem.reason}", remedy=problem.remedy
            ) from None
        inputs.extend([bits] * count)
    return inputs
