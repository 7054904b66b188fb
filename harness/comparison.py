"""What the runs of two sides say of each other, in numbers.

A side is a record with its two runs, or one run. Differences are A - B; A is the newer one where it matters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.differences import Difference, over_runs, paired, unpaired
from harness.errors import Problem
from harness.standing import Standing
from harness.track import Score, Track


@dataclass(frozen=True)
class RunFacts:
    """What the files of one run say."""

    run_id: str
    seed: int
    score: Score
    """From its evidence."""
    time_s: float
    cpu_s: float
    calibration_s: float

    @property
    def cost(self) -> float | None:
        """Of the track's `cost`."""
        return self.score.cost


@dataclass(frozen=True)
class Side:
    """A record with both its runs, or one run."""

    name: str
    track: Track
    """Under the side's ruleset, with the target of its class."""
    hardware_class: str | None
    """None = the machine was of no class."""
    runs: tuple[RunFacts, ...]
    """One or two; the first one ranks."""
    standing: Standing | None = None
    """What the maintainers' ledger says of a record."""

    @property
    def retimed_s(self) -> tuple[float, float] | None:
        """Seconds of both runs that rank in place of the logs', where maintainers took them again."""
        return self.standing.times_s if self.standing else None

    @property
    def invalidated(self) -> bool:
        """Whether maintainers took the record off the board."""
        return self.standing is not None and self.standing.standing == "invalidated"

    @property
    def spent(self) -> tuple[float, ...]:
        """What ranks, for each run: the track's cost, or seconds."""
        if self.track.cost is None and self.retimed_s is not None:
            return self.retimed_s
        return tuple(self.track.spent(run) for run in self.runs)


@dataclass(frozen=True)
class Spending:
    """What the first run of each side took; less is better."""

    unit: str
    a: float
    b: float
    spread: float | None
    """How far the two runs of a side are apart, the larger of both sides; None = no side has two runs."""

    @property
    def told(self) -> bool:
        """Whether the sides are further apart than two runs of one side."""
        return self.spread is not None and abs(self.a - self.b) > self.spread


@dataclass(frozen=True)
class Comparison:
    """A beside B; a Problem where track, class, ruleset or units of the two do not compare."""

    a: Side
    b: Side
    one_record: bool = False
    """Whether these are the two runs of one record, of which neither beats the other."""

    def __post_init__(self) -> None:
        a, b = self.a, self.b
        for what, one, other in (
            ("track", a.track.name, b.track.name),
            ("class", a.hardware_class or "none", b.hardware_class or "none"),
        ):
            if one != other:
                raise Problem(f"A is of {what} {one} and B of {what} {other}: they do not compare")
        if a.track.ruleset != b.track.ruleset and not (a.track.comparable and b.track.comparable):
            made = f"A was made under ruleset {a.track.ruleset} and B under {b.track.ruleset}"
            raise Problem(f"{made}: they do not compare")
        if both := {run.run_id for run in a.runs} & {run.run_id for run in b.runs}:
            remedy = "give a record alone to compare its two runs"
            raise Problem(f"run {min(both)} is on both sides", remedy=remedy)
        kinds = {(run.score.unit, run.score.shared_units or run.score.count) for run in (*a.runs, *b.runs)}
        counts = {run.score.count for run in (*a.runs, *b.runs)}
        if len({unit for unit, _ in kinds}) > 1 or (self.shared and len(counts) > 1):
            found = sorted({f"{run.score.count:,} {run.score.unit}" for run in (*a.runs, *b.runs)})
            raise Problem(f"the runs played {' and '.join(found)}: they do not compare")

    @property
    def unit(self) -> str:
        """What the units are: "levels"."""
        return self.a.runs[0].score.unit

    @property
    def shared(self) -> bool:
        """Whether the units are the same in all runs."""
        return all(run.score.shared_units for run in (*self.a.runs, *self.b.runs))

    @cached_property
    def score(self) -> Difference:
        """The difference of these runs' scores, against what other units would change."""
        a, b = ([run.score.outcomes for run in side.runs] for side in (self.a, self.b))
        if self.shared:
            return paired(a, b, self.unit)
        # Repeats are as independent of each other in two runs as they are in one.
        return unpaired([one for row in a for one in row], [one for row in b for one in row], self.unit)

    @cached_property
    def seeds(self) -> Difference | None:
        """The same against what other seeds would change; None where a side has but one run.

        None, too, where the units are repeats: they have seeds of their own.
        """
        if not self.shared or not len(self.a.runs) == len(self.b.runs) == 2:
            return None
        return over_runs(*([run.score.value for run in side.runs] for side in (self.a, self.b)))

    @cached_property
    def spending(self) -> Spending:
        """What ranks."""
        return _spending(self.a.track.cost or "s", self.a.spent, self.b.spent)

    @cached_property
    def calibrated(self) -> Spending | None:
        """Time in units of the machines' calibrations; None where time does not rank, or was taken again."""
        if self.a.track.cost is not None or self.a.retimed_s or self.b.retimed_s:
            return None
        a, b = ([run.time_s / run.calibration_s for run in side.runs] for side in (self.a, self.b))
        return _spending("calibrations", a, b)

    @property
    def shortcomings(self) -> list[str]:
        """Why A's score does not hold; empty = it does: both its runs clear the target of the class."""
        track, runs = self.a.track, self.a.runs
        reasons = [reason for run in runs for reason in track.shortcomings(run.score)]
        return reasons + (["it has no second run"] if len(runs) < 2 else [])

    @property
    def beats(self) -> bool:
        """Whether A is ahead of B on the board: its score holds, and its first run took less."""
        ahead = self.b.invalidated or self.spending.a < self.spending.b
        return ahead and not (self.shortcomings or self.a.invalidated or self.one_record)


def _spending(unit: str, a: Sequence[float], b: Sequence[float]) -> Spending:
    spreads = [abs(side[0] - side[1]) for side in (a, b) if len(side) == 2]
    return Spending(unit, a[0], b[0], max(spreads, default=None))
