"""Whether a run may become a record, and the seed of the run that verifies it."""

import hashlib
from pathlib import Path

from harness.files import sha256_bytes, sha256_file
from harness.log import RunLog
from harness.manifest import Manifest
from harness.packed import plain_lines, read_unpacked
from harness.track import Track


def eligibility(manifest: Manifest, log: RunLog | None) -> list[str]:
    """Every reason why the run can be no record; empty = it can. `log` is None while the run goes on."""
    reasons = []
    if manifest.flags:
        reasons.append(f"flags change the recipe: {', '.join(manifest.flags)}")
    if manifest.overriding_environment:
        reasons.append(f"the environment overrides it: {', '.join(manifest.overriding_environment)}")
    if manifest.customized:
        reasons.append(f"Python was customized: {', '.join(manifest.customized)}")
    if manifest.stray_files:
        reasons.append(f"it imports files that are neither fixed nor open: {', '.join(manifest.stray_files)}")
    if manifest.smoke:
        reasons.append("it is a smoke run")
    if manifest.resumed or (log is not None and log.find("resume") is not None):
        reasons.append("it is resumed")
    if manifest.hardware_class is None:
        reasons.append("the machine is of no hardware class of the track")
    dirty = sorted(manifest.fixed_files.keys() & set(manifest.git.dirty_files if manifest.git else ()))
    if dirty:
        reasons.append(f"fixed files differ from the commit: {', '.join(dirty)}")
    if log is not None and log.status == "incomplete":
        reasons.append(f"it is incomplete: it ends after {log.events[-1].name}")
    if log is not None and log.status == "interrupted":
        reasons.append(f"it is interrupted: {log.events[-1].fields['reason']}")
    return reasons


def second_seed(evidence: Path, manifest: Manifest, track: Track) -> int:
    """The seed of the run that verifies a run, from the run's evidence and manifest.

    It follows from what the evidence says was played, whichever way that is written and packed; what could
    be varied beside the same play, `track.not_played`, does not count. Under ruleset 1 it follows from the
    bytes of the file.
    """
    if manifest.ruleset == "1":
        return derived_seed(sha256_file(evidence), manifest.recipe_sha256)
    played = track.not_played.sub(b"", plain_lines(read_unpacked(evidence)))
    return derived_seed(sha256_bytes(played), manifest.recipe_sha256)


def derived_seed(evidence_sha256: str, recipe_sha256: str) -> int:
    """31 bits of both hashes: nobody can choose the second seed without running the first run again."""
    digest = hashlib.sha256((evidence_sha256 + recipe_sha256).encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
