"""FIXED: the environment of an episode: as skills see it, how it ends, and what is kept of it.

Every step that a skill takes is counted and kept, and score and success are the environment's alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.benchmarks.base import Benchmark, Environment
from agents.memory.trajectory import Ending, Taken, Trajectory, Turn
from agents.methods.base import Seat
from agents.sandbox.call import EpisodeOver


def view(environment: Environment, reward: float = 0.0) -> dict[str, Any]:
    """What a skill's `env` shows of the situation; `reward` is the last step's."""
    return {
        "goal": environment.goal,
        "observation": environment.observation,
        "state": environment.state(),
        "actions": lambda: list(environment.actions()),  # ScienceWorld takes 14 to 145 ms for them
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


def ending_of(benchmark: Benchmark, environment: Environment) -> Ending | None:
    """How an environment ended its episode; None = it goes on."""
    if not environment.done:
        return None
    if environment.success:
        return "success"
    spent = environment.steps >= benchmark.step_limit(environment.episode.task)
    return "step limit" if spent else "failure"


def trajectory_of(
    seat: Seat,
    first: str,
    turns: Sequence[Turn],
    ending: Ending,
    tokens: Mapping[str, int],
    learned: Mapping[str, Any] | None = None,
) -> Trajectory:
    """The episode of a seat as it stands, begun with the observation `first`."""
    environment = seat.environment
    return Trajectory(
        episode=seat.episode,
        index=seat.index,
        goal=environment.goal,
        first_observation=first,
        turns=tuple(turns),
        score=environment.score,
        total=environment.total,
        success=environment.success,
        steps=environment.steps,
        details=dict(environment.details()),
        ending=ending,
        tokens=dict(tokens),
        learned=learned or {},
    )
