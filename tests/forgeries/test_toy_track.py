"""Records of the toy track: a true one passes every check, and every check is failed by a forgery."""

from pathlib import Path

import pytest

from forgeries import records, runs
from forgeries.table import Forgery, identify, judge, rows
from harness.checks import CHECKS, RecordFolder, check_all
from harness.files import sha256_file
from toy_track.forging import Forged, failing


def test_a_true_record_passes(original: Path, checkout: Path) -> None:
    checks = check_all(RecordFolder(original, root=checkout))
    assert failing(checks) == {}
    assert tuple(check.name for check in checks) == CHECKS
    assert all(check.reason for check in checks)


@pytest.mark.parametrize(("forgery", "part"), rows([*records.FORGERIES, *runs.FORGERIES]), ids=identify)
def test_forgery(forgery: Forgery, part: str, forged: Forged) -> None:
    judge(forgery, part, forged)


def test_play_copied_under_the_name_of_another_checkpoint_is_seen(forged: Forged) -> None:
    play = (forged / "evidence.jsonl").read_text()
    for forged.part in ("", "verification"):
        header = f'{{"checkpoint_sha256": "{sha256_file(forged / "checkpoint.bin")}"}}\n'
        (forged / "evidence.jsonl").write_text(header + play)
    found = failing(forged.checks())["evidence_distinct"]
    assert found == "verification/evidence.jsonl: holds the same as evidence.jsonl, expected a run of its own"


def test_every_check_is_failed_by_a_forgery() -> None:
    caught = {forgery.fails[0] for forgery in [*records.FORGERIES, *runs.FORGERIES]}
    assert {name.removeprefix("verification/") for name in CHECKS} <= caught
    assert {name for name in CHECKS if "/" in name} <= {
        f"verification/{forgery.fails[0]}" for forgery in runs.FORGERIES
    }
