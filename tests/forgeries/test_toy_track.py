"""Records of the toy track: a true one passes every check, and every check is failed by a forgery."""

from pathlib import Path

import pytest

from forgeries import records, runs
from forgeries.table import Forgery, identify, judge, rows
from harness.checks import CHECKS, RecordFolder, check_all
from toy_track.forging import Forged, failing


def test_a_true_record_passes(original: Path, checkout: Path) -> None:
    checks = check_all(RecordFolder(original, root=checkout))
    assert failing(checks) == {}
    assert tuple(check.name for check in checks) == CHECKS
    assert all(check.reason for check in checks)


@pytest.mark.parametrize(("forgery", "part"), rows([*records.FORGERIES, *runs.FORGERIES]), ids=identify)
def test_forgery(forgery: Forgery, part: str, forged: Forged) -> None:
    judge(forgery, part, forged)


def test_every_check_is_failed_by_a_forgery() -> None:
    caught = {forgery.fails[0] for forgery in [*records.FORGERIES, *runs.FORGERIES]}
    assert {name.removeprefix("verification/") for name in CHECKS} <= caught
    assert {name for name in CHECKS if "/" in name} <= {
        f"verification/{forgery.fails[0]}" for forgery in runs.FORGERIES
    }
