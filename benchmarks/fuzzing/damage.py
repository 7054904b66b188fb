"""Damage to bytes, to lines and to xz streams. Every function takes content and chance, and gives content."""

import lzma
from collections.abc import Callable, Sequence
from functools import cache
from random import Random

from harness.packed import LONGEST_FILE

Damage = Callable[[bytes, Random, Sequence[bytes]], bytes]
"""(content, chance, contents to splice from) -> damaged content."""

XZ_MAGIC = b"\xfd7zXZ\x00"
BOMB = LONGEST_FILE + 2**21
"""Bytes that a bomb unpacks to, more than may be."""


def damage_bytes(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    """One to three of: flip, set, insert, delete, repeat, cut off, swap, splice, zero, append."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        content = random.choice(_ON_BYTES)(content, random, others)
    return content


def damage_lines(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    """Lines left out, repeated, swapped, moved, joined, emptied, or taken from another file."""
    lines = content.split(b"\n")
    first, second = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.randrange(9)
    if kind == 0:
        del lines[first]
    elif kind == 1:
        lines.insert(second, lines[first])
    elif kind == 2:
        lines[first], lines[second] = lines[second], lines[first]
    elif kind == 3:
        lines.insert(second, lines.pop(first))
    elif kind == 4:
        lines[first] += random.choice((b"\r", b" ", b"\x0b", b"\xe2\x80\xa8", b"\xc2\x85"))
    elif kind == 5:
        donor = random.choice(others).split(b"\n")
        lines[first] = random.choice(donor)
    elif kind == 6:
        lines.insert(
            first, random.choice((b"", b" ", b"{}", b"null", b"=======", b"<<<<<<< HEAD", b"\xef\xbb\xbf"))
        )
    elif kind == 7:
        del lines[first : first + random.randint(1, 50)]
    else:
        joined = random.choice((b"", b" ", b"\r"))
        lines[first : first + 2] = [joined.join(lines[first : first + 2])]
    return b"\n".join(lines)


def repack(payload: bytes, random: Random) -> bytes:
    """The payload as an xz stream, mostly as the tools pack it, else in another of xz's ways."""
    kind = random.randrange(10)
    if kind == 0:
        return lzma.compress(
            payload, check=random.choice((lzma.CHECK_NONE, lzma.CHECK_CRC32, lzma.CHECK_SHA256))
        )
    if kind == 1:
        return lzma.compress(payload, preset=random.randrange(7))
    if kind == 2:
        half = random.randint(0, len(payload))
        return lzma.compress(payload[:half]) + lzma.compress(payload[half:])
    if kind == 3:
        return lzma.compress(payload, format=lzma.FORMAT_ALONE)
    if kind == 4:
        return lzma.compress(payload) + random.choice((b"\x00" * 4, b"\n", XZ_MAGIC, payload[:100]))
    if kind == 5:
        window = {"id": lzma.FILTER_LZMA2, "dict_size": random.choice((2**12, 2**20, 2**29))}
        return lzma.compress(payload, filters=[{"id": lzma.FILTER_DELTA, "dist": 1}, window])
    return repack_plainly(payload)


def repack_plainly(payload: bytes) -> bytes:
    """The payload as the tools pack it."""
    return lzma.compress(payload)


@cache
def bomb(unit: bytes, before: bytes = b"") -> bytes:
    """An xz stream of `before` and then `BOMB` bytes of a repeated unit, in some ten kilobytes."""
    packer = lzma.LZMACompressor(preset=0)
    piece = unit * (2**20 // len(unit))
    pieces = [packer.compress(before), *(packer.compress(piece) for _ in range(BOMB // len(piece)))]
    return b"".join([*pieces, packer.flush()])


def _flip(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    first, _ = _span(content, random)
    return (
        content[:first]
        + bytes([c ^ (1 << random.randrange(8)) for c in content[first : first + 1]])
        + content[first + 1 :]
    )


def _set(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    first, _ = _span(content, random)
    return content[:first] + bytes([random.randrange(256)]) + content[first + 1 :]


def _insert(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    first, _ = _span(content, random)
    return content[:first] + random.randbytes(random.randint(1, 8)) + content[first:]


def _delete(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    first, last = _span(content, random)
    return content[:first] + content[last:]


def _repeat(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    first, last = _span(content, random)
    return content[:last] + content[first:last] * random.choice((1, 2, 20)) + content[last:]


def _cut_off(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    return content[
        : random.choice((0, 1, random.randint(0, len(content)), max(0, len(content) - random.randint(1, 20))))
    ]


def _swap(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    (a, b), (c, d) = sorted((_span(content, random), _span(content, random)))
    if b > c:
        b, c = min(b, c), min(b, c)
        d = max(d, c)
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


def _splice(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    donor = random.choice(others)
    first, last = _span(content, random)
    start, stop = _span(donor, random)
    return content[:first] + donor[start:stop] + content[last:]


def _zero(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    first, last = _span(content, random)
    return content[:first] + bytes(last - first) + content[last:]


def _append(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    return content + random.choice((b"\x00", b"\n", b" ", b"\x1a", b"\xef\xbb\xbf", b"x", content[-100:]))


def _span(content: bytes, random: Random) -> tuple[int, int]:
    """Where a stretch of mostly few bytes begins and ends."""
    first = random.randint(0, len(content))
    length = random.choice((1, 1, 2, 7, 64, 4096))
    return first, min(len(content), first + random.randint(1, length))


_ON_BYTES: tuple[Damage, ...] = (
    *(_flip, _flip, _set, _insert, _delete, _repeat, _cut_off, _swap, _splice, _zero, _append),
)
