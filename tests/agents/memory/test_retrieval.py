"""BM25 against its formula written out by hand, and what queries find."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.memory.retrieval import rank, words


def test_words_of_names_and_sentences() -> None:
    assert words("go_to(kind='Red ball', n=12)") == ["go", "to", "kind", "red", "ball", "n", "12"]
    assert words("collectWood2 ÄÖ") == ["collect", "wood", "2"]
    assert words("") == []


def test_scores_are_those_of_the_formula() -> None:
    texts = ["wood wood tree", "stone", "tree"]
    # Mean length 5/3; "wood" is in one text of three, "tree" in two.
    rare, common = math.log(1 + 2.5 / 1.5), math.log(1 + 1.5 / 2.5)
    long, short = 1.5 * (0.25 + 0.75 * 9 / 5), 1.5 * (0.25 + 0.75 * 3 / 5)
    first = rare * 2 * 2.5 / (2 + long) + common * 2.5 / (1 + long)
    assert rank("wood tree", texts) == [
        (0, pytest.approx(first)),
        (2, pytest.approx(common * 2.5 / (1 + short))),
    ]


def test_a_word_asked_twice_counts_once() -> None:
    assert rank("tree tree", ["tree", "stone"]) == rank("tree", ["tree", "stone"])


def test_of_equals_the_later_comes_first() -> None:
    assert [place for place, _ in rank("tree", ["tree", "a tree", "tree"])] == [2, 0, 1]


def test_nothing_is_found_in_nothing() -> None:
    assert rank("tree", []) == rank("tree", ["", ""]) == rank("", ["tree"]) == []


@given(st.text("ab ", max_size=12), st.lists(st.text("ab ", max_size=12), max_size=6))
def test_exactly_the_texts_that_share_a_word_are_found(query: str, texts: list[str]) -> None:
    found = rank(query, texts)
    sharing = {place for place, text in enumerate(texts) if set(query.split()) & set(text.split())}
    assert {place for place, _ in found} == sharing
    assert all(score > 0 for _, score in found)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
