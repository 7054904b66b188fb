"""A checkout in miniature with a true record of the toy track in it, made by the tools themselves."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.assemble import add_verification, assemble
from harness.eligibility import second_seed
from harness.manifest import read_manifest
from harness.readme import IDEA_PLACEHOLDER
from harness.track import ROOT
from toy_track import speedrun, track

IDEA = "Squares are few, so they are learnt by heart."


@contextmanager
def plain_machine() -> Iterator[None]:
    """Runs made in here are of the class "cpu" and eligible, whatever surrounds the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        patch.setattr("harness.manifest.launch_environment", dict)
        patch.setattr("harness.manifest.read_git", lambda root: None)
        patch.setattr("harness.manifest.imported_files", lambda root: set[str]())
        yield


@contextmanager
def launched(*flags: str) -> Iterator[None]:
    """Runs made in here were started by the command line of the toy track."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "orig_argv", [*track.TRACK.command("cpu").split(), *flags])
        yield


def make_checkout(root: Path) -> Path:
    """What a checkout needs for the toy track: its fixed file, its source, and a README with boards."""
    (root / "tests/toy_track").mkdir(parents=True)
    (root / "toy_track").mkdir()
    shutil.copy(ROOT / "tests/toy_track/track.py", root / "tests/toy_track")
    shutil.copy(ROOT / "tests/toy_track/speedrun.py", root / "toy_track")
    marks = [
        f"<!-- board:toy_track:{c.name}:{end} -->" for c in track.TRACK.classes for end in ("start", "end")
    ]
    (root / "README.md").write_text("\n".join(["# Squares", "", *marks, ""]))
    return root


def make_run(root: Path) -> Path:
    """A first run, evaluated."""
    with launched():
        run = speedrun.train(root / "outputs")
    speedrun.evaluate(run)
    return run


def make_second_run(root: Path, record: Path) -> Path:
    """The run that verifies a record, evaluated."""
    manifest = read_manifest(record / "manifest.json")
    seed = second_seed(record / track.TRACK.evidence_name, manifest, track.TRACK)
    with launched("--verify", str(record)):
        run = speedrun.train(root / "outputs", seed=seed, verifies=manifest.run_id)
    speedrun.evaluate(run)
    return run


def write_idea(record: Path) -> None:
    """Write what an author writes by hand."""
    readme = record / "README.md"
    readme.write_text(readme.read_text().replace(IDEA_PLACEHOLDER, IDEA))


def make_record(root: Path, name: str = "by-heart") -> Path:
    """A true and complete record in a checkout made by `make_checkout`."""
    run = make_run(root)
    path = assemble(run, name, root=root, contributors=["Ada", "Bob"], description="Knows them all").path
    write_idea(path)
    return add_verification(make_second_run(root, path), path, root=root).path
