"""The command line of the review: verdict, summary file and exit status."""

from pathlib import Path

import pytest
from pull_requests import Repository

from harness.submission.__main__ import main
from harness.submission.summary import load


def test_a_good_pull_request_exits_0(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--repository", str(repository.path), "--base", "main"]
    file = tmp_path / "summary.json"
    assert main([*place, "--number", "3", "--summary", str(file)]) == 0
    summary = load(file)
    assert summary.number == 3 and summary.head == repository.git("rev-parse", "idea")
    said = capsys.readouterr().out.split("\n")
    assert said[0] == f"{repository.record}: {summary.records[0].checks} checks passed"
    assert said[1].startswith("  toy_track cpu: place ") and said[1].endswith(" of by-heart)")
    assert said[-2:] == ["14 files differ: nothing to put right", ""]


def test_a_bad_one_exits_1_and_nothing_of_it_is_run(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trap = "open('ran', 'w')\n"
    for name in ("speedrun.py", "sitecustomize.py", "conftest.py"):
        (repository / repository.record / name).write_text(trap)
    (repository / "toy_track/speedrun.py").write_text(trap)
    (repository / ".gitattributes").write_text("* filter=trap diff=trap\n")
    repository.git("config", "filter.trap.smudge", "touch ran; cat")
    repository.git("config", "diff.trap.textconv", "touch ran; cat")
    repository.commit()
    monkeypatch.chdir(repository.path)
    assert main(["--base", "main"]) == 1
    said = capsys.readouterr().out
    assert ".gitattributes: is not part of a record" in said
    assert "folder_contents: conftest.py does not belong here; sitecustomize.py does" in said
    assert "  to put right: recipe_in_source: " in said and "to put right: .gitattributes" in said
    assert said.endswith(" to put right\n") and not (repository / "ran").exists()
