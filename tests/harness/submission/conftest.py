"""A pull request that is right, on branch `idea` of a repository of its own, to be spoilt in one way."""

from pathlib import Path

import pytest
from pull_requests import Repository, make_repository


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return make_repository(tmp_path_factory.mktemp("original") / "repository")


@pytest.fixture
def repository(original: Repository, tmp_path: Path) -> Repository:
    return original.copy(tmp_path / "repository")
