"""Blocks between marks: found by their lines, replaced alone, and refused where the marks are not whole."""

import datetime
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Problem
from harness.readme import block_names, find_block, replace_block, results_block
from harness.record import Record, ScoreEntry, worse
from harness.track import Report
from toy_track.track import TRACK

DOCUMENT = (
    "# Title\n<!-- a:start -->\nold\nlines\n<!-- a:end -->\ntext\n<!-- b:x:start -->\n<!-- b:x:end -->\n"
)


def test_a_block_is_found_with_its_line() -> None:
    block = find_block(DOCUMENT, "a", file="F")
    assert (block.text, block.line) == ("old\nlines", 3)
    assert find_block(DOCUMENT, "b:x", file="F").text == ""


def test_only_the_block_is_replaced() -> None:
    changed = replace_block(DOCUMENT, "a", "new", file="F")
    assert changed == DOCUMENT.replace("old\nlines", "new")
    assert replace_block(changed, "b:x", "1\n2", file="F").endswith(
        "<!-- b:x:start -->\n1\n2\n<!-- b:x:end -->\n"
    )


@given(st.text(alphabet="ab\n |", max_size=30))
def test_what_is_put_in_is_found(text: str) -> None:
    changed = replace_block(DOCUMENT, "a", text, file="F")
    assert find_block(changed, "a", file="F").text == text
    assert replace_block(changed, "a", "old\nlines", file="F") == DOCUMENT


def test_names_of_one_kind_in_order() -> None:
    assert block_names(DOCUMENT, "b:") == ["b:x"]
    assert block_names("<!-- b:2:start -->\n<!-- b:1:start -->\n", "b:") == ["b:2", "b:1"]


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("", "has 0 lines <!-- a:start -->"),
        (DOCUMENT.replace("<!-- a:end -->\n", ""), "has 0 lines <!-- a:end -->"),
        (DOCUMENT + "<!-- a:start -->\n", "has 2 lines <!-- a:start -->"),
        ("<!-- a:end -->\n<!-- a:start -->\n", "F:1: the end of a comes before its start"),
        (DOCUMENT.replace("<!-- a:end -->", " <!-- a:end -->"), "has 0 lines <!-- a:end -->"),
    ],
)
def test_marks_that_are_not_whole_are_refused(document: str, says: str) -> None:
    with pytest.raises(Problem) as caught:
        find_block(document, "a", file="F")
    assert says in str(caught.value)


def test_results_show_pictures_and_link_to_other_reports() -> None:
    score = ScoreEntry(value=0.742, low=0.714, high=0.768, count=1000)
    record = Record(
        ruleset="1", track="toy_track", hardware_class="cpu", number=1, date=datetime.date(2026, 11, 30),
        name="idea", description="Learns", contributors=("Ada",), seed=1, time_s=432.0, cpu_s=1.0,
        score=score, target=0.7, hardware="h", calibration_s=1.0, files={}, verification=None,
        published=worse(TRACK, score, None),
    )  # fmt: skip
    plain = results_block(record, replace(TRACK, reports=()))
    assert plain.endswith("(training_curve.svg)") and "Target: above 0.7." in plain
    assert "Target: below 0.7." in results_block(record, replace(TRACK, goal="below"))
    reports = (Report("speed.svg", "speed", str), Report("answers.md", "answers", str))
    shown = results_block(record, replace(TRACK, reports=reports))
    assert shown == plain + "\n\n![speed](speed.svg)\n\n[answers](answers.md)"
