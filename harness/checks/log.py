"""Rules about the log of a run: it is whole, its clocks agree, and the record's times are its times."""

from itertools import pairwise

from harness.checks.base import Rule, RunFiles, expect, rule
from harness.errors import Problem
from harness.log import Event
from harness.record import LOG, MANIFEST, RECORD, milliseconds, minutes

CLOCK_TOLERANCE_S, TRAINING_TOLERANCE_S = 2.0, 0.5
PAUSE_S, PAUSE_SHARE = 30.0, 0.2


@rule()
def log_order(run: RunFiles) -> str:
    """The log holds every event once and in order, with steps 1, 2, 3 and so on, to a complete end."""
    log = run.log
    if log.status != "complete":
        reason = f"ends {log.status} with {log.events[-1].name}, expected run_stop complete"
        raise Problem(reason, file=run.name(LOG), line=log.events[-1].line)
    return f"{len(log.events)} events, {len(log.steps)} steps"


@rule("log_order", "manifest")
def log_identity(run: RunFiles) -> str:
    """The log is that of the run in the manifest: the same run, seed and recipe."""
    log, manifest = run.log, run.manifest
    for name in ("run_id", "seed", "recipe_sha256"):
        found, expected = getattr(log, name), getattr(manifest, name)
        expect(name, found, expected, by=run.name(MANIFEST), file=run.name(LOG), line=1)
    return f"run {log.run_id}"


@rule("log_order")
def clocks(run: RunFiles) -> str:
    """Wall clock and monotonic clock run together, so no time was cut out or put in, and no clock was set."""
    file, origin, largest = run.name(LOG), run.log.events[0], 0.0
    for before, event in pairwise(run.log.events):
        if event.utc < before.utc:
            raise Problem(f"utc is {event.utc}, expected after {before.utc}", file=file, line=event.line)
        if event.name == "eval_start":
            origin = event  # the evaluation may be another process, with a monotonic clock of its own
        drift = (event.utc - origin.utc).total_seconds() - (event.monotonic - origin.monotonic)
        if abs(drift) > CLOCK_TOLERANCE_S:
            raise Problem(
                f"at {event.name} utc is {drift:+.3f} s off the monotonic clock since {origin.name}, "
                f"expected at most {CLOCK_TOLERANCE_S:g} s",
                file=file,
                line=event.line,
            )
        largest = max(largest, abs(drift))
    start, stop = run.log.get("train_start"), run.log.get("train_stop")
    drift = (stop.utc - start.utc).total_seconds() - run.log.time_s
    if abs(drift) > TRAINING_TOLERANCE_S:
        raise Problem(
            f"from train_start to train_stop utc is {drift:+.3f} s off the monotonic clock, expected at most "
            f"{TRAINING_TOLERANCE_S:g} s",
            file=file,
            line=stop.line,
        )
    return f"within {largest:.3f} s of each other"


@rule("log_order", "track", "class")
def warmup_bound(run: RunFiles) -> str:
    """All that comes before the clock starts, warm-up included, is within the limit of the class."""
    start, stop = run.log.get("run_start"), run.log.get("train_start")
    limit = next(c.warmup_limit_s for c in run.home.track.classes if c.name == run.manifest.hardware_class)
    seconds = stop.monotonic - start.monotonic
    if seconds > limit:
        reason = f"train_start comes {seconds:.3f} s after run_start, expected at most {limit:g} s"
        raise Problem(reason, file=run.name(LOG), line=stop.line)
    return f"{seconds:.3f} s of {limit:g} s"


@rule("log_order", "track")
def no_pause(run: RunFiles) -> str:
    """Where time ranks, training goes on without a gap between steps over 30 s or a fifth of the time."""
    if run.home.track.cost is not None:
        return f"not time but {run.home.track.cost} rank"
    limit = max(PAUSE_S, PAUSE_SHARE * run.log.time_s)
    marks: list[Event] = [run.log.get("train_start"), *run.log.steps, run.log.get("train_stop")]
    longest = 0.0
    for before, event in pairwise(marks):
        gap = event.monotonic - before.monotonic
        if gap > limit:
            reason = f"{_mark(event)} comes {gap:.3f} s after {_mark(before)}, expected at most {limit:.3f} s"
            raise Problem(reason, file=run.name(LOG), line=event.line)
        longest = max(longest, gap)
    return f"the longest gap is {longest:.3f} s of {limit:.3f} s"


@rule("schema", "log_order")
def time(run: RunFiles) -> str:
    """The record's time is the log's, from train_start to train_stop, to the millisecond."""
    seconds = run.entry.time_s
    expect(run.field("time_s"), seconds, milliseconds(run.log.time_s), by=run.name(LOG), file=RECORD)
    return f"{seconds} s ({minutes(seconds)})"


@rule("schema", "log_order", "manifest")
def cpu_time(run: RunFiles) -> str:
    """The record's CPU time is the log's, to the millisecond, and no more than the cores can give."""
    seconds, machine = run.entry.cpu_s, run.manifest.machine
    expect(run.field("cpu_s"), seconds, milliseconds(run.log.cpu_s), by=run.name(LOG), file=RECORD)
    most = (machine.available_cores or machine.logical_cores) * (run.log.time_s + CLOCK_TOLERANCE_S)
    if run.log.cpu_s > most:
        reason = f"{run.log.cpu_s:.3f} CPU seconds were used, expected at most {most:.3f} on these cores"
        raise Problem(reason, file=run.name(LOG), line=run.log.get("train_stop").line)
    return f"{seconds} s"


def _mark(event: Event) -> str:
    return f"step {event.fields['step']}" if event.name == "step" else event.name


ORDER_RULES: tuple[Rule[RunFiles], ...] = (log_order,)
RULES: tuple[Rule[RunFiles], ...] = (log_identity, clocks, warmup_bound, no_pause, time, cpu_time)
