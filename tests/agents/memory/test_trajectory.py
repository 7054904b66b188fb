"""Trajectories survive JSON, and tell their primitive actions."""

import json
from dataclasses import replace

from agents.benchmarks.base import Episode
from agents.memory.trajectory import Taken, Trajectory, Turn

TRAJECTORY = Trajectory(
    Episode("goto", 7),
    3,
    "go to a ball",
    "a ball",
    (
        Turn("Thought: a\nAction: turn left", "turn left", (Taken("turn left", "a wall", 0.0),)),
        Turn("what?", "", note="unreadable", error="no line begins with `Action:`"),
        Turn(
            "Action: skill go()",
            "skill go()",
            (Taken("go forward", "b", 0.0), Taken("go forward", "c", 1.0)),
            "It returned 2",
            "go",
        ),
    ),
    1.0,
    1.0,
    True,
    3,
    {"task": "goto"},
    "success",
    {"prompt": 10, "completion": 4},
    {"skills": []},
)


def test_json_and_back() -> None:
    text = json.dumps(TRAJECTORY.to_json(), allow_nan=False)
    assert Trajectory.from_json(json.loads(text)) == TRAJECTORY


def test_json_and_back_without_turns() -> None:
    empty = replace(TRAJECTORY, turns=(), learned={})
    assert Trajectory.from_json(json.loads(json.dumps(empty.to_json()))) == empty


def test_actions_are_those_of_skills_too() -> None:
    assert TRAJECTORY.actions == ["turn left", "go forward", "go forward"]
