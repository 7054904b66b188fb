"""Lines carry what JSON has, and nothing else is taken for a message."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.sandbox.protocol import cut, decode, encode, json_text

texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
)


@given(values)
def test_a_message_arrives_as_it_was_sent_on_one_line(value: object) -> None:
    line = encode(value)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert decode(line) == value
    assert json.loads(json_text(value)) == value


@given(st.binary())
def test_any_bytes_are_a_value_or_a_value_error(data: bytes) -> None:
    try:
        decode(data)
    except ValueError:
        return
    assert json.loads(data) == json.loads(data)


@pytest.mark.parametrize(
    "line",
    [b"", b"nonsense", b"\xff", b"NaN", b"-Infinity", b"[1e999]", b"[" * 100_000, b"1" * 5_000, b"{} {}"],
)
def test_what_is_not_strict_json_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        decode(line)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object(), b"bytes"])
def test_what_json_lacks_is_not_sent(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        encode(value)


@given(st.text(st.characters()), st.integers(0, 20))
def test_a_cut_text_is_short_and_can_be_written(text: str, chars: int) -> None:
    shown = cut(text, chars)
    shown.encode()
    if len(text) <= chars:
        assert shown == text.encode("utf-8", "replace").decode()
    else:
        assert shown.endswith(f"… ({len(text) - chars} more characters)")
        assert len(shown) <= chars + 40
