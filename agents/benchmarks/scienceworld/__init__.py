"""FIXED: ScienceWorld: 30 tasks of elementary science in a house that is all text (arXiv 2203.07540)."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from agents.benchmarks.base import Benchmark, Environment, Player, Split
from agents.benchmarks.scienceworld import tasks
from agents.benchmarks.scienceworld.text import RULES, STATE_HELP


class ScienceWorld(Benchmark):
    """Every environment has a Java process of its own, from its first `reset` until it is closed."""

    name = "scienceworld"
    title = "ScienceWorld"
    tasks = tasks.TASKS
    metric = "score"

    def make(self) -> Environment:
        from agents.benchmarks.scienceworld.environment import ScienceWorldEnvironment
        from agents.benchmarks.scienceworld.java import find_jar, find_java

        find_java(), find_jar()  # said now, and not by the first episode
        return ScienceWorldEnvironment()

    def step_limit(self, task: str) -> int:
        return tasks.find_task(task).limit

    def seeds(self, task: str, split: Split) -> range:
        """Variations, as ScienceWorld splits them; `valid` is its dev."""
        return tasks.seeds(task, split)

    def rules(self) -> str:
        return RULES

    def state_help(self) -> str:
        return STATE_HELP

    def random_player(self) -> Player:
        from agents.benchmarks.scienceworld.oracle import RandomPlayer

        return RandomPlayer()

    def oracle(self) -> Player:
        from agents.benchmarks.scienceworld.oracle import Oracle

        return Oracle()

    def summary(self, details: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Means of the raw and the clipped score, of 100, and the shares of tasks done and failed."""
        if not details:
            return {}
        return {
            "raw score": mean(one["raw_score"] for one in details),
            "clipped score": mean(one["clipped_score"] for one in details),
            "done": mean(one["raw_score"] >= 100 for one in details),
            "failed": mean(one["failed"] for one in details),
        }


BENCHMARK: Benchmark = ScienceWorld()
