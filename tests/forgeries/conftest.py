"""A true record of the toy track, and a copy of it to forge that is true again for every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from toy_track.forging import Forged
from toy_track.records import make_checkout, make_record, plain_machine


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def original(checkout: Path) -> Path:
    with plain_machine():
        return make_record(checkout)


@pytest.fixture(scope="module")
def _copy(original: Path, checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Forged:
    return Forged(original, checkout, tmp_path_factory.mktemp("forged"))


@pytest.fixture
def forged(_copy: Forged) -> Iterator[Forged]:
    yield _copy
    _copy.restore()
