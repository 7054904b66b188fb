"""Blocks between marks: found by their lines, replaced alone, and refused where the marks are not whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Problem
from harness.readme import block_names, find_block, replace_block

DOCUMENT = (
    "# Title\n<!-- a:start -->\nold\nlines\n<!-- a:end -->\ntext\n<!-- b:x:start -->\n<!-- b:x:end -->\n"
)


def test_a_block_is_found_with_its_line() -> None:
    block = find_block(DOCUMENT, "a", file="F")
    assert (block.text, block.line) == ("old\nlines", 3)
    assert find_block(DOCUMENT, "b:x", file="F").text == ""


def test_only_the_block_is_replaced() -> None:
    changed = replace_block(DOCUMENT, "a", "new", file="F")
    assert changed == DOCUMENT.replace("old\nlines", "new")
    assert replace_block(changed, "b:x", "1\n2", file="F").endswith(
        "<!-- b:x:start -->\n1\n2\n<!-- b:x:end -->\n"
    )


@given(st.text(alphabet="ab\n |", max_size=30))
def test_what_is_put_in_is_found(text: str) -> None:
    changed = replace_block(DOCUMENT, "a", text, file="F")
    assert find_block(changed, "a", file="F").text == text
    assert replace_block(changed, "a", "old\nlines", file="F") == DOCUMENT


def test_names_of_one_kind_in_order() -> None:
    assert block_names(DOCUMENT, "b:") == ["b:x"]
    assert block_names("<!-- b:2:start -->\n<!-- b:1:start -->\n", "b:") == ["b:2", "b:1"]


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("", "has 0 lines <!-- a:start -->"),
        (DOCUMENT.replace("<!-- a:end -->\n", ""), "has 0 lines <!-- a:end -->"),
        (DOCUMENT + "<!-- a:start -->\n", "has 2 lines <!-- a:start -->"),
        ("<!-- a:end -->\n<!-- a:start -->\n", "F:1: the end of a comes before its start"),
        (DOCUMENT.replace("<!-- a:end -->", " <!-- a:end -->"), "has 0 lines <!-- a:end -->"),
    ],
)
def test_marks_that_are_not_whole_are_refused(document: str, says: str) -> None:
    with pytest.raises(Problem) as caught:
        find_block(document, "a", file="F")
    assert says in str(caught.value)
