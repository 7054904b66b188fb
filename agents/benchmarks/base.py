"""FIXED: what every benchmark offers: tasks, seeded environments in words, and players to compare with."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar, Literal, NamedTuple

Split = Literal["train", "valid", "test"]
"""Learn on train, choose settings on valid; test is for evaluations alone."""


class Episode(NamedTuple):
    """What is played once: it fixes everything that the environment does."""

    task: str
    """One of `Benchmark.tasks`."""
    seed: int
    """Of the level or world; in ScienceWorld the variation."""


class Step(NamedTuple):
    """What an action led to."""

    observation: str
    reward: float
    done: bool


class Environment(ABC):
    """One world at a time, seen and acted on in words. The same episode and actions give the same trace.

    `reset` begins an episode; `goal`, `observation`, `score` and the rest tell of the situation.
    """

    episode: Episode
    goal: str
    """What is to be done in this episode, in words."""
    observation: str
    """What is seen now."""
    done: bool
    steps: int
    """Actions taken in this episode, those that were not understood among them."""
    score: float
    """What the episode is worth so far, 0 to 1; the track averages these."""
    total: float
    """The return so far: the sum of rewards, undiscounted."""

    @abstractmethod
    def reset(self, episode: Episode) -> str:
        """Begin an episode; returns the first observation."""

    @abstractmethod
    def step(self, action: str) -> Step:
        """Take one primitive action, as written by a model: case and spaces around it do not matter.

        What is no action changes nothing but takes a step, and the observation says so.

        Raises:
            RuntimeError: the episode is over.
        """

    @abstractmethod
    def actions(self) -> Sequence[str]:
        """The actions that make sense now, in a fixed order."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What is seen now, for programs: plain JSON values. Holds nothing that the observation hides."""

    @abstractmethod
    def details(self) -> Mapping[str, Any]:
        """What the benchmark reports of an episode besides its score: plain JSON values."""

    @property
    @abstractmethod
    def success(self) -> bool:
        """Whether the goal is reached."""

    def close(self) -> None:  # noqa: B027 (most have nothing to give back)
        """Give back what the environment holds; it cannot be used afterwards."""


class Player(ABC):
    """An agent without a model, as a row to compare with."""

    @abstractmethod
    def act(self, environment: Environment, generator: Random) -> str:
        """The next action. It may look into the environment, where its name says that it is an oracle."""


class Benchmark(ABC):
    """A family of tasks."""

    name: ClassVar[str]
    title: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]]
    """Every task by name; a task set is a choice of them."""
    metric: ClassVar[str]
    """What the mean score is called: "success rate"."""

    @abstractmethod
    def make(self) -> Environment:
        """A new environment; several may be open at a time, each used by one thread."""

    @abstractmethod
    def step_limit(self, task: str) -> int:
        """Steps after which an episode of a task is done."""

    @abstractmethod
    def seeds(self, task: str, split: Split) -> range:
        """The seeds of a split; those of different splits are disjoint."""

    @abstractmethod
    def rules(self) -> str:
        """What a newcomer must know to play: the actions, and what observations mean. Part of prompts."""

    @abstractmethod
    def state_help(self) -> str:
        """What `Environment.state` holds, for whoever writes programs. Part of prompts."""

    @abstractmethod
    def random_player(self) -> Player:
        """Takes one of `actions()` at random: the floor."""

    @abstractmethod
    def oracle(self) -> Player:
        """Plays as well as can be had without a model."""

    @abstractmethod
    def summary(self, details: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """What a report says of several episodes' `details`, besides the mean score."""

    def draw(self, tasks: Sequence[str], split: Split, count: int, generator: Random) -> list[Episode]:
        """`count` episodes: the tasks in turn, each with seeds of the split drawn without repetition.

        When a task has used up its seeds they come again, in a new order.
        """
        left: dict[str, list[int]] = {task: [] for task in tasks}
        drawn = []
        for place in range(count):
            task = tasks[place % len(tasks)]
            if not left[task]:
                seeds = self.seeds(task, split)
                left[task] = generator.sample(seeds, min(len(seeds), 10_000))
            drawn.append(Episode(task, left[task].pop()))
        return drawn
