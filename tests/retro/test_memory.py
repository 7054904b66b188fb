"""Compiled readers against the plain reading of a type, byte by byte."""

import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Problem
from retro.memory import compile_reader
from retro.packages import Variable

TYPES = st.from_regex(r"[|<>=][uidn][1-8]", fullmatch=True)
BLOCKS = {0: bytes(range(7, 71)), 64: bytes(range(240, 176, -1)), 0x6000: bytes([0x98] * 64)}
REGIONS = {start: len(block) for start, block in BLOCKS.items()}


def expected(address: int, kind: str, flip: int) -> int:
    """By definition: digits or bytes, the most significant first."""
    cells = []
    for place in range(address, address + int(kind[2])):
        start = max(s for s in BLOCKS if s <= place)
        cells.append(BLOCKS[start][(place - start) ^ flip])
    if kind[0] != ">":
        cells.reverse()
    if kind[1] in "ui":
        return int.from_bytes(bytes(cells), "big", signed=kind[1] == "i")
    number = 0
    for cell in cells:
        number = number * 100 + 10 * (cell >> 4) + cell % 16 if kind[1] == "d" else number * 10 + cell % 16
    return number


@given(st.lists(st.tuples(st.integers(0, 120), TYPES), min_size=1, max_size=12), st.sampled_from([0, 1]))
def test_values_are_what_their_types_mean(places: list[tuple[int, str]], flip: int) -> None:
    variables = {f"v{number}": Variable(*place) for number, place in enumerate(places)}
    values, _ = compile_reader(SimpleNamespace(blocks=BLOCKS), variables, REGIONS, flip)
    assert values() == tuple(expected(address, kind, flip) for address, kind in places)
    assert values()._fields == tuple(variables)


def test_a_closed_reader_does_not_read() -> None:
    values, close = compile_reader(SimpleNamespace(blocks=BLOCKS), {"x": Variable(0, "|u1")}, REGIONS, 0)
    assert values().x == 7
    close()
    with pytest.raises(AttributeError):
        values()


@pytest.mark.parametrize(
    ("name", "variable", "reason"),
    [
        ("lives", Variable(3, "u1"), "'lives' has the unknown type 'u1'"),
        ("lives", Variable(3, ">u9"), "'lives' has the unknown type"),
        ("lives", Variable(3, ">f4"), "'lives' has the unknown type"),
        (
            "lives",
            Variable(127, "<u2"),
            "'lives' lies outside memory: 0x80 .* in 0x0 to 0x7f, 0x6000 to 0x603f",
        ),
        ("lives", Variable(-1, "|u1"), "'lives' lies outside memory"),
        ("def", Variable(0, "|u1"), "cannot be named so"),
    ],
)
def test_malformed_variables_are_named(name: str, variable: Variable, reason: str) -> None:
    with pytest.raises(Problem) as caught:
        compile_reader(SimpleNamespace(blocks=BLOCKS), {name: variable}, REGIONS, 0)
    assert re.search(reason, str(caught.value))
