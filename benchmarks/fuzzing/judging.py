"""A mutated record written down and held to every check, and what that says of the verifier."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Literal

import harness.checks.pair
import harness.checks.recipe
import harness.checks.run
from benchmarks.fuzzing.folders import operate
from benchmarks.fuzzing.mutations import Mutation, mutate
from benchmarks.fuzzing.records import RUNS, TrueRecord, claims, differing, kind_of
from harness.checks import CHECKS, check_all
from harness.files import sha256_file
from harness.record import README, RECORD
from harness.track import Score, Track, fixed_file_hashes, load_track

Kind = Literal["refused", "same", "unproven", "false pass", "crash"]
CRASHED = "cannot be checked: "
_PENDING = "not checked: needs "


@dataclass
class Verdict:
    """What became of a mutation."""

    kind: Kind
    """refused = a check failed; same = all passed, and every file says what the true one says; unproven = all
    passed, and its claims are the true ones, but something differs that no file proves; false pass = all
    passed and it claims something else; crash = a check did not come to a judgement."""
    what: str
    sealed: bool
    checks: list[str] = field(default_factory=list)
    """The checks that found something wrong themselves."""
    differs: list[str] = field(default_factory=list)
    """Of what passed: which kinds of files say something else."""
    detail: str = ""


def judge(record: TrueRecord, random: Random, donors: Sequence[bytes], folder: Path) -> Verdict:
    """Draw a mutation, write it to `folder`, which must be gone or empty, and check it."""
    mutation = mutate(record, random, donors)
    write(mutation.files, folder)
    if mutation.operated:
        mutation.what = operate(folder, sorted(mutation.files), random)
    return check(record, mutation, folder)


def check(record: TrueRecord, mutation: Mutation, folder: Path) -> Verdict:
    """Hold what lies in `folder` to every check."""
    verdict = Verdict("refused", mutation.what, mutation.sealed)
    checks = check_all(record.home(folder, mutation.folder))
    verdict.checks = [one.name for one in checks if not one.passed and not one.reason.startswith(_PENDING)]
    crashed = [one for one in checks if one.reason.startswith(CRASHED)]
    if crashed or tuple(one.name for one in checks) != CHECKS:
        verdict.kind = "crash"
        verdict.detail = "; ".join(f"{one.name}: {one.reason}"[:300] for one in crashed)
    elif all(one.passed for one in checks):
        _judge_pass(record, mutation, folder, verdict)
    for one in checks:
        one.reason.encode()  # a reason can be printed, whatever a record holds
    return verdict


def write(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of a record into a new folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def clear(folder: Path) -> None:
    """Remove a folder, whatever was done to it, and what was moved beside it."""
    for path in (folder, folder.with_name("elsewhere")):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


Scores = dict[tuple[str, str, str], Score]
"""Track, hash of evidence, hash of the checkpoint beside it -> what the evidence is worth."""


def remember_scores(track_name: str, known: Scores) -> None:
    """Let a track remember, in this process and in `known`, what evidence is worth."""
    track = load_track(track_name)

    def score(evidence: Path) -> Score:
        checkpoint = evidence.with_name(track.checkpoint_name)
        if checkpoint.is_symlink() or not checkpoint.is_file():
            return track.score(evidence)
        key = (track_name, sha256_file(evidence), sha256_file(checkpoint))
        if key not in known:
            known[key] = track.score(evidence)
        return known[key]

    vars(sys.modules[f"{track_name}.track"])["TRACK"] = replace(track, score=score)


def remember_unchanged() -> None:
    """Let checks remember, in this process, what follows from contents that most mutations leave as they are.

    The recipe that a source gives, lines of JSON in their one form, and the hashes of fixed files.
    """
    hashes: dict[tuple[tuple[str, ...], Path], dict[str, str]] = {}
    count = fixed_file_hashes

    def fixed(track: Track, root: Path) -> dict[str, str]:
        key = (track.fixed_files, root)
        if key not in hashes:
            hashes[key] = count(track, root)
        return hashes[key]

    vars(harness.checks.run)["fixed_file_hashes"] = fixed
    recipe, pair = vars(harness.checks.recipe), vars(harness.checks.pair)
    recipe["read_recipe"] = lru_cache(maxsize=64)(recipe["read_recipe"])
    pair["plain_lines"] = lru_cache(maxsize=64)(pair["plain_lines"])


def _judge_pass(record: TrueRecord, mutation: Mutation, folder: Path, verdict: Verdict) -> None:
    files = TrueRecord.read(folder, record.root).files
    track = record.track
    scores = {run: track.score(folder / run / track.evidence_name) for run in RUNS}
    different = differing(record, files)
    verdict.differs = sorted({kind_of(record, name) for name in different})
    verdict.kind = "unproven" if different else "same"
    if claims(files, track, scores) != record.claims:
        verdict.kind = "false pass"
        verdict.detail = "its claims differ"
    if files.keys() != record.files.keys():
        verdict.kind = "false pass"
        verdict.detail = "it holds other files"
    hashed = record.files.keys() - record.derived - {README}
    if not mutation.sealed and any(files.get(name) != record.files[name] for name in hashed):
        verdict.kind = "false pass"
        verdict.detail = "bytes under a hash differ"
    if not mutation.sealed and RECORD in different:
        verdict.kind = "false pass"
