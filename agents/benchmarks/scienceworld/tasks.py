"""FIXED: the 30 tasks of ScienceWorld, their variations and step limits."""

from typing import NamedTuple

from agents.benchmarks.base import Split
from harness.errors import Problem

SIMPLIFICATIONS = "easy"
"""ScienceWorld's own shorthand, the same in every episode: teleporting, open doors, flower pots that water
themselves, and no electrical actions in tasks that are not about electricity."""


class Task(NamedTuple):
    """One kind of experiment."""

    number: str
    """As in Table 1 of arXiv 2203.07540: topic and task."""
    name: str
    """ScienceWorld's internal name."""
    train: int
    """Variations of the split, the first ones; then come those of `valid`, then of `test`."""
    valid: int
    test: int
    limit: int = 150
    """Steps of an episode. Where gold paths may take more than a hundred, 300; in a few variations of 9-2
    they wait step by step and take more than that."""


TABLE = (
    Task("1-1", "boil", 14, 7, 9, 300),
    Task("1-2", "melt", 14, 7, 9, 300),
    Task("1-3", "freeze", 14, 7, 9, 300),
    Task("1-4", "change-the-state-of-matter-of", 14, 7, 9, 300),
    Task("2-1", "use-thermometer", 270, 135, 135),
    Task("2-2", "measure-melting-point-known-substance", 218, 109, 109),
    Task("2-3", "measure-melting-point-unknown-substance", 150, 75, 75),
    Task("3-1", "power-component", 10, 5, 5),
    Task("3-2", "power-component-renewable-vs-nonrenewable-energy", 10, 5, 5),
    Task("3-3", "test-conductivity", 450, 225, 225),
    Task("3-4", "test-conductivity-of-unknown-substances", 300, 150, 150),
    Task("4-1", "find-living-thing", 150, 75, 75),
    Task("4-2", "find-non-living-thing", 150, 75, 75),
    Task("4-3", "find-plant", 150, 75, 75),
    Task("4-4", "find-animal", 150, 75, 75),
    Task("5-1", "grow-plant", 62, 31, 33),
    Task("5-2", "grow-fruit", 62, 31, 33),
    Task("6-1", "chemistry-mix", 16, 8, 8),
    Task("6-2", "chemistry-mix-paint-secondary-color", 18, 9, 9),
    Task("6-3", "chemistry-mix-paint-tertiary-color", 18, 9, 9),
    Task("7-1", "lifespan-longest-lived", 62, 31, 32),
    Task("7-2", "lifespan-shortest-lived", 62, 31, 32),
    Task("7-3", "lifespan-longest-lived-then-shortest-lived", 62, 31, 32),
    Task("8-1", "identify-life-stages-1", 6, 3, 5),
    Task("8-2", "identify-life-stages-2", 4, 2, 4),
    Task("9-1", "inclined-plane-determine-angle", 84, 42, 42, 300),
    Task("9-2", "inclined-plane-friction-named-surfaces", 692, 346, 348, 300),
    Task("9-3", "inclined-plane-friction-unnamed-surfaces", 80, 40, 42, 300),
    Task("10-1", "mendelian-genetics-known-plant", 60, 30, 30, 300),
    Task("10-2", "mendelian-genetics-unknown-plant", 240, 120, 120, 300),
)

TASKS = tuple(task.name for task in TABLE)

TASK_SETS = {
    f"t{topic}": tuple(task.name for task in TABLE if task.number.startswith(f"{topic}-")) for topic in (3, 4)
}
"""Two topics of the paper, for experiments that move from one to the other: t3 is electricity, t4 is
classification; t3t4 is a phase of t3 and then one of t4."""

_BY_NAME = {task.name: task for task in TABLE}


def find_task(name: str) -> Task:
    """A task by its name.

    Raises:
        Problem: there is none of that name.
    """
    if name not in _BY_NAME:
        raise Problem(f"ScienceWorld has no task {name!r}", remedy=f"choose one of: {', '.join(TASKS)}")
    return _BY_NAME[name]


def seeds(name: str, split: Split) -> range:
    """The variations of a split."""
    task = find_task(name)
    edges = (0, task.train, task.train + task.valid, variations(task))
    place = ("train", "valid", "test").index(split)
    return range(edges[place], edges[place + 1])


def variations(task: Task) -> int:
    """How many variations a task has."""
    return task.train + task.valid + task.test
