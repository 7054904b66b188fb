"""Intervals against values worked out elsewhere: scipy, an exact convolution, published right values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.intervals import bootstrap, paired_difference, wilson

K = 8
COUNTS = [8] * 12 + [7, 7, 6, 6, 4, 3, 1, 0]
OTHER_COUNTS = [8] * 13 + [7, 7, 6, 5, 4, 2, 0]


def table(counts: list[int]) -> np.ndarray:
    """(N, K) outcomes with so many successes in each row."""
    return np.array([[1.0] * count + [0.0] * (K - count) for count in counts])


def exact_quantile(counts: list[int], probability: float) -> float:
    """Quantile of the mean of N draws from the counts, by convolving their distribution N times."""
    single = np.bincount(counts, minlength=K + 1) / len(counts)
    total = np.array([1.0])
    for _ in counts:
        total = np.convolve(total, single)
    return float(np.searchsorted(np.cumsum(total), probability)) / (K * len(counts))


def test_the_bootstrap_resamples_puzzles_and_not_completions() -> None:
    assert bootstrap(table(COUNTS)) == (0.66875, 0.93125)
    flat = bootstrap(table(COUNTS).ravel())
    assert flat == (0.75, 0.86875)
    assert bootstrap(table(COUNTS)).low < 0.70 < flat.low  # a target of 0.70 tells them apart


def test_the_bootstrap_meets_the_exact_quantiles() -> None:
    low, high = exact_quantile(COUNTS, 0.025), exact_quantile(COUNTS, 0.975)
    assert (low, high) == (107 / 160, 149 / 160)
    assert bootstrap(table(COUNTS)) == (low, high)


def test_the_bootstrap_of_a_table_is_that_of_its_row_means() -> None:
    assert bootstrap(table(COUNTS)) == bootstrap(np.array(COUNTS) / K)
    shuffled = np.random.default_rng(0).permuted(table(COUNTS), axis=1)
    assert bootstrap(table(COUNTS)) == bootstrap(shuffled)


def test_the_bootstrap_agrees_with_scipy() -> None:
    means = np.random.default_rng(1).random(40)
    ours = bootstrap(means)
    theirs = stats.bootstrap((means,), np.mean, method="percentile", n_resamples=20_000, rng=2)
    assert ours == pytest.approx(theirs.confidence_interval, abs=0.005)


def test_a_table_gives_one_interval_over_its_first_axis() -> None:
    outcomes = np.zeros((20, K))
    outcomes[:, 0] = 1  # each puzzle solved once: no variance between puzzles, all of it between completions
    assert bootstrap(outcomes) == wilson(20 / K, 20)
    assert bootstrap(outcomes.T) != bootstrap(outcomes)


def test_equal_outcomes_fall_back_to_wilson_and_never_to_nan() -> None:
    assert bootstrap(np.ones((20, K))) == wilson(20, 20)
    assert bootstrap(np.ones(100)) == wilson(100, 100)
    assert bootstrap(np.zeros(100)) == wilson(0, 100)
    assert bootstrap(np.full(10, 5797.0)) == (5797.0, 5797.0)  # no proportion: nothing but the value is known


def test_the_bootstrap_ignores_and_leaves_the_global_random_state() -> None:
    results = set()
    for seed in (0, 1):
        np.random.seed(seed)
        results.add(bootstrap(table(COUNTS)))
        drawn = np.random.random()
        np.random.seed(seed)
        assert drawn == np.random.random()
    assert len(results) == 1


def test_the_bootstrap_depends_on_its_seed_alone() -> None:
    means = np.random.default_rng(3).random(50)
    assert bootstrap(means, seed=1) == bootstrap(means, seed=1) != bootstrap(means, seed=2)
    assert bootstrap(means, resamples=1) == (bootstrap(means, resamples=1).low,) * 2


@pytest.mark.parametrize("outcomes", [[], [[]], 1.0, np.zeros((2, 2, 2)), [1.0, math.nan], [math.inf]])
def test_outcomes_that_are_none_are_refused(outcomes: object) -> None:
    with pytest.raises(ValueError, match="outcomes must"):
        bootstrap(outcomes)  # type: ignore[arg-type]


def test_wilson_right_values() -> None:
    assert wilson(700, 1000) == pytest.approx((0.6708761390827828, 0.7275931575229951), abs=1e-15)
    assert wilson(728, 1000).low == pytest.approx(0.6995862451694239, abs=1e-15)
    assert wilson(729, 1000).low == pytest.approx(0.7006140643511565, abs=1e-15)


def test_wilson_is_stricter_than_wald_at_the_target() -> None:
    wald = 0.728 - 1.96 * math.sqrt(0.728 * 0.272 / 1000)
    assert wilson(728, 1000).low <= 0.70 < wald
    assert wilson(729, 1000).low > 0.70


def test_wilson_is_exact_at_its_ends() -> None:
    for count in range(1, 1001):
        assert wilson(0, count).low == 0.0
        assert wilson(count, count).high == 1.0


@given(count=st.integers(1, 5000), share=st.floats(0, 1))
def test_wilson_agrees_with_scipy(count: int, share: float) -> None:
    successes = round(count * share)
    theirs = stats.binomtest(successes, count).proportion_ci(0.95, "wilson")
    ours = wilson(successes, count)
    assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert 0 <= ours.low <= successes / count <= ours.high <= 1


@pytest.mark.parametrize(("successes", "count"), [(1, 0), (-1, 10), (11, 10), (math.nan, 10)])
def test_wilson_refuses_what_is_no_proportion(successes: float, count: int) -> None:
    with pytest.raises(ValueError, match="successes of"):
        wilson(successes, count)


def test_a_paired_difference_is_far_sharper_than_an_unpaired_one() -> None:
    paired = paired_difference(table(OTHER_COUNTS), table(COUNTS))
    assert paired.value == pytest.approx(0.03125)
    assert paired.standard_error == pytest.approx(0.0124175, abs=5e-8)
    assert paired.low < paired.value < paired.high
    assert paired.high - paired.low == pytest.approx(2 * 1.96 * paired.standard_error, rel=0.15)
    unpaired = math.hypot(
        *(np.std(np.array(c) / K, ddof=1) / math.sqrt(len(c)) for c in (COUNTS, OTHER_COUNTS))
    )
    assert unpaired == pytest.approx(0.0948402, abs=5e-8)


def test_the_paired_difference_turns_with_its_arguments() -> None:
    forth, back = paired_difference(OTHER_COUNTS, COUNTS), paired_difference(COUNTS, OTHER_COUNTS)
    assert (back.value, back.low, back.high) == (-forth.value, -forth.high, -forth.low)
    assert paired_difference(COUNTS, COUNTS) == (0, 0, 0, 0)


def test_only_the_same_units_are_paired() -> None:
    with pytest.raises(ValueError, match="20 units against 19"):
        paired_difference(COUNTS, COUNTS[1:])
    with pytest.raises(ValueError, match="two units or more"):
        paired_difference([1.0], [0.0])
