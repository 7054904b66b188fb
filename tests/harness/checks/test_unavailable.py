"""What a machine lacks is neither a pass nor a failure: it has its own word, remedy and exit status."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from harness.checks import Check, RecordFolder, check_all
from harness.errors import Problem, Unavailable
from harness.track import ROOT, Score, load_track
from harness.verify import show
from toy_track.records import make_checkout, make_record, plain_machine


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with plain_machine():
        return make_record(make_checkout(tmp_path_factory.mktemp("checkout")))


def checks_with(record: Path, score: Callable[[Path], Score]) -> dict[str, Check]:
    home = RecordFolder(record, root=record.parents[2])
    vars(home)["track"] = replace(home.track, score=score)
    return {check.name: check for check in check_all(home)}


def without_levels(path: Path) -> Score:
    raise Unavailable("no levels", file=path, remedy="set BOXOBAN_LEVELS")


def without_library(path: Path) -> Score:
    raise ModuleNotFoundError("No module named 'stable_retro'")


def test_what_needs_it_is_not_checked_and_all_else_is(record: Path) -> None:
    found = checks_with(record, without_levels)
    evidence = found["evidence"]
    assert (evidence.passed, evidence.pending, evidence.unavailable, evidence.failed) == (
        False,
        False,
        True,
        False,
    )
    assert evidence.reason == "cannot be checked here: evidence.jsonl: no levels. Remedy: set BOXOBAN_LEVELS"
    lacking = {name for name, check in found.items() if check.unavailable}
    assert {"evidence", "score", "target", "cost", "verification/score"} <= lacking
    assert all(check.passed or check.unavailable for check in found.values())
    assert found["score"].reason == "not checked: needs evidence"
    assert found["file_hashes"].passed and found["argv"].passed


def test_a_missing_library_is_the_same(record: Path) -> None:
    evidence = checks_with(record, without_library)["evidence"]
    assert evidence.unavailable
    assert evidence.reason == (
        "cannot be checked here: No module named 'stable_retro'. Remedy: install the extras of this track"
    )


def test_what_it_lacks_hides_nothing_that_is_wrong(record: Path) -> None:
    (record / "notes.txt").write_text("")
    try:
        found = checks_with(record, without_levels)
    finally:
        (record / "notes.txt").unlink()
    assert found["folder_contents"].failed and found["evidence"].unavailable


def test_a_track_without_its_libraries_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    (tmp_path / "needy").mkdir()
    (tmp_path / "needy/track.py").write_text("import no_such_library")
    with pytest.raises(Unavailable, match="Remedy: install the extras of this track"):
        load_track("needy")
    with pytest.raises(Problem) as caught:
        load_track("no_such_track")
    assert not isinstance(caught.value, Unavailable)


def test_the_table_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    shown = [Check("a", True, "fine"), Check("b", False, "cannot be checked here: x", unavailable=True)]
    assert not show(Path("r"), shown, Console(width=100))
    out = capsys.readouterr().out
    assert "not here" in out and "of 2 checks 0 failed and 0 are pending, and 1 cannot be checked here" in out


@pytest.mark.parametrize(("spoil", "status"), [(False, 3), (True, 1)])
def test_without_levels_the_verifier_exits_3_unless_something_is_wrong(
    spoil: bool, status: int, tmp_path: Path
) -> None:
    record = ROOT / "records/non_llm/2026-11-30_01_push-ppo"
    paths = [str(record), str(tmp_path)] if spoil else [str(record)]
    environment = {"PATH": os.environ["PATH"], "BOXOBAN_LEVELS": str(tmp_path)}
    command = [sys.executable, "verify_record.py", *paths]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == status, done.stdout
    assert "cannot be checked here: " in done.stdout and "Remedy: " in done.stdout
