"""What is read out of answers, and that nothing breaks the readers."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from agents.llm.reply import Reply, Usage
from agents.methods.answers import Unusable, between, blocks, read_answer, read_json


class Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    count: int = 0


def reply(text: str, finish: str = "stop") -> Reply:
    return Reply(text, finish, Usage(), None, 0.0, "model")


def test_blocks_by_language_in_order() -> None:
    text = (
        "So:\n```python\nx = 1\n```\nand\n  ~~~ Py  title\ny = '```'\n~~~\n```json\n{}\n```\n```\nbare\n```"
    )
    assert blocks(text, "python", "py") == ["x = 1\n", "y = '```'\n"]
    assert blocks(text, "json") == ["{}\n"]
    assert blocks(text, "") == ["bare\n"]
    assert blocks("```python\nx = 1", "python") == []
    assert blocks("````json\n```json\n{}\n```\n````", "json") == ["```json\n{}\n```\n"]
    assert blocks("```json\r\n{}\r\n```\r\n", "json") == ["{}\n"]


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "a", "count": 2}\n```',
        '```JSON\n{"name": "b"}\n```\nNo:\n```json\n{"name": "a", "count": 2}\n```\nThat is all.',
        '{"name": "a", "count": 2}',
        '```\n{"name": "a", "count": 2}\n```',
    ],
)
def test_json_in_every_dress(text: str) -> None:
    assert read_json(text, Row) == Row(name="a", count=2)


def test_strings_may_hold_line_breaks() -> None:
    assert read_json('```json\n{"name": "a\nb\tc"}\n```', Row).name == "a\nb\tc"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("I would rather not.", "no ```json block"),
        ('```json\n{"name": "a",}\n```', "no JSON: .*, line 1, column 14"),
        ("```json\n\n```", "no JSON"),
        ("```json\n[]\n```", "the JSON is no object"),
        ('```json\n{"count": 2}\n```', "name: Field required"),
        ('```json\n{"name": "a", "counts": 2}\n```', "counts: Extra inputs"),
        ('```json\n{"name": "a", "count": "2"}\n```', "count: "),
        ('```json\n{"name": "a", "count": NaN}\n```', "count: "),
        ("```json\n" + "[" * 100_000 + "\n```", "nested too deep"),
        ("```json\n" + "9" * 5_000 + "\n```", "a number is too long"),
    ],
)
def test_other_answers_are_unusable(text: str, fault: str) -> None:
    with pytest.raises(Unusable, match=fault):
        read_json(text, Row)


def test_at_most_five_faults_are_told() -> None:
    with pytest.raises(Unusable) as caught:
        read_json(json.dumps({str(number): 1 for number in range(20)}), Row)
    assert len(caught.value.faults) == 5


@pytest.mark.parametrize(
    "text",
    [
        "<a>" * 30_000,
        "</a>" * 30_000 + "<a>" * 30_000,
        "```json\nx\n" * 30_000 + "~~~",
        "".join(f"{'`' * count}\n" for count in range(3, 1_000)),
        "".join(f"{'`' * count}\n" for count in range(1_000, 3, -1)),
        "```" + "a" * 100_000,
        " " * 100_000 + "x",
    ],
)
def test_long_answers_take_no_time(text: str) -> None:
    """Readers that try all pairs of marks would take minutes to hours."""
    with contextlib.suppress(Unusable):
        between(text, "a")
    blocks(text, "json")


def test_the_last_text_between_tags_ends_at_the_first_closing_tag() -> None:
    assert between("</a><a>" * 10_000 + "x</A>y</a><a>", "a") == "x"


def test_text_between_tags() -> None:
    assert between("<a>no</a> so <A>\n yes\nyes </a>", "a") == "yes\nyes"
    for text, fault in (("<a>open", "there is no <a>"), ("<a> </a>", "<a> is empty"), ("", "there is no")):
        with pytest.raises(Unusable, match=fault):
            between(text, "a")


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (reply("I cannot help with that.", "refusal"), "a refusal"),
        (reply("", "content_filter"), "withheld"),
        (reply("", "context"), "too long for the model"),
        (reply(""), "empty"),
        (reply(" \n"), "empty"),
        (reply("<think>what is there", "stop"), "empty"),
        (reply("", "length"), "cut off"),
        (reply('```json\n{"name": "a', "length"), "cut off"),
    ],
)
def test_answers_without_words(given: Reply, fault: str) -> None:
    with pytest.raises(Unusable, match=fault):
        read_answer(given, lambda text: read_json(text, Row))


def test_thoughts_are_not_read() -> None:
    given = reply('<think>{"name": "b"}</think>{"name": "a"}')
    assert read_answer(given, lambda text: read_json(text, Row)) == Row(name="a")


def test_what_is_complete_counts_though_the_answer_was_cut_off() -> None:
    given = reply('```json\n{"name": "a"}\n```\nFurther', "length")
    assert read_answer(given, lambda text: read_json(text, Row)) == Row(name="a")


@given(st.text(st.sampled_from('`~jsonpy {}[]:,"1a\n<>/'), max_size=80))
def test_no_text_breaks_the_readers(text: str) -> None:
    readers: list[Any] = [
        lambda: read_json(text, Row),
        lambda: between(text, "a"),
        lambda: blocks(text, "json"),
    ]
    for read in readers:
        try:
            read()
        except Unusable as fault:
            assert fault.faults


@given(st.text(max_size=200), st.integers())
def test_json_that_was_written_is_read(name: str, count: int) -> None:
    row = Row(name=name, count=count)
    assert read_json(f"Here:\n```json\n{row.model_dump_json()}\n```", Row) == row
