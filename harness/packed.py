"""Files that may be packed as xz: unpacked within bounds, whatever they claim to hold."""

import io
import json
import lzma
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.errors import Problem
from harness.files import canonical_json, open_file, parse_json, read_bytes

LONGEST_FILE = 2**28  # bytes, unpacked
MOST_MEMORY = 2**27  # bytes that unpacking may take
LONGEST_JSON = 2**24  # bytes that are parsed at once; no line of evidence may be longer
_CHUNK = 2**20
_MAGIC = b"\xfd7zXZ\x00"


def unpack(path: Path) -> Iterator[bytes]:
    """What one whole xz stream holds, in pieces of at most a megabyte.

    Raises:
        OSError: the file cannot be read.
        lzma.LZMAError: it is not one whole stream, takes too much memory or holds more than `LONGEST_FILE`.
    """
    unpacker, size = lzma.LZMADecompressor(lzma.FORMAT_XZ, MOST_MEMORY), 0
    with open_file(path) as handle:
        while not unpacker.eof:
            packed = handle.read(_CHUNK) if unpacker.needs_input else b""
            if unpacker.needs_input and not packed:
                raise lzma.LZMAError("it is cut short")
            piece = unpacker.decompress(packed, _CHUNK)
            size += len(piece)
            if size > LONGEST_FILE:
                raise lzma.LZMAError(f"it unpacks to more than {LONGEST_FILE:,} bytes")
            yield piece
        if unpacker.unused_data or handle.read(1):
            raise lzma.LZMAError("something follows its end")


def pack_lines(values: Iterable[Mapping[str, object]]) -> bytes:
    """Objects as lines of JSON with sorted keys, in one xz stream."""
    packer = lzma.LZMACompressor()
    pieces = [packer.compress(canonical_json(value).encode() + b"\n") for value in values]
    return b"".join([*pieces, packer.flush()])


def unpack_lines(path: Path, longest: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number from 1, object) for every line of JSON that an xz stream holds.

    Raises:
        Problem: it cannot be read, is not one whole xz stream, is too large, a line has more than `longest`
            bytes, or is no strict JSON.
    """
    number, rest = 1, b""
    try:
        for chunk in unpack(path):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                value = parse_json(line, path, number)
                if not isinstance(value, dict):
                    raise Problem("not a JSON object", file=path, line=number)
                yield number, value
                number += 1
            if len(rest) > longest:
                raise Problem(f"a line of more than {longest:,} bytes", file=path, line=number)
    except lzma.LZMAError as error:
        remedy = "evaluate again, or copy the file again from where it was written"
        raise Problem(f"not one whole xz stream: {error}", file=path, line=number, remedy=remedy) from error
    except OSError as error:
        raise Problem(f"cannot be read: {error.strerror or error}", file=path) from error
    if rest:
        raise Problem("the last line is cut short", file=path, line=number)


def plain_lines(content: bytes) -> bytes:
    """JSON, one value or one a line, each in the one canonical form; what is no JSON as it is."""
    for values in (io.BytesIO(content), [content]):
        said = bytearray()  # a list would take many times the memory that short lines do
        try:
            for value in values:
                if len(value) > LONGEST_JSON:
                    raise ValueError("too long")
                said += canonical_json(json.loads(value)).encode() + b"\n"
        except (ValueError, RecursionError):
            continue
        return bytes(said.removesuffix(b"\n"))
    return content


def read_unpacked(path: Path, most: int = LONGEST_FILE) -> bytes:
    """What a file holds: unpacked where it is a whole xz stream, else as it is; a Problem as `read_bytes`.

    Of what is longer than `most`, at least so many bytes are read.
    """
    content = read_bytes(path)
    if not content.startswith(_MAGIC):
        return content
    pieces, size = [], 0
    try:
        for piece in unpack(path):
            pieces.append(piece)
            if (size := size + len(piece)) >= most:
                break
    except lzma.LZMAError:
        return content
    return b"".join(pieces)
