"""Files that may be packed as xz: unpacked within bounds, whatever they claim to hold."""

import lzma
from collections.abc import Iterator
from pathlib import Path

from harness.files import read_bytes

LONGEST_FILE = 2**29  # bytes, unpacked
MOST_MEMORY = 2**27  # bytes that unpacking may take
_CHUNK = 2**20
_MAGIC = b"\xfd7zXZ\x00"


def unpack(path: Path) -> Iterator[bytes]:
    """What one whole xz stream holds, in pieces of at most a megabyte.

    Raises:
        OSError: the file cannot be read.
        lzma.LZMAError: it is not one whole stream, takes too much memory or holds more than `LONGEST_FILE`.
    """
    unpacker, size = lzma.LZMADecompressor(lzma.FORMAT_XZ, MOST_MEMORY), 0
    with path.open("rb") as handle:
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


def read_unpacked(path: Path) -> bytes:
    """What a file holds: unpacked where it is a whole xz stream, else as it is; a Problem as `read_bytes`."""
    content = read_bytes(path)
    if not content.startswith(_MAGIC):
        return content
    try:
        return b"".join(unpack(path))
    except lzma.LZMAError:
        return content
