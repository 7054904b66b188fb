"""Configurations of searches and marathons with one line changed, and what is said of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import Problem


def with_line(text: str, key: str, value: str | None) -> tuple[str, int]:
    """The text with another value for a key, or without it; and the line's number."""
    lines = text.splitlines()
    number = next(place for place, line in enumerate(lines) if line.startswith(f"{key} = "))
    lines[number : number + 1] = [] if value is None else [f"{key} = {value}"]
    return "\n".join(lines) + "\n", number + 1


def refused(read: Callable[[str], object], path: Path, text: str) -> Problem:
    """The problem that reading the text, as this file, ends with; it names the file."""
    path.write_text(text)
    with pytest.raises(Problem) as caught:
        read(str(path))
    assert caught.value.file == str(path)
    return caught.value
