"""What skills are served of a real environment."""

import pytest

from agents.benchmarks.babyai import BENCHMARK
from agents.benchmarks.base import Episode
from agents.memory.trajectory import Taken
from agents.methods.serving import Served, view
from agents.sandbox.host import EpisodeOver


def test_steps_are_served_and_kept() -> None:
    environment, other = BENCHMARK.make(), BENCHMARK.make()
    other.reset(Episode("goto", 3))
    assert environment.reset(Episode("goto", 3)) == view(environment)["observation"]
    served = Served(environment)
    seen = dict(served("turn left"))
    assert seen.pop("actions")() == list(other.actions())
    step = other.step("turn left")
    assert seen == {
        "goal": other.goal,
        "observation": step.observation,
        "state": other.state(),
        "done": False,
        "steps": 1,
        "reward": 0.0,
    }
    assert served.taken == [Taken("turn left", step.observation, 0.0)]


def test_an_episode_that_is_over_serves_no_step() -> None:
    environment = BENCHMARK.make()
    environment.reset(Episode("goto", 3))
    served = Served(environment)
    while not environment.done:
        served("drop")
    with pytest.raises(EpisodeOver):
        served("drop")
    assert len(served.taken) == environment.steps == BENCHMARK.step_limit("goto")
