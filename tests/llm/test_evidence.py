"""Evidence files: what is written is read back, and nothing else is more than a Problem."""

import json
import lzma
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness.packed
from harness.errors import Problem
from harness.files import sha256_file
from harness.track import ROOT
from llm import evidence as module
from llm.completion import INTERRUPTION, Completion, Limits
from llm.evidence import (
    check_index,
    completion_fault,
    completion_row,
    read_evidence,
    text_fault,
    words_of,
    write_evidence,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

HEADER = {"class": "cpu", "limits": {"max_tokens": 160}}
ROWS = [
    {"puzzle": 0, "completions": [{"text": "a\n\u00e9\U0001f4a9\ud800"}]},
    {"puzzle": 1, "completions": []},
]
LIMITS = Limits(max_tokens=100, answer_tokens=20)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "evidence.jsonl.xz"


def packed(path: Path, content: bytes) -> Path:
    path.write_bytes(lzma.compress(content))
    return path


def test_what_is_written_is_read_back_with_its_lines(path: Path) -> None:
    write_evidence(path, HEADER, iter(ROWS))
    assert list(read_evidence(path)) == list(enumerate([HEADER, *ROWS], start=1))


def test_it_is_plain_xz_and_the_same_each_time(path: Path) -> None:
    write_evidence(path, HEADER, ROWS)
    first = path.read_bytes()
    lines = lzma.decompress(first).decode("ascii").splitlines()
    assert [json.loads(line) for line in lines] == [HEADER, *ROWS]
    write_evidence(path, HEADER, ROWS)
    assert path.read_bytes() == first


def test_a_number_that_is_none_is_not_written(path: Path) -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        write_evidence(path, HEADER, [{"puzzle": float("nan")}])
    assert not path.exists()


def test_lines_longer_than_a_piece_are_read_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness.packed, "_CHUNK", 7)
    write_evidence(path, HEADER, ROWS)
    assert list(read_evidence(path)) == list(enumerate([HEADER, *ROWS], start=1))


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b'{"a":1}\n{"b":', 2, "cut short"),
        (b'{"a":1}\n{"b":2}', 2, "cut short"),
        (b'{"a":1}\n\n', 2, "not JSON"),
        (b'{"a":1}\n[]\n', 2, "not a JSON object"),
        (b"null\n", 1, "not a JSON object"),
        (b'{"a":1,"a":1}\n', 1, "repeated key 'a'"),
        (b'{"a":{"b":1,"b":2}}\n', 1, "repeated key 'b'"),
        (b'{"a":NaN}\n', 1, "not a finite number"),
        (b'{"a":1e999}\n', 1, "not a finite number"),
        (b'{"a":"\xff"}\n', 1, "not UTF-8"),
        (b'{"a":' + b"9" * 5000 + b"}\n", 1, "not acceptable JSON"),
        (b'{"a":1}\n' + b"[" * 100_000 + b"\n", 2, "not acceptable JSON"),
        (b'{"a":"\n"}\n', 1, "not JSON"),
    ],
)
def test_a_bad_line_is_named(path: Path, content: bytes, line: int, reason: str) -> None:
    with pytest.raises(Problem, match=reason) as caught:
        list(read_evidence(packed(path, content)))
    assert (caught.value.file, caught.value.line) == (str(path), line)


def test_an_empty_stream_has_no_lines(path: Path) -> None:
    assert list(read_evidence(packed(path, b""))) == []


def test_a_file_that_is_not_there_or_no_file(path: Path, tmp_path: Path) -> None:
    for wrong in (path, tmp_path):
        with pytest.raises(Problem, match="cannot be read"):
            list(read_evidence(wrong))


def test_a_file_cut_anywhere_is_a_problem(path: Path) -> None:
    write_evidence(path, HEADER, ROWS)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(Problem, match="not one whole xz stream"):
            list(read_evidence(path))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data + b"\0\0\0\0",
        lambda data: data + data,
        lambda data: b"\x1f\x8b" + data,
        lambda data: json.dumps(HEADER).encode() + b"\n",
        lambda data: lzma.compress(lzma.decompress(data), format=lzma.FORMAT_ALONE),
        lambda data: data[:30] + bytes([data[30] ^ 1]) + data[31:],
    ],
)
def test_another_stream_is_a_problem(path: Path, damage: Any) -> None:
    write_evidence(path, HEADER, ROWS)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(Problem, match="not one whole xz stream") as caught:
        list(read_evidence(path))
    assert caught.value.file == str(path)


def test_a_bomb_is_a_problem(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness.packed, "LONGEST_FILE", 2**22)
    lines = b'{"a":"' + b" " * 2**16 + b'"}\n'
    with pytest.raises(Problem, match="unpacks to more than 4,194,304 bytes"):
        list(read_evidence(packed(path, lines * 100)))


def test_a_line_without_end_is_a_problem(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_LINE", 2**20)
    with pytest.raises(Problem, match="a line of more than 1,048,576 bytes") as caught:
        list(read_evidence(packed(path, b'{"a":1}\n' + b" " * 2**23)))
    assert caught.value.line == 2


def test_a_stream_that_asks_for_much_memory_is_a_problem(path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**30}]
    path.write_bytes(lzma.compress(b'{"a":1}\n', filters=filters))
    with pytest.raises(Problem, match=r"[Mm]emory"):
        list(read_evidence(path))


@given(st.binary(max_size=200))
def test_random_bytes_are_a_problem(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "random.xz"
    path.write_bytes(data)
    with pytest.raises(Problem):
        list(read_evidence(path))


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_a_damaged_file_reads_as_lines_or_is_a_problem(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.xz"
    write_evidence(path, HEADER, ROWS)
    data, generator = bytearray(path.read_bytes()), random.Random(seed)
    for _ in range(count):
        data[generator.randrange(len(data))] = generator.randrange(256)
    path.write_bytes(data)
    try:
        assert list(read_evidence(path)) == list(enumerate([HEADER, *ROWS], start=1))
    except Problem as problem:
        assert problem.file == str(path)


# ---- one completion -----------------------------------------------------------------------------------


def test_a_completion_that_ended_by_itself() -> None:
    completion = Completion([5, 6, 1], [-0.1, -0.2, -0.3], [True] * 3, True, None)
    row = completion_row(completion, "ab", None)
    assert row == {"text": "ab", "tokens": 3, "finish": "stop"}
    assert completion_fault(row, LIMITS) is None


@pytest.mark.parametrize(
    ("answer", "stopped", "finish"), [(20, False, "length"), (20, True, "stop"), (1, True, "stop")]
)
def test_a_completion_that_was_interrupted(answer: int, stopped: bool, finish: str) -> None:
    sampled = [True] * 77 + [False] * 3 + [True] * answer
    completion = Completion([5] * len(sampled), [0.0] * len(sampled), sampled, stopped, 77)
    row = completion_row(completion, f"hm{INTERRUPTION}<answer>U</answer>", 2)
    assert {key: row[key] for key in row if key != "text"} == {
        "tokens": 80 + answer,
        "finish": finish,
        "interrupted": 2,
        "answer_tokens": answer,
    }
    assert completion_fault(row, LIMITS) is None


ENDED = {"text": "ab", "tokens": 79, "finish": "stop"}
INTERRUPTED = {
    "text": f"ab{INTERRUPTION}cd",
    "tokens": 90,
    "finish": "stop",
    "interrupted": 2,
    "answer_tokens": 10,
}


@pytest.mark.parametrize(
    ("completion", "change", "fault"),
    [
        (ENDED, {}, None),
        (ENDED, {"tokens": 1}, None),
        (ENDED, {"text": f"it said {INTERRUPTION} by itself"}, None),
        (ENDED, {"text": None}, "text is not text"),
        (ENDED, {"text": ["ab"]}, "text is not text"),
        (ENDED, {"tokens": 0}, "not a number from 1 to 100"),
        (ENDED, {"tokens": -1}, "not a number from 1 to 100"),
        (ENDED, {"tokens": True}, "not a number from 1 to 100"),
        (ENDED, {"tokens": 3.0}, "not a number from 1 to 100"),
        (ENDED, {"tokens": "3"}, "not a number from 1 to 100"),
        (ENDED, {"tokens": 101}, "not a number from 1 to 100"),
        (ENDED, {"tokens": 80}, "80 tokens without an interruption"),
        (ENDED, {"finish": "length"}, "cut off without having been interrupted"),
        (ENDED, {"finish": "abort"}, "neither 'stop' nor 'length'"),
        (ENDED, {"finish": None}, "neither 'stop' nor 'length'"),
        (ENDED, {"finish": ["stop"]}, "neither 'stop' nor 'length'"),
        (ENDED, {"solved": True}, "must have text, tokens and finish"),
        (ENDED, {"interrupted": 2}, "must have text, tokens and finish"),
        (ENDED, {"answer_tokens": 2}, "must have text, tokens and finish"),
        (INTERRUPTED, {}, None),
        (INTERRUPTED, {"tokens": 100, "answer_tokens": 20, "finish": "length"}, None),
        (INTERRUPTED, {"answer_tokens": 0, "tokens": 80}, "answer_tokens is not a number from 1 to 20"),
        (INTERRUPTED, {"answer_tokens": 21}, "answer_tokens is not a number from 1 to 20"),
        (INTERRUPTED, {"answer_tokens": True, "tokens": 81}, "answer_tokens is not a number from 1 to 20"),
        (INTERRUPTED, {"tokens": 89}, "89 tokens, not the 80"),
        (INTERRUPTED, {"tokens": 12, "answer_tokens": 10}, "12 tokens, not the 80"),
        (INTERRUPTED, {"finish": "length"}, "cut off after 10 answer_tokens, not after 20"),
        (INTERRUPTED, {"interrupted": None}, "not a position in the text"),
        (INTERRUPTED, {"interrupted": True}, "not a position in the text"),
        (INTERRUPTED, {"interrupted": -1}, "not a position in the text"),
        (INTERRUPTED, {"interrupted": 10**6}, "not a position in the text"),
        (INTERRUPTED, {"interrupted": 1}, "the interruption is not where"),
        (INTERRUPTED, {"interrupted": 3}, "the interruption is not where"),
        (INTERRUPTED, {"text": "abcd"}, "the interruption is not where"),
    ],
)
def test_a_completion_that_the_protocol_cannot_have_written(
    completion: dict[str, Any], change: dict[str, Any], fault: str | None
) -> None:
    found = completion_fault(completion | change, LIMITS)
    assert found is None if fault is None else fault in str(found)


@pytest.mark.parametrize("missing", ["text", "tokens", "finish", "interrupted", "answer_tokens"])
def test_a_completion_without_one_of_its_fields(missing: str) -> None:
    rest = {key: value for key, value in INTERRUPTED.items() if key != missing}
    assert "must have" in str(completion_fault(rest, LIMITS))


@pytest.mark.parametrize("thing", [None, [], "ab", 7, True])
def test_what_is_no_object_is_no_completion(thing: object) -> None:
    assert completion_fault(thing, LIMITS) == "it is not an object"


TINY = words_of(ROOT / "llm/tiny")


@given(st.lists(st.integers(0, 99).filter(lambda token: token != 1), max_size=79), st.booleans())
def test_what_the_tiny_model_can_write_in_so_many_tokens_is_no_fault(
    tokenizer: "PreTrainedTokenizerBase", tokens: list[int], stopped: bool
) -> None:
    drawn = [*tokens, 1] if stopped or not tokens else tokens
    text = str(tokenizer.decode(drawn, skip_special_tokens=True))
    row = {"text": text, "tokens": len(drawn), "finish": "stop" if drawn[-1] == 1 else "length"}
    assert text_fault(row, TINY) is None and text_fault(row, None) is None


@pytest.mark.parametrize(
    ("text", "tokens", "words", "reason"),
    [
        ("<answer>UU</answer>", 4, TINY, "4 tokens cannot be its text, which takes at least 5"),
        ("<answer>UU</answer>", 5, TINY, None),
        ("<answer>U", 3, TINY, None),
        ("<answer>\u00c4</answer>", 9, TINY, "its text holds '\u00c4', which the model cannot write"),
        ("<|end|>", 9, TINY, None),
        ("U" * 512, 2, None, "2 tokens cannot be its text, which takes at least 3"),
        ("U" * 512, 3, None, None),
        ("\ud800", 2, None, None),
    ],
)
def test_a_text_takes_its_tokens(
    text: str, tokens: int, words: frozenset[str] | None, reason: str | None
) -> None:
    assert text_fault({"text": text, "tokens": tokens, "finish": "stop"}, words) == reason


def index(path: Path, files: object) -> Path:
    path.write_text(json.dumps({"files": files}))
    return path


def test_an_index_names_weights_that_are_not_those_it_began_with(tmp_path: Path) -> None:
    start, other = sha256_file(ROOT / "llm/tiny/model.safetensors"), "0" * 64
    path = tmp_path / "checkpoint.json"
    check_index(index(path, {"model.safetensors": other}), ROOT / "llm/tiny")
    check_index(index(path, {"model.safetensors": start}), None)
    for files, reason in (
        ({"model.safetensors": start}, "training began with"),
        ({"config.json": other}, "names no weights"),
        ({"../model.safetensors": other}, "should match pattern"),
        ({"model.safetensors": "0"}, "should match pattern"),
        ([], "files: Input should be"),
    ):
        with pytest.raises(Problem, match=reason):
            check_index(index(path, files), ROOT / "llm/tiny")
