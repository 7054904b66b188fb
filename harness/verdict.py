"""A comparison in words that claim no more than its intervals, and as plain values for other programs."""

import math
from typing import Any

from harness.comparison import Comparison, Side, Spending
from harness.differences import Difference

DECIMALS = 4


def verdict(found: Comparison) -> str:
    """Whether A beats B, and on what that rests."""
    if found.one_record:
        return "These are two runs of one record, of which neither beats the other."
    ranks = found.a.track.cost or "time"
    gone = [f"{name} was invalidated. " for name, side in sides(found) if side.invalidated]
    holds = "its score holds: both its runs clear the target"
    if found.beats and found.b.invalidated:
        text = f"A stands before B; {holds}."
    elif found.beats:
        sure = "" if found.spending.told else ", though not by more than runs of one recipe are apart"
        text = f"A beats B on {ranks}{sure}; {holds}."
    elif found.shortcomings:
        text = f"A does not beat B: its score does not hold ({'; '.join(found.shortcomings)})."
    elif found.a.invalidated:
        text = "A does not beat B."
    else:
        text = f"A does not beat B on {ranks}, though {holds}."
    return f"{''.join(gone)}{text} {_worse(found)}"


def sentences(found: Comparison) -> dict[str, str]:
    """Topic -> what may be said of it."""
    metric, ranks = found.a.track.metric, found.a.track.cost or "time"
    said = {"score": f"On other {found.unit}: {of_difference(found.score, metric)}"}
    if found.seeds is not None:
        said["seeds"] = f"With other seeds: {of_difference(found.seeds, metric)}"
    said[ranks] = of_spending(found.spending, found.one_record)
    if found.calibrated is not None:
        said["machines"] = f"In calibrations: {of_spending(found.calibrated, found.one_record)}"
    for name, side in sides(found):
        if side.standing is not None:
            said[name] = str(side.standing)
    return said


def sides(found: Comparison) -> tuple[tuple[str, Side], tuple[str, Side]]:
    """The two sides with their letters."""
    return ("A", found.a), ("B", found.b)


def of_difference(difference: Difference, metric: str) -> str:
    """What may be said of a difference, its ends rounded outwards."""
    if difference.interval is None:
        return (
            f"the outcomes show no spread, so nothing can be told of the difference {difference.value:+.4f}."
        )
    low, high = difference.interval
    if difference.told:
        word, near, far = ("higher", low, high) if low > 0 else ("lower", -high, -low)
        return f"A's {metric} is {word} than B's, by {rounded_down(near)} to {rounded_up(far)}."
    if low > 0 or high < 0:
        return f"no difference can be told: 0 is outside the interval, but p is {difference.p:.3f}."
    most = f"up to {rounded_up(-low)} lower or {rounded_up(high)} higher"
    return f"no difference can be told: A's {metric} may be {most}."


def of_spending(spending: Spending, one_record: bool) -> str:
    """What may be said of the time, or of another cost."""
    decimals = 0 if min(spending.a, spending.b) >= 10_000 else 3
    a, b, apart = (f"{n:,.{decimals}f}" for n in (spending.a, spending.b, abs(spending.a - spending.b)))
    share = f" ({abs(spending.a / spending.b - 1):.1%})" if spending.b else ""
    more = "more" if spending.a > spending.b else "less"
    text = f"A took {a} {spending.unit} and B {b}, {apart}{share} {more}"
    if one_record:
        return f"{text}."
    if spending.spread is None:
        return f"{text}. How far two runs of one recipe are apart is not known here."
    reach = "more than" if spending.told else "no more than"
    return f"{text}: {reach} two runs of one recipe are apart ({spending.spread:,.{decimals}f})."


def plain(found: Comparison) -> dict[str, Any]:
    """Everything in plain values, as JSON has them."""
    return {
        "a": found.a.name,
        "b": found.b.name,
        "track": found.a.track.name,
        "hardware_class": found.a.hardware_class,
        "score": _plain_difference(found.score),
        "seeds": found.seeds and _plain_difference(found.seeds),
        "spent": vars(found.spending) | {"told": found.spending.told},
        "calibrated": found.calibrated and vars(found.calibrated) | {"told": found.calibrated.told},
        "holds": not found.shortcomings,
        "beats": found.beats,
        "sentences": sentences(found) | {"verdict": verdict(found)},
    }


def _worse(found: Comparison) -> str:
    """Whether A's score is worse than B's, as far as these runs tell."""
    word, sign = ("lower", 1) if found.a.track.goal == "above" else ("higher", -1)
    if found.score.interval is None:
        return f"Whether it is {word} than B's cannot be told."
    low, high = sorted(sign * end for end in found.score.interval)  # now less is worse
    if not (found.score.told and high < 0):
        most = f"it is at most {rounded_up(-low)} {word}" if low < 0 else f"it is not {word}"
        return f"That its score is {word} than B's cannot be told; on other {found.unit} {most}."
    by = f"by {rounded_down(-high)} to {rounded_up(-low)}"
    text = f"Its runs score {word} than B's, {by} on other {found.unit}"
    unsure = found.seeds is not None and not found.seeds.told
    return f"{text}; that its recipe does with other seeds cannot be told." if unsure else f"{text}."


def _plain_difference(difference: Difference) -> dict[str, Any]:
    return difference._asdict() | {
        "interval": difference.interval and list(difference.interval),
        "told": difference.told,
    }


def rounded_up(number: float, sign: str = "") -> str:
    """The next of four decimals; `sign` "+" shows that of a positive number too."""
    return f"{math.ceil(number * 10**DECIMALS - 1e-6) / 10**DECIMALS:{sign}.{DECIMALS}f}"


def rounded_down(number: float, sign: str = "") -> str:
    """The one of four decimals before it."""
    return f"{math.floor(number * 10**DECIMALS + 1e-6) / 10**DECIMALS:{sign}.{DECIMALS}f}"
