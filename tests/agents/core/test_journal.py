"""What a run writes down is read back, and what a crash left is made consistent."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.benchmarks.base import Episode
from agents.core.journal import Journal, without_times
from agents.memory.trajectory import Taken, Trajectory, Turn
from agents.methods.base import Exchange, Sleep
from harness.errors import Problem


def trajectory(index: int) -> Trajectory:
    turns = (
        Turn(
            "Action: skill go()",
            "skill go()",
            (Taken("right", "“seen” \ud800", 0.5),) * 2,
            "told",
            "go",
            None,
        ),
        Turn("what", "", note="unread", error="no line"),
        Turn("Action: skill go()", "skill go()", (), "It failed", "go", "crash: x"),
    )
    tokens = {"prompt": 30, "completion": 4}
    return Trajectory(
        Episode("goto", index),
        index,
        "goal",
        "first",
        turns,
        1.0,
        1.0,
        True,
        2,
        {"a": [1]},
        "success",
        tokens,
    )


def written(folder: Path, batches: int = 3, episodes: int = 2, evaluated: int = 2) -> None:
    """A whole run."""
    journal = Journal(folder)
    journal.begin({"sleeps": 0})
    for batch in range(batches):
        for place in range(episodes):
            journal.add_episode("learn", trajectory(batch * episodes + place), 1.0, 0, batch)
        exchange = Exchange(f"sleep/{batch}/000", (("system", "s"), ("user", "u")), "reply", "stop")
        journal.add_sleep(Sleep(True, "why", "+1\n", ("e",), (exchange,), 3), {"sleeps": batch + 1}, 2.0)
    for index in range(evaluated):
        journal.add_episode("eval", trajectory(index), 1.0, None, None)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_everything_is_read_back(tmp_path: Path) -> None:
    written(tmp_path)
    before = content(tmp_path)
    journal = Journal(tmp_path)
    assert content(tmp_path) == before
    assert (journal.count("learn"), journal.count("eval"), len(journal.sleeps)) == (6, 2, 3)
    assert journal.memory() == {"sleeps": 3}
    assert journal.pending == []
    assert journal.rows[0]["skills"] == {
        "go": {"calls": 2, "failed": 1, "steps": 2, "episodes": 1, "successes": 1}
    }
    assert (journal.rows[0]["answers"], journal.rows[0]["unread"]) == (3, 1)
    assert journal.sleeps[1]["exchanges"][0]["asked"][1] == {"role": "user", "content": "u"}
    assert journal.sleeps[1]["episodes"] == 4
    assert [json.loads(line) for line in before["episodes.jsonl"].splitlines()] == journal.rows


def test_a_new_folder_holds_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert journal.memory() is None
    assert (journal.rows, journal.sleeps, journal.pending) == ([], [], [])


def test_episodes_since_the_last_sleep_are_pending(tmp_path: Path) -> None:
    written(tmp_path, evaluated=0)
    journal = Journal(tmp_path)
    journal.add_episode("learn", trajectory(6), 1.0, 0, 3)
    assert [one.index for one in Journal(tmp_path).pending] == [6]
    assert Journal(tmp_path).pending == [trajectory(6)]


def test_what_else_lies_in_the_memory_is_left_alone(tmp_path: Path) -> None:
    written(tmp_path)
    strange = [
        tmp_path / "memory" / name for name in (".003.json.abcd1234.partial", "001.json~", "notes.txt")
    ]
    for path in strange:
        path.write_text("half")
    (tmp_path / "memory" / "004.json").write_text("{}")
    assert Journal(tmp_path).memory() == {"sleeps": 3}
    assert all(path.exists() for path in strange)
    assert not (tmp_path / "memory" / "004.json").exists()


def test_answers_to_other_questions_are_not_unread(tmp_path: Path) -> None:
    played = trajectory(0)
    asked = replace(played, turns=(*played.turns, Turn('{"task": "go"}', "")))
    journal = Journal(tmp_path)
    row = journal.add_episode("learn", asked, 1.0, 0, 0)
    assert (row["answers"], row["unread"]) == (4, 1)


def set_in(value: Any, keys: list[str | int], new: Any) -> None:
    for key in keys[:-1]:
        value = value[key]
    if new is None:
        del value[keys[-1]]
    else:
        value[keys[-1]] = new


@pytest.mark.parametrize(
    ("name", "keys", "new", "said"),
    [
        ("trajectories.jsonl", ["part"], None, "the key 'part' is missing"),
        ("trajectories.jsonl", ["part"], "test", "no part 'test'"),
        ("trajectories.jsonl", ["batch"], "0", "batch is not a whole number"),
        ("trajectories.jsonl", ["clock"], "late", "clock is not a number"),
        ("trajectories.jsonl", ["trajectory"], [], "not as a run writes it"),
        ("trajectories.jsonl", ["trajectory", "score"], "1", "score is not a number"),
        ("trajectories.jsonl", ["trajectory", "turns"], 3, "not as a run writes it"),
        ("trajectories.jsonl", ["trajectory", "turns", 0, "text"], None, "not as a run writes it"),
        ("trajectories.jsonl", ["trajectory", "turns", 0, "steps"], [3], "not as a run writes it"),
        ("trajectories.jsonl", ["trajectory", "episode"], ["goto"], "not as a run writes it"),
        ("trajectories.jsonl", ["trajectory", "tokens"], {"prompt": 1}, "the key 'completion' is missing"),
        ("trajectories.jsonl", ["trajectory", "other"], 1, "not as a run writes it"),
        ("sleeps.jsonl", ["index"], None, "the key 'index' is missing"),
        ("sleeps.jsonl", ["episodes"], "2", "episodes is not a whole number"),
        ("sleeps.jsonl", ["changed"], None, "the key 'changed' is missing"),
        ("sleeps.jsonl", ["exchanges"], 2, "exchanges is not a list"),
        ("trajectories.jsonl", ["trajectory", "score"], 0.5, "this line, or one before it, is not what was"),
        ("trajectories.jsonl", ["trajectory", "success"], False, "this line, or one before it, is not what"),
        ("trajectories.jsonl", ["trajectory", "turns", 0, "steps", 0, 0], "left", "is not what was written"),
        ("trajectories.jsonl", ["trajectory", "tokens", "prompt"], 3, "is not what was written"),
        ("trajectories.jsonl", ["seal"], None, "the key 'seal' is missing"),
        ("sleeps.jsonl", ["reason"], "because", "this line, or one before it, is not what was written"),
        ("sleeps.jsonl", ["memory"], "0" * 64, "this line, or one before it, is not what was written"),
    ],
)
def test_an_edited_line_is_named(
    tmp_path: Path, name: str, keys: list[str | int], new: Any, said: str
) -> None:
    written(tmp_path)
    lines = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
    set_in(lines[1], keys, new)
    (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(Problem, match=said) as caught:
        Journal(tmp_path)
    assert (caught.value.file, caught.value.line) == (str(tmp_path / name), 2)


@pytest.mark.parametrize("name", ["trajectories.jsonl", "sleeps.jsonl"])
@pytest.mark.parametrize("order", [[0, 2], [1, 0, 2], [0, 1, 1, 2], [1, 2]])
def test_lines_that_were_taken_out_moved_or_repeated_are_named(
    tmp_path: Path, name: str, order: list[int]
) -> None:
    written(tmp_path)
    lines = (tmp_path / name).read_text().splitlines(keepends=True)
    (tmp_path / name).write_text("".join(lines[place] for place in order))
    with pytest.raises(Problem, match="this line, or one before it, is not what was written") as caught:
        Journal(tmp_path)
    first = next(place for place, line in enumerate(order) if place != line)
    assert (caught.value.file, caught.value.line) == (str(tmp_path / name), first + 1)


@pytest.mark.parametrize("name", ["001.json", "003.json"])
def test_a_memory_that_was_edited_is_named(tmp_path: Path, name: str) -> None:
    written(tmp_path)
    path = tmp_path / "memory" / name
    path.write_text(path.read_text().replace('"sleeps": ', '"sleeps": 1'))
    with pytest.raises(
        Problem, match=r"not as a run writes it: sleeps\.jsonl tells of other content"
    ) as caught:
        Journal(tmp_path)
    assert caught.value.file == str(path)


def test_the_clock_goes_on(tmp_path: Path) -> None:
    written(tmp_path)
    path = tmp_path / "sleeps.jsonl"
    path.write_text(path.read_text().replace('"clock":0.', '"clock":50.'))
    assert 50 <= Journal(tmp_path).clock < 60


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    written(folder)
    return folder


@settings(max_examples=60)
@given(st.data())
def test_any_crash_leaves_a_beginning_of_the_run(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    folder = tmp_path_factory.mktemp("crash") / "run"
    shutil.copytree(whole, folder)
    for name in data.draw(st.sets(st.sampled_from(["trajectories.jsonl", "episodes.jsonl", "sleeps.jsonl"]))):
        lines = (folder / name).read_bytes()
        (folder / name).write_bytes(lines[: int(len(lines) * data.draw(st.floats(0, 1)))])
    for name in data.draw(st.sets(st.sampled_from(["002.json", "003.json", "003.diff"]))):
        (folder / "memory" / name).unlink()
    journal = Journal(folder)
    learned, slept, evaluated = journal.count("learn"), len(journal.sleeps), journal.count("eval")
    assert 2 * slept <= learned <= 2 * slept + 2
    assert not evaluated or (learned, slept) == (6, 3)
    assert journal.memory() == {"sleeps": slept}
    assert [one.index for one in journal.pending] == list(range(2 * slept, learned))
    assert [row["index"] for row in journal.rows] == [*range(learned), *range(evaluated)]
    before = content(folder)
    assert int(max(name for name in before if name[0].isdigit())[:3]) <= slept
    Journal(folder)
    assert content(folder) == before


def test_times_are_taken_out_everywhere() -> None:
    value = {"seconds": 1, "a": [{"clock": 2, "b": 3}], "c": {"d": {"seconds": 4}}}
    assert without_times(value) == {"a": [{"b": 3}], "c": {"d": {}}}
