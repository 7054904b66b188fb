"""True records of the agents track without a model: a checkout whose pinned recipe asks the script."""

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import agents.eval_speedrun
import agents.track
from agents import speedrun
from agents.track import TRACK
from agents_evidence import few_episodes
from harness.assemble import add_verification, assemble
from harness.launch import launch
from harness.readme import IDEA_PLACEHOLDER
from harness.track import ROOT

CHANGES = {
    'model: str = "Qwen/Qwen3.5-35B-A3B"': 'model: str = "scripted"',
    'base_url: str | None = "http://localhost:5012/v1"': 'base_url: str | None = "scripted"',
    "episodes: int = 60": "episodes: int = 4",
    "sleep_every: int = 10": "sleep_every: int = 2",
    "turn_limit: int = 40": "turn_limit: int = 4",
}
"""What makes a recipe of the script that is short, and pinned all the same."""


@contextmanager
def easy_track() -> Iterator[None]:
    """The track with five test episodes and a target that a script reaches; a checkout without changes."""
    low = tuple(replace(hardware, target=-0.01) for hardware in TRACK.classes)
    made = replace(TRACK, classes=low, calibrate=lambda: 1.0)
    with pytest.MonkeyPatch.context() as patch, few_episodes():
        for module in (agents.track, agents.eval_speedrun, speedrun):
            patch.setattr(module, "TRACK", made)
        patch.setattr("harness.manifest.launch_environment", dict)
        patch.setattr("harness.manifest.read_git", lambda root: None)
        patch.setattr("harness.manifest.imported_files", lambda root: set[str]())
        yield


def make_checkout(root: Path) -> Path:
    """A checkout whose agents/speedrun.py pins the script."""
    (root / "agents").mkdir()
    for part in (ROOT / "agents").iterdir():
        if part.is_dir():
            (root / "agents" / part.name).symlink_to(part)
        elif part.name != "speedrun.py":  # a file that is a link would be refused
            shutil.copy(part, root / "agents")
    (root / "harness").symlink_to(ROOT / "harness")
    text = (ROOT / "agents/speedrun.py").read_text()
    for old, new in CHANGES.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    (root / "agents/speedrun.py").write_text(text)
    names = [hardware.name for hardware in TRACK.classes] + [board.name for board in TRACK.boards]
    marks = [f"<!-- board:agents:{name}:{end} -->" for name in names for end in ("start", "end")]
    (root / "README.md").write_text("\n".join(["# Boards", "", *marks, ""]))
    return root


def run(root: Path, *arguments: str) -> Path:
    """python -m agents.speedrun ARGUMENTS in that checkout; returns the folder of the latest run."""
    module = _load(root / "agents/speedrun.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setattr("sys.argv", ["speedrun", *arguments])
        patch.setattr("sys.orig_argv", ["python", "-m", "agents.speedrun", *arguments])
        status = launch(
            agents.track.TRACK, module.RECIPES, train=module.train, evaluate=module.evaluate,
            source=root / "agents/speedrun.py", check=module.check,
        )  # fmt: skip
    assert status == 0
    return max(root.glob("outputs/*"))


def add_second(root: Path, record: Path) -> Path:
    """Write the idea of a record and add its second run; returns its folder."""
    second = run(root, "babyai", "--verify", str(record))
    readme = record / "README.md"
    readme.write_text(readme.read_text().replace(IDEA_PLACEHOLDER, "No model."))
    return add_verification(second, record, root=root).path


def make_record(root: Path) -> Path:
    """A true and complete record of BabyAI in a checkout made by `make_checkout`."""
    first = run(root, "babyai")
    record = assemble(first, "by-script", root=root, contributors=["Ada"], description="A script").path
    return add_second(root, record)


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("pinned_speedrun", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pinned_speedrun"] = module
    spec.loader.exec_module(module)
    return module
