"""Earlier versions of fixed files under which records were made and still stand: `accepted.sha256`.

A record's fixed files must be those of the checkout, or accepted ones. After a change to a fixed file that
keeps the meaning of the rules, a maintainer runs

    python -m harness.accepted --add

which accepts the versions that the standing records name. A change of meaning makes a new ruleset instead.
A file that came to the fixed ones later is accepted as `ABSENT`.
"""

import argparse
from pathlib import Path

from harness.errors import Problem, run_command
from harness.files import read_bytes, sha256_file, write_atomic
from harness.manifest import read_manifest
from harness.record import MANIFEST
from harness.track import ROOT, fixed_file_hashes, load_track

LEDGER = Path("harness/accepted.sha256")
ABSENT = "-" * 64
"""In place of a hash: there was no such file yet."""


def accepted_versions(root: Path = ROOT) -> set[tuple[str, str]]:
    """(path from the root, SHA-256) of every accepted version."""
    if not (root / LEDGER).is_file():
        return set()
    pairs = set()
    for number, line in enumerate(read_bytes(root / LEDGER).decode().splitlines(), start=1):
        digest, separator, name = line.partition("  ")
        if not separator or len(digest) != 64:
            raise Problem("not `<sha256>  <path>`", file=root / LEDGER, line=number)
        pairs.add((name, digest))
    return pairs


def versions_of_records(root: Path = ROOT) -> set[tuple[str, str]]:
    """(path, SHA-256) of every fixed file that a record has in another version than this checkout."""
    named: set[tuple[str, str]] = set()
    for path in root.glob(f"records/*/*/**/{MANIFEST}"):
        manifest = read_manifest(path)
        expected = fixed_file_hashes(load_track(manifest.track).under(manifest.ruleset), root)
        named |= manifest.fixed_files.items()
        named |= {(name, ABSENT) for name in expected.keys() - manifest.fixed_files.keys()}
    return {(name, digest) for name, digest in named if _current(root / name) != digest}


def _current(path: Path) -> str | None:
    return sha256_file(path) if path.is_file() else None


def main() -> int:
    """List the versions that records name and nobody accepted, or accept them."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.accepted",
        description="List earlier versions of fixed files that records name and nobody accepted (exit 1), or "
        "accept them.",
    )
    parser.add_argument("--add", action="store_true", help="accept what the standing records name")
    add = parser.parse_args().add
    accepted = accepted_versions()
    missing = versions_of_records() - accepted
    for name, digest in sorted(missing):
        print(f"{digest}  {name}: {'accepted' if add else 'not accepted'}")
    if add and missing:
        lines = sorted(f"{digest}  {name}\n" for name, digest in accepted | missing)
        write_atomic(ROOT / LEDGER, "".join(lines))
    if not missing:
        print("The records name no version of a fixed file that is not accepted.")
    return 1 if missing and not add else 0


if __name__ == "__main__":
    run_command(main)
