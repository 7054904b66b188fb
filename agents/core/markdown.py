"""FIXED: tables and foreign words in Markdown."""

import re
from collections.abc import Sequence

from agents.memory.describe import shorten

MOST_ROWS = 40
"""Of a table; of longer ones the middle is left out."""


def table(header: Sequence[object], rows: Sequence[Sequence[object]], most: int = MOST_ROWS) -> str:
    left = len(rows) - most
    shown = rows if left <= 0 else [*rows[: most // 2], ["..."] * len(header), *rows[-(most - most // 2) :]]
    lines = [header, ["---"] * len(header), *shown]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def cell(text: str) -> str:
    """A model's words in one cell of a table."""
    return re.sub(r"([|<>\[\]`*_\\])", r"\\\1", shorten(text, 300))


def block(text: str, language: str) -> str:
    """A model's words as they are, whatever marks they hold."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
