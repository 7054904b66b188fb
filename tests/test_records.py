"""The committed records: all of them hold, and no change of a move, a digit or a byte goes unnamed."""

import shutil
from collections.abc import Callable
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


def replace_once(name: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    def change(record: Path) -> None:
        data = (record / name).read_bytes()
        assert data.count(old) >= 1
        (record / name).write_bytes(data.replace(old, new, 1))

    return change


def flip_a_byte(name: str) -> Callable[[Path], None]:
    def change(record: Path) -> None:
        data = bytearray((record / name).read_bytes())
        data[len(data) // 2] ^= 1
        (record / name).write_bytes(data)

    return change


@pytest.mark.parametrize(
    ("change", "check", "reason"),
    [
        (replace_once("evidence.jsonl", b'"moves":"d', b'"moves":"u'), "file_hashes", "evidence.jsonl"),
        (replace_once("evidence.jsonl", b'"moves":"d', b'"moves":"D'), "evidence", "evidence.jsonl"),
        (replace_once("record.json", b'"time_s": 1', b'"time_s": 2'), "time", "time_s"),
        (replace_once("record.json", b'"value": 0.755', b'"value": 0.756'), "score", "0.756"),
        (replace_once("README.md", b"0.7550", b"0.7560"), "readme", "0.7560"),
        (flip_a_byte("checkpoint.safetensors"), "file_hashes", "checkpoint.safetensors"),
        (flip_a_byte("verification/checkpoint.safetensors"), "file_hashes", "verification/checkpoint"),
        (flip_a_byte("log.jsonl"), "file_hashes", "log.jsonl"),
        (flip_a_byte("verification/manifest.json"), "file_hashes", "verification/manifest.json"),
        (flip_a_byte("speedrun.py"), "file_hashes", "speedrun.py"),
    ],
)
def test_one_change_fails_the_check_that_names_it(
    tmp_path: Path, boxoban_folder: Path, change: Callable[[Path], None], check: str, reason: str
) -> None:
    original = ROOT / "records/non_llm/2026-11-30_01_push-ppo"
    record = Path(shutil.copytree(original, tmp_path / original.name))
    change(record)
    found = failures(record)
    assert reason in found[check]
