"""Waiting: as long as servers say, longer each time, and never more requests than allowed."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.llm.limits import LONGEST_BACKOFF, Gate, backoff, retry_after
from harness.errors import Problem

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:00 GMT"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_what_a_server_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@given(st.text(max_size=40))
def test_any_text_is_a_wait_or_none(text: str) -> None:
    for name in ("retry-after", "retry-after-ms"):
        seconds = retry_after({name: text}, NOW)
        assert seconds is None or seconds >= 0


def test_backoff_grows_to_its_limit_and_is_the_same_each_time() -> None:
    waits = [backoff("wake/0/0", attempt) for attempt in range(1, 12)]
    for attempt, wait in enumerate(waits):
        longest = min(LONGEST_BACKOFF, 2.0**attempt)
        assert longest / 2 <= wait <= longest
    assert waits[0] == backoff("wake/0/0", 1) != backoff("wake/0/1", 1)


def test_a_pause_holds_everyone() -> None:
    gate = Gate(4, None)
    gate.pause(0.2)
    start = time.monotonic()
    with gate.passing():
        assert time.monotonic() - start >= 0.19


def test_so_many_a_minute() -> None:
    gate = Gate(4, 2)
    for _ in range(2):
        with gate.passing():
            pass
    done = threading.Event()

    def third() -> None:
        with pytest.raises(Problem, match="stopped"), gate.passing():
            done.set()

    thread = threading.Thread(target=third)
    thread.start()
    thread.join(0.1)
    assert thread.is_alive() and not done.is_set()  # it waits for the minute to pass
    gate.close()
    thread.join(5)
    assert not thread.is_alive() and not done.is_set()


def test_a_closed_gate_lets_nobody_through() -> None:
    gate = Gate(1, None)
    gate.close()
    with pytest.raises(Problem, match="stopped"), gate.passing():
        pass
    with pytest.raises(Problem, match="stopped"):
        gate.sleep(60)
