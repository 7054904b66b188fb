"""Boards and figures that differ from the records are named by `python -m harness.boards --check`."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from forgeries.boards import FORGERIES, Edit
from harness.boards import refresh


@pytest.fixture(scope="module")
def made(original: Path, checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = Path(shutil.copytree(checkout, tmp_path_factory.mktemp("boards") / "checkout"))
    refresh(root)
    return root


@pytest.fixture
def root(made: Path) -> Iterator[Path]:
    yield made
    refresh(made)


def test_true_boards_pass(root: Path) -> None:
    assert refresh(root, write=False) == []


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.name)
def test_a_forged_board_is_named(forgery: Edit, root: Path) -> None:
    (path,) = root.glob(forgery.file)
    text = path.read_text()
    assert forgery.old in text
    path.write_text(text.replace(forgery.old, forgery.new))
    assert refresh(root, write=False) == [path]
