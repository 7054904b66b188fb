"""Reported numbers against values worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.benchmarks.crafter.summary import crafter_score, summarise
from agents.benchmarks.crafter.text import ACHIEVEMENTS


def test_the_score_of_simple_rates() -> None:
    # sqrt((1 + 3) (1 + 8)) - 1 = 5 for 3% and 8%; cube root of 1 * 8 * 27 is 6.
    assert crafter_score([0.03, 0.08]) == pytest.approx(5)
    assert crafter_score([0.0, 0.07, 0.26]) == pytest.approx(5)
    assert crafter_score([1.0] * 22) == pytest.approx(100)
    assert crafter_score([0.0] * 22) == 0
    # One of 22 always, the others never: 101^(1/22) - 1, with ln 101 = 4.61512.
    assert crafter_score([1.0] + [0.0] * 21) == pytest.approx(math.exp(4.61512 / 22) - 1, abs=1e-5)


def test_the_summary_of_two_episodes() -> None:
    details = [
        {"achievements": ["collect_wood", "wake_up"], "died": True, "return": 1.1, "steps": 100},
        {"achievements": ["collect_wood"], "died": False, "return": 0.5, "steps": 300},
    ]
    summary = summarise(details)
    # (1 + 100) (1 + 50) = 5151 for the two that were reached.
    assert summary.pop("crafter_score") == pytest.approx(5151 ** (1 / 22) - 1)
    assert summary.pop("return") == pytest.approx(0.8)
    assert summary == {"achievements": 1.5, "died": 0.5, "steps": 200} | dict.fromkeys(ACHIEVEMENTS, 0) | {
        "collect_wood": 1,
        "wake_up": 0.5,
    }


def test_nothing_is_said_of_no_episodes() -> None:
    assert summarise([]) == {}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=22))
def test_the_score_lies_between_the_rates(rates: list[float]) -> None:
    score = crafter_score(rates)
    assert 100 * min(rates) - 1e-9 <= score <= 100 * math.fsum(rates) / len(rates) + 1e-9
