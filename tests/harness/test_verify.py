"""The command line of the verifier: what it prints, how it exits, and what it does without."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from harness.checks import CHECKS, Check
from harness.errors import Problem
from harness.readme import IDEA_PLACEHOLDER
from harness.track import ROOT
from harness.verify import main, show, verify_record
from toy_track.forging import Forged
from toy_track.records import IDEA, make_checkout, make_record, plain_machine


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with plain_machine():
        return make_record(make_checkout(tmp_path_factory.mktemp("checkout")))


def test_a_true_record_exits_0_and_shows_every_check(
    record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(record)]) == 0
    shown = capsys.readouterr().out
    assert f"all {len(CHECKS)} checks passed" in shown
    assert all(f" {name} " in shown for name in CHECKS)


def test_all_records_are_shown_and_one_that_fails_exits_1(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = Forged(record, record.parents[2], tmp_path)
    forged.record("time_s", 0.001)
    assert main([str(forged.path), str(record)]) == 1
    shown = capsys.readouterr().out
    assert "time_s is 0.001, expected" in shown
    assert shown.count(" second_seed ") == 2


def test_only_pending_exits_1(record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forged = Forged(record, record.parents[2], tmp_path)
    forged.edit("README.md", IDEA, IDEA_PLACEHOLDER)
    assert main([str(forged.path)]) == 1
    assert f"of {len(CHECKS)} checks 0 failed and 1 are pending" in capsys.readouterr().out


def test_a_path_that_is_no_folder_is_a_mistake_of_use(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="is not a folder"):
        main([str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit) as stopped:
        main([])
    assert stopped.value.code == 2


def test_the_folder_of_a_run_or_of_a_track_is_not_taken_for_a_record(record: Path, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="holds records, and is none"):
        main([str(record.parent)])
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(record / "manifest.json", run)
    with pytest.raises(Problem, match="is the folder of a run") as caught:
        main([str(run)])
    assert caught.value.remedy == f"make a record of it: RUN={run} DEST=<name> ./assemble_record.sh"


def test_a_reason_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert not show(Path("[red]x"), [Check("a", False, "[bold]b[/bold]")], Console(width=100))
    shown = capsys.readouterr().out
    assert "[red]x" in shown
    assert "[bold]b[/bold]" in shown


def test_a_record_cannot_write_to_the_terminal(record: Path, tmp_path: Path) -> None:
    forged = Forged(record, record.parents[2], tmp_path)
    forged.record("\x1b[2J\u202e", 1)
    (forged / "\x1b[2J").write_text("")
    forged.manifest(**{"\x1b[2J": 1})
    assert all(check.reason.isprintable() for check in verify_record(forged.path, root=tmp_path))


def test_verification_needs_no_heavy_library() -> None:
    heavy = ("torch", "matplotlib", "scipy", "PIL", "httpx")
    code = f"import sys, harness.verify; sys.exit(str([m for m in {heavy} if m in sys.modules] or ''))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.strip() == ""


def test_the_script_exits_2_on_bad_use() -> None:
    done = subprocess.run(
        [sys.executable, "verify_record.py", "nowhere"], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "nowhere: is not a folder. Remedy: give folders records/<track>/<record>\n"
