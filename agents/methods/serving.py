"""FIXED: an environment as skills see it: a view for each step, and every step counted and kept."""

from typing import Any

from agents.benchmarks.base import Environment
from agents.memory.trajectory import Taken
from agents.sandbox.call import EpisodeOver


def view(environment: Environment, reward: float = 0.0) -> dict[str, Any]:
    """What a skill's `env` shows of the situation; `reward` is the last step's."""
    return {
        "goal": environment.goal,
        "observation": environment.observation,
        "state": environment.state(),
        "actions": list(environment.actions()),
        "done": environment.done,
        "steps": environment.steps,
        "reward": reward,
    }


class Served:
    """Serves the steps of a skill call, and keeps them in `taken`."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.taken: list[Taken] = []

    def __call__(self, action: str) -> dict[str, Any]:
        """Take a step for the skill; EpisodeOver where the episode has ended."""
        if self.environment.done:
            raise EpisodeOver
        step = self.environment.step(action)
        self.taken.append(Taken(action, step.observation, step.reward))
        return view(self.environment, step.reward)
