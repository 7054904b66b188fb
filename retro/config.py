"""The configuration of a search on the command line: one TOML file, every key of it required."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import Problem
from harness.files import read_bytes
from harness.track import ROOT
from retro.search.modes import load_mode
from retro.search.settings import Settings

CONFIGS = ROOT / "retro" / "configs"
MOST_WORKERS = 256


@dataclass(frozen=True)
class Config:
    """What a search is told."""

    seed: int
    workers: int
    settings: Settings


def read_config(name: str) -> Config:
    """Read a TOML file, or one of retro/configs by its bare name.

    Raises:
        Problem: with file and line: a key is missing, unknown or malformed, or the file is no TOML.
    """
    path = CONFIGS / f"{name}.toml" if re.fullmatch(r"[a-z0-9-]+", name) else Path(name)
    if not path.is_file():
        known = ", ".join(sorted(found.stem for found in CONFIGS.glob("*.toml")))
        raise Problem(f"there is no configuration {name!r}", remedy=f"choose {known}, or a path to your own")
    text = _text(path)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+)", str(error))
        raise Problem(f"no TOML: {error}", file=path, line=int(place[1]) if place else None) from error
    own = {
        key: _count(table, key, most, path, text)
        for key, most in (("seed", 2**31 - 1), ("workers", MOST_WORKERS))
    }
    try:
        settings = Settings.read({key: value for key, value in table.items() if key not in own})
        for mode in settings.modes:
            load_mode(mode)
    except Problem as problem:
        named = next((word for word in re.findall(r"[\w.:]+", problem.reason) if _line(text, word)), "")
        line = _line(text, named)
        raise Problem(problem.reason, file=path, line=line, remedy=problem.remedy) from problem
    return Config(own["seed"], own["workers"], settings)


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise Problem(f"no UTF-8 text: {error}", file=path) from error


def _count(table: dict[str, Any], key: str, most: int, path: Path, text: str) -> int:
    if key not in table:
        raise Problem(f"the setting {key!r} is missing", file=path)
    value = table[key]
    if type(value) is not int or not 0 <= value <= most:
        reason = f"{key} is {value!r}, expected a whole number from 0 to {most:,}"
        raise Problem(reason, file=path, line=_line(text, key))
    return value


def _line(text: str, key: str) -> int | None:
    """Number of the line that sets a key."""
    for number, line in enumerate(text.splitlines(), 1):
        if key and re.match(rf"""\s*\[?["']?{re.escape(key)}["']?\s*(=|\])""", line):
            return number
    return None
