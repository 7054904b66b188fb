"""sokoban.files: a file is written whole or not at all."""

from pathlib import Path

import pytest

from sokoban.files import write_atomic


def test_write(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for data in (b"old", b"new"):
        write_atomic(path, data)
        assert path.read_bytes() == data and list(tmp_path.iterdir()) == [path]


def test_failure_leaves_the_old_file_and_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OSError) as caught:  # a folder cannot be replaced by a file
        write_atomic(folder, b"data")
    assert caught.value.filename == str(folder)
    assert list(tmp_path.iterdir()) == [folder]
