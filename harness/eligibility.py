"""Whether a run may become a record, and the seed of the run that verifies it."""

import hashlib

from harness.log import RunLog
from harness.manifest import Manifest


def eligibility(manifest: Manifest, log: RunLog | None) -> list[str]:
    """Every reason why the run can be no record; empty = it can. `log` is None while the run goes on."""
    reasons = []
    if manifest.flags:
        reasons.append(f"flags change the recipe: {', '.join(manifest.flags)}")
    if manifest.overriding_environment:
        reasons.append(f"the environment overrides it: {', '.join(manifest.overriding_environment)}")
    if manifest.smoke:
        reasons.append("it is a smoke run")
    if manifest.resumed:
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


def derived_seed(evidence_sha256: str, recipe_sha256: str) -> int:
    """The second seed, 31 bits: nobody can choose it without running the first run again."""
    digest = hashlib.sha256((evidence_sha256 + recipe_sha256).encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
