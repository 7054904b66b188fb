"""Answers of servers: what they leave out is empty or None, and what is no answer is named."""

import json
from typing import Any

import pytest
from chat_servers import completion
from hypothesis import given
from hypothesis import strategies as st

from agents.llm.answers import Malformed, read_answer
from agents.llm.reply import Usage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def read(value: Any) -> Any:
    return read_answer(json.dumps(value).encode())


def test_a_plain_answer() -> None:
    answer = read(completion("Good day"))
    assert (answer.text, answer.finish, answer.model) == ("Good day", "stop", "served-model")
    assert answer.usage == Usage(12, 3, None, None)
    assert answer.thinking == answer.refusal == ""


def test_no_content_is_no_text() -> None:
    assert read(completion(None, finish="length")).text == ""
    assert read(completion(None, finish="length")).finish == "length"
    assert read(completion(finish=None)).finish == "unknown"


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "Good "}, {"type": "image"}, {"type": "text", "text": "day"}]
    assert read(completion(parts)).text == "Good day"


def test_a_refusal_is_a_finish() -> None:
    answer = read(completion(None, message={"refusal": "I would rather not."}))
    assert (answer.text, answer.finish, answer.refusal) == ("", "refusal", "I would rather not.")


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_thinking_is_kept_apart(name: str) -> None:
    answer = read(completion("north", message={name: "The door is north."}))
    assert (answer.text, answer.thinking) == ("north", "The door is north.")


@pytest.mark.parametrize(
    ("content", "text", "thinking"),
    [
        ("<think>\nA door.\n</think>\n\nAction: left", "Action: left", "A door."),
        ("A door.\n</think>\nAction: left", "Action: left", "A door."),
        ("<think>A door, and then", "", "A door, and then"),
        ("I think a < b", "I think a < b", ""),
    ],
)
def test_thinking_left_in_the_content_is_taken_out(content: str, text: str, thinking: str) -> None:
    answer = read(completion(content))
    assert (answer.text, answer.thinking) == (text, thinking)


def test_details_of_usage() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "total_tokens": 150,
        "completion_tokens_details": {"reasoning_tokens": 40},
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    assert read(completion(usage=usage)).usage == Usage(100, 50, 40, 64)
    nothing = {**usage, "completion_tokens_details": None, "prompt_tokens_details": None}
    assert read(completion(usage=nothing)).usage == Usage(100, 50, None, None)


def test_thinking_that_only_the_total_counts_is_completion() -> None:
    """As Gemini's endpoint reports it: 20 + 198 + 405 of thinking = 623."""
    usage = {"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 623}
    assert read(completion(usage=usage)).usage == Usage(20, 603, None, None)
    assert read(completion(usage={"prompt_tokens": 21, "total_tokens": 81})).usage.completion == 60


@pytest.mark.parametrize("usage", [None, {}, [], {"prompt_tokens": -1, "completion_tokens": True}])
def test_usage_that_is_not_told_is_unknown(usage: Any) -> None:
    assert read(completion(usage=usage)).usage == Usage(None, None, None, None)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not JSON"),
        (b'{"choices": [', "not JSON"),
        (b"<html>Bad gateway</html>", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "no choice"),
        (b'{"choices": []}', "no choice"),
        (b'{"choices": [{"message": null}]}', "no message"),
        (b'{"error": {"message": "overloaded"}}', "the server says: overloaded"),
        (b'{"error": "overloaded"}', "the server says: overloaded"),
    ],
)
def test_what_is_no_answer_is_named(body: bytes, reason: str) -> None:
    with pytest.raises(Malformed, match=reason):
        read_answer(body)


def test_half_a_character_is_replaced() -> None:
    answer = read_answer(json.dumps(completion("a\ud800b")).encode())
    assert answer.text == "a?b"


@given(JSON)
def test_any_json_is_an_answer_or_malformed(value: Any) -> None:
    try:
        read(value)
    except Malformed:
        return


@given(JSON, JSON, JSON)
def test_any_parts_are_an_answer_of_texts_and_counts(content: Any, usage: Any, extra: Any) -> None:
    answer = read(
        completion(content, usage=usage, message={"reasoning": extra, "refusal": extra}, model=extra)
    )
    assert all(isinstance(text, str) for text in (answer.text, answer.thinking, answer.refusal, answer.model))
    for count in vars(answer.usage).values():
        assert count is None or (type(count) is int and count >= 0)
