"""Files are whole or not there, and JSON is strict."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from harness.errors import Problem
from harness.files import (
    STRICT,
    canonical_json,
    read_bytes,
    read_json,
    read_jsonl,
    read_model,
    sha256_bytes,
    sha256_file,
    write_atomic,
    write_model,
)

# From FIPS 180-4 examples: the message "abc".
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_hashes(tmp_path: Path) -> None:
    assert sha256_bytes(b"abc") == ABC
    assert sha256_file(write(tmp_path / "f", b"abc")) == ABC
    with pytest.raises(Problem, match="cannot be read: No such file"):
        sha256_file(tmp_path / "missing")


def test_an_atomic_write_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_atomic(path, "älter\n")
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_a_failed_write_keeps_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "f", b"old")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(Problem, match="f: cannot be written: No space left on device"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_where_there_is_no_folder_is_a_problem(tmp_path: Path) -> None:
    for parent in (tmp_path / "missing", write(tmp_path / "file", b"")):
        with pytest.raises(Problem, match="cannot be written"):
            write_atomic(parent / "f", b"")


def test_canonical_json_is_one_text_per_value() -> None:
    assert canonical_json({"b": (1, 0.5), "a": "ö"}) == '{"a":"\\u00f6","b":[1,0.5]}'
    assert canonical_json({"a": 1, "b": 2}) == canonical_json({"b": 2, "a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(float("nan"))


@given(value=JSON)
def test_canonical_json_reads_back_equal(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    path = tmp_path_factory.getbasetemp() / "canonical.json"
    path.write_text(canonical_json(value))
    assert read_json(path) == value == json.loads(path.read_text())


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b'{"a": 1,\n "b": }\n', 2, "not JSON: Expecting value, column 7"),
        (b"", 1, "not JSON"),
        (b'{"a": 1, "a": 2}', None, "repeated key 'a'"),
        (b'{"a": NaN}', None, "NaN is not a finite number"),
        (b'{"a": -Infinity}', None, "-Infinity is not a finite number"),
        (b'{"a": 1e999}', None, "1e999 is not a finite number"),
        (b'{"a": "\xff"}', None, "not UTF-8"),
        (b"9" * 5000, None, "not acceptable JSON"),
        (b"[" * 100_000, None, "not acceptable JSON"),
        (b"[" * 101 + b"]" * 101, None, "more than 100 deep"),
        (b'{"a":' * 500 + b"[[],[]]" + b"}" * 500, None, "more than 100 deep"),
        (b"\xef\xbb\xbf{}", 1, "not JSON"),
    ],
)
def test_malformed_json_names_file_and_line(
    tmp_path: Path, content: bytes, line: int | None, reason: str
) -> None:
    path = write(tmp_path / "f.json", content)
    with pytest.raises(Problem) as caught:
        read_json(path)
    assert reason in caught.value.reason
    assert (caught.value.file, caught.value.line) == (str(path), line)


def test_json_may_be_deep_within_reason(tmp_path: Path) -> None:
    content = b"[" * 100 + b"]" * 100
    assert canonical_json(read_json(write(tmp_path / "f.json", content))).encode() == content


@pytest.mark.parametrize("read", [read_json, sha256_file, read_bytes, lambda path: list(read_jsonl(path))])
def test_a_pipe_or_device_is_not_waited_for(tmp_path: Path, read: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(Problem, match=f"{path.name}: cannot be read: it is not a plain file"):
            read(path)


@pytest.mark.parametrize("read", [read_json, sha256_file, read_bytes, lambda path: list(read_jsonl(path))])
@pytest.mark.parametrize("target", ["f", "none", "link", "/dev/zero"])
def test_a_link_is_not_followed(tmp_path: Path, read: Callable[[Path], object], target: str) -> None:
    write(tmp_path / "f", b"{}\n")
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(Problem, match="link: cannot be read: is a link, expected a plain file"):
        read(tmp_path / "link")


def test_a_link_to_a_plain_file_is_followed_where_it_may_be_one(tmp_path: Path) -> None:
    write(tmp_path / "f", b"abc")
    for name, target in (("link", "f"), ("endless", "/dev/zero"), ("loop", "loop")):
        (tmp_path / name).symlink_to(target)
    assert read_bytes(tmp_path / "link", links=True) == b"abc"
    assert sha256_file(tmp_path / "link", links=True) == ABC
    for name in ("endless", "loop"):
        with pytest.raises(Problem, match=f"{name}: cannot be read"):
            read_bytes(tmp_path / name, links=True)


def test_a_link_on_the_way_is_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    write(tmp_path / "folder/f", b"abc")
    (tmp_path / "link").symlink_to("folder")
    assert read_bytes(tmp_path / "link/f") == b"abc"


def test_what_is_put_in_place_of_a_file_after_a_look_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a check by name and the opening, a link takes the place of the file that was checked."""
    write(tmp_path / "secret", b"secret")
    path, opened = write(tmp_path / "f", b"{}"), os.open

    def swapped(name: Path, flags: int) -> int:
        path.unlink()
        path.symlink_to("secret")
        return opened(name, flags)

    assert path.is_file() and not path.is_symlink()
    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(Problem, match="is a link, expected a plain file"):
        read_bytes(path)


def test_jsonl_numbers_its_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", b'{"a": 1}\n{"a": 2}\n')
    assert list(read_jsonl(path)) == [(1, {"a": 1}), (2, {"a": 2})]
    assert list(read_jsonl(write(path, b""))) == []


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b'{"a": 2}', "cut short"),
        (b'{"a": ', "cut short"),
        (b"\n", "not JSON"),
        (b"[1]\n", "not a JSON object"),
        (b'{"a": 1} {"a": 2}\n', "not JSON: Extra data"),
        (b'{"a": NaN}\n', "NaN"),
        (b'{"a": "\xff"}\n', "not UTF-8"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, bad: bytes, reason: str) -> None:
    path = write(tmp_path / "f.jsonl", b'{"a": 1}\n' + bad)
    with pytest.raises(Problem, match=reason) as caught:
        list(read_jsonl(path))
    assert (caught.value.file, caught.value.line) == (str(path), 2)


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="cannot be read"):
        read_json(tmp_path / "missing")
    with pytest.raises(Problem, match="cannot be read"):
        list(read_jsonl(tmp_path / "missing"))


class Thing(BaseModel):
    """A model with one field of each difficult kind."""

    model_config = STRICT
    name: str
    sizes: tuple[float, ...]


@given(sizes=st.lists(st.floats(allow_nan=False, allow_infinity=False)), name=st.text())
def test_a_model_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory, name: str, sizes: list[float]
) -> None:
    path = tmp_path_factory.getbasetemp() / "model.json"
    thing = Thing(name=name, sizes=tuple(sizes))
    write_model(path, thing)
    assert read_model(path, Thing) == thing
    assert path.read_bytes().endswith(b"}\n")


@pytest.mark.parametrize(
    ("content", "reasons"),
    [
        (b'{"name": "a"}', ["sizes: Field required"]),
        (b'{"name": 1, "sizes": ["2"]}', ["name: ", "sizes.0: "]),
        (b'{"name": "a", "sizes": [], "other": 1}', ["other: Extra inputs are not permitted"]),
        (b"[]", ["file: "]),
    ],
)
def test_a_model_names_every_wrong_field(tmp_path: Path, content: bytes, reasons: list[str]) -> None:
    with pytest.raises(Problem) as caught:
        read_model(write(tmp_path / "f.json", content), Thing)
    assert all(reason in caught.value.reason for reason in reasons)
