"""The experience buffer: what it keeps, what it says of tasks and skills, and its data for programs."""

import json
from dataclasses import replace

from agents.benchmarks.base import Episode
from agents.memory.experience import Experience, Use, episode_data, uses
from agents.memory.trajectory import Taken, Trajectory, Turn


def episode(index: int, task: str = "goto", success: bool = True, turns: tuple[Turn, ...] = ()) -> Trajectory:
    return Trajectory(
        Episode(task, index),
        index,
        "the goal",
        "the start",
        turns,
        float(success),
        float(success),
        success,
        10 * index,
        {},
        "success" if success else "step limit",
        {"prompt": 1, "completion": 1},
    )


def call(skill: str, steps: int, error: str | None = None) -> Turn:
    return Turn("", f"skill {skill}()", (Taken("go forward", "x", 0.0),) * steps, "", skill, error)


def test_only_the_latest_are_kept() -> None:
    experience = Experience(2).extended([episode(0)]).extended([episode(1), episode(2)])
    assert [one.index for one in experience.episodes] == [1, 2]


def test_extending_leaves_the_old_experience_as_it_was() -> None:
    experience = Experience(9, [episode(0)])
    experience.extended([episode(1)])
    assert [one.index for one in experience.episodes] == [0]


def test_results_by_task() -> None:
    experience = Experience(9, [episode(1), episode(2, "open"), episode(3, success=False)])
    assert experience.tasks() == [
        {"task": "goto", "episodes": 2, "successes": 1, "score": 0.5, "steps": 20.0},
        {"task": "open", "episodes": 1, "successes": 1, "score": 1.0, "steps": 20.0},
    ]


def test_how_skills_served() -> None:
    episodes = [
        episode(1, turns=(call("go", 3), Turn("", "turn left"), call("go", 1, "crash"))),
        episode(2, success=False, turns=(call("go", 2), call("look", 0))),
        episode(3),
    ]
    assert uses(episodes) == {"go": Use(3, 1, 6, 2, 1), "look": Use(1, 0, 0, 1, 0)}
    assert uses([]) == {}


def test_data_is_plain_and_leaves_out_the_oldest() -> None:
    experience = Experience(9, [episode(index, turns=(call("go", 1),)) for index in range(3)])
    size = len(json.dumps(episode_data(experience.episodes[2])))
    assert [one["index"] for one in experience.data(10_000)] == [0, 1, 2]
    assert [one["index"] for one in experience.data(2 * size)] == [1, 2]
    assert [one["index"] for one in experience.data(size)] == [2]
    assert experience.data(size - 1) == []
    first = experience.data(10_000)[0]
    assert json.loads(json.dumps(first)) == first
    assert first["turns"][0]["steps"] == [["go forward", "x", 0.0]]
    assert "tokens" not in first


def test_json_and_back() -> None:
    experience = Experience(5, [episode(1), replace(episode(2, turns=(call("go", 1),)), learned={"a": 1})])
    again = Experience.from_json(json.loads(json.dumps(experience.to_json())), 5)
    assert again.episodes == experience.episodes
    assert Experience.from_json(experience.to_json(), 1).episodes == experience.episodes[1:]
