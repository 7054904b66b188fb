"""A segment's search on disk: all of it comes back, and nothing that is damaged is believed."""

import io
import tempfile
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import xxhash
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from harness.errors import Problem
from retro.search.archive import Runs
from retro.search.segment import SegmentSearch
from retro.search.storage import _MAGIC, load_search, save_search
from scripted_game import Hopper
from scripted_game.searching import HASTY, finish, segment, settings

INTO_LEVEL_1: Runs = ((0, 1), (8, 1))
FOLDER = examples(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


def begun(rounds: int) -> SegmentSearch:
    """A search after some rounds; where there are many, solved and shaved."""
    search, worker = segment(Hopper(), INTO_LEVEL_1, settings(cells=300, frames=6_000, patience=6_000))
    if rounds > 5:
        return finish(search, worker)
    for _ in range(rounds):
        search.round(worker)
    return search


def everything(search: SegmentSearch) -> dict[str, object]:
    """All that a search knows, in its order."""
    known = {name: value for name, value in vars(search).items() if name not in ("archive", "_modes")}
    return known | {
        "nodes": list(search.archive.nodes.values()),
        "cells": list(search.archive.cells.items()),
        "archive": (search.archive.limit, search.archive.next_index, search.archive.dropped),
        "weights": list(search.archive.weights(search.limit).items()),
        "beaten": list(search.archive.beaten.items()),
    }


@cache
def saved() -> tuple[SegmentSearch, bytes]:
    """A search and its file."""
    search = begun(10)
    with tempfile.TemporaryDirectory() as folder:
        save_search(Path(folder) / "segment.npz", search)
        return search, (Path(folder) / "segment.npz").read_bytes()


@pytest.mark.parametrize("rounds", [0, *(rounds for rounds in (1, 3, 10))])
def test_everything_comes_back(tmp_path: Path, rounds: int) -> None:
    search = begun(rounds)
    assert bool(search.archive.beaten) == (rounds > 1), "what is to be gone on from is there too"
    path = tmp_path / "segment.npz"
    save_search(path, search)
    again = load_search(path, search.beginning, search.settings)
    assert again is not None
    assert everything(again) == everything(search)
    save_search(tmp_path / "again.npz", again)
    third = load_search(tmp_path / "again.npz", search.beginning, search.settings)
    assert third is not None
    assert everything(third) == everything(search)
    assert [entry.name for entry in tmp_path.iterdir() if "partial" in entry.name] == []


def test_a_file_of_another_segment_is_none(tmp_path: Path) -> None:
    search, content = saved()
    path = tmp_path / "segment.npz"
    path.write_bytes(content)
    for other in (replace(search.beginning, segment=2), replace(search.beginning, ram_hash="0" * 16)):
        assert load_search(path, other, search.settings) is None


def test_a_search_that_was_cut_off_goes_on_with_more_frames(tmp_path: Path) -> None:
    search = finish(*segment(Hopper(), INTO_LEVEL_1, HASTY))
    assert search.ending == "cut off"
    path = tmp_path / "segment.npz"
    save_search(path, search)
    same = load_search(path, search.beginning, HASTY)
    more = load_search(path, search.beginning, settings(frames=50_000))
    assert same is not None
    assert more is not None
    assert (same.ending, more.ending) == ("cut off", "searching")
    assert more.settings.frames == 50_000


def test_settings_may_change_in_between(tmp_path: Path) -> None:
    search, content = saved()
    path = tmp_path / "segment.npz"
    path.write_bytes(content)
    other = settings(modes={"tree": 1, "scripted_game.modes:Killed": 1}, cells=100, crossings=1)
    again = load_search(path, search.beginning, other)
    assert again is not None
    assert again.settings is other
    assert again.mode_frames == {"tree": search.mode_frames["tree"], "scripted_game.modes:Killed": 0}
    assert again.archive.limit == 100
    assert again.archive.known() == search.archive.known()


def refused(path: Path, search: SegmentSearch) -> None:
    with pytest.raises(Problem, match="cut short or corrupt") as caught:
        load_search(path, search.beginning, search.settings)
    assert str(path) in str(caught.value)
    assert "remove the file: only this segment's search begins anew" in str(caught.value)


@FOLDER
@given(st.data())
def test_one_flipped_bit_is_a_problem(tmp_path: Path, data: st.DataObject) -> None:
    search, content = saved()
    place = data.draw(st.integers(0, len(content) - 1))
    bit = data.draw(st.integers(0, 7))
    damaged = bytearray(content)
    damaged[place] ^= 1 << bit
    path = tmp_path / "segment.npz"
    path.write_bytes(damaged)
    refused(path, search)


@FOLDER
@given(st.data())
def test_a_file_cut_short_or_lengthened_is_a_problem(tmp_path: Path, data: st.DataObject) -> None:
    search, content = saved()
    length = data.draw(st.integers(0, len(content) - 1))
    path = tmp_path / "segment.npz"
    path.write_bytes(content[:length])
    refused(path, search)
    path.write_bytes(content + content[: length + 1])
    refused(path, search)


HEADER = "an array's header that is no Python ends in an error of tokenize"


def resealed(body: bytes) -> bytes:
    """A file with a true checksum."""
    return _MAGIC + xxhash.xxh3_128_digest(body) + body


def test_a_damaged_header_under_a_true_checksum_is_a_problem(tmp_path: Path) -> None:
    search, content = saved()
    path = tmp_path / "segment.npz"
    path.write_bytes(resealed(content[len(_MAGIC) + 16 :].replace(b"'shape': (", b"'shape': \0")))
    with pytest.raises(Problem, match="no saved search"):
        load_search(path, search.beginning, search.settings)


def test_a_path_that_goes_round_in_a_circle_is_a_problem(tmp_path: Path) -> None:
    search, _ = saved()
    node = max(search.archive.nodes.values(), key=lambda node: node.index)
    before, node.parent = node.parent, node.index
    path = tmp_path / "segment.npz"
    try:
        save_search(path, search)
    finally:
        node.parent = before
    with pytest.raises(Problem, match="a cell was reached from a later one"):
        load_search(path, search.beginning, search.settings)


@FOLDER
@given(st.data())
def test_damage_under_a_true_checksum_is_a_problem_too(tmp_path: Path, data: st.DataObject) -> None:
    """Whatever the file holds, loading it gives a search, none, or a Problem with the file's name."""
    search, content = saved()
    body = bytearray(content[len(_MAGIC) + 16 :])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "segment.npz"
    path.write_bytes(resealed(bytes(body)))
    try:
        load_search(path, search.beginning, search.settings)
    except Problem as problem:
        assert str(path) in str(problem)


def test_nothing_in_the_file_is_a_pickle(tmp_path: Path) -> None:
    search, content = saved()
    body = content[len(_MAGIC) + 16 :]
    with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
        assert all(array.dtype != object for array in dict(arrays).values())
    packed = io.BytesIO()
    np.savez(packed, meta=np.array([{"version": 1}], dtype=object))
    path = tmp_path / "segment.npz"
    path.write_bytes(resealed(packed.getvalue()))
    with pytest.raises(Problem, match=r"no saved search: .*allow_pickle"):
        load_search(path, search.beginning, search.settings)


def test_an_array_that_lacks_is_a_problem(tmp_path: Path) -> None:
    search, content = saved()
    names = zipfile.ZipFile(io.BytesIO(content[len(_MAGIC) + 16 :])).namelist()
    assert len(names) >= 8
    path = tmp_path / "segment.npz"
    for left_out in names:
        packed = io.BytesIO()
        with (
            zipfile.ZipFile(io.BytesIO(content[len(_MAGIC) + 16 :])) as before,
            zipfile.ZipFile(packed, "w") as after,
        ):
            for name in names:
                if name != left_out:
                    after.writestr(name, before.read(name))
        path.write_bytes(resealed(packed.getvalue()))
        with pytest.raises(Problem, match="no saved search") as caught:
            load_search(path, search.beginning, search.settings)
        assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    search, _ = saved()
    with pytest.raises(Problem, match="cannot be read"):
        load_search(tmp_path / "none.npz", search.beginning, search.settings)


def test_a_folder_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    search, _ = saved()
    with pytest.raises(Problem, match="cannot be written"):
        save_search(tmp_path / "none" / "segment.npz", search)
