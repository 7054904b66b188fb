"""The ledger of earlier versions of fixed files."""

from pathlib import Path

import pytest

from harness.accepted import LEDGER, Version, accepted_versions
from harness.errors import Problem

DIGEST = "ab" * 32


def ledger(root: Path, text: str) -> Path:
    path = root / LEDGER
    path.parent.mkdir()
    path.write_text(text)
    return root


def test_reads_pairs(tmp_path: Path) -> None:
    assert accepted_versions(tmp_path) == set()
    assert accepted_versions(ledger(tmp_path, f"{DIGEST}  1  a b.py\n")) == {Version(DIGEST, "1", "a b.py")}


@pytest.mark.parametrize(
    "line", [f"{DIGEST[:-1]}  1  b.py", f"{DIGEST}  b.py", f"{DIGEST} 1 b.py", f"{DIGEST[:-1]}x  1  b.py", ""]
)
def test_a_malformed_line_is_named(line: str, tmp_path: Path) -> None:
    with pytest.raises(Problem) as caught:
        accepted_versions(ledger(tmp_path, f"{DIGEST}  1  a.py\n{line}\n"))
    assert caught.value.line == 2
