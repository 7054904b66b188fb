"""Every reason that keeps a run from the board, each alone and all together."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from harness.eligibility import derived_seed, eligibility
from harness.log import read_log
from harness.manifest import Git, Manifest, read_manifest
from toy_track import speedrun

REASONS: list[tuple[dict[str, Any], str]] = [
    ({"flags": ("--seed", "--steps")}, "flags change the recipe: --seed, --steps"),
    ({"overriding_environment": ("OMP_NUM_THREADS",)}, "the environment overrides it: OMP_NUM_THREADS"),
    ({"customized": ("sitecustomize",)}, "Python was customized: sitecustomize"),
    ({"stray_files": ("a.py", "b.py")}, "it imports files that are neither fixed nor open: a.py, b.py"),
    ({"smoke": True}, "it is a smoke run"),
    ({"resumed": True}, "it is resumed"),
    ({"hardware_class": None}, "the machine is of no hardware class of the track"),
    (
        {
            "git": Git(
                commit="c",
                dirty=True,
                diff_sha256=None,
                dirty_files=("README.md", "tests/toy_track/track.py"),
            )
        },
        "fixed files differ from the commit: tests/toy_track/track.py",
    ),
]


@pytest.fixture
def run(plain_machine: None, tmp_path: Path) -> Path:
    path = speedrun.train(tmp_path)
    speedrun.evaluate(path)
    return path


def altered(manifest: Manifest, changes: dict[str, Any]) -> Manifest:
    return Manifest.model_validate({**dict(manifest), **changes})


def test_each_reason_is_found_and_no_other(run: Path) -> None:
    manifest, log = read_manifest(run / "manifest.json"), read_log(run / "log.jsonl")
    assert eligibility(manifest, log) == []
    for changes, reason in REASONS:
        assert eligibility(altered(manifest, changes), log) == [reason]


def test_all_reasons_are_listed_at_once(run: Path) -> None:
    path = run / "log.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:5]))
    changes = {name: value for change, _ in REASONS for name, value in change.items()}
    manifest = altered(read_manifest(run / "manifest.json"), changes)
    reasons = [reason for _, reason in REASONS]
    assert eligibility(manifest, None) == reasons
    assert eligibility(manifest, read_log(path)) == [*reasons, "it is incomplete: it ends after step"]


def test_changed_files_that_are_not_fixed_do_not_matter(run: Path) -> None:
    git = Git(commit=None, dirty=True, diff_sha256="0" * 64, dirty_files=("toy_track/speedrun.py",))
    manifest = altered(read_manifest(run / "manifest.json"), {"git": git})
    assert eligibility(manifest, read_log(run / "log.jsonl")) == []


def test_the_second_seed_is_31_bits_of_the_hash_of_both() -> None:
    evidence, recipe = "a" * 64, "b" * 64
    number = int(hashlib.sha256(("a" * 64 + "b" * 64).encode()).hexdigest()[:8], 16)
    assert derived_seed(evidence, recipe) == number % 2**31
    assert derived_seed(evidence, recipe) != derived_seed(recipe, evidence)
    assert all(0 <= derived_seed(f"{n:064x}", recipe) < 2**31 for n in range(200))
