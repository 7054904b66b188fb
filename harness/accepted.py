"""Versions of fixed files that are not the checkout's, but with which records were made: `accepted.sha256`.

A record's fixed files must be those of the checkout, or accepted ones. After a change to a fixed file that
keeps the meaning of the rules, a maintainer runs

    python -m harness.accepted --add

which accepts the versions that the standing records name, for their rulesets and no others. A change of
meaning makes a new ruleset instead. A file that came to the fixed ones later is accepted as `ABSENT`.
"""

import argparse
import re
from pathlib import Path
from typing import NamedTuple

from harness.errors import Problem, run_command
from harness.files import read_bytes, sha256_file, write_atomic
from harness.manifest import read_manifest
from harness.record import MANIFEST
from harness.track import ROOT, fixed_file_hashes, load_track

LEDGER = Path("harness/accepted.sha256")
ABSENT = "-" * 64
"""In place of a hash: there was no such file yet."""


class Version(NamedTuple):
    """A version of a fixed file with which runs of a ruleset may have been made."""

    digest: str
    ruleset: str
    name: str
    """Path from the root."""


def accepted_versions(root: Path = ROOT) -> set[Version]:
    """Every accepted version; a Problem names a line that is malformed."""
    if not (root / LEDGER).is_file():
        return set()
    found = set()
    for number, line in enumerate(read_bytes(root / LEDGER).decode().splitlines(), start=1):
        parts = line.split("  ", 2)
        if len(parts) != 3 or not re.fullmatch("[0-9a-f]{64}|-{64}", parts[0]):
            raise Problem("not `<sha256>  <ruleset>  <path>`", file=root / LEDGER, line=number)
        found.add(Version(*parts))
    return found


def versions_of_records(root: Path = ROOT) -> set[Version]:
    """Every version of a fixed file that a record has and this checkout has not."""
    named: set[Version] = set()
    for path in root.glob(f"records/*/*/**/{MANIFEST}"):
        manifest = read_manifest(path)
        expected = fixed_file_hashes(load_track(manifest.track).under(manifest.ruleset), root)
        versions = dict.fromkeys(expected, ABSENT) | manifest.fixed_files
        named |= {Version(digest, manifest.ruleset, name) for name, digest in versions.items()}
    return {version for version in named if _current(root / version.name) != version.digest}


def _current(path: Path) -> str | None:
    return sha256_file(path) if path.is_file() else None


def main() -> int:
    """List the versions that records name and nobody accepted, or accept them."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.accepted",
        description="List versions of fixed files that records name and nobody accepted (exit 1), or accept "
        "them.",
    )
    parser.add_argument(
        "--add", action="store_true", help="accept what the standing records name, and no more"
    )
    add = parser.parse_args().add
    accepted = accepted_versions()
    needed = versions_of_records()
    missing = needed - accepted
    for version in sorted(missing):
        print(f"{'  '.join(version)}: {'accepted' if add else 'not accepted'}")
    if add and needed != accepted:
        write_atomic(ROOT / LEDGER, "".join(f"{'  '.join(version)}\n" for version in sorted(needed)))
    if not missing:
        print("The records name no version of a fixed file that is not accepted.")
    return 1 if missing and not add else 0


if __name__ == "__main__":
    run_command(main)
