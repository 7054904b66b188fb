"""The configuration of a marathon: one TOML file, every key of it required. retro/configs/marathon.toml has
them all."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import Problem
from retro.config import (
    MARATHON,
    MOST_SEED,
    MOST_WORKERS,
    config_file,
    line_of,
    read_settings,
    read_toml,
    whole_number,
)
from retro.marathon.machine import Rules
from retro.search.settings import MODES, SOURCES, Settings

_MOST_DOUBLINGS = 20
_MOST_MEGABYTES = 10_000_000


@dataclass(frozen=True)
class Config:
    """What a marathon is told."""

    seed: int
    workers: int
    cluster: str | None
    """host:port of the Ray cluster that has the workers."""
    disk: int
    """Bytes that the run folder may take."""
    rules: Rules
    memory: float
    """How many times more a cell at an exit weighs; 0 = route memory is off."""
    reference: Path | None
    live: bool
    """Whether a live view is published."""
    live_url: str | None
    """Of the backend that it is uploaded to."""
    tracking: str | None
    """Project of Weights & Biases."""
    settings: Settings


_TABLES = {"search": None, "guidance": tuple(SOURCES)}
_KEYS = (
    "seed",
    "workers",
    "cluster",
    "disk",
    "doublings",
    "practice",
    "memory",
    "reference",
    "live",
    "live_url",
    "tracking",
    *_TABLES,
)


def read_config(name: str) -> Config:
    """Read a TOML file, or one of retro/configs by its bare name.

    Raises:
        Problem: with file and line: a key is missing, unknown or malformed, or the file is no TOML.
    """
    path = config_file(name, [MARATHON])
    table, whole_text = read_toml(path)
    text = _part(whole_text, "")
    if "frames" in table and "search" not in table:
        remedy = "choose marathon, or change a copy of retro/configs/marathon.toml"
        raise Problem("is the configuration of a search", file=path, remedy=remedy)
    _check_keys(table, _KEYS, path, text)
    for key, names in _TABLES.items():
        if not isinstance(table[key], dict):
            raise Problem(f"{key} is not a table", file=path, line=line_of(text, key))
        if names is not None:
            _check_keys(table[key], names, path, _part(whole_text, key), line_of(text, key))
    settings = _settings(table, path, whole_text)

    def whole(key: str, least: int, most: int) -> int:
        return whole_number(table, key, least, most, path, text)

    cluster = _text(table, "cluster", path, text)
    if cluster is not None and not re.fullmatch(r"[\w.-]+:[0-9]{1,5}", cluster, re.ASCII):
        reason = f"cluster is {cluster!r}, expected host:port"
        raise Problem(reason, file=path, line=line_of(text, "cluster"))
    if cluster is not None and table["workers"] == 0:
        reason = "cluster names a Ray cluster, and workers is 0"
        raise Problem(reason, file=path, line=line_of(text, "cluster"))
    reference = _text(table, "reference", path, text)
    if reference is not None and not _is_file(reference):
        raise Problem(f"there is no file {reference!r}", file=path, line=line_of(text, "reference"))
    url = _text(table, "live_url", path, text)
    live = table["live"]
    if type(live) is not bool:
        raise Problem(f"live is {live!r}, expected true or false", file=path, line=line_of(text, "live"))
    if url is not None:
        if not live:
            reason = "live_url names a backend, and live is false"
            raise Problem(reason, file=path, line=line_of(text, "live_url"))
        _check_url(url, path, line_of(text, "live_url"))
    project = _text(table, "tracking", path, text)
    if project is not None and not re.fullmatch(r"[\w. -]{1,128}", project):
        reason = f"tracking is {project!r}, expected up to 128 letters, digits, spaces and .-_"
        raise Problem(reason, file=path, line=line_of(text, "tracking"))
    return Config(
        seed=whole("seed", 0, MOST_SEED),
        workers=whole("workers", 0, MOST_WORKERS),
        cluster=cluster,
        disk=whole("disk", 1, _MOST_MEGABYTES) * 1_000_000,
        rules=Rules(whole("doublings", 0, _MOST_DOUBLINGS), whole("practice", 0, 1000)),
        memory=_number(table, "memory", path, text),
        reference=None if reference is None else Path(reference),
        live=live,
        live_url=url,
        tracking=project,
        settings=settings,
    )


def _settings(table: Mapping[str, Any], path: Path, text: str) -> Settings:
    if "guidance" in table["search"]:
        line = line_of(_part(text, "search"), "guidance")
        raise Problem("guidance has a table of its own", file=path, line=line)
    try:
        told = read_settings(table["search"] | {"guidance": table["guidance"]}, path, _part(text, *_TABLES))
    except Problem as problem:
        line = problem.line or line_of(text, "search")
        raise Problem(problem.reason, file=path, line=line, remedy=problem.remedy) from problem
    if missing := [name for name in MODES if name not in told.modes]:  # those of one's own may be beside them
        line = line_of(_part(text, "search"), "modes")
        raise Problem(f"the setting {missing[0]!r} is missing", file=path, line=line, remedy="0 = off")
    return told


def _part(text: str, *tables: str) -> str:
    """A file's lines of some tables, and those within them; "" = before the first table. All others are
    empty, but for the headings where "" is named."""
    inside, lines = "", []
    for line in text.splitlines():
        heading = re.match(r"""\s*\[\s*["']?([\w-]+)""", line)
        inside = heading[1] if heading else inside
        lines.append(line if inside in tables or (heading and "" in tables) else "")
    return "\n".join(lines)


def _check_keys(
    table: Mapping[str, Any], names: tuple[str, ...], path: Path, text: str, at: int | None = None
) -> None:
    """`at` = the line to be told of a key that is missing."""
    if unknown := sorted(set(table) - set(names)):
        remedy = f"there are: {', '.join(names)}"
        raise Problem(
            f"unknown setting {unknown[0]!r}", file=path, line=line_of(text, unknown[0]), remedy=remedy
        )
    if missing := [name for name in names if name not in table]:
        raise Problem(f"the setting {missing[0]!r} is missing", file=path, line=at)


def _text(table: Mapping[str, Any], key: str, path: Path, text: str) -> str | None:
    """A text, None where it is empty."""
    value = table[key]
    if not isinstance(value, str):
        raise Problem(f"{key} is {value!r}, expected a text", file=path, line=line_of(text, key))
    return value or None


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except OSError:  # its name is too long, for example
        return False


def _number(table: Mapping[str, Any], key: str, path: Path, text: str) -> float:
    value = table[key]
    if type(value) not in (int, float) or not 0 <= value <= 1000:
        reason = f"{key} is {value!r}, expected a number from 0 to 1,000"
        raise Problem(reason, file=path, line=line_of(text, key))
    return float(value)


def _check_url(url: str, path: Path, line: int | None) -> None:
    from retro.live.relay import checked_url  # it needs what only the live view does

    try:
        checked_url(url)
    except Problem as problem:
        raise Problem(problem.reason, file=path, line=line, remedy=problem.remedy) from problem
