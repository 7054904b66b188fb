"""FIXED: what a report says of Crafter episodes: Hafner 2021, arXiv 2109.06780."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agents.benchmarks.crafter.text import ACHIEVEMENTS


def crafter_score(rates: Iterable[float]) -> float:
    """exp(mean(ln(1 + s))) - 1 of success rates s in percent; `rates` are 0 to 1, the result 0 to 100."""
    logs = [math.log1p(100 * rate) for rate in rates]
    return math.expm1(math.fsum(logs) / len(logs))


def summarise(details: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Means over episodes, the Crafter score, and each achievement's success rate; {} of no episodes."""
    if not details:
        return {}
    count = len(details)
    rates = {name: sum(name in one["achievements"] for one in details) / count for name in ACHIEVEMENTS}
    return {
        "achievements": sum(len(one["achievements"]) for one in details) / count,
        "crafter_score": crafter_score(rates.values()),
        "return": math.fsum(one["return"] for one in details) / count,
        "steps": sum(one["steps"] for one in details) / count,
        "died": sum(one["died"] for one in details) / count,
        **rates,
    }
