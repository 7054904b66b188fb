"""Versions of fixed files that are not the checkout's, but with which records were made: `accepted.sha256`.

A record's fixed files must be those of the checkout, or accepted ones. After a change to a fixed file that
keeps the meaning of the rules, a maintainer runs

    python -m harness.accepted --add

which accepts the versions that committed records name, for their rulesets and no others. Whoever writes a
manifest can name any version, so a record that is not committed is left out, and a version that no commit
ever held is refused. A change of meaning makes a new ruleset instead. A file that came to the fixed ones
later is accepted as `ABSENT`.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.errors import Problem, run_command
from harness.files import read_bytes, sha256_bytes, sha256_file, write_atomic
from harness.manifest import read_manifest
from harness.record import MANIFEST, SECOND, FolderName
from harness.submission.commits import commit_of, read_file, read_history, read_tree
from harness.track import ROOT, fixed_file_hashes, load_track

LEDGER = Path("harness/accepted.sha256")
ABSENT = "-" * 64
"""In place of a hash: there was no such file yet."""
_PATH = r"[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)*"
_LINE = re.compile(rf"([0-9a-f]{{64}}|-{{64}})  ([0-9]+)  ({_PATH})")


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
        match = _LINE.fullmatch(line)
        if match is None:
            raise Problem("not `<sha256>  <ruleset>  <path>`", file=root / LEDGER, line=number)
        found.add(Version(*match.groups()))
    return found


def versions_of_records(root: Path = ROOT) -> set[Version]:
    """Every version of a fixed file that a committed record has and this checkout has not.

    Raises:
        Problem: a manifest is not as it was committed, is of another track than its folder, or names a path
            that leads out of the checkout or is odd.
    """
    named: set[Version] = set()
    for name in committed_manifests(root):
        path = root / name
        manifest = read_manifest(path)
        if manifest.track != name.split("/")[1]:
            raise Problem(f"is of track {manifest.track!r}, and lies in another's folder", file=path)
        if odd := [file for file in manifest.fixed_files if not re.fullmatch(_PATH, file)]:
            raise Problem(f"names the fixed file {odd[0]!r}, expected a plain path from the root", file=path)
        expected = fixed_file_hashes(load_track(manifest.track).under(manifest.ruleset), root)
        versions = dict.fromkeys(expected, ABSENT) | manifest.fixed_files
        named |= {Version(digest, manifest.ruleset, name) for name, digest in versions.items()}
    return {version for version in named if _current(root / version.name) != version.digest}


def committed_manifests(root: Path) -> Iterator[str]:
    """The manifests of all records in the commit that is checked out, by path from the root."""
    for name, blob in read_tree(root, commit_of(root, "HEAD")).items():
        if _is_manifest(name):
            if read_bytes(root / name) != read_file(root, blob):
                raise Problem(
                    "is not as it was committed", file=root / name, remedy="commit it, or restore it"
                )
            yield name


def never_held(versions: Sequence[Version], root: Path) -> list[Version]:
    """Those of the versions that no commit up to the one that is checked out holds."""
    names = {version.name for version in versions if version.digest != ABSENT}
    held = {name: {sha256_bytes(content) for content in read_history(root, "HEAD", name)} for name in names}
    return [one for one in versions if one.digest != ABSENT and one.digest not in held[one.name]]


def _is_manifest(name: str) -> bool:
    parts = name.split("/")
    if parts[0] != "records" or parts[3:] not in ([MANIFEST], [SECOND, MANIFEST]):
        return False
    try:
        FolderName.parse(parts[2])
    except Problem:
        return False
    return True


def _current(path: Path) -> str | None:
    return sha256_file(path) if path.is_file() else None


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """List the versions that records name and nobody accepted, or accept them."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.accepted",
        description="List versions of fixed files that committed records name and nobody accepted (exit 1), "
        "or accept them.",
    )
    parser.add_argument(
        "--add",
        action="store_true",
        help="accept what committed records name, and no more; a version that no commit holds is refused",
    )
    add = parser.parse_args(arguments).add
    accepted = accepted_versions(root)
    needed = versions_of_records(root)
    committed = set(committed_manifests(root))
    for path in sorted(root.glob(f"records/*/*/{MANIFEST}")):
        if path.relative_to(root).as_posix() not in committed:
            print(f"{path.parent.relative_to(root)}: is not committed, so what it names does not count")
    missing = sorted(needed - accepted)
    if add and (strange := never_held(missing, root)):
        raise Problem(
            "; ".join(f"{version.name} is {version.digest}, which no commit holds" for version in strange),
            remedy="fetch the whole history; if it is still so, the record's runs were made with other files",
        )
    for version in missing:
        print(f"{'  '.join(version)}: {'accepted' if add else 'not accepted'}")
    if add and needed != accepted:
        write_atomic(root / LEDGER, "".join(f"{'  '.join(version)}\n" for version in sorted(needed)))
    if not missing:
        print("The records name no version of a fixed file that is not accepted.")
    return 1 if missing and not add else 0


if __name__ == "__main__":
    run_command(main)
