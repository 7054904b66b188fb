"""FIXED: players of ScienceWorld without a model: the simulator's own solutions, and chance."""

from random import Random

from agents.benchmarks.base import Environment, Player
from agents.benchmarks.scienceworld.environment import ScienceWorldEnvironment
from harness.errors import Problem


class RandomPlayer(Player):
    """Any of the valid commands, equally likely."""

    def act(self, environment: Environment, generator: Random) -> str:
        return generator.choice(environment.actions())


class Oracle(Player):
    """The gold path: written by ScienceWorld's authors for each task, and complete, though not short."""

    def __init__(self) -> None:
        self._environment: Environment | None = None
        self._path: list[str] = []

    def act(self, environment: Environment, generator: Random) -> str:
        """The next command of the path; `look around` where it has come to its end.

        Raises:
            Problem: the environment is none of ScienceWorld.
        """
        if not isinstance(environment, ScienceWorldEnvironment):
            raise Problem("the oracle knows solutions of ScienceWorld alone")
        if environment.steps == 0 or environment is not self._environment:
            self._environment = environment
            self._path = environment.simulator.gold_path()[::-1]
        # Answers to questions that were not asked, as the things were the same.
        while self._path and self._path[-1].isdigit() and not environment.state()["choices"]:
            self._path.pop()
        return self._path.pop() if self._path else "look around"
