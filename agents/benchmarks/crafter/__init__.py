"""FIXED: Crafter (Hafner 2021, arXiv 2109.06780): survival in a small open world, 22 achievements."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from agents.benchmarks.base import Benchmark, Environment, Player, Split
from agents.benchmarks.crafter.summary import summarise
from agents.benchmarks.crafter.text import RULES, STATE_HELP

STEP_LIMIT = 1_000
"""Of an episode. The original's is 10,000; a model asked at each of those would cost too much, and everything
can be unlocked in a tenth."""
SEEDS: Mapping[Split, range] = {
    "train": range(0, 10_000),
    "valid": range(10_000, 11_000),
    "test": range(11_000, 12_000),
}


class RandomPlayer(Player):
    """Takes each of the 17 actions as often as any other."""

    def act(self, environment: Environment, generator: Random) -> str:
        """The next action."""
        return generator.choice(environment.actions())


class Crafter(Benchmark):
    """One task, `survive`, in as many worlds as there are seeds."""

    name = "crafter"
    title = "Crafter"
    tasks = ("survive",)
    metric = "achievements"

    def make(self) -> Environment:
        """A new environment."""
        # Here, since the package takes a while to load.
        from agents.benchmarks.crafter.environment import CrafterEnvironment

        return CrafterEnvironment(STEP_LIMIT)

    def step_limit(self, task: str) -> int:
        """The same for all worlds."""
        return STEP_LIMIT

    def seeds(self, task: str, split: Split) -> range:
        """Seeds of worlds."""
        return SEEDS[split]

    def rules(self) -> str:
        """The actions and what they need, and how observations are to be read."""
        return RULES

    def state_help(self) -> str:
        """The keys of `state()`."""
        return STATE_HELP

    def random_player(self) -> Player:
        """The floor."""
        return RandomPlayer()

    def oracle(self) -> Player:
        """A script that looks into the true world."""
        from agents.benchmarks.crafter.oracle import Oracle

        return Oracle()

    def summary(self, details: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Achievements out of 22, the Crafter score in percent, return, and each achievement's rate."""
        return summarise(details)


BENCHMARK = Crafter()
