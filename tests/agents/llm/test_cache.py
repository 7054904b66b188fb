"""Recording and replaying: every field comes back, and what was not recorded is named by its label."""

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_servers import HELLO
from hypothesis import given
from hypothesis import strategies as st

from agents.llm.cache import Cache, request_hash
from agents.llm.messages import Message
from agents.llm.reply import Reply, Usage
from harness.errors import Problem

REPLY = Reply("Good day\n\u00e9\x00", "stop", Usage(12, 3, 1, None), 0.1 + 0.2, 0.3, "m-1", False, "hm", "no")


def test_a_reply_comes_back_as_it_was_but_for_where_it_came_from(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    assert cache.get("a" * 64) is None
    cache.put("a" * 64, "wake/0/0", "m", REPLY)
    cache.close()
    for mode in ("replay", "record"):
        again = Cache(tmp_path / "cache.sqlite", mode)
        found = again.get("a" * 64)
        again.close()
        assert found is not None and found.cached
        assert found.to_json() == REPLY.to_json() and not REPLY.cached


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
)
def test_json_of_a_reply_reads_back_equal(text: str, dollars: float | None) -> None:
    reply = Reply(text, text, Usage(None, 1, None, 2), dollars, 1.5, text, False, text, text)
    assert Reply.from_json(reply.to_json()) == reply


def test_the_first_reply_of_a_request_stays(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    cache.put("a" * 64, "l", "m", REPLY)
    cache.put("a" * 64, "l", "m", Reply("other", "stop", Usage(), None, 1.0, "m"))
    found = cache.get("a" * 64)
    cache.close()
    assert found is not None and found.text == REPLY.text


def test_all_that_decides_an_answer_is_in_the_hash() -> None:
    given: list[Any] = ["wake/0/0", HELLO, "m", {"max_tokens": 5}]
    others: list[tuple[int, Any]] = [
        (0, "wake/0/1"),
        (1, [*HELLO, Message("user", "")]),
        (1, [Message("user", "Be brief."), HELLO[1]]),
        (2, "n"),
        (3, {"max_tokens": 6}),
        (3, {"max_tokens": 5, "seed": 1}),
    ]
    hashes = {request_hash(*given)} | {
        request_hash(*[*given[:place], value, *given[place + 1 :]]) for place, value in others
    }
    assert len(hashes) == 1 + len(others)
    assert request_hash("l", HELLO, "m", {"a": 1, "b": 2}) == request_hash("l", HELLO, "m", {"b": 2, "a": 1})


def test_a_miss_names_its_label(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    cache.put("a" * 64, "wake/0/0", "m", REPLY)
    assert "'sleep/0/1'" in str(cache.missing("sleep/0/1"))
    assert "other messages" not in str(cache.missing("sleep/0/1"))
    assert "other messages" in str(cache.missing("wake/0/0"))
    cache.close()


def test_replaying_needs_a_recording(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="no recording"):
        Cache(tmp_path / "cache.sqlite", "replay")
    assert not (tmp_path / "cache.sqlite").exists()


@pytest.mark.parametrize("content", [b"not a database, but long enough to be looked at" * 50, b""])
def test_another_file_is_no_recording(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    path.write_bytes(content)
    with pytest.raises(Problem, match="no recording") as caught:
        Cache(path, "replay")
    assert caught.value.file == str(path)
    assert path.read_bytes() == content


def test_a_replay_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    Cache(path).close()
    cache = Cache(path, "replay")
    with pytest.raises(Problem, match="readonly"):
        cache.put("a" * 64, "l", "m", REPLY)
    cache.close()


def test_a_recording_that_has_lost_replies_is_refused(tmp_path: Path) -> None:
    with contextlib.closing(Cache(tmp_path / "cache.sqlite")) as cache:
        cache.put("kept", "wake/0", "m", REPLY)
        cache.check_holds({})
        cache.check_holds({"kept": REPLY.sha256})
        with pytest.raises(Problem, match=r"lacks 2 of the replies that calls\.jsonl tells of"):
            cache.check_holds({"kept": REPLY.sha256, "lost": "", "gone": ""})
        with pytest.raises(Problem, match=r"1 of its replies are not those that calls\.jsonl tells of"):
            cache.check_holds({"kept": replace(REPLY, text="another").sha256})
