"""FIXED: BabyAI in words: six primitive actions, and observations of the 7 x 7 cells before the agent."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.benchmarks.babyai.level import make_level
from agents.benchmarks.babyai.tasks import step_limit
from agents.benchmarks.babyai.text import View, describe, plain, read_view, state_of
from agents.benchmarks.base import Environment, Episode, Step

ACTIONS = ("turn left", "turn right", "go forward", "pick up", "drop", "toggle")
"""In the order of Minigrid's numbers."""


class BabyAIEnvironment(Environment):
    """A level. The reward is 1 for the step that fulfils the mission, else 0."""

    level: Any
    """Minigrid's, for those who know everything."""

    def reset(self, episode: Episode) -> str:
        """Begin an episode; returns the first observation.

        Raises:
            Problem: no such task, or its seed leads to no level.
        """
        self._limit = step_limit(episode.task)
        self.level = make_level(episode)
        self.episode = episode
        self.goal = str(self.level.mission)
        self.done = self._success = False
        self._changed = True
        self.steps = 0
        self.score = self.total = 0.0
        self._look(self.level.gen_obs())
        self.observation = describe(self._view)
        return self.observation

    def step(self, action: str) -> Step:
        if self.done:
            raise RuntimeError("the episode is over")
        self.steps += 1
        name = plain(action)
        notes, failed = [], False
        if name in ACTIONS:
            failed = self._act(ACTIONS.index(name))
            if not self._changed:
                notes.append("Nothing happens.")
        else:
            self._changed = False
            notes.append(f'"{name}" is no action, so nothing happens. Actions: {", ".join(ACTIONS)}.')
        notes.append(describe(self._view))
        if self._success:
            notes.append("The mission is done.")
        elif failed:
            notes.append("The mission has failed.")
        elif self.steps >= self._limit:
            notes.append(f"The episode is over: all {self._limit} steps are taken.")
        self.done = self._success or failed or self.steps >= self._limit
        self.observation = "\n".join(notes)
        reward = float(self._success)
        self.score = self.total = reward
        return Step(self.observation, reward, self.done)

    def actions(self) -> Sequence[str]:
        return ACTIONS

    def state(self) -> dict[str, Any]:
        return {"mission": self.goal, "changed": self._changed, **state_of(self._view)}

    def details(self) -> Mapping[str, Any]:
        return {
            "task": self.episode.task,
            "mission": self.goal,
            "success": self._success,
            "steps": self.steps,
        }

    @property
    def success(self) -> bool:
        return self._success

    def _act(self, number: int) -> bool:
        """Take an action; returns whether it made the mission fail."""
        level = self.level
        before, front = self._situation(), level.grid.get(*level.front_pos)
        ahead, looks = level.front_pos, front and front.encode()
        observed, reward, over, _, _ = level.step(number)
        now = level.grid.get(*ahead)
        self._changed = before != self._situation() or now is not front or (front and front.encode()) != looks
        self._look(observed)
        self._success = bool(over and reward > 0)
        return bool(over and not self._success)

    def _situation(self) -> tuple[Any, ...]:
        level = self.level
        return (*map(int, level.agent_pos), int(level.agent_dir), id(level.carrying))

    def _look(self, observed: Mapping[str, Any]) -> None:
        self._view: View = read_view(observed["image"].tolist(), int(observed["direction"]))
