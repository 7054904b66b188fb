"""The checkpoint of a standing record plays what its evidence says; another one does not."""

import shutil
from pathlib import Path

import pytest

from harness.errors import Problem
from harness.track import ROOT
from non_llm.replay_checkpoint import main, replay_checkpoint
from non_llm.track import score

RECORD = ROOT / "records/non_llm/2026-11-30_02_faster-muon"


def test_a_checkpoint_plays_its_evidence_again(boxoban_folder: Path) -> None:
    found = replay_checkpoint(RECORD, RECORD / "speedrun.py", levels=100)
    assert found.agrees and found.levels == 100 and found.alike > 80
    solved = score(RECORD / "evidence.jsonl").outcomes[:100]
    assert found.claimed == sum(solved) and abs(found.solved - found.claimed) <= 100 - found.alike


def test_evidence_of_another_checkpoint_differs(
    boxoban_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("speedrun.py", "evidence.jsonl"):
        shutil.copy(RECORD / name, tmp_path)
    weights = (RECORD / "checkpoint.safetensors").read_bytes()
    start = 8 + int.from_bytes(weights[:8], "little")
    (tmp_path / "checkpoint.safetensors").write_bytes(weights[:start] + bytes(len(weights) - start))
    assert main([str(tmp_path), "--levels", "50"]) == 1
    assert "DIFFERS" in capsys.readouterr().out


def test_a_folder_that_is_no_record_is_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"holds no speedrun\.py"):
        main([str(tmp_path)])
