"""The committed records: all of them hold, here and on machines that are set up in another way."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.track import ROOT
from harness.verify import verify_record

RECORDS = sorted(path.parent for path in ROOT.glob("records/*/*/record.json"))


def failures(path: Path) -> dict[str, str]:
    return {check.name: check.reason for check in verify_record(path) if not check.passed}


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.name)
def test_a_committed_record_passes_every_check(record: Path, boxoban_folder: Path) -> None:
    assert failures(record) == {}


@pytest.mark.parametrize(
    "settings",
    [
        {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONUTF8": "0"},
        {"TZ": "America/St_Johns", "LANG": "tr_TR.UTF-8", "PYTHONIOENCODING": "ascii:backslashreplace"},
    ],
    ids=lambda settings: settings["TZ"],
)
def test_records_hold_in_another_time_zone_locale_and_umask(
    settings: dict[str, str], boxoban_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "records").mkdir()
    places = []
    for track, name in (("non_llm", "2026-11-30_01_push-ppo"), ("llm", "2026-11-30_01_hot-sampling")):
        place = shutil.copytree(ROOT / "records" / track / name, tmp_path / "records" / track / name)
        for path in (place, *place.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)
            os.utime(path, (0, 0))
        places.append(str(place))
    done = subprocess.run(
        [sys.executable, str(ROOT / "verify_record.py"), *places],
        cwd=ROOT, env={**os.environ, **settings}, umask=0o077, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_setting_of_git_changes_the_bytes_of_a_record(tmp_path: Path) -> None:
    original = RECORDS[0]
    source, clone = tmp_path / "source", tmp_path / "clone"
    shutil.copytree(original, source / "record")
    shutil.copy(ROOT / ".gitattributes", source)
    me = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for command in (
        ["git", "init", "-q", str(source)],
        ["git", "-C", str(source), *me, "add", "."],
        ["git", "-C", str(source), *me, "commit", "-qm", "A record"],
        ["git", "-c", "core.autocrlf=true", "-c", "core.eol=crlf", "clone", "-q", str(source), str(clone)],
    ):
        subprocess.run(command, check=True, capture_output=True)
    for path in original.rglob("*"):
        if path.is_file():
            assert (clone / "record" / path.relative_to(original)).read_bytes() == path.read_bytes()
