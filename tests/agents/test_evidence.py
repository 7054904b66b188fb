"""Evidence: what is written reads back equal, and hostile lines are refused with file and line."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.evidence import CallRow, Evidence, read_call, read_evidence, write_evidence
from agents_evidence import ANSWER, HASH, few_episodes, header, rows, some_calls, some_play, write_rows
from harness.errors import Problem


@pytest.fixture(autouse=True, scope="module")
def few() -> Iterator[None]:
    with few_episodes():
        yield


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    return rows()


def test_what_is_written_reads_back_equal(tmp_path: Path) -> None:
    played = some_play()
    calls = some_calls(len(played))
    write_evidence(tmp_path / "evidence", header(), calls, played)
    assert read_evidence(tmp_path / "evidence") == Evidence(header(), calls, played, len(calls) + 2)


def test_tokens_are_those_of_all_calls(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    found = read_evidence(write_rows(tmp_path / "evidence", lines))
    assert found.tokens() == 107 + 1100 + 5 * 107
    assert found.tokens("wake", "sleep") == 107 + 1100 and found.tokens("eval") == 5 * 107


@pytest.mark.parametrize(
    ("call", "tokens"),
    [
        (ANSWER, 107),
        (ANSWER._replace(lost=50), 157),
        (ANSWER._replace(prompt=None), None),
        (ANSWER._replace(completion=None), None),
        (ANSWER._replace(reply=None, finish=None, prompt=None, completion=None, lost=9), 9),
        (ANSWER._replace(reply="", completion=0), 100),
    ],
)
def test_what_a_call_took(call: CallRow, tokens: int | None) -> None:
    assert read_call(call.line()) == call and call.tokens == tokens


def test_one_call_without_a_count_makes_the_whole_unknown(
    tmp_path: Path, lines: list[dict[str, Any]]
) -> None:
    changed = [lines[0], lines[1] | {"completion": None}, *lines[2:]]
    assert read_evidence(write_rows(tmp_path / "evidence", changed)).tokens() is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kind": "calls"}, "no call"),
        ({"dollars": 0}, "exactly completion, finish"),
        ({"label": "train/0"}, "label is 'train/0', expected wake/... or sleep/... or eval/..."),
        ({"label": "wake"}, "label is"),
        ({"label": "wake/../x\n"}, "label is"),
        ({"label": None}, "label is"),
        ({"label": f"wake/0/{'9' * 5000}"}, "label is"),
        ({"request": HASH[1:]}, "not a SHA-256"),
        ({"reply": None}, "neither the text and end"),
        ({"reply": 3}, "neither the text and end"),
        ({"reply": None, "finish": None}, "prompt of call"),
        ({"prompt": -1}, "prompt of call 'eval/000000/000' is -1"),
        ({"prompt": True}, "prompt of call"),
        ({"completion": 7.0}, "completion of call"),
        ({"completion": 2**40}, "completion of call"),
        ({"prompt": 0}, "without a token"),
        ({"completion": 0}, "without a token"),
        ({"reply": "", "prompt": 0, "completion": 0}, "without a token"),
        ({"lost": None}, "lost of call"),
        ({"lost": -1}, "lost of call"),
    ],
)
def test_a_call_of_another_form_is_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(Problem) as caught:
        read_call(ANSWER.line() | changes)
    assert says in caught.value.reason


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"class": "chess"}, "class is 'chess', none of babyai, crafter, scienceworld"),
        ({"class": ["babyai"]}, "class is ['babyai']"),
        ({"seed": -1}, "seed is not a number of 31 bits"),
        ({"seed": 2**31}, "seed is no"),
        ({"seed": True}, "seed is no"),
        ({"checkpoint_sha256": None}, "'checkpoint_sha256' has no SHA-256"),
        ({"prompts": "f" * 64}, "prompts is not an object"),
        ({"prompts": {"wake": "f" * 63}}, "'wake' has no SHA-256"),
        ({"versions": {}}, "versions does not name those of minigrid"),
        ({"recipe": {"method": "react"}}, "recipe does not hold method, model"),
        ({"recipe": header()["recipe"] | {"model": ["a"]}}, "the recipe's model is ['a']"),
        ({"episodes": 4}, "episodes is 4, expected 5"),
        ({"episodes": 5.0}, "episodes is 5.0"),
        ({"score": 1.0}, "must hold exactly"),
    ],
)
def test_another_first_line_is_refused(
    tmp_path: Path, lines: list[dict[str, Any]], changes: dict[str, object], says: str
) -> None:
    path = write_rows(tmp_path / "evidence", [lines[0] | changes, *lines[1:]])
    with pytest.raises(Problem) as caught:
        read_evidence(path)
    assert says in caught.value.reason and (caught.value.file, caught.value.line) == (str(path), 1)


def refusal(path: Path, lines: list[dict[str, Any]]) -> str:
    with pytest.raises(Problem) as caught:
        read_evidence(write_rows(path, lines))
    return str(caught.value).removeprefix(f"{path}:")


def test_lines_missing_repeated_or_out_of_order_are_refused(
    tmp_path: Path, lines: list[dict[str, Any]]
) -> None:
    path, (head, *calls) = tmp_path / "evidence", lines[:8]
    played = lines[8:]
    assert "1: class is None" in refusal(path, [])
    assert "4 of 5 episodes, the rest is missing" in refusal(path, [head, *calls, *played[:4]])
    assert refusal(path, [*lines, played[4]]).startswith("14: more than 5 episodes")
    assert refusal(path, [head, *calls, played[1], played[0], *played[2:]]).startswith("9: task is 'pickup'")
    assert refusal(path, [head, *calls, *played[:2], calls[0], *played[2:]]).startswith("11: this must be")
    assert refusal(path, [head, calls[0], *calls, *played]).startswith(
        "3: a second answer to 'wake/000000/000'"
    )
    assert refusal(path, [calls[0], *lines]).startswith("1: class is None")
    far = ANSWER._replace(label=f"wake/{'9' * 100}/000").line()
    assert "of the calls wake/... number 1 is missing" in refusal(path, [head, far, *calls, *played])


def test_an_episode_without_its_calls_is_refused_and_calls_without_theirs(
    tmp_path: Path, lines: list[dict[str, Any]]
) -> None:
    path = tmp_path / "evidence"
    assert "eval/000001/..., but" not in refusal(path, [*lines[:4], *lines[5:]])
    assert refusal(path, [*lines[:4], *lines[5:]]).startswith("9: took actions, but no call eval/000001/...")
    extra = ANSWER._replace(label="eval/000005/000").line()
    assert "calls eval/000005/..., but there is no such episode" in refusal(
        path, [*lines[:8], extra, *lines[8:]]
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"reply": None, "finish": None, "prompt": None, "completion": None},
        {"reply": "", "completion": 0},
    ],
)
def test_an_episode_whose_calls_told_it_nothing_is_refused(
    tmp_path: Path, lines: list[dict[str, Any]], changes: dict[str, object]
) -> None:
    silent = [row | changes if str(row.get("label")).startswith("eval/000001/") else row for row in lines]
    assert silent != lines
    assert refusal(tmp_path / "evidence", silent).startswith(
        "10: took actions, but no call eval/000001/... was answered"
    )


@pytest.mark.parametrize("content", [b"", b"{}\n", b"\xfd7zXZ\x00 cut short"])
def test_what_is_no_xz_stream_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "evidence").write_bytes(content)
    with pytest.raises(Problem, match="not one whole xz stream"):
        read_evidence(tmp_path / "evidence")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(ANSWER.line())), JSON)
def test_any_value_in_any_field_of_a_call_is_taken_or_refused(field: str, value: object) -> None:
    line = ANSWER.line() | {field: value}
    with contextlib.suppress(Problem):
        assert read_call(line).line() == line


@given(st.sampled_from(sorted(header())), JSON)
def test_any_value_in_any_field_of_the_header_is_taken_or_refused(field: str, value: object) -> None:
    from agents.evidence import check_header

    with contextlib.suppress(Problem):
        check_header(header() | {field: value})
