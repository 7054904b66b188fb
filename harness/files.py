"""Reading and writing: whole files or none, strict JSON, hashes."""

import contextlib
import errno
import hashlib
import json
import math
import os
import secrets
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import Problem

Model = TypeVar("Model", bound=BaseModel)

DEEPEST = 100
"""Levels of objects and lists in JSON that is read; what walks through it may recurse."""

STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
"""For every model that is read from a file: unknown keys and values of another type are refused."""


def write_atomic(path: Path, content: bytes | str) -> None:
    """Write a file so that readers, and a crash, see the old content or the new and nothing between."""
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with temporary.open("xb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def unwritable(path: Path, error: OSError) -> Problem:
    """The Problem of a file that the system would not write: a full disk, a missing right."""
    return Problem(
        f"cannot be written: {error.strerror or error}",
        file=path,
        remedy="make room or grant the right to write there, then run the command again",
    )


def open_file(path: Path, *, links: bool = False) -> BufferedReader:
    """A file opened for reading; OSError where it is no plain file, or a link unless `links` allows that.

    It is judged once it is open, so nothing can be put in its place between.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK  # to open a pipe would wait for its other end
    try:
        descriptor = os.open(path, flags if links else flags | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError("is a link, expected a plain file") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is not a plain file")
    return os.fdopen(descriptor, "rb")


def read_bytes(path: Path, *, links: bool = False) -> bytes:
    """The content of a file; a Problem where it cannot be read, as `open_file`."""
    try:
        with open_file(path, links=links) as handle:
            return handle.read()
    except OSError as error:
        raise Problem(f"cannot be read: {error.strerror or error}", file=path) from error


def read_text(path: Path) -> str:
    """The text of a file, line ends as they are; a Problem as `read_bytes`, or where it is not UTF-8."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise Problem(f"is not UTF-8: {error.reason}", file=path, line=line) from None


def sha256_bytes(content: bytes) -> str:
    """SHA-256 in lowercase hex."""
    return hashlib.sha256(content).hexdigest()


def sha256_file(path: Path, *, links: bool = False) -> str:
    """SHA-256 of a file's bytes in lowercase hex; a Problem where it cannot be read, as `open_file`."""
    try:
        with open_file(path, links=links) as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise Problem(f"cannot be read: {error.strerror or error}", file=path) from error


def canonical_json(value: object) -> str:
    """One text per value: sorted keys, no spaces, ASCII. ValueError on NaN, TypeError on what JSON lacks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def read_json(path: Path) -> Any:
    """The value in a JSON file. Refuses repeated keys and numbers that are not finite."""
    return parse_json(read_bytes(path), path, None)


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number from 1, object) for every line of a JSON-lines file; every line must end in a newline."""
    try:
        with open_file(path) as handle:
            for number, line in enumerate(handle, start=1):
                if not line.endswith(b"\n"):
                    raise Problem(
                        "the last line is cut short",
                        file=path,
                        line=number,
                        remedy="write the file again, or delete this line if its writer crashed",
                    )
                value = parse_json(line, path, number)
                if not isinstance(value, dict):
                    raise Problem("not a JSON object", file=path, line=number)
                yield number, value
    except OSError as error:
        raise Problem(f"cannot be read: {error.strerror or error}", file=path) from error


def read_model(path: Path, model: type[Model]) -> Model:
    """A JSON file checked against a schema; the Problem names every field that is wrong."""
    text = canonical_json(read_json(path))
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        found = [f"{'.'.join(map(str, item['loc'])) or 'file'}: {item['msg']}" for item in error.errors()]
        raise Problem("; ".join(found), file=path) from error


def write_model(path: Path, value: BaseModel) -> None:
    """Write a model as indented JSON that `read_model` reads back equal."""
    write_atomic(path, value.model_dump_json(indent=2) + "\n")


def parse_json(data: bytes, path: Path, line: int | None) -> Any:
    """The value in the bytes of a file, or of one line of it; a Problem names both where it is not JSON."""
    try:
        value = json.loads(
            data.decode(), object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse_constant
        )
        if data.count(b"[") + data.count(b"{") > DEEPEST and _depth(value) > DEEPEST:
            raise ValueError(f"objects and lists lie in one another, more than {DEEPEST} deep")
        return value
    except json.JSONDecodeError as error:
        reason = f"not JSON: {error.msg}, column {error.colno}"
        raise Problem(reason, file=path, line=line or error.lineno) from error
    except UnicodeDecodeError as error:
        raise Problem(f"not UTF-8: {error.reason}, byte {error.start}", file=path, line=line) from error
    except (ValueError, RecursionError) as error:
        raise Problem(f"not acceptable JSON: {error}", file=path, line=line) from error


def _depth(value: object) -> int:
    """Levels of objects and lists, counted no further than is too deep."""
    depth, level = 0, [value]
    while depth <= DEEPEST and (level := [one for one in level if isinstance(one, dict | list)]):
        depth += 1
        level = [part for one in level for part in (one.values() if isinstance(one, dict) else one)]
    return depth


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique: dict[str, Any] = {}
    for key, value in pairs:
        if key in unique:
            raise ValueError(f"repeated key {key!r}")
        unique[key] = value
    return unique


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a finite number")
