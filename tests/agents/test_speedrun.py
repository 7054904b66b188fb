"""The whole way with a script in place of a model: two runs by the command line, a record, every check."""

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from agents_evidence import few_episodes

import agents.eval_speedrun
import agents.track
from agents import speedrun
from agents.evidence import read_evidence
from agents.track import TRACK
from harness import boards
from harness.assemble import add_verification, assemble
from harness.checks import RecordFolder, check_all
from harness.errors import Problem, run_command
from harness.launch import launch
from harness.manifest import read_manifest
from harness.readme import IDEA_PLACEHOLDER
from harness.record import read_record
from harness.track import ROOT

CHANGES = {
    'model: str = "Qwen/Qwen3.5-35B-A3B"': 'model: str = "scripted"',
    'base_url: str | None = "http://localhost:5012/v1"': 'base_url: str | None = "scripted"',
    "episodes: int = 60": "episodes: int = 4",
    "sleep_every: int = 10": "sleep_every: int = 2",
    "turn_limit: int = 40": "turn_limit: int = 4",
}
"""What makes a recipe of the script that is short, and pinned all the same."""


@pytest.fixture
def track(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The track with five test episodes and a target that a script reaches; a checkout without changes."""
    low = tuple(replace(hardware, target=-0.01) for hardware in TRACK.classes)
    made = replace(TRACK, classes=low, calibrate=lambda: 1.0)
    for module in (agents.track, agents.eval_speedrun, speedrun):
        monkeypatch.setattr(module, "TRACK", made)
    monkeypatch.setattr("harness.manifest.launch_environment", dict)
    monkeypatch.setattr("harness.manifest.read_git", lambda root: None)
    with few_episodes():
        yield


@pytest.fixture
def root(tmp_path: Path, track: None) -> Path:
    """A checkout whose agents/speedrun.py pins the script."""
    (tmp_path / "agents").mkdir()
    for part in (ROOT / "agents").iterdir():
        if part.name != "speedrun.py":
            (tmp_path / "agents" / part.name).symlink_to(part)
    (tmp_path / "harness").symlink_to(ROOT / "harness")
    text = (ROOT / "agents/speedrun.py").read_text()
    for old, new in CHANGES.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / "agents/speedrun.py").write_text(text)
    names = [hardware.name for hardware in TRACK.classes] + [board.name for board in TRACK.boards]
    marks = [f"<!-- board:agents:{name}:{end} -->" for name in names for end in ("start", "end")]
    (tmp_path / "README.md").write_text("\n".join(["# Boards", "", *marks, ""]))
    return tmp_path


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("pinned_speedrun", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pinned_speedrun"] = module
    spec.loader.exec_module(module)
    return module


def run(root: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Path:
    """python -m agents.speedrun ARGUMENTS in that checkout; returns the run folder."""
    module = load(root / "agents/speedrun.py")
    before = set(root.glob("outputs/*"))
    monkeypatch.chdir(root)
    monkeypatch.setattr("sys.argv", ["speedrun", *arguments])
    monkeypatch.setattr("sys.orig_argv", ["python", "-m", "agents.speedrun", *arguments])
    status = launch(
        agents.track.TRACK, module.RECIPES, train=module.train, evaluate=module.evaluate,
        source=root / "agents/speedrun.py", check=module.check,
    )  # fmt: skip
    assert status == 0
    (path,) = set(root.glob("outputs/*")) - before
    return path


def test_two_runs_become_a_record_that_passes_every_check(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(root, monkeypatch, "babyai")
    shown = capsys.readouterr().out
    assert f"Next: RUN=outputs/{first.name} DEST=" in shown
    assert f"{first.name}/training/report.md" in shown and (first / "training/report.md").is_file()
    record = assemble(first, "by-script", root=root, contributors=["Ada"], description="A script").path
    second = run(root, monkeypatch, "babyai", "--verify", str(record))
    readme = record / "README.md"
    readme.write_text(readme.read_text().replace(IDEA_PLACEHOLDER, "No model."))
    record = add_verification(second, record, root=root).path
    assert [check for check in check_all(RecordFolder(record, root=root)) if not check.passed] == []
    boards.refresh(root)
    made = read_record(record / "record.json")
    tokens = read_evidence(record / "evidence.jsonl.xz").tokens
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
    name: str, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "scienceworld" and shutil.which("java") is None:
        pytest.skip("no Java")
    with few_episodes(name, tasks=("boil", "find-plant") if name == "scienceworld" else None):
        path = run(root, monkeypatch, name, "--smoke", "--recipe.parallel", "1")
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
