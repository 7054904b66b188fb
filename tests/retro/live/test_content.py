"""What is uploaded is looked into: true files pass, and nothing else does or crashes the check."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from live_views import RUN, picture, publish, snapshot, video
from PIL import Image

from harness.errors import Problem
from retro.live.content import check_content

EVERY_EXAMPLE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


def check(name: str, content: bytes, folder: Path) -> None:
    path = folder / "file"
    path.write_bytes(content)
    check_content(name, path, RUN)


def test_true_files_pass(tmp_path: Path) -> None:
    for name, content in publish(tmp_path).items():
        check(name, content, tmp_path)


def test_a_file_under_another_name_does_not_pass(tmp_path: Path) -> None:
    files = publish(tmp_path)
    for name in files:
        for other, content in files.items():
            if Path(name).suffix != Path(other).suffix or (Path(name).suffix == ".json" and name != other):
                with pytest.raises(Problem):
                    check(name, content, tmp_path)


@EVERY_EXAMPLE
@given(st.data())
def test_damaged_files_are_refused_or_harmless(tmp_path: Path, data: st.DataObject) -> None:
    name, content = data.draw(st.sampled_from([("frame.png", picture()), ("movie.mp4", video())]))
    at = data.draw(st.integers(0, len(content) - 1))
    change = data.draw(st.binary(max_size=12))
    damaged = content[:at] + change + content[at + data.draw(st.integers(0, 12)) :]
    try:
        check(name, damaged, tmp_path)
    except Problem as problem:
        assert name in str(problem)


@EVERY_EXAMPLE
@given(st.integers(0, len(video()) - 1))
def test_an_mp4_that_is_cut_short_is_refused(tmp_path: Path, length: int) -> None:
    with pytest.raises(Problem):
        check("movie.mp4", video()[:length], tmp_path)


def test_a_page_is_no_movie_and_no_picture(tmp_path: Path) -> None:
    page = b"<!doctype html><script>alert(1)</script>"
    for name in ("frame.png", "movie.mp4", "snapshot.json", "ram.json"):
        with pytest.raises(Problem):
            check(name, page, tmp_path)


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    content = io.BytesIO()
    Image.fromarray(np.zeros((5000, 5000), np.uint8)).save(content, "png")
    with pytest.raises(Problem, match="5000 x 5000"):
        check("mosaic.png", content.getvalue(), tmp_path)


def test_a_snapshot_belongs_to_its_run(tmp_path: Path) -> None:
    other = snapshot(run={**snapshot()["run"], "id": "f" * 32})
    with pytest.raises(Problem, match="another run"):
        check("snapshot.json", json.dumps(other).encode(), tmp_path)
