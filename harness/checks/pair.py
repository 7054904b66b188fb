"""Rules about the two runs together: the second follows from the first, and neither is a copy of anything."""

import contextlib
import re

from harness.checks.base import SIZE_LIMIT, Pending, RecordFolder, Rule, RunFiles, expect, rule
from harness.checks.score import header_checkpoint
from harness.eligibility import second_seed as seed_of_second
from harness.errors import Problem
from harness.files import sha256_bytes
from harness.packed import plain_lines, read_unpacked
from harness.record import LOG, MANIFEST, RECORD, worse
from harness.track import load_track

COPY = 8
"""times the bytes of what it repeats, at most, has a copy: blanks and escapes may be added."""
_SEED = re.compile(rb'"seed":[0-9]+,?')
_NEEDS = ("manifest", "verification/manifest")


@rule("manifest")
def first_seed(home: RecordFolder) -> str:
    """The first run has the seed of its recipe and verifies no other run."""
    manifest, by = home.first.manifest, "the rule for first runs"
    expect("seed", manifest.seed, manifest.recipe.get("seed"), by="the recipe", file=MANIFEST)
    expect("seed_source", manifest.seed_source, "recipe", by=by, file=MANIFEST)
    expect("verifies", manifest.verifies, None, by=by, file=MANIFEST)
    return f"seed {manifest.seed}"


@rule("schema")
def verification(home: RecordFolder) -> str:
    """A second run, with a seed that nobody could choose, has been added."""
    if home.record.verification is None:
        command = load_track(home.record.track).command(home.record.hardware_class)
        raise Pending(f"pending - run {command} --verify {_shown(home)}")
    return f"seed {home.record.verification.seed}"


@rule("manifest", "verification/manifest", "track", "evidence")
def second_seed(home: RecordFolder) -> str:
    """The second seed is derived from the first run's evidence and recipe, and differs from the first."""
    first, second = home.first.manifest, home.second.manifest
    file = home.second.name(MANIFEST)
    if second.seed == first.seed:
        raise Problem(f"seed is {second.seed}, expected another than the first run's", file=file)
    seed = seed_of_second(home.file(home.first.evidence), first, home.track)
    expect("seed", second.seed, seed, by=f"{home.first.evidence} and the recipe's hash", file=file)
    source = f"derived from {first.run_id}"
    expect("seed_source", second.seed_source, source, by=MANIFEST, file=file)
    return f"seed {second.seed}"


@rule(*_NEEDS)
def same_recipe(home: RecordFolder) -> str:
    """Both runs ran the same recipe from the same source and open files on the same data."""
    first, second = home.first.manifest, home.second.manifest
    for name in ("recipe_name", "recipe_sha256", "source_sha256", "open_files", "recipe", "data"):
        found, expected = getattr(second, name), getattr(first, name)
        expect(name, found, expected, by=MANIFEST, file=home.second.name(MANIFEST))
    return f"{first.recipe_name!r}, {first.recipe_sha256}"


@rule(*_NEEDS)
def verifies(home: RecordFolder) -> str:
    """The second run was made to verify the first."""
    first = home.first.manifest.run_id
    if home.second.manifest.run_id == first:
        raise Problem(f"run_id is the first run's, {first}", file=home.second.name(MANIFEST))
    expect("verifies", home.second.manifest.verifies, first, by=MANIFEST, file=home.second.name(MANIFEST))
    return f"run {first}"


@rule("log_order", "verification/log_order")
def second_after_first(home: RecordFolder) -> str:
    """The second run started after the evidence of the first was written."""
    written, started = home.first.log.get("eval_stop"), home.second.log.get("run_start")
    if started.utc <= written.utc:
        raise Problem(
            f"starts at {started.utc}, expected after {written.utc} by {LOG}:{written.line}",
            file=home.second.name(LOG),
            line=started.line,
        )
    return f"{started.utc}"


@rule("track", "evidence")
def evidence_distinct(home: RecordFolder) -> str:
    """Play, checkpoint and id of each run are its own: no other run of a record has them, under any seed."""
    runs = [home.first]
    if home.record.verification is not None:
        with contextlib.suppress(Problem):  # what breaks the rules is refused elsewhere, and may be huge
            home.second.score  # noqa: B018
            runs.append(home.second)
    seen: dict[str, str] = {}
    most = SIZE_LIMIT  # bytes of what nothing else has looked at
    for run in runs:
        # Searches that all found the optimum are equal, and honestly so.
        alike = len(set(run.score.outcomes)) == 1
        for name in (run.evidence, run.checkpoint):
            content = read_unpacked(home.file(name), *([SIZE_LIMIT] if name == run.checkpoint else []))
            most = max(most, COPY * len(content))
            digests = _digests(content, seedless=not alike)
            for digest in digests & seen.keys():
                raise Problem(f"holds the same as {seen[digest]}, expected a run of its own", file=name)
            seen |= dict.fromkeys(digests, name)
    others = list(home.siblings())
    ids = {_run_id(run): run.name(MANIFEST) for run in (home.first, home.second)}
    for other in others:
        folder = RecordFolder(other, root=home.root)
        for name in [name for run in (home.first, home.second) for name in (run.evidence, run.checkpoint)]:
            theirs: set[str] = set()
            with contextlib.suppress(Problem):  # what it lacks is its own fault
                theirs = _digests(read_unpacked(folder.file(name), most))
            for digest in theirs & seen.keys():
                reason = f"holds the same as {other.name}/{name}, expected a run of its own"
                raise Problem(reason, file=seen[digest])
        for run in (folder.first, folder.second):
            if (run_id := _run_id(run)) is not None and run_id in ids:
                reason = f"run_id is that of {other.name}/{run.name(MANIFEST)}, expected one of its own"
                raise Problem(reason, file=ids[run_id])
    return f"in none of {len(others)} other records"


@rule("track")
def published(home: RecordFolder) -> str:
    """The published score is that of the worse run."""
    second = home.record.verification
    expected = worse(home.track, home.record.score, second.score if second else None)
    found = home.record.published
    if found != expected:
        reason = f"published is {_numbers(found)}, expected the worse run's {_numbers(expected)}"
        raise Problem(reason, file=RECORD)
    return _numbers(found)


def _run_id(run: RunFiles) -> str | None:
    try:
        return run.manifest.run_id
    except Problem:  # its own fault
        return None


def _digests(content: bytes, *, seedless: bool = True) -> set[str]:
    """Hashes of what a file says, without the first line of evidence; `seedless`: also without its seeds."""
    content = content.partition(b"\n")[2] if header_checkpoint(content) else content
    said = plain_lines(content)
    return {sha256_bytes(said), *([sha256_bytes(_SEED.sub(b"", said))] if seedless else [])}


def _numbers(score: object) -> str:
    return " ".join(f"{name} {value}" for name, value in vars(score).items())


def _shown(home: RecordFolder) -> str:
    place = home.place
    return str(place.relative_to(home.root) if place.is_relative_to(home.root) else place)


BEFORE: tuple[Rule[RecordFolder], ...] = (first_seed, verification)
RULES: tuple[Rule[RecordFolder], ...] = (
    second_seed,
    same_recipe,
    verifies,
    second_after_first,
    evidence_distinct,
    published,
)
