"""FIXED: BabyAI: instructions in a small gridworld of rooms, doors and things (arXiv 1810.08272)."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from agents.benchmarks.babyai import tasks
from agents.benchmarks.babyai.guide import RULES, STATE_HELP
from agents.benchmarks.base import Benchmark, Environment, Player, Split


class BabyAI(Benchmark):
    """Levels of this process, or of a server where its address is given."""

    name = "babyai"
    title = "BabyAI"
    tasks = tasks.TASKS
    metric = "success rate"

    def __init__(self, server: str | None = None) -> None:
        """`server`: where `python -m agents.benchmarks.babyai.server` listens, as "http://127.0.0.1:8080"."""
        self.server = server

    def make(self) -> Environment:
        # Minigrid takes seconds to import, and clients of a server do without.
        if self.server is not None:
            from agents.benchmarks.babyai.client import RemoteEnvironment

            return RemoteEnvironment(self.server)
        from agents.benchmarks.babyai.environment import BabyAIEnvironment

        return BabyAIEnvironment()

    def step_limit(self, task: str) -> int:
        return tasks.step_limit(task)

    def seeds(self, task: str, split: Split) -> range:
        return tasks.seeds(task, split)

    def rules(self) -> str:
        return RULES

    def state_help(self) -> str:
        return STATE_HELP

    def random_player(self) -> Player:
        from agents.benchmarks.babyai.oracle import RandomPlayer

        return RandomPlayer()

    def oracle(self) -> Player:
        from agents.benchmarks.babyai.oracle import Oracle

        return Oracle()

    def summary(self, details: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Mean steps of all episodes, and of those that succeeded where there are any."""
        named = {"steps": [one["steps"] for one in details]}
        named["steps to success"] = [one["steps"] for one in details if one["success"]]
        return {name: mean(values) for name, values in named.items() if values}


BENCHMARK: Benchmark = BabyAI()
