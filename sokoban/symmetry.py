"""The eight symmetries of a square board, on bitboards, and a key that all images of a level share."""

import numpy as np
from numpy.typing import NDArray

from sokoban.table import LevelTable, Words

Keys = NDArray[np.void]

_REVERSED = np.packbits(
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1), axis=1, bitorder="little"
)
_TRANSPOSE = ((7, 0x00AA_00AA_00AA_00AA), (14, 0x0000_CCCC_0000_CCCC), (28, 0x0000_0000_F0F0_F0F0))


def flip_rows(words: Words) -> Words:
    """Exchange top and bottom of 8x8 boards (N,): a row is a byte."""
    return words.byteswap()


def flip_columns(words: Words) -> Words:
    """Exchange left and right of 8x8 boards (N,)."""
    return _REVERSED[np.ascontiguousarray(words).view(np.uint8)].reshape(-1).view(np.uint64)


def transpose(words: Words) -> Words:
    """Exchange rows and columns of 8x8 boards (N,): swap off-diagonal blocks of 1x1, 2x2, then 4x4 cells."""
    for distance, mask in _TRANSPOSE:
        swapped = (words ^ (words >> np.uint64(distance))) & np.uint64(mask)
        words = words ^ swapped ^ (swapped << np.uint64(distance))
    return words


def images(table: LevelTable) -> list[LevelTable]:
    """The level table under each of the eight symmetries; the first is `table` itself."""
    tables = [table]
    for operation in (flip_rows, flip_columns, transpose):
        tables += [image.apply(operation) for image in tables]
    return tables


def level_keys(table: LevelTable) -> Keys:
    """(N,) keys of 32 bytes, equal exactly where all four planes are."""
    rows = np.stack(table.planes, axis=1).astype(">u8")
    return rows.view("V32").reshape(len(table))


def canonical_keys(table: LevelTable) -> Keys:
    """(N,) keys that are equal exactly where one level is an image of the other."""
    smallest = np.stack(table.planes, axis=1)
    for image in images(table)[1:]:
        planes = np.stack(image.planes, axis=1)
        different = planes != smallest
        first = different.argmax(axis=1)[:, None]  # where the two differ first, column 0 where they do not
        less = np.take_along_axis(planes, first, 1) < np.take_along_axis(smallest, first, 1)
        smallest = np.where(less, planes, smallest)
    return level_keys(LevelTable(*smallest.T))
