"""The summary: what is read back, what is no summary, and that no text of a stranger is more than text."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from harness.submission.summary import (
    COMMENT_LIMIT,
    SIZE_LIMIT,
    BadSummary,
    RecordSummary,
    Summary,
    code,
    dump,
    load,
    main,
    markdown,
)

RECORD = RecordSummary(
    folder="records/toy_track/2026-11-30_02_idea", board="toy_track cpu", checks="79 of 80",
    failed=("time: too short",), score="0.9", second="0.8", spent="1:02", rank="1 of 2",
    comparison="-3.0% beside 1:04 of by-heart", verdict="A beats B on time.",
    remarks=("fewer steps than any",),
)  # fmt: skip
SUMMARY = Summary(
    number=7, base="a" * 40, head="b" * 40, files=12, faults=("x/y: is a link",), records=(RECORD,)
)
HOSTILE = (
    "@everyone", "#1", "<img src=x>", "](javascript:x)", "**bold**", "`` ` ``", "a|b\\|c", "\x1b[31mred",
    "\u202eabc", "https://a.b", "&lt;b&gt;", "$x$", "x\n\n# y", "\ud800", "", " ", "-->", ":smile:", "``",
    "`a`", "\\", "\\`",
)  # fmt: skip
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=40), st.text("`|\\<>@#&* \n", max_size=20))


def written(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "summary.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def changed(**fields: object) -> dict[str, object]:
    content: dict[str, object] = json.loads(dump(SUMMARY))
    return content | fields


def test_a_summary_is_read_back_equal(tmp_path: Path) -> None:
    assert load(written(tmp_path, dump(SUMMARY))) == SUMMARY


def test_no_summary_is_too_large_to_be_read_back(tmp_path: Path) -> None:
    long = ("\ud800" * 10_000,) * 100
    record = replace(RECORD, failed=long, remarks=long, folder=long[0])
    huge = Summary(number=1, base="a", head="b", files=1, faults=long, records=(record,) * 40)
    found = load(written(tmp_path, dump(huge)))
    assert (len(found.faults), len(found.records), found.passed) == (31, 10, False)
    assert found.faults[0] == "40 records, of which 10 are shown"
    assert found.records[0].failed[-1] == "and 90 more"


def test_the_comment_tells_all() -> None:
    text = markdown(SUMMARY, "Look at the workflows.")
    for part in (
        "2 to put right",
        "**Look at the workflows.**",
        "| `` 1 of 2 `` |",
        "- `` x/y: is a link ``",
        "- `` time: too short ``",
        "- `` fewer steps than any ``",
        "- `` A beats B on time. ``",
        "`` bbbbbbbbbbbb ``",
        "12 files",
    ):
        assert part in text  # fmt: skip
    good = Summary(number=None, base="a", head="b", files=1, faults=(), records=())
    assert markdown(good).startswith("### Records in this pull request: nothing to put right\n")


@given(TEXTS)
def test_any_text_is_one_code_span_in_one_cell(text: str) -> None:
    span = code(text)
    assert span.isprintable()
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(f"| a | b |\n| --- | --- |\n| {span} | x |\n")
    cells = [token.children or [] for token in tokens if token.type == "inline"]
    assert [[child.type for child in cell] for cell in cells] == [
        ["text"],
        ["text"],
        ["code_inline"],
        ["text"],
    ]
    (item,) = [token.children or [] for token in parser.parse(f"- {span}\n") if token.type == "inline"]
    assert [child.type for child in item] == ["code_inline"]


def test_what_a_terminal_or_reader_would_take_for_more_is_escaped() -> None:
    assert code("\x1b[31mred\u202e") == "`` \\x1b[31mred\\u202e ``"
    assert code("a|`b`\n") == "`` a¦\u02bcb\u02bc\\n ``"
    assert len(code("x" * 10_000)) < 700


def test_a_long_list_is_cut_and_a_comment_has_a_bound() -> None:
    many = Summary(number=1, base="a", head="b", files=1, faults=("x",) * 500, records=())
    assert "- `` and 470 more ``" in markdown(many)
    records = Summary(number=1, base="a", head="b", files=1, faults=(), records=(RECORD,) * 300)
    assert len(markdown(records)) < COMMENT_LIMIT


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "other fields"),
        (changed(more=1), "other fields"),
        (changed(number="7; rm"), "a number that is none"),
        (changed(number=True), "a number that is none"),
        (changed(number=-1), "a number that is none"),
        (changed(files=1e3), "a number that is none"),
        (changed(head=1), "no text"),
        (changed(faults="x"), "no list"),
        (changed(faults=[1]), "no text"),
        (changed(records=[{}]), "other fields"),
        (changed(records=[{**json.loads(dump(SUMMARY))["records"][0], "failed": [["x"]]}]), "no text"),
        (" " * (SIZE_LIMIT + 1), "more than 2000000 bytes"),
    ],
)
def test_what_is_no_summary_is_refused(tmp_path: Path, content: object, says: str) -> None:
    with pytest.raises(BadSummary, match=says):
        load(written(tmp_path, content))


def test_a_link_is_no_summary(tmp_path: Path) -> None:
    written(tmp_path, dump(SUMMARY)).rename(tmp_path / "other")
    (tmp_path / "summary.json").symlink_to(tmp_path / "other")
    with pytest.raises(BadSummary, match="not a plain file"):
        load(tmp_path / "summary.json")


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(written(tmp_path, dump(SUMMARY)))
    assert main([path, "--number"]) == 0 and capsys.readouterr().out == "7\n"
    assert main([path]) == 0 and capsys.readouterr().out == markdown(SUMMARY)
    written(tmp_path, changed(number=None))
    assert main([path]) == 0 and capsys.readouterr().out
    assert main([path, "--number"]) == 2 and "of no pull request" in capsys.readouterr().err
    written(tmp_path, "x")
    assert main([path]) == 2 and capsys.readouterr() == ("", f"{path}: no JSON\n")
