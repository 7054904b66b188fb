"""What every test shares: one hypothesis profile, the official levels, and tests that need a GPU."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Machines are shared, so a slow example is no failure.
settings.register_profile("repository", deadline=None)
settings.load_profile("repository")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked `gpu` where torch sees no CUDA device; torch is imported only if there are any."""
    marked = [item for item in items if "gpu" in item.keywords]
    if not marked:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture(scope="session")
def boxoban_folder() -> Path:
    """The folder of official level files named by BOXOBAN_LEVELS; skips the test where there is none."""
    folder = os.environ.get("BOXOBAN_LEVELS")
    if not folder:
        pytest.skip("BOXOBAN_LEVELS is not set")
    return Path(folder)
