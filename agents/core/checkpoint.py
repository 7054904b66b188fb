"""FIXED: a run's folder is its checkpoint: who may write there, and what a run that broke off goes on from.

What counts is written an episode or a sleep a line; a line that a crash cut short is dropped, and what it
told of is done again, with the answers that the cache has kept.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

from agents.config import Config, config_text, differences, read_config
from harness.errors import Problem
from harness.files import (
    canonical_json,
    parse_json,
    read_bytes,
    read_json,
    sha256_bytes,
    unwritable,
    write_atomic,
)
from harness.lock import locked as locked

CONFIG, MANIFEST, CACHE, CALLS = "config.yaml", "manifest.json", "cache.sqlite", "calls.jsonl"

_FREE = ("budget.", "server")  # what a run that goes on may be told anew: it changes no answer


def begin(folder: Path, config: Config) -> bool:
    """Make the folder of a new run; returns whether it was not there before.

    Raises:
        Problem: it holds something already, or cannot be made.
    """
    try:
        made = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    check_free(folder)
    write_config(folder, config)
    return made


def check_free(folder: Path) -> None:
    """Refuse a folder that holds something already."""
    try:
        held = sorted(path.name for path in folder.iterdir() if path.name != ".lock")
    except FileNotFoundError:
        return
    except OSError as error:
        raise unwritable(folder, error) from error
    if held:
        raise Problem(
            f"there is a run in this folder already: it holds {held[0]}",
            file=folder,
            remedy=f"go on with --resume {quote(str(folder))}, or choose another --name",
        )


def write_config(folder: Path, config: Config) -> None:
    """Write the config of a run, with every key."""
    write_atomic(folder / CONFIG, config_text(config))


def config_of(folder: Path, config: Config | None) -> Config:
    """The config of the run in a folder, or `config` where that is given and as it may go on.

    Raises:
        Problem: there is no run, or `config` asks for another one; it names the keys.
    """
    path = folder / CONFIG
    if not path.is_file():
        raise Problem("there is no run in this folder", file=folder, remedy="start one with --config_file")
    before = read_config(path)
    if config is None:
        return before
    changed = [key for key in differences(before, config) if not key.startswith(_FREE)]
    if changed:
        raise Problem(
            f"the config is not that of the run in this folder: {', '.join(changed)} differ",
            file=path,
            remedy="only the budget and the server may change; choose another --name for another run",
        )
    return config


def config_hash(config: Config) -> str:
    """SHA-256, in hex, of what decides a run's answers."""
    value = config.model_dump(mode="json", exclude={"budget", "server"})
    return sha256_bytes(canonical_json(value).encode())


def check_same(folder: Path, manifest: dict[str, Any]) -> None:
    """Refuse to go on with another config, other prompts or environments than a run began with, or a replay.

    Raises:
        Problem: it names what has changed.
    """
    path = folder / MANIFEST
    before = read_json(path)
    with as_written(path):
        if before["config"] != manifest["config"]:
            raise Problem(
                "not the config that the run began with",
                file=folder / CONFIG,
                remedy="restore the file as it was, or start a run of another name",
            )
        changed = [
            name
            for part in ("prompts", "environments")
            for name in sorted({*before[part], *manifest[part]})
            if before[part].get(name) != manifest[part].get(name)
        ]
        replays = before["replays"]
    if replays is not None:
        raise Problem(
            "this is a replay, which no model answers", file=path, remedy="replay under another --name"
        )
    if changed:
        raise Problem(
            f"since this run began, {', '.join(changed)} changed: prompts, or the libraries of environments",
            file=path,
            remedy="restore them, or start a run of another name",
        )


@contextmanager
def as_written(path: Path, line: int | None = None) -> Iterator[None]:
    """A Problem with file and line where what is read within is not as a run writes it."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise Problem(
            f"not as a run writes it: {what}", file=path, line=line, remedy="restore the file as it was"
        ) from error


def whole_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file, [] where it is not there; a cut-off last line is not among them."""
    if not path.exists():
        return []
    content = read_bytes(path)
    lines = content[: content.rfind(b"\n") + 1].split(b"\n")[:-1]
    values = [parse_json(line, path, number) for number, line in enumerate(lines, start=1)]
    for number, value in enumerate(values, start=1):
        if not isinstance(value, dict):
            raise Problem("not a JSON object", file=path, line=number)
    return values
