"""Snapshots and sampled RAM: what is not as it should be is refused by name."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_views import snapshot

from harness.errors import Problem
from retro.live.snapshot import JOURNAL, parse_ram, parse_snapshot


def parsed(value: object) -> Any:
    return parse_snapshot(json.dumps(value).encode())


def test_what_is_written_is_read_back() -> None:
    read = parsed(snapshot())
    assert parse_snapshot(read.model_dump_json().encode()) == read
    assert json.loads(read.model_dump_json()) == snapshot()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "version"),
        ({"extra": 1}, "extra"),
        ({"time": {"frames": -1, "start_frame": None}}, "time.frames"),
        ({"time": {"frames": "60", "start_frame": None}}, "time.frames"),
        ({"time": {"frames": 60}}, "time.start_frame"),
        ({"movie": {"sha256": "A" * 64, "frames": 1, "verified": True}}, "movie.sha256"),
        ({"journal": snapshot()["journal"] * (JOURNAL + 1)}, "journal"),
        ({"run": {**snapshot()["run"], "id": "../../etc"}}, "run.id"),
        ({"run": {**snapshot()["run"], "title": "x" * 301}}, "run.title"),
        ({"search": {**snapshot()["search"], "doing": "nothing"}}, "search.doing"),
        ({"search": {**snapshot()["search"], "frames_per_s": float("1e13")}}, "search.frames_per_s"),
    ],
)
def test_a_field_that_is_wrong_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(Problem, match=f"{said}: "):
        parsed(snapshot(**change))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(sorted(snapshot())), inner),
    )
)
def test_whatever_else_comes_is_refused(value: object) -> None:
    with pytest.raises(Problem):
        parsed(value)


@given(st.binary())
def test_bytes_are_refused(content: bytes) -> None:
    for parse in (parse_snapshot, parse_ram):
        with pytest.raises(Problem):
            parse(content)


def test_ram_has_a_value_for_every_name() -> None:
    ram = {"movie": "5" * 64, "names": ["x", "y"], "every": 2, "values": [[1, 2], [3, -4]]}
    assert parse_ram(json.dumps(ram).encode()).values == [[1, 2], [3, -4]]
    for change in ({"values": [[1]]}, {"values": [[1, 1 << 60]]}, {"every": 0}, {"values": [[1.5, 2]]}):
        with pytest.raises(Problem):
            parse_ram(json.dumps({**ram, **change}).encode())
