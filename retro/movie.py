"""FIXED: movies as .bk2 files, which stable-retro plays, with what it takes to verify one.

A .bk2 is a zip. `Header.txt`, `Core.bin` (the core's savestate before the first frame) and `Input Log.txt` (a
line a frame) are as stable-retro writes them; `Speedrun.json` is ours, and stable-retro does not look at it.
"""

import io
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import stable_retro
from pydantic import BaseModel, Field, ValidationError

from harness.errors import Problem
from harness.files import STRICT, canonical_json, parse_json, write_atomic
from retro.inputs import LONGEST, mask

_LARGEST = {"Header.txt": 2**16, "Core.bin": 2**24, "Input Log.txt": 2**26, "Speedrun.json": 2**24}
"""Bytes that a member of a zip may unpack to."""
_LARGEST_FILE = 2**26
_MOST_MEMBERS = 32

_PLATFORMS = {"NES": "Nes", "GEN": "Genesis"}
_LETTERS = {"SELECT": "s"}  # every other button is shown by its first letter


@dataclass(frozen=True)
class Evidence:
    """What a replay from power-on showed."""

    hash_every: int
    """Frames between two hashes of work RAM."""
    ram_hashes: tuple[str, ...]
    """xxh3_64 of work RAM after every so many frames, and after the last frame."""
    splits: Mapping[str, int]
    """State -> frames after which it held for the first time."""
    screen_hash: str
    """xxh3_64 of the last picture."""


@dataclass(frozen=True)
class Movie:
    """A run from power-on."""

    game: str
    """As stable-retro names it: "Airstriker-Genesis-v0"."""
    inputs: tuple[int, ...]
    """Button masks, one a frame; the first is 0."""
    rom_sha256: str | None
    """None where the movie does not say."""
    system: str
    core: str | None
    """Name of the core's library; None where the movie does not say."""
    versions: Mapping[str, str]
    """See `retro.emulator.versions`; empty where the movie does not say."""
    boot: bytes | None
    """The core's savestate before the first frame; None where the movie starts without one."""
    evidence: Evidence | None


_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
_Count = Annotated[int, Field(ge=0, le=LONGEST)]


class _EvidenceModel(BaseModel):
    model_config = STRICT
    hash_every: Annotated[int, Field(ge=1, le=LONGEST)]
    ram_hashes: tuple[_Hash, ...]
    splits: dict[str, _Count]
    screen_hash: _Hash


class _Speedrun(BaseModel):
    model_config = STRICT
    format: Literal[1]
    rom_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None
    core: str | None
    versions: dict[str, str]
    evidence: _EvidenceModel | None


def write_movie(path: Path, movie: Movie) -> None:
    """Write a movie, whole or not at all; equal movies give equal files.

    Raises:
        Problem: it has no frame, buttons in its first frame, no boot state, bits that are no button, or the
            file cannot be written.
    """
    if not movie.inputs or movie.inputs[0] or movie.boot is None:
        raise Problem(
            "a movie needs a boot state and at least one frame, the first without buttons", file=path
        )
    platform = {system: name for name, system in _PLATFORMS.items()}[movie.system]
    header = (
        f"MovieVersion Retro\nAuthor ?\nemuVersion ?\nPlatform {platform}\nGameName {movie.game}\n"
        "SHA1 ?\nCore ?\nrerecordCount 1\n"
    )
    extra = {
        "format": 1,
        "rom_sha256": movie.rom_sha256,
        "core": movie.core,
        "versions": dict(movie.versions),
        "evidence": None
        if movie.evidence is None
        else {
            "hash_every": movie.evidence.hash_every,
            "ram_hashes": list(movie.evidence.ram_hashes),
            "splits": dict(movie.evidence.splits),
            "screen_hash": movie.evidence.screen_hash,
        },
    }
    members: dict[str, bytes] = {
        "Input Log.txt": _log(movie.inputs, _buttons(movie.system)).encode(),
        "Header.txt": header.encode(),
        "Core.bin": movie.boot,
        "Speedrun.json": canonical_json(extra).encode() + b"\n",
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    write_atomic(path, packed.getvalue())


def read_movie(path: Path) -> Movie:
    """Read a movie of this engine, or one that stable-retro recorded.

    The keys of its first frame are left out, as stable-retro's own player does. A movie without a boot state
    was recorded by a `RetroEnv` made with State.NONE, which ran one frame before it began to record; that
    frame is put in front.

    Raises:
        Problem: it cannot be read, is no .bk2 of one player on a console that runs here, or holds more than
            `LONGEST` frames.
    """
    try:
        return _parse(_content(path))
    except Problem as problem:
        raise Problem(problem.reason, file=path, line=problem.line, remedy=problem.remedy) from problem


def _content(path: Path) -> bytes:
    """The bytes of a file, which may be a device without an end."""
    try:
        with path.open("rb") as handle:
            return handle.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise Problem(f"cannot be read: {error.strerror or error}") from error


def _parse(content: bytes) -> Movie:
    members = _unpack(content)
    header = dict(line.partition(" ")[::2] for line in _text(members, "Header.txt").splitlines())
    if header.get("MovieVersion") != "Retro":
        raise Problem(
            f"a movie of another player: {header.get('MovieVersion')!r}, not stable-retro's 'Retro'",
            remedy="record it with stable-retro, or search it here",
        )
    system = _PLATFORMS.get(header.get("Platform", ""))
    if system is None:
        known = ", ".join(_PLATFORMS)
        raise Problem(f"a movie for {header.get('Platform')!r}, a console other than {known}")
    game = header.get("GameName", "")
    if not re.fullmatch(r"[\w.+-]{1,200}", game, re.ASCII):
        raise Problem(f"Header.txt names no game: {game[:80]!r}")
    inputs = _inputs(_text(members, "Input Log.txt"), _buttons(system))
    boot = members.get("Core.bin")
    inputs = [0, *inputs[1:]] if boot is not None else [0, 0, *inputs[1:]]
    extra = _extra(members["Speedrun.json"]) if "Speedrun.json" in members else None
    evidence = None
    if extra is not None and extra.evidence is not None:
        evidence = Evidence(**extra.evidence.model_dump())
    return Movie(
        game=game,
        inputs=tuple(inputs),
        rom_sha256=extra.rom_sha256 if extra else None,
        system=system,
        core=extra.core if extra else None,
        versions=extra.versions if extra else {},
        boot=boot,
        evidence=evidence,
    )


# ---- the zip -----------------------------------------------------------------------------------------------


def _unpack(content: bytes) -> dict[str, bytes]:
    """Members by name, each within its bound."""
    if len(content) > _LARGEST_FILE:
        raise Problem(f"larger than {_LARGEST_FILE:,} bytes")
    members: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            if len(infos) > _MOST_MEMBERS:
                raise Problem(f"the zip has more than {_MOST_MEMBERS} members")
            for info in infos:
                if not re.fullmatch(r"[\w][\w .-]*", info.filename, re.ASCII):
                    raise Problem(f"the zip has a member of the name {info.filename[:80]!r}")
                if info.filename in members:
                    raise Problem(f"the zip has {info.filename} twice")
                largest = _LARGEST.get(info.filename)
                if largest is None:
                    continue
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise Problem(f"{info.filename} is packed otherwise than by deflate")
                with archive.open(info) as handle:
                    members[info.filename] = handle.read(largest + 1)
                if len(members[info.filename]) > largest:
                    raise Problem(f"{info.filename} unpacks to more than {largest:,} bytes")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise Problem(f"no whole .bk2 file, which is a zip: {error}") from error
    return members


def _text(members: Mapping[str, bytes], name: str) -> str:
    if name not in members:
        raise Problem(f"the zip has no {name}")
    try:
        return members[name].decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise Problem(f"{name} is not UTF-8") from error


def _extra(content: bytes) -> _Speedrun:
    text = canonical_json(parse_json(content, Path("Speedrun.json"), None))
    try:
        return _Speedrun.model_validate_json(text)
    except ValidationError as error:
        found = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        raise Problem(f"Speedrun.json: {'; '.join(found[:5])}") from error


# ---- the input log -----------------------------------------------------------------------------------------


def _buttons(system: str) -> tuple[str | None, ...]:
    return tuple(stable_retro.get_system_info(system)["buttons"])


def _log(inputs: Sequence[int], buttons: Sequence[str | None]) -> str:
    """A column a button, in the order of stable-retro: from the highest bit."""
    shown = [(1 << bit, name) for bit, name in enumerate(buttons) if name][::-1]
    known = sum(bit for bit, _ in shown)
    lines = {}
    for bits in set(inputs):
        if bits & ~known:
            raise Problem(f"the mask {bits} has bits that are not buttons of this console")
        keys = (_LETTERS.get(name, name[0]) if bits & bit else "." for bit, name in shown)
        lines[bits] = f"|..|{''.join(keys)}|\n"
    columns = "|".join(f"P1 {name.title()}" for _, name in shown)
    return "".join(("[Input]\n", columns, "|\n", *(lines[bits] for bits in inputs), "[/Input]"))


def _inputs(text: str, buttons: Sequence[str | None]) -> list[int]:
    """Button masks, one a line of the log."""
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) < 4 or lines[0] != "[Input]" or lines[-1] != "[/Input]":
        raise Problem("Input Log.txt does not reach from [Input] to [/Input] with a frame in it")
    columns = lines[1].removesuffix("|").split("|")
    if any(not column.startswith("P1 ") for column in columns):
        raise Problem(f"Input Log.txt has columns other than of player 1: {lines[1][:80]!r}")
    bits = [mask([column[3:].upper()], buttons) for column in columns]
    if len(set(bits)) != len(bits):
        raise Problem("Input Log.txt has a column twice")
    if len(lines) - 3 > LONGEST - 2:
        raise Problem(f"Input Log.txt holds more than {LONGEST:,} frames")
    row = re.compile(rf"\|..\|([!-{{}}~]{{{len(bits)}}})\|")
    known: dict[str, int] = {}
    inputs = []
    for number, line in enumerate(lines[2:-1], 3):
        if line not in known:
            match = row.fullmatch(line)
            if match is None:
                raise Problem(f"Input Log.txt, line {number}: no frame of {len(bits)} keys: {line[:60]!r}")
            known[line] = sum(bit for bit, key in zip(bits, match[1], strict=True) if key != ".")
        inputs.append(known[line])
    return inputs
