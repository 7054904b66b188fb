"""Differences against scipy, worked examples from the literature and the enumeration of every case."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from harness.differences import (
    Difference,
    mcnemar,
    newcombe,
    over_runs,
    paired,
    permutation,
    sign_flip,
    unpaired,
)
from harness.intervals import Interval, wilson

COUNTS = st.integers(0, 40)
OUTCOMES = st.integers(0, 8).map(lambda eighths: eighths / 8)
FIRST = [8] * 13 + [7, 7, 6, 5, 4, 2, 0]
SECOND = [8] * 12 + [7, 7, 6, 6, 4, 3, 1, 0]


@pytest.mark.parametrize(
    ("table", "interval", "p"),
    [
        # Fagerland, Lydersen and Laake, Statistical Analysis of Contingency Tables, chapter 8: airway
        # hyper-responsiveness (Bentur 2009) and complete response (Cavo 2012), as in the tests of their
        # package contingencytables.
        ((1, 1, 7, 12), (-0.507, -0.026), 0.0703),
        ((59, 6, 16, 80), (-0.1186, -0.0046), 0.0525),
        # Armitage and Berry 1994, p. 127: two media for culturing tubercle bacilli; p after Liddell 1983.
        ((20, 12, 2, 16), None, 0.0129),
    ],
)
def test_paired_proportions_from_the_literature(
    table: tuple[int, int, int, int], interval: tuple[float, float] | None, p: float
) -> None:
    assert mcnemar(table[1], table[2]) == pytest.approx(p, abs=5e-5)
    if interval is not None:
        digits = 5e-4 if len(str(interval[0])) < 7 else 5e-5
        assert newcombe(*table) == pytest.approx(interval, abs=digits)


@given(only_a=st.integers(0, 700), only_b=st.integers(0, 700))
def test_mcnemar_is_the_binomial_test_of_the_split(only_a: int, only_b: int) -> None:
    if only_a + only_b == 0:
        assert mcnemar(0, 0) == 1
    else:
        theirs = stats.binomtest(only_a, only_a + only_b).pvalue
        assert mcnemar(only_a, only_b) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("count", range(9))
def test_mcnemar_by_counting_all_splits(count: int) -> None:
    splits = [sum(split) for split in product((0, 1), repeat=count)]
    for found in range(count + 1):
        as_far = [heads for heads in splits if abs(2 * heads - count) >= abs(2 * found - count)]
        assert mcnemar(found, count - found) == len(as_far) / len(splits)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_newcombes_interval_turns_with_its_sides_and_holds_the_difference(
    a: int, b: int, c: int, d: int
) -> None:
    if a + b + c + d == 0:
        return
    low, high = newcombe(a, b, c, d)
    back = newcombe(a, c, b, d)
    assert (low, high) == pytest.approx((-back.high, -back.low), abs=1e-12)
    assert -1 <= low <= (b - c) / (a + b + c + d) <= high <= 1


@pytest.mark.parametrize("table", [(10, 0, 0, 0), (0, 0, 0, 10), (5, 0, 0, 5), (1, 0, 0, 0)])
def test_equal_outcomes_leave_room_for_a_difference(table: tuple[int, int, int, int]) -> None:
    low, high = newcombe(*table)
    assert low == -high < 0 < high
    assert mcnemar(0, 0) == 1


def test_without_correlation_it_is_the_interval_of_two_samples() -> None:
    low, high = newcombe(0, 10, 0, 0)  # A solved all and B none: no correlation can be seen
    reach = math.hypot(1 - wilson(10, 10).low, wilson(0, 10).high)
    assert (low, high) == (pytest.approx(1 - reach), 1.0)


def test_newcombes_interval_covers_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    drawn = generator.multinomial(100, (0.6, 0.15, 0.05, 0.2), size=2000)
    covers = [low <= 0.10 <= high for low, high in (newcombe(*map(int, table)) for table in drawn)]
    assert 0.935 <= np.mean(covers) <= 0.975


@pytest.mark.parametrize("seed", range(3))
def test_few_sign_flips_are_counted_and_agree_with_scipy(seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0.4, 1, 9)
    theirs = stats.permutation_test((differences,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip(differences) == pytest.approx(theirs.pvalue)


def test_many_sign_flips_are_drawn_and_agree_with_the_exact_test() -> None:
    # Differences of one size make it McNemar's test, whose p is known.
    differences = [1.0] * 40 + [-1.0] * 22 + [0.0] * 50
    assert sign_flip(differences) == pytest.approx(mcnemar(40, 22), abs=0.006)
    assert sign_flip([0.0] * 30) == 1


@pytest.mark.parametrize("seed", range(3))
def test_few_permutations_are_counted_and_agree_with_scipy(seed: int) -> None:
    generator = np.random.default_rng(seed)
    a, b = generator.normal(0, 1, 5), generator.normal(1, 1, 6)
    theirs = stats.permutation_test(
        (a, b), lambda x, y: np.mean(x) - np.mean(y), permutation_type="independent", n_resamples=np.inf
    )
    # scipy doubles the smaller tail; ours counts both tails by the size of the difference.
    both = np.concatenate([a, b])
    sizes = [
        abs(np.mean(both[list(c)]) - np.mean(np.delete(both, list(c)))) for c in combinations(range(11), 5)
    ]
    assert permutation(a, b) == pytest.approx(np.mean(np.array(sizes) >= abs(a.mean() - b.mean()) - 1e-12))
    assert permutation(a, b) == pytest.approx(theirs.pvalue, abs=0.05)


def test_many_permutations_are_drawn_and_agree_with_scipy() -> None:
    generator = np.random.default_rng(1)
    a, b = generator.normal(0, 1, 16), generator.normal(0.6, 1, 16)
    theirs = stats.permutation_test((a, b), lambda x, y: np.mean(x) - np.mean(y), n_resamples=20_000, rng=2)
    assert permutation(a, b) == pytest.approx(theirs.pvalue, abs=0.01)


def test_means_of_shared_units_are_compared_by_the_paired_bootstrap() -> None:
    found = paired([np.array(FIRST) / 8], [np.array(SECOND) / 8], "puzzles")
    # The right value, and its standard error of 0.0124175, are those of F3 in the rules on statistics.
    assert found.value == pytest.approx(0.03125)
    theirs = stats.bootstrap(
        ((np.array(FIRST) - np.array(SECOND)) / 8,), np.mean, method="percentile", n_resamples=20_000, rng=3
    )
    assert found.interval == pytest.approx(theirs.confidence_interval, abs=0.004)
    changed = (np.array(FIRST) - np.array(SECOND))[np.array(FIRST) != np.array(SECOND)]
    flips = [
        abs(np.dot(signs, changed)) >= abs(changed.sum()) for signs in product((1, -1), repeat=len(changed))
    ]
    assert found.p == pytest.approx(np.mean(flips))


def test_two_runs_are_averaged_within_each_unit() -> None:
    first, second = [1.0, 1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0, 1.0]
    other = [0.0, 1.0, 0.0, 0.0, 0.0]
    pooled = paired([first, second], [other], "levels")
    by_hand = paired([[1.0, 0.5, 0.0, 1.0, 0.5]], [other], "levels")
    assert pooled[:3] == by_hand[:3]
    assert pooled.value == pytest.approx(0.4)
    assert "averaged within each" in pooled.method and "averaged" not in by_hand.method
    assert "McNemar" in paired([first], [other], "levels").method


def test_outcomes_of_0_and_1_go_by_newcombe_and_mcnemar() -> None:
    a = [1.0] * 20 + [1.0] * 12 + [0.0] * 2 + [0.0] * 16
    b = [1.0] * 20 + [0.0] * 12 + [1.0] * 2 + [0.0] * 16
    found = paired([a], [b], "levels")
    assert found[:3] == (0.2, newcombe(20, 12, 2, 16), mcnemar(12, 2))
    assert "12 go to A alone and 2 to B alone" in found.method


rows = st.integers(1, 12).flatmap(
    lambda n: st.tuples(*[st.lists(st.lists(OUTCOMES, min_size=n, max_size=n), min_size=1, max_size=2)] * 2)
)


@given(rows)
@settings(max_examples=60)
def test_paired_differences_turn_with_their_sides(sides: tuple[list[list[float]], list[list[float]]]) -> None:
    turns(paired(*sides, "levels"), paired(sides[1], sides[0], "levels"))


@given(st.tuples(*[st.lists(OUTCOMES, min_size=1, max_size=9)] * 2))
@settings(max_examples=60)
def test_unpaired_differences_turn_with_their_sides(sides: tuple[list[float], list[float]]) -> None:
    turns(unpaired(*sides, "searches"), unpaired(sides[1], sides[0], "searches"))


@given(st.tuples(*[st.lists(OUTCOMES, min_size=2, max_size=2)] * 2))
def test_differences_of_runs_turn_with_their_sides(sides: tuple[list[float], list[float]]) -> None:
    turns(over_runs(*sides), over_runs(sides[1], sides[0]))


def turns(forth: Difference, back: Difference) -> None:
    """Exchanging the sides changes signs and nothing else."""
    assert forth.value == pytest.approx(-back.value, abs=1e-12)
    assert forth.p == pytest.approx(back.p, abs=1e-12)
    assert 0 <= forth.p <= 1
    if forth.interval is None:
        assert back.interval is None
        return
    assert back.interval is not None
    assert forth.interval == pytest.approx((-back.interval.high, -back.interval.low), abs=1e-12)
    assert forth.interval.low - 1e-12 <= forth.value <= forth.interval.high + 1e-12


def test_means_that_all_differ_alike_still_leave_room() -> None:
    half = [0.5] * 20
    same = paired([half], [half], "puzzles")
    assert same.value == 0 and same.p == 1
    # None of 20 units differs: by Wilson's interval up to 16.1% of others may, by as much as a whole.
    assert same.interval == pytest.approx((-wilson(0, 20).high, wilson(0, 20).high))
    assert wilson(0, 20).high == pytest.approx(0.161, abs=5e-4)
    more = paired([[0.75] * 20], [half], "puzzles")
    assert more.interval is not None and more.told
    assert -1 <= more.interval.low < 0.25 < more.interval.high <= 1


def test_one_unit_tells_nothing() -> None:
    for a, b in ((1.0, 0.0), (0.5, 0.25), (0.0, 0.0)):
        found = paired([[a]], [[b]], "levels")
        assert found.p == 1 and not found.told
        assert found.interval is not None and found.interval.low < 0 < found.interval.high
    assert unpaired([1.2], [1.5], "searches").interval is None
    assert unpaired([1.2], [1.5], "searches").p == 1


def test_without_a_spread_there_is_no_interval() -> None:
    assert (
        paired([[1.5, 1.5]], [[1.2, 1.2]], "levels").interval is None
    )  # no proportions, so no bound is known
    found = unpaired([1.5] * 8, [1.2] * 8, "searches")
    assert found.interval is None and not found.told
    assert found.p == pytest.approx(2 / math.comb(16, 8), abs=5e-4)
    assert unpaired([1.5] * 8, [1.5] * 8, "searches").p == 1


def test_unpaired_repeats_agree_with_scipys_bootstrap() -> None:
    generator = np.random.default_rng(5)
    a, b = generator.normal(1.3, 0.1, 16), generator.normal(1.4, 0.1, 12)
    theirs = stats.bootstrap(
        (a, b), lambda x, y, axis: np.mean(x, axis) - np.mean(y, axis), method="percentile",
        n_resamples=20_000, rng=6, vectorized=True,
    )  # fmt: skip
    assert unpaired(a.tolist(), b.tolist(), "searches").interval == pytest.approx(
        theirs.confidence_interval, abs=0.005
    )


@pytest.mark.parametrize(
    "sides", [((0.743, 0.732), (0.755, 0.761)), ((0.1, 0.2), (0.9, 0.95)), ((0.51, 0.5), (0.4, 0.6))]
)
def test_two_runs_a_side_are_students_t(sides: tuple[tuple[float, float], tuple[float, float]]) -> None:
    found, theirs = over_runs(*sides), stats.ttest_ind(*sides)
    assert found.p == pytest.approx(theirs.pvalue)
    assert found.interval == pytest.approx(tuple(theirs.confidence_interval()))


def test_runs_without_a_spread() -> None:
    assert over_runs((0.5, 0.5), (0.5, 0.5))[:3] == (0, None, 1)
    assert over_runs((0.5, 0.5), (0.4, 0.4)).interval is None
    with pytest.raises(ValueError, match="1 and 2 runs"):
        over_runs((0.5,), (0.4, 0.4))


def test_a_difference_is_told_where_interval_and_test_agree() -> None:
    assert Difference(0.1, Interval(0.01, 0.2), 0.04, "").told
    assert not Difference(0.1, Interval(0.01, 0.2), 0.06, "").told
    assert not Difference(0.1, Interval(-0.01, 0.2), 0.04, "").told
    assert not Difference(0.1, None, 0.0, "").told


def test_only_the_same_units_pair() -> None:
    with pytest.raises(ValueError, match="levels"):
        paired([[0.5, 1.0]], [[0.5]], "levels")


def test_the_global_random_state_is_neither_read_nor_moved() -> None:
    np.random.seed(0)
    before = paired([np.array(FIRST) / 8], [np.array(SECOND) / 8], "puzzles")
    drawn = np.random.random()
    np.random.seed(0)
    assert drawn == np.random.random()
    np.random.seed(1)
    assert paired([np.array(FIRST) / 8], [np.array(SECOND) / 8], "puzzles") == before
