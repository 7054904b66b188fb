"""What of a record is too good or too regular to pass without a look; a remark never fails a record.

Each rule is a function that yields what it noticed, with figures. The thresholds are far outside what the
standing records show; docs/comparing.md gives their reasons.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.checks import RecordFolder, printable
from harness.checks.base import RunFiles
from harness.errors import Problem, Unavailable
from harness.log import RunLog
from harness.record import LOG, MANIFEST, milliseconds
from harness.standing import is_invalidated

FEWER_STEPS = 1 / 3
"""of the fewest steps of a verified run."""
ALIKE = 0.05
"""of the units that would differ between two runs that have nothing in common but their scores."""
SEEN_UNITS = 20
"""Fewer units that would differ say nothing."""
CEILING = 0.995
"""of the units have the best outcome."""
LONG_S = 10.0
"""Shorter times are made of few ticks of the clocks."""
SEEN_STEPS = 20
"""Shorter logs say nothing."""
REPEATED = 0.9
"""of the steps."""
REGULAR = 2e-5
"""of a step's seconds, between the shortest and the longest but for a tenth at each end."""
IDLE, BUSY = 0.25, 0.995
"""of the cores' seconds, on a class without GPUs."""
IDLE_BESIDE_GPU = 0.1
"""of one core's seconds."""
CALIBRATION_FACTOR = 2.0


class Remark(NamedTuple):
    """Something to look at before a record stands."""

    name: str
    text: str
    """What was noticed, with figures."""


Rule = Callable[[RecordFolder, Sequence[RecordFolder]], Iterator[str]]


def remarks(home: RecordFolder, others: Sequence[RecordFolder]) -> list[Remark]:
    """What to look at in a record that fails no check, beside the other records of its track. Never raises.

    Other records that cannot be read are left out; a rule that cannot read this one says so. A rule that
    takes what this machine lacks is left out too.
    """
    found = []
    for rule in RULES:
        try:
            found += [Remark(rule.__name__, printable(text)) for text in rule(home, others)]
        except (Unavailable, ImportError):
            continue  # the checks say what this machine lacks
        except Exception as error:  # whatever a record holds, the other rules are still tried
            reason = str(error) if isinstance(error, Problem) else f"{type(error).__name__}: {error}"
            found.append(Remark(rule.__name__, printable(f"could not be looked at: {reason}")))
    return found


def few_steps(home: RecordFolder, others: Sequence[RecordFolder]) -> Iterator[str]:
    """Far fewer steps than any verified run of the class took."""
    known = _references(home, others)
    for run in _runs(home) if known else ():
        fewest = min(known, key=lambda one: len(one.log.steps))
        steps, least = len(run.log.steps), len(fewest.log.steps)
        if steps < FEWER_STEPS * least:
            shown = f"{steps:,} steps, and no verified run of the class fewer than {least:,}"
            yield f"{run.name(LOG)} has {shown} ({_place(fewest, home, LOG)})"


def equal_scores(home: RecordFolder, others: Sequence[RecordFolder]) -> Iterator[str]:
    """Two seeds that come out alike, in their scores or unit by unit."""
    if home.record.verification is None:
        return
    first, second = home.first.score, home.second.score
    a, b = np.array(first.outcomes), np.array(second.outcomes)
    if a.shape != b.shape:
        return
    differing = int(np.sum(a != b))
    if not first.shared_units:
        if sorted(a) == sorted(b):
            yield f"the {len(a)} {first.unit} of both runs have the same outcomes"
    elif differing < ALIKE * (expected := _expected_differing(a, b)) and expected >= SEEN_UNITS:
        shown = f"{differing} of {len(a):,} {first.unit} come out otherwise in the second run"
        yield f"{shown}, {expected:.0f} would in runs with nothing in common but their scores"
    elif differing and first.value == second.value:
        step = float(np.min(np.abs(a - b)[a != b]))
        chance = min(1.0, step / np.sqrt(2 * np.pi * np.sum((a - b) ** 2)))
        yield f"both runs score {first.value:.6g}; by chance about one pair in {1 / chance:.0f} does"


def ceiling(home: RecordFolder, others: Sequence[RecordFolder]) -> Iterator[str]:
    """A score that leaves nothing to win, or repeats that all come out the same."""
    for run in _runs(home):
        score = run.score
        best = max(score.outcomes) if home.track.goal == "above" else min(score.outcomes)
        at_best = sum(outcome == best for outcome in score.outcomes)
        if at_best >= CEILING * score.count:
            yield f"{at_best:,} of {score.count:,} {score.unit} in {run.evidence} have the outcome {best:.6g}"


def equal_times(home: RecordFolder, others: Sequence[RecordFolder]) -> Iterator[str]:
    """Two runs that took the same to the millisecond, or whose machines were as fast to the last digit."""
    for run, other in _pairs(home, others):
        time_s = milliseconds(run.log.time_s)
        if time_s >= LONG_S and time_s == milliseconds(other.log.time_s):
            yield f"{run.name(LOG)} and {_place(other, home, LOG)} both took {time_s:.3f} s"
        calibration_s = run.manifest.calibration_s
        if calibration_s == other.manifest.calibration_s:
            theirs = _place(other, home, MANIFEST)
            yield f"{run.name(MANIFEST)} and {theirs} both have calibration_s {calibration_s!r}"


def equal_logs(home: RecordFolder, others: Sequence[RecordFolder]) -> Iterator[str]:
    """Numbers that go up and down, as no schedule does, and are the same at the steps of two runs."""
    for run, other in _pairs(home, others):
        own, theirs = _series(run.log), _series(other.log)
        shown = []
        for name in sorted(own.keys() & theirs.keys()):
            count = min(len(own[name]), len(theirs[name]))
            a, b = own[name][:count], theirs[name][:count]
            equal = int(np.sum(a == b))
            if count >= SEEN_STEPS and equal >= REPEATED * count and _wavers(a):
                shown.append(f"{name} at {equal:,} of {count:,} steps")
        if shown:
            yield f"{run.name(LOG)} repeats {_place(other, home, LOG)}: {', '.join(shown)}"


def regular_steps(home: RecordFolder, others: Sequence[RecordFolder]) -> Iterator[str]:
    """Steps that all took the same time."""
    for run in _runs(home):
        gaps = _gaps(run.log)
        if len(gaps) < SEEN_STEPS:
            continue
        low, middle, high = (float(end) for end in np.quantile(gaps, (0.1, 0.5, 0.9)))
        if high - low < REGULAR * middle:
            shown = f"{middle:.6f} s apart, give or take {(high - low) / 2 * 1e6:.1f} µs"
            yield f"eight in ten of the {len(gaps):,} steps in {run.name(LOG)} are {shown}"


def round_times(home: RecordFolder, others: Sequence[RecordFolder]) -> Iterator[str]:
    """Times with fewer digits than clocks give."""
    for run in _runs(home):
        time_s, calibration_s = milliseconds(run.log.time_s), run.manifest.calibration_s
        if time_s >= LONG_S and time_s == int(time_s):
            yield f"{run.name(LOG)} took {time_s:.3f} s; by chance one run in 1,000 takes whole seconds"
        if calibration_s == round(calibration_s, 4):
            yield f"calibration_s in {run.name(MANIFEST)} is {calibration_s!r}, with at most four decimals"
        readings = [event.monotonic for event in run.log.events]
        if all(reading == milliseconds(reading) for reading in readings):
            yield f"all {len(readings):,} readings of the clock in {run.name(LOG)} are whole milliseconds"


def cpu_share(home: RecordFolder, others: Sequence[RecordFolder]) -> Iterator[str]:
    """CPU seconds that do not fit wall seconds and cores: work that was done elsewhere, or made up."""
    gpus = next(c.gpus for c in home.track.classes if c.name == home.record.hardware_class)
    for run in _runs(home) if home.track.cost is None else ():
        machine, time_s, cpu_s = run.manifest.machine, run.log.time_s, run.log.cpu_s
        cores = machine.available_cores or machine.logical_cores
        least, most = (IDLE * cores, BUSY * cores) if gpus == 0 else (IDLE_BESIDE_GPU, cores)
        if time_s >= LONG_S and not least * time_s <= cpu_s <= most * time_s:
            shown = f"{cpu_s:.2f} CPU seconds in {time_s:.3f} s on {cores} cores"
            yield f"{run.name(LOG)} tells of {shown}, {cpu_s / (cores * time_s):.1%} of what they can give"


def calibration(home: RecordFolder, others: Sequence[RecordFolder]) -> Iterator[str]:
    """A machine that was far slower or faster than others of its name, of the same class."""
    own = _runs(home)
    alike = [run for run in _runs_of(others) if run.home.record.hardware_class == home.record.hardware_class]
    for run in own:
        model, seconds = run.manifest.machine.cpu, run.manifest.calibration_s
        known = [other.manifest for other in (*own, *alike) if other is not run]
        known_s = [manifest.calibration_s for manifest in known if manifest.machine.cpu == model]
        usual = float(np.median(known_s)) if known_s else seconds
        if not usual / CALIBRATION_FACTOR <= seconds <= usual * CALIBRATION_FACTOR:
            shown = (
                f"{seconds:.3f} s, and {usual:.3f} s in the middle of {len(known_s)} other runs on {model}"
            )
            yield f"{run.name(MANIFEST)}: the calibration took {shown}"


def _runs(home: RecordFolder) -> list[RunFiles]:
    """The runs of a record: two, or the first alone while there is no second."""
    return [home.first, home.second] if home.record.verification else [home.first]


def _runs_of(others: Sequence[RecordFolder]) -> list[RunFiles]:
    """All runs of other records that can be read."""
    found = []
    for other in others:
        with suppress(Problem):
            runs = _runs(other)
            if all(run.log.status == "complete" and run.manifest for run in runs):
                found += runs
    return found


def _pairs(home: RecordFolder, others: Sequence[RecordFolder]) -> Iterator[tuple[RunFiles, RunFiles]]:
    """The record's two runs, and each of them beside each run of another record."""
    own = _runs(home)
    yield from [(own[1], own[0])] if len(own) == 2 else []
    yield from product(own, _runs_of(others))


def _references(home: RecordFolder, others: Sequence[RecordFolder]) -> list[RunFiles]:
    """The runs of verified records of the same class that stand under rules that compare."""
    return [
        run
        for run in _runs_of(others)
        if run.home.record.verification
        and run.home.record.hardware_class == home.record.hardware_class
        and run.home.track.under(run.home.record.ruleset).comparable
        and not is_invalidated(run.home.path)
    ]


def _place(run: RunFiles, home: RecordFolder, file: str) -> str:
    """A file of a run as seen from a record."""
    return run.name(file) if run.home is home else f"{run.home.path.name}/{run.name(file)}"


def _series(log: RunLog) -> dict[str, NDArray[np.float64]]:
    """What a log tells of its steps, name -> a number a step, with the seconds between them."""
    names = set.intersection(*(set(event.fields) for event in log.steps or log.events)) - {"step"}
    series = {name: np.array([event.fields[name] for event in log.steps], np.float64) for name in names}
    return series | {"seconds between steps": np.round(_gaps(log), 6)}


def _gaps(log: RunLog) -> NDArray[np.float64]:
    """Seconds between steps."""
    return np.diff([event.monotonic for event in log.steps])


def _wavers(series: NDArray[np.float64]) -> bool:
    """Whether a series turns at a quarter of its places or more, as what is measured does."""
    moves = np.diff(series)
    return int(np.sum(moves[1:] * moves[:-1] < 0)) >= len(series) / 4


def _expected_differing(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """How many outcomes would differ if the units were shuffled."""
    equal = sum(float(np.mean(a == value) * np.mean(b == value)) for value in np.unique(a))
    return len(a) * (1 - equal)


RULES: tuple[Rule, ...] = (
    few_steps,
    equal_scores,
    ceiling,
    equal_times,
    equal_logs,
    regular_steps,
    round_times,
    cpu_share,
    calibration,
)
