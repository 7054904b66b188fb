"""The oracle reaches what its page says, the same each time."""

import random

import pytest

from agents.benchmarks.base import Episode
from agents.benchmarks.crafter import BENCHMARK, STEP_LIMIT
from agents.benchmarks.crafter.environment import CrafterEnvironment


def play(seed: int, steps: int = STEP_LIMIT) -> tuple[CrafterEnvironment, list[str]]:
    environment = BENCHMARK.make()
    assert isinstance(environment, CrafterEnvironment)
    environment.reset(Episode("survive", seed))
    oracle, actions = BENCHMARK.oracle(), []
    while not environment.done and environment.steps < steps:
        actions.append(oracle.act(environment, random.Random(0)))
        assert actions[-1] in environment.actions()
        environment.step(actions[-1])
    return environment, actions


@pytest.mark.parametrize("seed", [8, 20])
def test_it_goes_far_beyond_random(seed: int) -> None:
    environment, _ = play(seed)
    assert len(environment.unlocked) >= 20
    assert not environment.died


def test_it_plays_alike_each_time() -> None:
    first, second = play(31, 150), play(31, 150)
    assert first[1] == second[1]
    assert first[0].observation == second[0].observation
