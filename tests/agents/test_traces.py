"""Traces: what is played is replayed the same, and what differs is named with file and line."""

import hashlib
import json
from pathlib import Path

import pytest

from agents.benchmarks import load_benchmark
from agents.benchmarks.base import Episode
from agents.task import versions
from agents.traces import (
    LONGEST_TRACE,
    Played,
    check_played,
    digest_of,
    play,
    read_played,
    replaying,
    versions_fault,
)
from agents_evidence import ACTIONS
from harness.errors import Problem

EPISODE = Episode("goto", 2_000_000)
FILE = Path("evidence")


@pytest.fixture(scope="module")
def played() -> Played:
    environment = load_benchmark("babyai").make()
    return play(environment, EPISODE, dict(enumerate(ACTIONS)).get).played


def test_a_digest_covers_the_goal_and_every_observation() -> None:
    assert digest_of("a", ["b", "c"]) == hashlib.sha256(b'["a","b","c"]').hexdigest()
    assert len({digest_of("a", ["b", "c"]), digest_of("ab", ["c"]), digest_of("a", ["bc"])}) == 3


def test_an_episode_is_played_as_its_environment_tells(played: Played) -> None:
    environment = load_benchmark("babyai").make()
    seen = [environment.reset(EPISODE), *(environment.step(action).observation for action in ACTIONS)]
    assert played.digest == digest_of(environment.goal, seen)
    assert (played.steps, played.score, played.episode) == (4, environment.score, EPISODE)
    assert "no action" in seen[3]


def test_a_line_reads_back_equal(played: Played) -> None:
    line = json.loads(json.dumps(played.line()))
    assert read_played(line, EPISODE) == played


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"task": "open"}, "task is 'open', expected 'goto'"),
        ({"seed": 7}, "seed is 7, expected 2000000"),
        ({"seed": 2000000.0}, "seed is 2000000.0, expected"),
        ({"kind": "call"}, "this must be the episode of"),
        ({"more": 1}, "with exactly"),
        ({"actions": "go forward"}, "not a list of texts"),
        ({"actions": ["go forward", 3]}, "not a list of texts"),
        ({"actions": ["x"] * (LONGEST_TRACE + 1)}, "100,001 actions, at most 100,000"),
        ({"steps": 5}, "steps of task 'goto', seed 2000000 are 5, but it has 4 actions"),
        ({"steps": True}, "steps of"),
        ({"score": 1.01}, "no number from 0 to 1"),
        ({"score": True}, "no number from 0 to 1"),
        ({"score": "1"}, "no number from 0 to 1"),
        ({"digest": "A" * 64}, "not a SHA-256"),
        ({"digest": None}, "not a SHA-256"),
    ],
)
def test_a_line_of_another_form_is_refused(played: Played, changes: dict[str, object], says: str) -> None:
    with pytest.raises(Problem) as caught:
        read_played(played.line() | changes, EPISODE)
    assert says in caught.value.reason


def test_what_was_played_is_replayed_and_its_details_given(played: Played) -> None:
    (details,) = check_played("babyai", [played], FILE, 7, versions("babyai"))
    assert details["steps"] == 4 and details["task"] == "goto"
    with replaying("babyai") as replay:
        assert replay(played).played == played


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"score": 1.0}, "score is 1.0, expected 0.0 by the replay of Episode(task='goto', seed=2000000)"),
        ({"digest": "0" * 64}, "digest is 000"),
        ({"actions": ("turn right", *ACTIONS[1:])}, "digest is"),
        ({"actions": ("go forward",) * 200, "steps": 200}, "action 128 comes after the episode's end"),
    ],
)
def test_what_goes_otherwise_is_refused_with_its_line(
    played: Played, changes: dict[str, object], says: str
) -> None:
    with pytest.raises(Problem) as caught:
        check_played("babyai", [played, played._replace(**changes)], FILE, 7, versions("babyai"))
    assert says in caught.value.reason
    assert (caught.value.file, caught.value.line, caught.value.remedy) == ("evidence", 8, None)


def test_other_libraries_are_named_where_a_replay_differs(played: Played) -> None:
    made_on = versions("babyai") | {"minigrid": "2.5.0"}
    with pytest.raises(Problem, match=r"Remedy: .*pip install minigrid==2\.5\.0 gymnasium=="):
        check_played("babyai", [played._replace(score=1.0)], FILE, 2, made_on)


def test_versions_name_the_libraries_and_nothing_else() -> None:
    assert versions_fault("babyai", versions("babyai")) is None
    for value in ({}, None, [], {"minigrid": "1"}, versions("babyai") | {"minigrid": 3},
                  versions("babyai") | {"numpy": "2; rm"}, versions("crafter")):  # fmt: skip
        assert "minigrid, gymnasium, numpy" in str(versions_fault("babyai", value))
