"""record.json: what is written reads back equal, names of folders round-trip, and words keep to the rules."""

import datetime
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Problem
from harness.record import (
    DESCRIPTION_LIMIT,
    DESCRIPTION_PLACEHOLDER,
    FolderName,
    PublishedScore,
    Record,
    ScoreEntry,
    contributors_fault,
    description_fault,
    minutes,
    read_record,
    worse,
)
from toy_track.track import TRACK

TEXT = """{
  "ruleset": "1",
  "track": "non_llm",
  "hardware_class": "cpu",
  "number": 7,
  "date": "2026-11-30",
  "name": "push-ppo",
  "description": "Übt Züge",
  "contributors": [
    "Ada"
  ],
  "seed": 1,
  "time_s": 420.125,
  "cpu_s": 801.5,
  "score": {
    "value": 0.742,
    "low": 0.714,
    "high": 0.768,
    "count": 1000
  },
  "target": 0.7,
  "hardware": "2 cores",
  "calibration_s": 1.25,
  "files": {},
  "verification": null,
  "published": {
    "value": 0.742,
    "low": 0.714,
    "high": 0.768
  }
}
"""


def read(tmp_path: Path, text: str) -> Record:
    (tmp_path / "record.json").write_text(text)
    return read_record(tmp_path / "record.json")


def test_what_is_read_is_written_byte_for_byte(tmp_path: Path) -> None:
    record = read(tmp_path, TEXT)
    assert record.dump() == TEXT
    assert (record.date, record.first.time_s, record.folder_name) == (
        datetime.date(2026, 11, 30), 420.125, "2026-11-30_07_push-ppo",
    )  # fmt: skip


def test_every_fault_is_named_with_what_was_found(tmp_path: Path) -> None:
    content = json.loads(TEXT) | {"number": "seven", "time_s": -1, "extra": 1}
    with pytest.raises(Problem) as caught:
        read(tmp_path, json.dumps(content))
    for part in ("number: ", "found 'seven'", "time_s: ", "found -1", "extra: "):
        assert part in caught.value.reason


@given(st.dates(), st.integers(1, 10**6), st.from_regex(r"[a-z0-9]+(-[a-z0-9]+)*", fullmatch=True))
def test_folder_names_round_trip(date: datetime.date, number: int, name: str) -> None:
    folder = FolderName(date, number, name)
    assert FolderName.parse(str(folder)) == folder


@pytest.mark.parametrize(
    "name",
    [
        "", "push-ppo", "2026-11-30_push", "2026-11-30_1_push", "2026-11-30_00_push", "2026-11-30_01_Push",
        "2026-11-30_01_push_ppo", "2026-02-30_01_push", "20261130_01_push", "2026-11-30_01_",
        "2026-11-30_\u0660\u0661_x", "2026-11-30_01_a\n", "2026-11-30_-1_a", "2026-11-30_01_a--b",
        "../2026-11-30_01_a", "2026-11-30_" + "9" * 5000 + "_a",
    ],
)  # fmt: skip
def test_other_folder_names_are_refused(name: str) -> None:
    with pytest.raises(Problem, match="expected <YYYY-MM-DD>"):
        FolderName.parse(name)


def test_the_worse_score_is_the_lower_value_then_the_lower_interval() -> None:
    better = ScoreEntry(value=0.8, low=0.7, high=0.9, count=10)
    lower = ScoreEntry(value=0.7, low=0.65, high=0.8, count=10)
    wider = ScoreEntry(value=0.7, low=0.6, high=0.8, count=10)
    pairs = [
        (better, lower, (0.7, 0.65, 0.8)),
        (lower, wider, (0.7, 0.6, 0.8)),
        (better, None, (0.8, 0.7, 0.9)),
    ]
    for first, second, (value, low, high) in pairs:
        for one, other in [(first, second), (second or first, first)]:
            assert worse(TRACK, one, other) == PublishedScore(value=value, low=low, high=high)


@pytest.mark.parametrize(
    "text",
    [
        "CISPO & Muon, 3x3 kernels (half the steps)",
        "uses low_rank + 8-bit @ 2.5e-3; 50% fewer",
        "größer: #1!",
        "+3 layers, -5% steps",
        "2 x 3 kernels - 1.5x faster",
        "gro\u0308ßer, Vi\u1ec7t, e\u0323\u0302",
    ],
)
def test_plain_descriptions_are_allowed(text: str) -> None:
    assert description_fault(text) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"), ("  ", "is empty"), (" a", "begins or ends"), ("a\nb", "not one line"),
        ("a\tb", "not one line"), ("a\u202eb", "not one line"), ("a\u200bb", "not one line"),
        ("\x1b[31m", "not one line"), ("x" * (DESCRIPTION_LIMIT + 1), "201 characters"),
        ("\u3164", "holds U+3164 at character 1"), ("a\u2800", "nobody can see"),
        ("ab\u0301\u0301\u0301\u0301", "more than 3 marks on the letter at character 2"),
        ("ab\u0489\u20dd\u0489\u20dd", "more than 3 marks on the letter at character 2"),
        ("a\ufe0f", "holds U+FE0F at character 2"), ("a\u180b", "nobody can see"), ("WWW.a.b", "'WWW.'"),
        ("# a", "begins with '# '"), ("- a", "begins with '- '"), ("12. a", "'12. '"), ("---", "begins with"),
        ("a|b", "'|' at character 2"), ("`a`", "'`'"), ("*a*", "'*'"), ("_a_", "'_'"), ("a > b", "'>'"),
        ("<img>", "'<'"), ("[a](b)", "'['"), ("a\\b", "'\\\\'"), ("~a~", "'~'"), ("$a$", "'$'"),
        ("ask ada@a.b", "'a@a'"), ("mailto:a@b", "'a@b'"),
        ("http://a.b", "'://'"), ("www.a.b", "'www.'"), ("a&lt;b", "'&lt;'"), ("a&#60;", "'&#60;'"),
    ],
)  # fmt: skip
def test_descriptions_with_markup_are_refused(text: str, says: str) -> None:
    assert says in str(description_fault(text))


def test_contributors_are_named_once_and_plainly() -> None:
    assert contributors_fault(["Ada L.", "some_user", "Müller-Lüdenscheidt"]) is None
    for names, says in [
        ([], "are not named"),
        (["A", "A"], "twice"),
        (["Zo\u00eb", "zoe\u0308"], "twice"),
        (["A B", "A  B"], "twice"),
        (["A, B"], "comma"),
        (["x" * 61], "61 char"),
    ]:
        assert says in str(contributors_fault(names))


def test_the_placeholder_could_stand_on_a_board() -> None:
    assert description_fault(DESCRIPTION_PLACEHOLDER) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (59.999, "0:59"), (60, "1:00"), (758.4, "12:38"), (3600, "1:00:00"), (36_061, "10:01:01")],
)
def test_clock_times_are_whole_seconds_rounded_down(seconds: float, text: str) -> None:
    assert minutes(seconds) == text
