"""Inputs as text: one text for each list, and every malformed text named by its place."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Problem
from retro.inputs import LONGEST, format_inputs, mask, names_of, parse_inputs

NES = ("B", None, "SELECT", "START", "UP", "DOWN", "LEFT", "RIGHT", "A")
A, B, RIGHT, LEFT = 256, 1, 128, 64

MASKS = st.lists(st.sampled_from([bits for bits in range(512) if not bits & 2]), max_size=200)


def test_masks_are_bits_by_the_console_s_order() -> None:
    assert mask(["A"], NES) == A and mask(["RIGHT", "A"], NES) == RIGHT | A and mask([], NES) == 0
    assert names_of(A | B | LEFT, NES) == ["B", "LEFT", "A"]


@pytest.mark.parametrize("bits", [2, 512, -1, A | 2])
def test_bits_that_are_no_button(bits: int) -> None:
    with pytest.raises(Problem, match="not buttons"):
        names_of(bits, NES)
    with pytest.raises(Problem, match="not buttons"):
        format_inputs([bits], NES)


@pytest.mark.parametrize("name", ["C", "", "a", "NONE"])
def test_names_that_are_no_button(name: str) -> None:
    with pytest.raises(Problem, match="not a button of this console"):
        mask([name], NES)


def test_text() -> None:
    inputs = [0] * 12 + [RIGHT | A] * 3 + [0]
    assert format_inputs(inputs, NES) == "12 3:RIGHT+A 1"
    assert parse_inputs("12 3:RIGHT+A 1", NES) == inputs
    assert parse_inputs(" 5\n7\t2:A+RIGHT  1:RIGHT+A\r\n1 ", NES) == inputs
    assert parse_inputs("", NES) == [] and format_inputs([], NES) == ""


@given(MASKS)
def test_inputs_read_back_equal_from_as_few_runs_as_there_can_be(inputs: list[int]) -> None:
    text = format_inputs(inputs, NES)
    assert parse_inputs(text, NES) == inputs
    changes = sum(one != other for one, other in pairwise(inputs))
    assert len(text.split()) == (changes + 1 if inputs else 0)


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("3:RIGHT 0", "line 1, column 9", "at least one frame"),
        ("3:RIGHT\n 2:C", "line 2, column 2", "not a button"),
        ("12,3", "line 1, column 1", "not a run"),
        ("3:", "line 1, column 1", "not a run"),
        ("-3", "line 1, column 1", "not a run"),
        (":A", "line 1, column 1", "not a run"),
        ("3:A+", "line 1, column 1", "'' is not a button"),
        ("3:A+A", "line 1, column 1", "twice"),
        ("\u0663", "line 1, column 1", "not a run"),
        ("1 9999999999", "line 1, column 3", "not a run"),
        (f"{LONGEST} 1", "line 1, column 9", "all together"),
    ],
)
def test_malformed_text_is_named_by_its_place(text: str, place: str, reason: str) -> None:
    with pytest.raises(Problem, match=f"{place}: .*{reason}"):
        parse_inputs(text, NES)


@given(st.text(alphabet=" \n0123456789:+ABRIGHTxé", max_size=60))
def test_any_text_is_inputs_or_a_problem(text: str) -> None:
    try:
        inputs = parse_inputs(text[:40], NES)
    except Problem:
        return
    assert parse_inputs(format_inputs(inputs, NES), NES) == inputs
