"""The whole way with a script in place of a model: two runs by the command line, a record, every check."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import agents.track
import agents_records
from agents import speedrun
from agents.evidence import read_evidence
from agents_evidence import few_episodes
from agents_records import run
from harness import boards
from harness.assemble import assemble
from harness.checks import RecordFolder, check_all
from harness.errors import Problem, run_command
from harness.launch import launch
from harness.log import read_log
from harness.manifest import read_manifest
from harness.record import read_record


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A checkout whose agents/speedrun.py pins the script."""
    with agents_records.easy_track():
        yield agents_records.make_checkout(tmp_path)


def test_two_runs_become_a_record_that_passes_every_check(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(root, "babyai")
    shown = capsys.readouterr().out
    assert f"Next: RUN=outputs/{first.name} DEST=" in shown
    assert f"{first.name}/training/report.md" in shown and (first / "training/report.md").is_file()
    record = assemble(first, "by-script", root=root, contributors=["Ada"], description="A script").path
    record = agents_records.add_second(root, record)
    assert [check for check in check_all(RecordFolder(record, root=root)) if not check.passed] == []
    boards.refresh(root)
    made = read_record(record / "record.json")
    tokens = read_evidence(record / "evidence.jsonl.xz").tokens()
    assert made.cost == tokens and tokens and made.target == -0.01 and made.hardware_class == "babyai"
    assert (
        f"| 1 | [by-script](records/agents/{record.name}) | {tokens:,} |" in (root / "README.md").read_text()
    )
    manifest = read_manifest(record / "manifest.json")
    assert manifest.recipe_name == "babyai" and manifest.data == {}
    assert set(manifest.open_files) >= {"agents/methods/speedrunner.py", "agents/prompts/system.md"}
    assert "agents/core/wake.py" in manifest.fixed_files
    assert boards.refresh(root, write=False) == []


@pytest.mark.parametrize("name", ["crafter", "scienceworld"])
def test_a_smoke_run_of_the_other_benchmarks(
    name: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "scienceworld" and shutil.which("java") is None:
        pytest.skip("no Java")
    with few_episodes(name, tasks=("boil", "find-plant") if name == "scienceworld" else None):
        path = run(root, name, "--smoke", "--recipe.parallel", "1")
    shown = capsys.readouterr().out
    assert "it is a smoke run" in shown and "tokens: " in shown
    assert (path / "evidence.jsonl.xz").is_file()


def test_without_a_model_there_is_one_plain_problem_and_no_folder(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr("sys.argv", ["speedrun", "babyai", "--recipe.base-url", "http://127.0.0.1:9/v1"])
    with pytest.raises(SystemExit) as caught:
        run_command(
            lambda: launch(
                agents.track.TRACK,
                speedrun.RECIPES,
                train=speedrun.train,
                evaluate=speedrun.evaluate,
                source=root / "agents/speedrun.py",
                check=speedrun.check,
            )
        )
    assert caught.value.code == 2 and not (root / "outputs").exists()
    assert "no model answers at http://127.0.0.1:9/v1" in capsys.readouterr().err
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    hosted = replace(speedrun.Recipe(), provider="openai", base_url=None, temperature=None)
    with pytest.raises(Problem, match="OPENAI_API_KEY is not set"):
        speedrun.check("babyai", hosted)


def test_a_run_that_broke_off_goes_on_and_asks_nothing_twice(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("babyai", "--smoke", "--recipe.parallel", "1")
    whole = run(root, *arguments)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("harness.run.Run.save_state", stop)
        run(root, *arguments)
    path = max(root.glob("outputs/*"))
    assert [event.name for event in read_log(path / "log.jsonl").events][-2:] == ["step", "run_stop"]
    assert run(root, "babyai", "--resume", str(path)) == path
    assert "training begins anew" in capsys.readouterr().out  # of the log; what was played stays
    assert (path / "memory.json").read_bytes() == (whole / "memory.json").read_bytes()
    asked = [len((one / "training/calls.jsonl").read_text().splitlines()) for one in (whole, path)]
    assert asked[0] == asked[1]
    log = read_log(path / "log.jsonl")
    assert log.status == "complete" and len(log.steps) == len(read_log(whole / "log.jsonl").steps) == 2
