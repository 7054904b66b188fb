"""Rules about a run's manifest: what ran, where, on which data, and whether such a run can be a record."""

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from harness.accepted import ABSENT, Version, accepted_versions
from harness.checks.base import RecordFolder, Rule, RunFiles, expect, rule
from harness.eligibility import eligibility
from harness.errors import Problem
from harness.machine import Machine, find_class, misfits
from harness.manifest import overriding, relevant
from harness.record import LOG, MANIFEST, RECORD, milliseconds
from harness.track import fixed_file_hashes, load_track

START_TOLERANCE_S = 600.0
PYTHON_OPTIONS = ("-u", "-B", "-s", "-E")
"""Options of Python that change nothing of a run."""
TORCHRUN_OPTION = re.compile(r"--standalone|--nproc[-_]per[-_]node=\d+")


@rule()
def manifest(run: RunFiles) -> str:
    """The manifest has exactly the fields of its schema."""
    return f"run {run.manifest.run_id}"


@rule("schema", "manifest")
def manifest_agrees(run: RunFiles) -> str:
    """record.json says of the run what the manifest says."""
    record, manifest = run.home.record, run.manifest
    by = run.name(MANIFEST)
    for name in ("ruleset", "track", "hardware_class"):
        expect(name, getattr(record, name), getattr(manifest, name), by=by, file=RECORD)
    expect(run.field("seed"), run.entry.seed, manifest.seed, by=by, file=RECORD)
    calibration = milliseconds(manifest.calibration_s)
    expect(run.field("calibration_s"), run.entry.calibration_s, calibration, by=by, file=RECORD)
    if not run.prefix:
        expect("hardware", record.hardware, describe(manifest.machine), by=by, file=RECORD)
    return f"{record.hardware_class}, seed {run.entry.seed}"


@rule("manifest", "log_order")
def start(run: RunFiles) -> str:
    """The manifest and the log begin at the same time."""
    began, started = run.log.get("run_start").utc, run.manifest.started_utc
    if abs((began - started).total_seconds()) > START_TOLERANCE_S:
        by = f"{run.name(LOG)}:1"
        reason = f"started_utc is {started}, expected within {START_TOLERANCE_S:g} s of {began} by {by}"
        raise Problem(reason, file=run.name(MANIFEST))
    return str(started)


@rule("manifest", "log_order")
def eligible(run: RunFiles) -> str:
    """No flag, variable, customization, stray or changed file, resumption or smoke setting was at work."""
    environment, file = run.manifest.environment, run.name(MANIFEST)
    expect("environment", environment, relevant(environment), by="the names that matter", file=file)
    found, derived = run.manifest.overriding_environment, overriding(environment)
    expect("overriding_environment", found, derived, by="environment", file=file)
    if reasons := eligibility(run.manifest, run.log):
        raise Problem("; ".join(reasons), file=run.name(MANIFEST))
    return "the recipe as it stands in the source, and nothing else"


@rule("manifest", "track")
def argv(run: RunFiles) -> str:
    """The command line is the one that runs the recipe: without flags, but for --verify in a second run."""
    line = " ".join(run.manifest.argv)
    words = _without_launcher(run.manifest.argv)
    expected = run.home.track.command(run.manifest.hardware_class).split()[1:]
    flags = words[len(expected) :]
    verify = len(flags) == (1 if flags[:1] and flags[0].startswith("--verify=") else 2)
    verify = verify and flags[0].partition("=")[0] == "--verify"
    if words[: len(expected)] != expected or not (verify if run.prefix else not flags):
        wanted = " ".join(["python", *expected, *(["--verify", "<record>"] if run.prefix else [])])
        raise Problem(f"argv is {line!r}, expected {wanted!r}", file=run.name(MANIFEST))
    return line


def _without_launcher(argv: Sequence[str]) -> list[str]:
    """The words of a command line after Python, and after torchrun if that starts processes here alone."""
    words = list(itertools.dropwhile(PYTHON_OPTIONS.__contains__, argv[1:]))
    if words and Path(words[0]).name == "torchrun":
        del words[0]
    elif words[:2] == ["-m", "torch.distributed.run"]:
        del words[:2]
    else:
        return words
    while words and TORCHRUN_OPTION.fullmatch(words[0]):
        del words[0]
    return words


@rule("manifest", "track")
def class_(run: RunFiles) -> str:
    """The machine in the manifest is of the class that the manifest names."""
    machine, name = run.manifest.machine, run.manifest.hardware_class
    found = find_class(run.home.track, machine, chosen=name)
    if found is None or found.name != name:
        named = next((hardware for hardware in run.home.track.classes if hardware.name == name), None)
        why = "; ".join(misfits(named, machine)) if named else f"{run.home.track.name} has no class {name!r}"
        fits = f"class {found.name}" if found else "no class"
        raise Problem(f"the machine is of {fits}, the manifest says {name!r}: {why}", file=run.name(MANIFEST))
    return f"{found.title}: {describe(machine)}"


@rule("manifest", "track")
def fixed_files(run: RunFiles) -> str:
    """The files that its ruleset fixed were, when it ran, those of this checkout or accepted ones."""
    found, track, root = run.manifest.fixed_files, run.home.track, run.home.root
    expected = fixed_file_hashes(track, root)
    here = fixed_file_hashes(load_track(track.name), root) | expected
    accepted = accepted_versions(root)
    faults = []
    for name in sorted(found.keys() | expected.keys()):
        have = found.get(name, ABSENT)
        if have != here.get(name) and Version(have, track.ruleset, name) not in accepted:
            have = "not listed" if name not in found else have
            faults.append(f"{name} is {have}, expected {here.get(name, 'not a fixed file here')}")
    if faults:
        raise Problem("; ".join(faults), file=run.name(MANIFEST))
    return f"{len(expected)} files are those of this checkout or accepted"


@rule("manifest", "track")
def data(run: RunFiles) -> str:
    """Training read files that the track allows, with their pinned hashes, and says so; or there are none."""
    found, allowed, file = run.manifest.data, run.home.track.data_files(), run.name(MANIFEST)
    if allowed and not found:
        raise Problem("data names no file, expected every file that training read", file=file)
    for name, digest in sorted(found.items()):
        if name not in allowed:
            raise Problem(f"data names {name!r}, which training on this track may not read", file=file)
        expect(f"the hash of data file {name}", digest, allowed[name], by=run.home.track.name, file=file)
    return f"{len(found)} of {len(allowed)} allowed files"


@rule("schema", "log_order")
def date(home: RecordFolder) -> str:
    """The record's date is the day, in UTC, on which the run started."""
    day = home.first.log.get("run_start").utc.date()
    expect("date", str(home.record.date), str(day), by=f"{LOG}:1", file=RECORD)
    return str(day)


@rule("date", "track")
def ruleset(home: RecordFolder) -> str:
    """The record's ruleset was still open on the day on which its first run started."""
    track, day = home.track, home.record.date
    if track.closes is not None and day > track.closes:
        reason = f"ruleset {track.ruleset} of {track.name} closed on {track.closes}, and this is of {day}"
        raise Problem(reason, file=RECORD, remedy="run it again under the current ruleset")
    return f"ruleset {track.ruleset}, " + ("open" if track.closes is None else f"closed on {track.closes}")


def describe(machine: Machine) -> str:
    """A machine in a few words: its GPUs if it has any, else its processor, cores and memory."""
    cores = f"{machine.available_cores or machine.logical_cores} of {machine.logical_cores} cores"
    gpus = [f"{machine.gpus.count(name)} x {name}" for name in sorted(set(machine.gpus))]
    return ", ".join([*gpus, f"{cores} of {machine.cpu}", f"{machine.memory_gib:g} GiB"])


MANIFEST_RULES: tuple[Rule[RunFiles], ...] = (manifest,)
RULES: tuple[Rule[RunFiles], ...] = (manifest_agrees, start, eligible, argv, class_, fixed_files, data)
DATE_RULES: tuple[Rule[RecordFolder], ...] = (date, ruleset)
