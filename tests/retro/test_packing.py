"""Savestates packed for archives and messages."""

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Problem
from retro.packing import pack, unpack


@given(st.binary(max_size=5_000))
def test_what_is_packed_comes_back(state: bytes) -> None:
    assert unpack(pack(state)) == state


@given(st.binary(max_size=200))
def test_what_was_not_packed_is_a_problem(packed: bytes) -> None:
    with pytest.raises(Problem, match="cut short or corrupt"):
        unpack(packed)


@given(st.binary(min_size=1, max_size=2_000), st.data())
def test_a_part_is_a_problem(state: bytes, data: st.DataObject) -> None:
    packed = pack(state)
    with pytest.raises(Problem, match="cut short or corrupt"):
        unpack(packed[: data.draw(st.integers(0, len(packed) - 1))])


def test_what_would_fill_the_memory_is_a_problem() -> None:
    bomb = zstandard.ZstdCompressor(level=1).compress(bytes(2**26))
    assert len(bomb) < 10_000
    with pytest.raises(Problem, match="cut short or corrupt"):
        unpack(bomb)
