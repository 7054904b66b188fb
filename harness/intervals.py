"""95% intervals of scores: Wilson for one trial a unit, the cluster bootstrap for the rest."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Z = 1.959963984540054  # the 97.5% quantile of the standard normal distribution
_CHUNK = 500  # resamples drawn at a time, which bounds memory and changes no result


class Interval(NamedTuple):
    """A two-sided 95% interval."""

    low: float
    high: float


class PairedDifference(NamedTuple):
    """Mean of a - b over shared units, its standard error and its two-sided 95% interval."""

    value: float
    standard_error: float
    low: float
    high: float


def wilson(successes: float, count: int) -> Interval:
    """Score interval of a proportion (Wilson 1927), `successes` of `count` independent trials."""
    if not (count > 0 and 0 <= successes <= count):
        raise ValueError(f"{successes} successes of {count} trials")
    rate, spread = successes / count, _Z * _Z / count
    middle = (rate + spread / 2) / (1 + spread)
    half = math.sqrt(rate * (1 - rate) * spread + spread * spread / 4) / (1 + spread)
    # At the two ends the bound is exact, and rounding must not move it.
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == count else min(1.0, middle + half)
    return Interval(low, high)


def bootstrap(outcomes: ArrayLike, seed: int = 12345, resamples: int = 10_000) -> Interval:
    """Percentile interval of the mean, resampling the units of `outcomes`.

    outcomes: (N,), or (N, K) with the K outcomes of each of N units, which stay together. Where all units
    have the same mean, and it is a proportion, resampling says nothing: Wilson's interval for N trials
    takes its place.
    """
    means = _unit_means(outcomes)
    if np.all(means == means[0]) and 0 <= means[0] <= 1:
        return wilson(float(means[0]) * len(means), len(means))
    return _percentile(means, seed, resamples)


def paired_difference(
    a: ArrayLike, b: ArrayLike, seed: int = 12345, resamples: int = 10_000
) -> PairedDifference:
    """Compare two systems on the same units, unit by unit; a and b: (N,) or (N, K), in the same order."""
    first, second = _unit_means(a), _unit_means(b)
    if first.shape != second.shape:
        raise ValueError(f"{len(first)} units against {len(second)}")
    if len(first) < 2:
        raise ValueError("a standard error takes two units or more")
    differences = first - second
    standard_error = float(np.std(differences, ddof=1) / math.sqrt(len(differences)))
    interval = _percentile(differences, seed, resamples)
    return PairedDifference(float(np.mean(differences)), standard_error, *interval)


def _unit_means(outcomes: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim not in (1, 2) or table.size == 0:
        raise ValueError(f"outcomes must have the shape (N,) or (N, K), not {table.shape}")
    if not np.all(np.isfinite(table)):
        raise ValueError("outcomes must be finite")
    return table if table.ndim == 1 else np.mean(table, axis=1)


def _percentile(means: NDArray[np.float64], seed: int, resamples: int) -> Interval:
    generator = np.random.default_rng(seed)
    count = len(means)
    chunks = [min(_CHUNK, resamples - start) for start in range(0, resamples, _CHUNK)]
    drawn = [np.sum(means[generator.integers(0, count, (size, count))], axis=1) / count for size in chunks]
    low, high = np.quantile(np.concatenate(drawn), (0.025, 0.975))
    return Interval(float(low), float(high))
