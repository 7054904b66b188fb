"""The table of tasks against the package's own."""

import json
from itertools import pairwise

import pytest

from agents.benchmarks.scienceworld import BENCHMARK
from agents.benchmarks.scienceworld.java import Machine, find_jar
from agents.benchmarks.scienceworld.tasks import TABLE, TASK_SETS, TASKS, find_task, seeds, variations
from harness.errors import Problem


def test_numbers_and_names_are_the_packages() -> None:
    listed = json.loads(find_jar().with_name("tasks.json").read_text())
    assert [(task.number, task.name) for task in TABLE] == [
        (task["task_id"], task["task_name"]) for task in listed
    ]
    assert len(TABLE) == 30
    assert BENCHMARK.tasks == TASKS


def test_splits_are_the_simulators() -> None:
    machine = Machine()
    try:
        game = machine.gateway.jvm.scienceworld.runtime.pythonapi.PythonInterface()
        for task in TABLE:
            getattr(game, "taskStr_$eq")(task.name)  # all that its split depends on
            assert game.getTaskMaxVariations(task.name) == variations(task)
            assert list(game.getVariationsTrain()) == list(BENCHMARK.seeds(task.name, "train"))
            assert list(game.getVariationsDev()) == list(BENCHMARK.seeds(task.name, "valid"))
            assert list(game.getVariationsTest()) == list(BENCHMARK.seeds(task.name, "test"))
    finally:
        machine.close()


def test_splits_adjoin() -> None:
    for task in TASKS:
        parts = [seeds(task, "train"), seeds(task, "valid"), seeds(task, "test")]
        assert parts[0].start == 0 and all(parts)
        assert all(one.stop == other.start for one, other in pairwise(parts))


def test_task_sets_are_topics() -> None:
    assert [len(names) for names in TASK_SETS.values()] == [4, 4]
    assert TASK_SETS["t3"][0] == "power-component" and TASK_SETS["t4"][-1] == "find-animal"


def test_unknown_tasks_are_refused() -> None:
    with pytest.raises(Problem, match="no task 'boiling'"):
        find_task("boiling")
    with pytest.raises(Problem, match="no task"):
        BENCHMARK.step_limit("1-1")
    with pytest.raises(Problem, match="no task"):
        BENCHMARK.seeds("1-1", "train")


def test_limits() -> None:
    assert BENCHMARK.step_limit("find-plant") == 150
    longer = {task.number.split("-")[0] for task in TABLE if task.limit == 300}
    assert longer == {"1", "9", "10"}
