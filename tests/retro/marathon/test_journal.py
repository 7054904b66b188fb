"""The journal: every milestone once, whenever the process was killed."""

import json
from pathlib import Path

import pytest

from harness.errors import Problem
from harness.files import read_jsonl
from retro.marathon.journal import JOURNAL, SHOWN, Journal


def written(folder: Path) -> list[str]:
    return [line["note"] for _, line in read_jsonl(folder / JOURNAL)]


def test_lines_have_the_fields_that_are_documented(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.add("improved", "level-1", 200, "a note", 4)
    assert not (tmp_path / JOURNAL).exists()
    journal.flush()
    ((_, line),) = read_jsonl(tmp_path / JOURNAL)
    assert list(line) == sorted(["utc", "event", "state", "frames", "saved", "note"])
    assert (line["event"], line["state"], line["frames"], line["saved"]) == ("improved", "level-1", 200, 4)
    assert line["utc"].endswith("Z")


def test_a_line_that_was_cut_short_is_written_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for note in ("one", "two"):
        journal.add("begun", None, 1, note)
    gathered = list(journal.unwritten)
    journal.flush()
    path = tmp_path / JOURNAL
    for cut in range(len(path.read_bytes()) + 1):
        content = path.read_bytes()
        path.write_bytes(content[:cut])
        again = Journal(tmp_path, gathered)
        again.flush()
        assert written(tmp_path) == ["one", "two"]
        assert [line["note"] for line in again.recent] == ["one", "two"]


def test_the_newest_lines_are_at_hand(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for number in range(SHOWN + 5):
        journal.add("begun", None, number, str(number))
    journal.flush()
    for one in (journal, Journal(tmp_path)):
        assert [line["note"] for line in one.recent] == [str(number) for number in range(5, SHOWN + 5)]


def test_a_malformed_line_is_named(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text(json.dumps({"note": "one"}) + "\n[]\n")
    with pytest.raises(Problem) as caught:
        Journal(tmp_path)
    assert (caught.value.file, caught.value.line) == (str(tmp_path / JOURNAL), 2)
    assert caught.value.remedy
