"""Uploads are what their names say: PNG, MP4 and JSON are looked into before anyone is shown them."""

import io
import warnings
from pathlib import Path

from PIL import Image

from harness.errors import Problem
from harness.files import read_bytes
from retro.live.snapshot import RAM, SNAPSHOT, parse_ram, parse_snapshot

TYPES = {".json": "application/json", ".png": "image/png", ".mp4": "video/mp4"}
_MOST_PIXELS = 4096 * 4096
_BOXES = 10_000  # at the top level of an MP4; ours have four
_NEEDED = {b"ftyp", b"moov", b"mdat"}


def check_content(name: str, path: Path, run: str) -> None:
    """A Problem where a file of this name in a live view of this run does not hold what it should."""
    if name == SNAPSHOT:
        if parse_snapshot(read_bytes(path)).run.id != run:
            raise Problem(f"{name} is of another run")
    elif name == RAM:
        parse_ram(read_bytes(path))
    elif name.endswith(".png"):
        _check_png(name, read_bytes(path))
    else:
        _check_mp4(name, path)


def _check_png(name: str, content: bytes) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of a picture of too many pixels
            with Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
                if picture.width * picture.height > _MOST_PIXELS:
                    raise Problem(f"{name} has {picture.width} x {picture.height} pixels")
                picture.load()
    except Problem:
        raise
    except Exception as error:  # whatever Pillow says of what is no picture
        raise Problem(f"{name} is not a PNG: {error}") from error


def _check_mp4(name: str, path: Path) -> None:
    """A file type first, then boxes that add up to the whole file, a movie and its data among them."""
    found: list[bytes] = []
    size, at = path.stat().st_size, 0
    with path.open("rb") as handle:
        while at < size and len(found) < _BOXES:
            handle.seek(at)
            header = handle.read(16)
            length, kind = int.from_bytes(header[:4], "big"), header[4:8]
            if length == 1:  # the true length follows
                length = int.from_bytes(header[8:16], "big") if len(header) == 16 else 0
                least = 16
            else:
                length, least = (length or size - at), 8  # 0 = up to the end of the file
            if len(header) < least or not least <= length <= size - at:
                raise Problem(f"{name} is not an MP4: its boxes do not add up at byte {at}")
            found.append(kind)
            at += length
    if at != size or found[:1] != [b"ftyp"] or not set(found) >= _NEEDED:
        raise Problem(f"{name} is not an MP4: it lacks a box of the format")
