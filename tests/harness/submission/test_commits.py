"""Commits as data: modes, sizes and content as git has them, and what differs."""

from pathlib import Path

import pytest
from pull_requests import Repository

from harness.errors import Problem
from harness.submission.commits import (
    Blob,
    changes,
    commit_of,
    merge_base,
    read_file,
    read_tree,
    write_files,
)


@pytest.fixture
def small(tmp_path: Path) -> Repository:
    """Two files, of which one is a link, and a repository's own rules about line ends."""
    (tmp_path / "small/folder").mkdir(parents=True)
    repository = Repository(tmp_path / "small")
    repository.git("init", "--quiet", "--initial-branch=main")
    (repository / "folder/a b").write_bytes(b"1\n\0")
    (repository / "link").symlink_to("/etc/passwd")
    repository.commit("first")
    return repository


def test_a_tree_is_what_git_holds(small: Repository) -> None:
    tree = read_tree(small.path, commit_of(small.path, "main"))
    assert tree == {
        "folder/a b": Blob("100644", small.git("hash-object", "folder/a b"), 3),
        "link": Blob("120000", small.git("rev-parse", "main:link"), 11),
    }
    assert read_file(small.path, tree["folder/a b"]) == b"1\n\0"


def test_files_are_written_byte_by_byte_and_as_plain_ones(small: Repository, tmp_path: Path) -> None:
    (small / ".gitattributes").write_text("* text eol=crlf\n")
    (small / "copy").write_bytes(b"1\n\0")
    (small / "empty").touch()
    small.commit()
    tree = read_tree(small.path, "main")
    write_files(small.path, tree, tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == {
        "a b": b"1\n\0", "copy": b"1\n\0", "empty": b"", "link": b"/etc/passwd",
        ".gitattributes": b"* text eol=crlf\n",
    }  # fmt: skip
    assert not any(path.is_symlink() for path in (tmp_path / "out").rglob("*"))
    write_files(small.path, {}, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_what_differs(small: Repository) -> None:
    old = read_tree(small.path, "main")
    small.git("mv", "folder/a b", "c")
    (small / "link").unlink()
    (small / "link").write_text("/etc/passwd")
    new = read_tree(small.path, small.commit())
    assert [(c.path, c.old is None, c.new is None) for c in changes(old, new)] == [
        ("c", True, False), ("folder/a b", False, True), ("link", False, False),
    ]  # fmt: skip
    assert changes(old, old) == []


def test_what_cannot_be_read_is_a_problem(small: Repository, tmp_path: Path) -> None:
    small.git("checkout", "--quiet", "--orphan", "alone")
    small.commit()
    with pytest.raises(Problem, match="share no commit"):
        merge_base(small.path, "main", "alone")
    with pytest.raises(Problem, match="git cat-file failed"):
        read_file(small.path, Blob("100644", "0" * 40, 0))
    with pytest.raises(Problem, match="there is no commit 'main'"):
        commit_of(tmp_path, "main")


def test_merges_that_crossed_are_refused(small: Repository) -> None:
    """A merged branch went two ways; a second merge of both keeps what was taken back, and looks like one."""

    def commit(content: str, *parents: str) -> str:
        blob = small.git("hash-object", "-w", "--stdin", given=content.encode())
        tree = small.git("mktree", given=f"100644 blob {blob}\tcode.py\n".encode())
        return small.git("commit-tree", tree, "-m", "x", *(word for one in parents for word in ("-p", one)))

    fork = commit("strange", commit("plain"))
    kept, taken_back = commit("strange", fork), commit("plain", fork)
    main, head = commit("plain", kept, taken_back), commit("strange", kept, taken_back)
    with pytest.raises(Problem, match="share 2 last commits"):
        merge_base(small.path, main, head)
    assert merge_base(small.path, main, commit("more", kept)) == kept


def test_a_tree_without_bounds_is_refused(small: Repository) -> None:
    """Ten names in each of eight trees, one within the other: a hundred million files in a kilobyte."""
    blob = small.git("hash-object", "-w", "folder/a b")
    entry = f"100644 blob {blob}"
    for _ in range(8):
        lines = "".join(f"{entry}\t{name}\n" for name in range(10))
        entry = f"040000 tree {small.git('mktree', given=lines.encode())}"
    commit = small.git("commit-tree", entry.split()[2], "-m", "bomb")
    with pytest.raises(Problem, match="lists more than 16,777,216 bytes of files"):
        read_tree(small.path, commit)
