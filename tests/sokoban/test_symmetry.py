"""sokoban.symmetry against numpy's own flips and transposition of 8x8 arrays."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sokoban.generator import practice_levels
from sokoban.symmetry import canonical_keys, flip_columns, flip_rows, images, level_keys, transpose
from sokoban.table import LevelTable, Words

WORDS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5).map(
    lambda w: np.array(w, dtype=np.uint64)
)


def unpacked(words: Words) -> NDArray[np.bool_]:
    """Bit 8 * row + column of each word to (N, 8, 8)."""
    bits = [[word >> bit & 1 for bit in range(64)] for word in words.tolist()]
    return np.array(bits, dtype=np.bool_).reshape(-1, 8, 8)


@given(WORDS)
def test_operations(words: Words) -> None:
    boards = unpacked(words)
    assert np.array_equal(unpacked(flip_rows(words)), boards[:, ::-1])
    assert np.array_equal(unpacked(flip_columns(words)), boards[:, :, ::-1])
    assert np.array_equal(unpacked(transpose(words)), boards.swapaxes(1, 2))


def test_images_are_the_eight_symmetries() -> None:
    corner = np.array([0b0000_0011], dtype=np.uint64)  # an oriented mark: two cells of the top row
    found = {int(image.floor[0]) for image in images(LevelTable(corner, corner, corner, corner))}
    top, left = 0b11, 1 | 1 << 8
    assert found == {
        *(top, top << 6, top << 56, top << 62),
        *(left, left << 7, left << 48, left << 55),
    }


def test_canonical_keys() -> None:
    table = practice_levels()
    keys = canonical_keys(table)
    for image in images(table):
        assert np.array_equal(canonical_keys(image), keys)
    assert len(set(keys.tolist())) == len(table)
    moved = table.player.copy()
    moved[0] ^= table.boxes[0]
    changed = LevelTable(table.floor, table.goals, table.boxes, moved)
    assert canonical_keys(changed)[0] != keys[0] and np.array_equal(canonical_keys(changed)[1:], keys[1:])


def test_level_keys_hold_all_planes() -> None:
    words = np.arange(1, 5, dtype=np.uint64)
    key = level_keys(LevelTable(*(words[i : i + 1] for i in range(4))))[0]
    assert bytes(key) == b"".join(i.to_bytes(8, "big") for i in range(1, 5))
