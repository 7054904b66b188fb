"""The difference between two systems' outcomes, with a 95% interval and a test that assumes no distribution.

Units that both systems met (levels, puzzles, episodes) are compared pair by pair; repeats with seeds of their
own (searches) are not paired. Differences are a - b. Everything is the same, but for signs, with a and b
exchanged.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.intervals import Interval, paired_difference, wilson

RESAMPLES, SEED = 10_000, 12345
_CHUNK = 500  # resamples drawn at a time, which bounds memory
_T95 = 0.95 * math.sqrt(2 / (1 - 0.95**2))  # the 97.5% quantile of Student's t with 2 degrees of freedom

Array = NDArray[np.float64]


class Difference(NamedTuple):
    """Mean of a minus mean of b."""

    value: float
    interval: Interval | None
    """Two-sided, 95%; None where the outcomes show no spread to make one from."""
    p: float
    """Two-sided, for no difference at all."""
    method: str
    """Where interval and p come from."""

    @property
    def told(self) -> bool:
        """Whether both the interval and the test tell it from zero."""
        apart = self.interval is not None and not self.interval.low <= 0 <= self.interval.high
        return apart and self.p < 0.05


def paired(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]], unit: str) -> Difference:
    """Compare runs on shared units; a and b: a row of outcomes for each run, in one order of the units.

    Runs of one side are averaged within each unit. One run each with outcomes of 0 and 1 are compared by
    Newcombe's interval and McNemar's exact test, all else by a bootstrap of the units and a sign-flip test.
    """
    first, second = (np.mean(np.asarray(rows, dtype=np.float64), axis=0) for rows in (a, b))
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"{first.shape} against {second.shape} {unit}")
    count = len(first)
    if len(a) == len(b) == 1 and set(first) | set(second) <= {0.0, 1.0}:
        both, neither = int(np.sum(first * second)), int(np.sum((1 - first) * (1 - second)))
        only_a, only_b = int(np.sum(first)) - both, int(np.sum(second)) - both
        return Difference(
            (only_a - only_b) / count,
            newcombe(both, only_a, only_b, neither),
            mcnemar(only_a, only_b),
            f"{count:,} {unit}, paired: {only_a:,} go to A alone and {only_b:,} to B alone; Newcombe's "
            "interval, McNemar's exact test",
        )
    pooled = ", the runs of a side averaged within each" if len(a) > 1 or len(b) > 1 else ""
    differences = first - second
    return Difference(
        float(np.mean(differences)),
        _of_means(first, second),
        sign_flip(differences),
        f"{count:,} {unit}, paired{pooled}; bootstrap over {unit}, sign-flip test",
    )


def unpaired(a: Sequence[float], b: Sequence[float], unit: str) -> Difference:
    """Compare independent repeats, one outcome each: percentile bootstrap of both sides, permutation test."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return Difference(
        float(np.mean(first) - np.mean(second)),
        _of_repeats(first, second),
        permutation(first, second),
        f"{len(a)} and {len(b)} {unit}, unpaired: each has a seed of its own; bootstrap of both sides, "
        "permutation test",
    )


def over_runs(a: Sequence[float], b: Sequence[float]) -> Difference:
    """Compare two scores with two, runs being the units, by Student's t (equal variances, 2 degrees)."""
    if not len(a) == len(b) == 2:
        raise ValueError(f"{len(a)} and {len(b)} runs, not 2 and 2")
    value = sum(a) / 2 - sum(b) / 2
    error = math.hypot(a[0] - a[1], b[0] - b[1]) / 2
    half = _T95 * error
    t = abs(value) / error if error else math.inf if value else 0.0
    return Difference(
        value,
        Interval(value - half, value + half) if error else None,
        1 - t / math.sqrt(2 + t * t) if math.isfinite(t) else 0.0,
        "2 and 2 runs, each with a seed of its own; Student's t, 2 degrees of freedom",
    )


def newcombe(both: int, only_a: int, only_b: int, neither: int) -> Interval:
    """Interval of a difference of paired proportions: method 10 of Newcombe, Stat. Med. 17:2635, 1998."""
    count = both + only_a + only_b + neither
    sums = both + only_a, both + only_b
    (low_a, high_a), (low_b, high_b) = (wilson(successes, count) for successes in sums)
    rate_a, rate_b = (successes / count for successes in sums)
    product = math.prod(sums) * math.prod(count - successes for successes in sums)
    excess: float = both * neither - only_a * only_b
    if excess > 0:
        excess = max(excess - count / 2, 0.0)  # the correction that sets method 10 apart from method 8
    correlation = excess / math.sqrt(product) if product else 0.0

    def reach(one: float, other: float) -> float:
        return math.sqrt(max(one * one - 2 * correlation * one * other + other * other, 0.0))

    value = (only_a - only_b) / count
    low = value - reach(rate_a - low_a, high_b - rate_b)
    high = value + reach(high_a - rate_a, rate_b - low_b)
    return Interval(max(low, -1.0), min(high, 1.0))


def mcnemar(only_a: int, only_b: int) -> float:
    """Exact two-sided p of a split of the units that only one of two systems solved (McNemar 1947)."""
    count, fewer = only_a + only_b, min(only_a, only_b)
    tail = sum(math.comb(count, k) for k in range(fewer + 1))
    return float(min(1.0, 2 * tail / 2**count))


def sign_flip(differences: Sequence[float] | Array) -> float:
    """Two-sided p of a sum of paired differences whose signs are chance; exact where there are few."""
    changed = np.asarray(differences, dtype=np.float64)
    changed = changed[changed != 0]
    count, found = len(changed), _floor(float(np.sum(changed)), changed)
    if 2**count <= RESAMPLES:
        signs = 1.0 - 2.0 * (np.arange(2**count)[:, None] >> np.arange(count) & 1)
        return float(np.mean(np.abs(signs @ changed) >= found))
    generator = np.random.default_rng(SEED)
    drawn = (generator.choice((-1.0, 1.0), (_CHUNK, count)) for _ in range(RESAMPLES // _CHUNK))
    return _share(sum(int(np.sum(np.abs(signs @ changed) >= found)) for signs in drawn))


def permutation(a: Sequence[float] | Array, b: Sequence[float] | Array) -> float:
    """Two-sided p of a difference of means where it is chance which side an outcome is on."""
    small, large = sorted((np.asarray(a, np.float64), np.asarray(b, np.float64)), key=len)
    pool = np.sort(np.concatenate([small, large]))
    few, count, total = len(small), len(pool), float(np.sum(pool))
    found = _floor(float(np.sum(small)) - few * total / count, pool)
    if math.comb(count, few) <= RESAMPLES:
        chosen = np.array(list(combinations(range(count), few)))
        return float(np.mean(np.abs(np.sum(pool[chosen], axis=1) - few * total / count) >= found))
    generator = np.random.default_rng(SEED)
    drawn = generator.permuted(np.tile(pool, (RESAMPLES, 1)), axis=1)[:, :few]
    return _share(int(np.sum(np.abs(np.sum(drawn, axis=1) - few * total / count) >= found)))


def _of_means(first: Array, second: Array) -> Interval | None:
    """The bootstrap's interval; where all units differ alike, what Wilson's interval leaves possible."""
    differences = first - second
    value, count = float(differences[0]), len(differences)
    if np.any(differences != value):
        return Interval(*paired_difference(first, second)[-2:])
    if not all(0 <= end <= 1 for end in (*first, *second)):
        return None
    others = wilson(0, count).high  # the largest share of units that may differ otherwise, unseen in `count`
    return Interval(value - others * (1 + value), value + others * (1 - value))


def _of_repeats(first: Array, second: Array) -> Interval | None:
    if min(len(first), len(second)) < 2 or (np.ptp(first) == 0 and np.ptp(second) == 0):
        return None
    one, other = sorted((np.sort(first).tolist(), np.sort(second).tolist()))  # so that no order matters
    generator = np.random.default_rng(SEED)
    means = (np.mean(generator.choice(side, (RESAMPLES, len(side))), axis=1) for side in (one, other))
    low, high = (float(end) for end in np.quantile(next(means) - next(means), (0.025, 0.975)))
    if one == other:
        low, high = (low - high) / 2, (high - low) / 2
    return Interval(low, high) if np.sort(first).tolist() == one else Interval(-high, -low)


def _floor(statistic: float, outcomes: Array) -> float:
    """The size of a statistic, less what rounding may have added, so that ties count as such."""
    return abs(statistic) - 1e-12 * float(np.sum(np.abs(outcomes)))


def _share(hits: int) -> float:
    """p from drawn samples, the one that was found among them (Phipson and Smyth 2010)."""
    return (1 + hits) / (1 + RESAMPLES)
