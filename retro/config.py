"""The configuration of a search on the command line: one TOML file, every key of it required."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import Problem
from harness.files import read_bytes
from harness.track import ROOT
from retro.search.guidance import load_source
from retro.search.modes import load_mode
from retro.search.settings import Settings

CONFIGS = ROOT / "retro" / "configs"
MARATHON = "marathon"
"""The configuration there that is none of `search`."""
MOST_WORKERS = 256
MOST_SEED = 2**31 - 1


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
    path = config_file(name, [path.stem for path in CONFIGS.glob("*.toml") if path.stem != MARATHON])
    table, text = read_toml(path)
    if "search" in table:
        remedy = f"choose another, or python -m retro.run marathon <package> {name}"
        raise Problem("is the configuration of a marathon", file=path, remedy=remedy)
    own = {
        key: whole_number(table, key, 0, most, path, text)
        for key, most in (("seed", MOST_SEED), ("workers", MOST_WORKERS))
    }
    settings = read_settings({key: value for key, value in table.items() if key not in own}, path, text)
    return Config(own["seed"], own["workers"], settings)


# ---- for configurations of other commands ------------------------------------------------------------------


def config_file(name: str, choice: Iterable[str]) -> Path:
    """The path of a configuration, which may be one of retro/configs by its bare name; a Problem that names
    a `choice` where there is none."""
    path = CONFIGS / f"{name}.toml" if re.fullmatch(r"[a-z0-9-]+", name) else Path(name)
    if not path.is_file():
        known = ", ".join(sorted(choice))
        raise Problem(f"there is no configuration {name!r}", remedy=f"choose {known}, or a path to your own")
    return path


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """The values of a TOML file, and its text; a Problem with the line where it is none."""
    try:
        text = read_bytes(path, links=True).decode()
    except UnicodeDecodeError as error:
        raise Problem(f"no UTF-8 text: {error}", file=path) from error
    try:
        return tomllib.loads(text), text
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+)", str(error))
        raise Problem(f"no TOML: {error}", file=path, line=int(place[1]) if place else None) from error


def read_settings(table: Mapping[str, Any], path: Path, text: str) -> Settings:
    """The settings of a table of a file; a Problem with the line of what is wrong."""
    try:
        settings = Settings.read(table)
        for mode in settings.modes:
            load_mode(mode)
        for source in settings.guidance:
            load_source(source)
    except Problem as problem:
        names = re.findall(r"(?:share of \w+|mode) '([\w.:]+)'", problem.reason)  # not the table around it
        words = names + re.findall(r"[\w.:]+", problem.reason)
        named = next((word for word in words if line_of(text, word)), "")
        line = line_of(text, named)
        raise Problem(problem.reason, file=path, line=line, remedy=problem.remedy) from problem
    return settings


def whole_number(table: Mapping[str, Any], key: str, least: int, most: int, path: Path, text: str) -> int:
    """The value of a key; a Problem where it is missing or no whole number of that range."""
    if key not in table:
        raise Problem(f"the setting {key!r} is missing", file=path)
    value = table[key]
    if type(value) is not int or not least <= value <= most:
        reason = f"{key} is {value!r}, expected a whole number from {least:,} to {most:,}"
        raise Problem(reason, file=path, line=line_of(text, key))
    return value


def line_of(text: str, key: str) -> int | None:
    """Number of the line that sets a key, or begins the table of this name."""
    for number, line in enumerate(text.splitlines(), 1):
        if key and re.match(rf"""\s*(\[([\w-]+\.)*)?["']?{re.escape(key)}["']?\s*(=|\])""", line):
            return number
    return None
