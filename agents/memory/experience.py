"""OPEN: the episodes that a sleep looks back on, and what they say of tasks and skills."""

import json
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.memory.trajectory import Trajectory


class Experience:
    """The latest episodes, at most `most` of them."""

    def __init__(self, most: int, episodes: Iterable[Trajectory] = ()) -> None:
        self.most = most
        self.episodes = tuple(deque(episodes, maxlen=most))

    def extended(self, batch: Iterable[Trajectory]) -> "Experience":
        """This experience and a batch after it."""
        return Experience(self.most, [*self.episodes, *batch])

    def data(self, most: int) -> list[dict[str, Any]]:
        """The episodes as plain JSON values, oldest first; what is beyond `most` characters is left out."""
        kept: deque[dict[str, Any]] = deque()
        for trajectory in reversed(self.episodes):
            value = episode_data(trajectory)
            most -= len(json.dumps(value))
            if most < 0:
                break
            kept.appendleft(value)
        return list(kept)

    def tasks(self) -> list[dict[str, Any]]:
        """For each task, as they appeared: "task", "episodes", "successes", mean "score" and "steps"."""
        found: dict[str, list[Trajectory]] = {}
        for trajectory in self.episodes:
            found.setdefault(trajectory.episode.task, []).append(trajectory)
        return [
            {
                "task": task,
                "episodes": len(some),
                "successes": sum(one.success for one in some),
                "score": sum(one.score for one in some) / len(some),
                "steps": sum(one.steps for one in some) / len(some),
            }
            for task, some in found.items()
        ]

    def to_json(self) -> dict[str, Any]:
        return {"episodes": [trajectory.to_json() for trajectory in self.episodes]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], most: int) -> "Experience":
        return cls(most, (Trajectory.from_json(trajectory) for trajectory in value["episodes"]))


@dataclass(frozen=True)
class Use:
    """How a skill served."""

    calls: int
    failed: int
    """Calls that ended in an error."""
    steps: int
    episodes: int
    """In which it was called."""
    successes: int
    """Of these episodes."""


def uses(trajectories: Iterable[Trajectory]) -> dict[str, Use]:
    """By name, every skill that was called."""
    counts: dict[str, Counter[str]] = {}
    for trajectory in trajectories:
        for turn in trajectory.turns:
            if turn.skill is not None:
                count = counts.setdefault(turn.skill, Counter())
                count.update(calls=1, failed=int(turn.error is not None), steps=len(turn.steps))
        for name in {turn.skill for turn in trajectory.turns if turn.skill is not None}:
            counts[name].update(episodes=1, successes=int(trajectory.success))
    names = ("calls", "failed", "steps", "episodes", "successes")
    return {name: Use(**{part: count[part] for part in names}) for name, count in sorted(counts.items())}


def episode_data(trajectory: Trajectory) -> dict[str, Any]:
    """An episode as plain JSON values, as programs of a sleep see it."""
    return {
        "index": trajectory.index,
        "task": trajectory.episode.task,
        "goal": trajectory.goal,
        "first_observation": trajectory.first_observation,
        "score": trajectory.score,
        "success": trajectory.success,
        "steps": trajectory.steps,
        "ending": trajectory.ending,
        "details": dict(trajectory.details),
        "turns": [turn.to_json() for turn in trajectory.turns],
    }
