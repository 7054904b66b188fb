"""A true record passes wherever it was made and is checked: time zone, locale, umask, line ends, place."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.checks import RecordFolder, check_all
from harness.track import ROOT
from toy_track.forging import failing
from toy_track.records import make_checkout, make_record, plain_machine

TRUE = ROOT / "records/llm/2026-11-30_01_hot-sampling"
"""A standing record that takes no levels, no emulator and no Java to check."""

PLACES = {
    "far east": {"TZ": "Pacific/Kiritimati"},
    "far west": {"TZ": "Etc/GMT+12", "LC_ALL": "C"},
    "a screen of ASCII": {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "a locale that there is not": {"LC_ALL": "xx_YY.ISO-8859-1", "LANG": "xx_YY"},
    "other hashes": {"PYTHONHASHSEED": "12345", "PYTHONOPTIMIZE": "2"},
    "a narrow terminal": {"COLUMNS": "20", "TERM": "dumb", "NO_COLOR": "1"},
}


@pytest.fixture(params=["Pacific/Kiritimati", "Etc/GMT+12"])
def time_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def narrow_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def verify(
    record: Path, script: Path, place: Path, **environment: str
) -> "subprocess.CompletedProcess[bytes]":
    plain = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, str(script), str(record)],
        cwd=place, env={**plain, **environment}, capture_output=True, preexec_fn=lambda: os.umask(0o077),
    )  # fmt: skip


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.mark.usefixtures("time_zone", "narrow_umask")
def test_a_record_made_in_another_time_zone_and_under_another_umask_passes(tmp_path: Path) -> None:
    root = make_checkout(tmp_path)
    with plain_machine():
        record = make_record(root)
    assert failing(check_all(RecordFolder(record, root=root))) == {}
    assert all(path.stat().st_mode & 0o077 == 0 for path in record.rglob("*") if path.is_dir())


@pytest.mark.parametrize("name", PLACES)
def test_a_standing_record_is_checked_anywhere(name: str, tmp_path: Path) -> None:
    done = verify(TRUE, ROOT / "verify_record.py", tmp_path, **PLACES[name])
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr)


def test_files_that_nobody_may_write_are_checked(tmp_path: Path) -> None:
    copy = tmp_path / "records/llm" / TRUE.name
    shutil.copytree(TRUE, copy)
    for path in (*copy.rglob("*"), copy):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert failing(check_all(RecordFolder(copy, root=ROOT))) == {}
    finally:
        for path in (copy, copy / "verification"):
            path.chmod(0o755)


@pytest.mark.parametrize(
    "settings", [("core.autocrlf=true",), ("core.autocrlf=input",), ("core.eol=crlf", "core.autocrlf=false")]
)
def test_git_leaves_records_as_they_are_whatever_its_line_ends(
    settings: tuple[str, ...], tmp_path: Path
) -> None:
    root = make_checkout(tmp_path / "upstream")
    with plain_machine():
        toy = make_record(root)
    shutil.copy(ROOT / ".gitattributes", root)
    true = root / TRUE.relative_to(ROOT)
    shutil.copytree(TRUE, true)
    git(root, "init", "-q")
    options = [part for setting in settings for part in ("-c", setting)]
    git(root, *options, "add", ".")
    git(root, "commit", "-qm", "first")
    clone = tmp_path / "clone"
    git(tmp_path, *options, "clone", "-q", str(root), str(clone))
    there = clone / toy.relative_to(root)
    assert failing(check_all(RecordFolder(there, root=clone))) == {}
    assert failing(check_all(RecordFolder(clone / TRUE.relative_to(ROOT), root=ROOT))) == {}


def test_a_record_reached_by_another_way_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(ROOT / "records")
    monkeypatch.chdir(TRUE.parent)
    for path in (Path(TRUE.name), tmp_path / "link/llm" / TRUE.name, Path("../llm") / TRUE.name):
        assert failing(check_all(RecordFolder(path, root=ROOT))) == {}
