"""Times against hand-made conversions."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retro.times import format_frames, format_time

NES = Fraction(39375000, 655171)  # 60.0988 a second
GENESIS = Fraction(53693175, 896040)  # 59.9227 a second


@pytest.mark.parametrize(
    ("frames", "rate", "expected"),
    [
        (0, NES, "0:00.00"),
        (1, NES, "0:00.01"),  # 16.6 ms
        (1093, NES, "0:18.18"),  # 18.187 s
        (5797, GENESIS, "1:36.74"),  # 96.741 s
        (3600, Fraction(60), "1:00.00"),
        (3599, Fraction(60), "0:59.98"),  # cut off, not rounded
        (216_000, Fraction(60), "60:00.00"),
        (393_750, Fraction(39375, 655), "109:10.00"),  # 6,550 s on the dot
    ],
)
def test_known_times(frames: int, rate: Fraction, expected: str) -> None:
    assert format_time(frames, rate) == format_time(frames, float(rate)) == expected


@given(st.integers(0, 2_000_000), st.sampled_from([NES, GENESIS]))
def test_a_float_rate_is_as_good_as_the_fraction(frames: int, rate: Fraction) -> None:
    minutes, seconds = format_time(frames, float(rate)).split(":")
    shown = 60 * int(minutes) + Fraction(seconds)
    assert shown <= frames / rate < shown + Fraction(1, 100)


def test_frames_with_their_time() -> None:
    assert format_frames(1093, NES) == "1,093 frames (0:18.18)"
    assert format_frames(1, NES) == "1 frame (0:00.01)"
