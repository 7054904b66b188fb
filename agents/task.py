"""FIXED: what every run of the agents track has to play in its evaluation, by class."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from random import Random

from agents.benchmarks import load_benchmark
from agents.benchmarks.base import Episode

CHECKPOINT, EVIDENCE = "memory.json", "evidence.jsonl.xz"
SEED = 12345
"""Of the draw of episodes: every run plays the same."""


@dataclass(frozen=True)
class Task:
    """A class of the track: a benchmark, and which of its episodes count."""

    benchmark: str
    title: str
    tasks: tuple[str, ...] | None
    """None = all of the benchmark's."""
    episodes_a_task: int
    target: float
    packages: tuple[str, ...]
    """Distributions that decide what an environment does."""


TASKS = {
    task.benchmark: task
    for task in (
        Task(
            "babyai",
            "BabyAI, five families of instructions in small rooms",
            ("goto", "pickup", "open", "putnext", "pick_up_seq_go_to"),
            episodes_a_task=20,
            target=0.80,
            packages=("minigrid", "gymnasium", "numpy"),
        ),
        Task(
            "crafter",
            "Crafter, survival and 22 achievements",
            ("survive",),
            episodes_a_task=20,
            target=0.50,
            packages=("crafter", "numpy", "opensimplex"),
        ),
        Task(
            "scienceworld",
            "ScienceWorld, 30 tasks of elementary science",
            None,
            episodes_a_task=2,
            target=0.60,
            packages=("scienceworld", "py4j"),
        ),
    )
}
"""By benchmark, which is the name of the class."""


def episodes(name: str) -> list[Episode]:
    """The episodes of a class, from the split "test", in the order in which they are played.

    Raises:
        Problem: a library of the benchmark is missing.
    """
    task, benchmark = TASKS[name], load_benchmark(name)
    names = benchmark.tasks if task.tasks is None else task.tasks
    return benchmark.draw(names, "test", task.episodes_a_task * len(names), Random(SEED))


def versions(name: str) -> dict[str, str]:
    """Distribution -> version here, of those that decide what a class's environments do; "none" = missing."""
    return {package: _version(package) for package in TASKS[name].packages}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
