"""Lines of JSON in an xz stream: what is packed comes back, and no packed file can do harm."""

import lzma
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import Problem
from harness.packed import pack_lines, plain_lines, unpack_lines

VALUES = st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=20), max_size=3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(VALUES, max_size=5))
def test_what_is_packed_comes_back_with_its_line(tmp_path: Path, values: list[dict[str, object]]) -> None:
    path = tmp_path / "lines.xz"
    path.write_bytes(pack_lines(values))
    assert list(unpack_lines(path, 2**20)) == list(enumerate(values, start=1))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "cut short"),
        (b'{"a":1}\n', "not one whole xz stream"),
        (lzma.compress(b'{"a":1}\n')[:-9], "cut short"),
        (lzma.compress(b'{"a":1}\n') + b"x", "something follows its end"),
        (lzma.compress(b'{"a":1}\n[]\n'), ":2: not a JSON object"),
        (lzma.compress(b'{"a":1}\n{"a":NaN}\n'), ":2: not acceptable JSON"),
        (lzma.compress(b'{"a":1}\n{"a":1,"a":2}\n'), ":2: not acceptable JSON: repeated key"),
        (lzma.compress(b'{"a":1}\n{"a":2}'), ":2: the last line is cut short"),
        (lzma.compress(b" " * 2**22), ":1: a line of more than 1,024 bytes"),
        (lzma.compress(b"\xff\n"), ":1: not UTF-8"),
    ],
)
def test_hostile_files_are_named_by_line(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "lines.xz"
    path.write_bytes(content)
    with pytest.raises(Problem, match=reason):
        list(unpack_lines(path, 1024))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"lines\.xz: cannot be read"):
        list(unpack_lines(tmp_path / "lines.xz", 1024))


def test_a_stream_is_unpacked_only_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines.xz"
    path.write_bytes(lzma.compress((b'{"a":"' + b"x" * 1000 + b'"}\n') * 2**12))
    monkeypatch.setattr("harness.packed.LONGEST_FILE", 2**20)
    lines = unpack_lines(path, 1024)
    assert next(lines)[0] == 1  # what comes first is there before the rest is looked at
    with pytest.raises(Problem, match="unpacks to more than 1,048,576 bytes"):
        for _ in lines:
            pass


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lines.xz")
    with pytest.raises(Problem, match="it is not a plain file"):
        list(unpack_lines(tmp_path / "lines.xz", 1024))


@pytest.mark.parametrize(
    "written",
    [
        b'{"a":1,"b":[2]}\n{"c":3}',
        b'{ "b" : [2],\t"a" : 1 }\n{"c":3}\n',
        b'{"a":1,\r"b":[2]}\r\n{"\\u0063":3}\n',
    ],
)
def test_lines_say_the_same_in_whatever_way_they_are_written(written: bytes) -> None:
    assert plain_lines(written) == b'{"a":1,"b":[2]}\n{"c":3}'


def test_one_value_says_the_same_over_many_lines_and_no_json_is_left_as_it_is() -> None:
    assert plain_lines(b'{"b":1,\n"a":[\n2]}\n') == plain_lines(b'{"a":[2],"b":1}') == b'{"a":[2],"b":1}'
    for content in (b"", b"\x00\xff", b"{}\n{", b"[NaN]", b"[" * 2**20):
        assert plain_lines(content) == content


def test_short_lines_take_no_more_memory_than_they_are_long() -> None:
    content = b"11\n" * 100_000
    tracemalloc.start()
    try:
        plain_lines(content)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(content)
    finally:
        tracemalloc.stop()
