"""Rules about the score: what was saved is what played, and its play is worth what the record claims."""

import json
import math

from harness.checks.base import Rule, RunFiles, expect, rule
from harness.errors import Problem
from harness.files import canonical_json
from harness.packed import read_unpacked
from harness.record import LOG, MANIFEST, RECORD

# Replays on other machines may differ in the last bits of a bootstrap's mean.
REPLAY_TOLERANCE = 1e-9
LONGEST_HEADER = 2**16  # bytes


@rule("log_order", "track")
def checkpoint(run: RunFiles) -> str:
    """The checkpoint in the folder is the one that training saved and that played."""
    found = run.home.sha256(run.checkpoint)
    header = header_checkpoint(read_unpacked(run.home.file(run.evidence), most=LONGEST_HEADER))
    saved, loaded = run.log.get("checkpoint"), run.log.get("eval_start")
    claims = [(f"{run.name(LOG)}:{saved.line}", saved.fields["sha256"])]
    claims += [(f"{run.name(LOG)}:{loaded.line}", loaded.fields["checkpoint_sha256"])]
    claims += [(f"{run.evidence}:1", header)] if header is not None else []
    for place, claim in claims:
        expect("sha256", found, claim, by=place, file=run.checkpoint)
    return found


@rule("manifest", "track")
def checkpoint_form(run: RunFiles) -> str:
    """The checkpoint is what training of this recipe and seed can have saved, as far as its form tells."""
    file = run.home.file(run.checkpoint)
    run.home.track.check_checkpoint(file, run.manifest.recipe, run.manifest.seed)
    return f"{file.stat().st_size:,} bytes"


@rule("log_order", "track")
def evidence_logged(run: RunFiles) -> str:
    """The evidence in the folder is the one that the evaluation wrote."""
    found, stop = run.home.sha256(run.evidence), run.log.get("eval_stop")
    claim, by = stop.fields["evidence_sha256"], f"{run.name(LOG)}:{stop.line}"
    expect("sha256", found, claim, by=by, file=run.evidence)
    return found


@rule("track")
def evidence(run: RunFiles) -> str:
    """Every line of the evidence keeps the rules when it is played again."""
    score = run.score
    return f"{score.value:.4f} [{score.low:.4f}, {score.high:.4f}] from {score.count} {score.unit}"


@rule("evidence", "schema", "manifest")
def evidence_source(run: RunFiles) -> str:
    """What the evidence says of where it comes from is true: class, seed, the recipe's fields, open files."""
    score, manifest = run.score, run.name(MANIFEST)
    if score.hardware_class is not None:
        played = run.home.record.hardware_class
        expect("hardware_class", played, score.hardware_class, by=run.evidence, file=RECORD)
    if score.seed is not None:
        expect("seed", run.manifest.seed, score.seed, by=run.evidence, file=manifest)
    for name, value in score.recipe.items():
        found = run.manifest.recipe.get(name)
        if canonical_json(found) != canonical_json(value):  # 1, 1.0 and true are equal, and make other seeds
            reason = f"the recipe's {name} is {found!r}, expected {value!r} by {run.evidence}"
            raise Problem(reason, file=manifest)
    for name, digest in score.files.items():
        expect(f"open file {name}", run.manifest.open_files.get(name), digest, by=run.evidence, file=manifest)
    return "as the run's files say"


@rule("evidence", "schema")
def score(run: RunFiles) -> str:
    """The record's score and interval are those of the evidence."""
    claimed, played, by = run.entry.score, run.score, f"playing {run.evidence} again"
    expect(run.field("score.count"), claimed.count, played.count, by=by, file=RECORD)
    for name in ("value", "low", "high"):
        found, expected = getattr(claimed, name), getattr(played, name)
        if not math.isclose(found, expected, rel_tol=0, abs_tol=REPLAY_TOLERANCE):
            expect(run.field(f"score.{name}"), found, expected, by=by, file=RECORD)
    return f"{claimed.value} [{claimed.low}, {claimed.high}]"


@rule("evidence", "schema", "log_order")
def cost(run: RunFiles) -> str:
    """The record's cost is that of the evidence, known where the track has one, and no less than logged."""
    name, claimed, played = run.home.track.cost, run.entry.cost, run.score.cost
    expect(run.field("cost"), claimed, played, by=run.evidence, file=RECORD)
    if name is None:
        return "time ranks"
    if played is None:
        raise Problem(f"the {name} are not known, expected to be told in full", file=run.evidence)
    trained = played if run.score.trained is None else run.score.trained
    for step in run.log.steps:
        if (logged := step.fields.get(name, 0)) > trained:
            reason = f"training had taken {logged:,} {name}, expected at most the evidence's {trained:,.0f}"
            raise Problem(reason, file=run.name(LOG), line=step.line)
    return f"{played:,.0f} {name}"


@rule("log_order", "schema")
def score_in_log(run: RunFiles) -> str:
    """The record's score is, to the last digit, the one that the evaluation logged."""
    stop = run.log.get("eval_stop")
    for name in ("value", "low", "high"):
        found, by = getattr(run.entry.score, name), f"{run.name(LOG)}:{stop.line}"
        expect(run.field(f"score.{name}"), found, stop.fields[name], by=by, file=RECORD)
    return f"{run.name(LOG)}:{stop.line}"


@rule("evidence", "schema")
def target(run: RunFiles) -> str:
    """The target is the track's, and the whole interval lies strictly on the right side of it."""
    track = run.home.track
    expect("target", run.home.record.target, track.target, by=track.name, file=RECORD)
    for score, source in ((run.score, run.evidence), (run.entry.score, RECORD)):
        if not track.clears(score):
            raise Problem(track.verdict(score), file=source)
    return track.verdict(run.score)


def header_checkpoint(evidence: bytes) -> object:
    """The checkpoint that evidence names in its first line, or None where it has no such line."""
    try:
        header = json.loads(evidence.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return None
    return header.get("checkpoint_sha256") if isinstance(header, dict) else None


RULES: tuple[Rule[RunFiles], ...] = (
    checkpoint,
    checkpoint_form,
    evidence_logged,
    evidence,
    evidence_source,
    score,
    cost,
    score_in_log,
    target,
)
