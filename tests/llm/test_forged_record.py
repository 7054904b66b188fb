"""The committed record of the cpu class, forged: what was answered, what was asked, or who judged."""

import json
import shutil
from pathlib import Path

import pytest

import llm.puzzles
from harness.checks import RecordFolder, check_all
from harness.errors import Problem
from harness.files import sha256_file
from harness.track import ROOT
from llm.evidence import read_evidence, write_evidence
from llm.puzzles import DATASETS, read_puzzles
from llm.track import TRACK

ORIGINAL = ROOT / "records/llm/2026-11-30_01_hot-sampling"
EVIDENCE = "evidence.jsonl.xz"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ORIGINAL, tmp_path / "records/llm" / ORIGINAL.name))


def failures(record: Path, root: Path = ROOT) -> dict[str, str]:
    return {
        check.name: check.reason for check in check_all(RecordFolder(record, root=root)) if not check.passed
    }


def test_the_record_stands_on_its_completions_alone(record: Path) -> None:
    assert failures(record) == {}
    assert not list(record.rglob("*.safetensors"))


def test_a_forged_completion_is_refused_even_with_new_hashes(record: Path) -> None:
    (_, header), *lines = read_evidence(record / EVIDENCE)
    rows = [row for _, row in lines]
    puzzles = read_puzzles(header["puzzles"])
    place, wrong = next(
        (place, completion)
        for place, row in enumerate(rows)
        for completion in row["completions"]
        if completion["text"] != f"<answer>{puzzles[place].solution}</answer>"
        and all(other["text"] == completion["text"] for other in row["completions"])
    )
    wrong["text"] = f"<answer>{puzzles[place].solution}</answer>"
    write_evidence(record / EVIDENCE, header, rows)
    found = failures(record)
    assert EVIDENCE in found["file_hashes"] and EVIDENCE in found["evidence_logged"]

    digest = sha256_file(record / EVIDENCE)
    content = json.loads((record / "record.json").read_text())
    content["files"][EVIDENCE] = digest
    log = (record / "log.jsonl").read_text().splitlines()
    log = [
        json.dumps({**event, "evidence_sha256": digest}) if event["event"] == "eval_stop" else line
        for line, event in ((line, json.loads(line)) for line in log)
    ]
    (record / "log.jsonl").write_text("\n".join(log) + "\n")
    content["files"]["log.jsonl"] = sha256_file(record / "log.jsonl")
    (record / "record.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    found = failures(record)
    assert "file_hashes" not in found and "evidence_logged" not in found
    assert "second_seed" in found  # which follows from the evidence


def test_a_second_run_that_repeats_the_first_is_refused(record: Path) -> None:
    (_, header), *lines = read_evidence(record / EVIDENCE)
    checkpoint = sha256_file(record / "verification/checkpoint.json")
    rows = [row for _, row in lines]
    write_evidence(record / "verification" / EVIDENCE, {**header, "checkpoint_sha256": checkpoint}, rows)
    assert "holds the same as" in failures(record)["evidence_distinct"]


def test_a_changed_eval_row_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(shutil.copytree(DATASETS, tmp_path / "datasets"))
    file = folder / "tiny_eval.jsonl"
    file.write_bytes(file.read_bytes().replace(b"-X", b"X-", 1))
    monkeypatch.setattr(llm.puzzles, "DATASETS", folder)
    with pytest.raises(Problem, match=r"tiny_eval\.jsonl: its SHA-256 is .* not the pinned"):
        TRACK.score(ORIGINAL / EVIDENCE)


@pytest.mark.parametrize(
    "name", ["llm/answers.py", "llm/datasets/datasets.sha256", "llm/tiny/model.safetensors"]
)
def test_a_changed_fixed_file_is_refused(record: Path, tmp_path: Path, name: str) -> None:
    for folder in ("llm", "sokoban", "harness"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    assert failures(record, tmp_path) == {}
    with (tmp_path / name).open("ab") as file:
        file.write(b"\n")
    found = failures(record, tmp_path)
    assert name in found.pop("fixed_files") and name in found.pop("verification/fixed_files")
    assert not found
