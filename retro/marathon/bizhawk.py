"""Movies of BizHawk: what player 1 holds in each frame.

The format: https://tasvideos.org/Bizhawk/BK2Format. BizHawk has other cores than those here, so such a movie
may play otherwise from some frame on.
"""

import re
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from harness.errors import Problem
from retro.inputs import LONGEST, mask

_LARGEST = {"Header.txt": 2**16, "Input Log.txt": 2**27}
"""Bytes that a member may unpack to."""
_CONSOLES = {"NES": ".nes", "GEN": ".md"}


def bizhawk_inputs(path: Path, suffix: str, buttons: Sequence[str | None]) -> list[int] | None:
    """Button masks, one a frame; None where the file is no movie of BizHawk.

    suffix: of the ROM, which names the console. buttons: of the console, as `retro.inputs.mask` has them.

    Raises:
        Problem: it begins from a savestate, is of another console, or something but player 1's buttons is
            pressed in it.
    """
    try:
        members = _members(path)
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError):
        return None  # whoever reads it next says what is wrong
    header = dict(line.strip().partition(" ")[::2] for line in members.get("Header.txt", "").splitlines())
    if not header.get("MovieVersion", "").startswith("BizHawk"):
        return None
    if _CONSOLES.get(header.get("Platform", "")) != suffix or header.get("PAL", "").lower() in ("1", "true"):
        raise Problem(f"a movie for another console: {header.get('Platform', '')[:40]!r}", file=path)
    starts = [key for key in header if key.startswith("StartsFromSave") and header[key].lower() != "false"]
    if starts:
        raise Problem("the movie does not start from power-on", file=path)
    return _inputs(members.get("Input Log.txt", ""), buttons, path)


def _members(path: Path) -> dict[str, str]:
    found = {}
    with zipfile.ZipFile(path) as archive:
        for name in {*archive.namelist()} & {*_LARGEST}:
            if archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"{name} is packed otherwise than by deflate")
            with archive.open(name) as handle:
                content = handle.read(_LARGEST[name] + 1)
            if len(content) > _LARGEST[name]:
                raise ValueError(f"{name} is too large")
            found[name] = content.decode("utf-8-sig", "replace")
        if any(Path(name).stem in ("CoreState", "Core") for name in archive.namelist()):
            found["Header.txt"] = found.get("Header.txt", "") + "\nStartsFromSavestate True"
    return found


def _inputs(text: str, buttons: Sequence[str | None], path: Path) -> list[int]:
    lines = text.splitlines()
    key = next((line for line in lines if line.startswith("LogKey:")), "")
    groups = [
        [one for one in group.split("|") if one] for group in key.removeprefix("LogKey:").split("#")[1:]
    ]
    names = [name for group in groups for name in group]
    if not names:
        raise Problem("Input Log.txt has no log key", file=path)
    ours = (name[3:].upper() if name.startswith("P1 ") else None for name in names)
    bits = [mask([name], buttons) if name and name in buttons else 0 for name in ours]
    twice = next((name for name, bit in zip(names, bits, strict=True) if bit and bits.count(bit) > 1), None)
    if twice is not None:
        raise Problem(f"Input Log.txt's key has {twice!r} twice", file=path)
    row = re.compile("".join(rf"\|(.{{{len(group)}}})" for group in groups) + r"\|")
    known: dict[str, int] = {}
    inputs: list[int] = []
    for number, line in enumerate(lines, 1):
        if not line.startswith("|"):
            continue
        if line not in known:
            match = row.fullmatch(line)
            if match is None:
                raise Problem(f"Input Log.txt, line {number}: no frame of {len(names)} buttons", file=path)
            pressed = [place for place, one in enumerate("".join(match.groups())) if one != "."]
            strange = next((names[place] for place in pressed if not bits[place]), None)
            if strange is not None and inputs:  # at power-on it does nothing more
                raise Problem(f"Input Log.txt, line {number}: {strange!r} is pressed", file=path)
            known[line] = sum(bits[place] for place in pressed)
        if len(inputs) == LONGEST - 20:
            raise Problem(f"Input Log.txt holds more than {LONGEST - 20:,} frames", file=path)
        inputs.append(known[line])
        if len(inputs) == 1:
            known.clear()  # a line like it must not press what only power-on may
    return inputs
