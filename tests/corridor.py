"""A benchmark small enough to know by heart: walk right to the end of a corridor, and not left into a pit."""

from collections.abc import Mapping, Sequence
from random import Random
from statistics import mean
from typing import Any

from agents.benchmarks.base import Benchmark, Environment, Episode, Player, Split, Step


class CorridorEnvironment(Environment):
    """The seed is the length; "short" ends after 20 steps, "long" after 200."""

    def reset(self, episode: Episode) -> str:
        self.episode, self.place, self.steps, self.total = episode, 1, 0, 0.0
        self.done = False
        self.goal = f"reach cell {episode.seed}"
        return self._look()

    def step(self, action: str) -> Step:
        if self.done:
            raise RuntimeError("the episode is over")
        self.steps += 1
        move = {"right": 1, "left": -1}.get(action.strip().lower())
        self.place += move or 0
        reward = float(self.success)
        self.total += reward
        self.done = self.place in (0, self.episode.seed) or self.steps >= LIMITS[self.episode.task]
        return Step(self._look("" if move else f"{action} is no action. "), reward, self.done)

    def actions(self) -> Sequence[str]:
        return ("left", "right")

    def state(self) -> dict[str, Any]:
        return {"place": self.place}

    def details(self) -> Mapping[str, Any]:
        return {"place": self.place}

    @property
    def success(self) -> bool:
        return self.place == self.episode.seed

    @property
    def score(self) -> float:  # type: ignore[override]
        return float(self.success)

    def _look(self, before: str = "") -> str:
        self.observation = f"{before}You are in cell {self.place}."
        return self.observation


LIMITS = {"short": 20, "long": 200}


class Corridor(Benchmark):
    name = "corridor"
    title = "Corridor"
    tasks = ("short", "long")
    metric = "success rate"

    def __init__(self) -> None:
        self.made: list[Environment] = []

    def make(self) -> Environment:
        self.made.append(CorridorEnvironment())
        return self.made[-1]

    def step_limit(self, task: str) -> int:
        return LIMITS[task]

    def seeds(self, task: str, split: Split) -> range:
        start = {"train": 3, "valid": 6, "test": 9}[split]
        return range(start, start + 3)

    def rules(self) -> str:
        return "left and right move you by one cell."

    def state_help(self) -> str:
        return "place: a whole number"

    def random_player(self) -> Player:
        return _RandomPlayer()

    def oracle(self) -> Player:
        return _Right()

    def summary(self, details: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        return {"last cell": mean(one["place"] for one in details)}


class _RandomPlayer(Player):
    def act(self, environment: Environment, generator: Random) -> str:
        return generator.choice(list(environment.actions()))


class _Right(Player):
    def act(self, environment: Environment, generator: Random) -> str:
        return "right"
