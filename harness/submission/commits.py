"""The files of commits as data: read from git's objects by its plumbing, and never checked out.

So no link is followed, no filter, hook or attribute of the repository is at work, and what a checkout would
hide (modes, names that collide) is seen.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from harness.errors import Problem

LONGEST_LIST = 2**24  # bytes of the names of all files
PLAIN = "100644"
"""The mode of a file that is neither a link nor executable."""


class Blob(NamedTuple):
    """A file in a commit."""

    mode: str
    """As git writes it: "100644" plain, "100755" executable, "120000" link, "160000" submodule."""
    object: str
    size: int
    """In bytes; 0 of a submodule."""


class Change(NamedTuple):
    """A path that differs between two commits; None where one of them has none."""

    path: str
    old: Blob | None
    new: Blob | None


Tree = Mapping[str, Blob]
"""Path from the root -> its file; bytes that are no UTF-8 stand as surrogates."""


def commit_of(repository: Path, name: str) -> str:
    """The commit that a name means; a Problem where there is none."""
    try:
        return _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except Problem:
        raise Problem(f"there is no commit {name!r}", file=repository, remedy="fetch it first") from None


def merge_base(repository: Path, base: str, head: str) -> str:
    """The last commit that both share; a Problem where they share none, or where several are the last.

    Git merges against all of several, so what differs from one of them is not what a merge would bring.
    """
    try:
        shared = _git(repository, "merge-base", "--all", base, head).split()
    except Problem:
        raise Problem(f"{base} and {head} share no commit", file=repository) from None
    if len(shared) > 1:
        remedy = "put the changes into one commit on top of the base branch"
        reason = f"{base} and {head} share {len(shared)} last commits, as merges crossed"
        raise Problem(reason, file=repository, remedy=remedy)
    return shared[0]


def read_tree(repository: Path, commit: str) -> dict[str, Blob]:
    """Every file of a commit; a Problem where its tree is immense, or names a file twice."""
    tree: dict[str, Blob] = {}
    for line in _list(repository, "ls-tree", "-r", "-z", "--long", "--full-tree", commit).split(b"\0"):
        if line:
            about, _, path = line.partition(b"\t")
            mode, _, name, size = about.decode().split()
            place = os.fsdecode(path)
            if place in tree:
                raise Problem(f"names {place!r} twice", file=commit)
            tree[place] = Blob(mode, name, int(size) if size.isdecimal() else 0)
    return tree


def changes(old: Tree, new: Tree) -> list[Change]:
    """What differs, by path; a file that was renamed is one removed and one added."""
    paths = sorted(old.keys() | new.keys())
    return [Change(p, old.get(p), new.get(p)) for p in paths if _content(old.get(p)) != _content(new.get(p))]


def touched(repository: Path, base: str, head: str) -> set[str]:
    """Every path that a commit of `head` which `base` lacks changes, be it changed back by a later one."""
    options = ("--format=", "--name-only", "-z", "-c", "--no-renames")
    listed = _list(repository, "log", *options, f"{base}..{head}")
    return {os.fsdecode(path) for path in listed.replace(b"\n", b"\0").split(b"\0") if path}


def write_files(repository: Path, tree: Tree, target: Path) -> None:
    """Write files under `target`, all as plain ones. Their paths must be safe; the caller sees to that."""
    if not tree:
        return
    objects = sorted({blob.object for blob in tree.values()})
    content: dict[str, bytes] = {}
    output = _run(repository, "cat-file", "--batch", given="".join(f"{name}\n" for name in objects).encode())
    start = 0
    for name in objects:
        end = output.index(b"\n", start)
        found, kind, size = output[start:end].decode().split()
        if (found, kind) != (name, "blob"):
            raise Problem(f"git gave {kind} {found} for blob {name}", file=repository)
        start = end + 1 + int(size) + 1
        content[name] = output[end + 1 : start - 1]
    for path, blob in tree.items():
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content[blob.object])


def read_file(repository: Path, blob: Blob) -> bytes:
    """The content of one file."""
    return _run(repository, "cat-file", "blob", blob.object)


def read_history(repository: Path, commit: str, path: str) -> Iterator[bytes]:
    """Every content that a file has had up to a commit, in no order; its path must be a plain one."""
    options = ("--format=", "--raw", "--no-abbrev", "--no-renames", "--full-history", "-m")
    lines = _git(repository, "log", *options, commit, "--", f":(top,literal){path}").splitlines()
    fields = [line.split() for line in lines]
    for name in sorted({name for _, mode, _, name, *_ in fields if mode.startswith("100")}):
        yield _run(repository, "cat-file", "blob", name)


def _content(blob: Blob | None) -> tuple[str, str] | None:
    return None if blob is None else (blob.mode, blob.object)


def _git(repository: Path, *arguments: str) -> str:
    return _run(repository, *arguments).decode().strip()


def _list(repository: Path, *arguments: str) -> bytes:
    """What a command prints, up to a bound: a few trees within each other can name billions of files."""
    with subprocess.Popen(_command(repository, *arguments), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        printed = process.stdout.read(LONGEST_LIST + 1)
        if len(printed) > LONGEST_LIST:
            process.kill()
    if len(printed) > LONGEST_LIST:
        raise Problem(f"lists more than {LONGEST_LIST:,} bytes of files", file=arguments[-1])
    if process.returncode:
        raise Problem(f"git {arguments[0]} failed: {process.returncode}", file=repository)
    return printed


def _command(repository: Path, *arguments: str) -> list[str]:
    return ["git", "--no-replace-objects", "-C", str(repository), *arguments]


def _run(repository: Path, *arguments: str, given: bytes | None = None) -> bytes:
    command = _command(repository, *arguments)
    try:
        done = subprocess.run(command, input=given, capture_output=True)
    except OSError as error:
        raise Problem(f"git cannot be run: {error.strerror}", remedy="install git") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise Problem(f"git {arguments[0]} failed: {said or done.returncode}", file=repository)
    return done.stdout
