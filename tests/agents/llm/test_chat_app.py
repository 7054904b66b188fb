"""Requests to our own servers: what is asked is read, and what cannot be is refused by its reason."""

import json
from typing import Any

import pytest
from chat_servers import completion as expected
from hypothesis import given
from hypothesis import strategies as st

from agents.llm.answers import read_answer
from agents.llm.chat_app import Refused, completion, listen, read_request
from agents.llm.messages import Message
from agents.llm.reply import Usage
from harness.errors import Problem

PLAIN: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def read(**changes: Any) -> Any:
    return read_request(json.dumps({**PLAIN, **changes}).encode())


def test_a_plain_request() -> None:
    request = read()
    assert (request.model, request.messages) == ("m", (Message("user", "Hello"),))
    assert (request.max_tokens, request.temperature, request.top_p, request.seed) == (None, 1, 1, None)
    assert request.body == PLAIN


def test_parameters_by_both_names_of_the_limit() -> None:
    request = read(max_tokens=5, temperature=0, top_p=0.5, seed=7)
    assert (request.max_tokens, request.temperature, request.top_p, request.seed) == (5, 0, 0.5, 7)
    assert read(max_completion_tokens=6).max_tokens == 6


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": None}, "names no model"),
        ({"messages": []}, "no messages"),
        ({"messages": "Hello"}, "no messages"),
        ({"messages": ["Hello"]}, "needs a role"),
        ({"messages": [{"role": "tool", "content": ""}]}, "needs a role"),
        ({"messages": [{"role": "user", "content": None}]}, "needs a role"),
        ({"stream": True}, "does not stream"),
        ({"n": 2}, "one answer at a time"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"max_tokens": True}, "max_tokens is True"),
        ({"temperature": "hot"}, "temperature is 'hot'"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_what_cannot_be_answered_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused, match=reason) as caught:
        read(**change)
    assert caught.value.status == 400


@given(st.binary(max_size=50))
def test_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(Refused):
        read_request(body)


def test_an_answer_is_what_our_client_reads() -> None:
    body = completion(read(), "Good day", prompt_tokens=12, completion_tokens=3, cached_tokens=4)
    answer = read_answer(json.dumps(body).encode())
    assert (answer.text, answer.finish, answer.model) == ("Good day", "stop", "m")
    assert answer.usage == Usage(12, 3, None, 4)
    assert body.keys() == expected().keys()


def test_a_port_that_is_taken_is_said() -> None:
    with (
        listen("127.0.0.1", 0) as taken,
        pytest.raises(
            Problem, match=r"cannot listen on 127.0.0.1, port \d+: .*in use.*choose another --port"
        ),
    ):
        listen("127.0.0.1", taken.getsockname()[1])
