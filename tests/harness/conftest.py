"""A plain machine for toy runs: no GPU in sight, no git, no variable that overrides a recipe."""

import pytest


@pytest.fixture
def plain_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Toy runs made in this test are of the class "cpu" and eligible, whatever surrounds the tests."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr("harness.manifest.launch_environment", dict)
    monkeypatch.setattr("harness.manifest.read_git", lambda root: None)
    monkeypatch.setattr("harness.manifest.imported_files", lambda root: set[str]())
