"""The environment: against Minigrid itself, and the same in every process."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from random import Random
from typing import Any

import gymnasium
import numpy as np
import pytest

from agents.benchmarks.babyai import BENCHMARK, level
from agents.benchmarks.babyai.environment import ACTIONS, BabyAIEnvironment
from agents.benchmarks.babyai.level import make_level
from agents.benchmarks.babyai.tasks import FAMILIES, TASKS
from agents.benchmarks.base import Environment, Episode, Step
from harness.errors import Problem

SOME = (*FAMILIES, "BabyAI-BossLevel-v0", "BabyAI-KeyInBox-v0", "BabyAI-PutNextS5N2Carrying-v0")


def trace(environment: Environment, episode: Episode, steps: int = 60) -> list[Any]:
    """Everything that is told of random actions."""
    generator = Random(episode.seed)
    told: list[Any] = [environment.reset(episode), environment.goal, environment.state()]
    while not environment.done and environment.steps < steps:
        told.append(environment.step(generator.choice([*ACTIONS, "jump"])))
        told.append([environment.state(), environment.score, environment.total, environment.steps])
    return [*told, dict(environment.details()), environment.success]


def digest() -> str:
    """Of every task's second episode."""
    environment = BENCHMARK.make()
    told = [trace(environment, Episode(task, 1), 20) for task in TASKS]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def test_the_same_in_other_processes_and_nothing_is_printed() -> None:
    script = (
        "import importlib.util as u; s = u.spec_from_file_location('t', r'" + __file__ + "');"
        "t = u.module_from_spec(s); s.loader.exec_module(t); print(t.digest())"
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": str(number), "BABYAI_DONE_ACTIONS": "1"},
        )
        for number in (1, 2)
    ]
    # Minigrid's notes on rejected levels would stand before the digest.
    assert [run.communicate()[0] for run in runs] == [digest() + "\n"] * 2


@pytest.mark.parametrize("task", ["BabyAI-GoTo-v0", "BabyAI-BossLevel-v0", "BabyAI-Unlock-v0"])
def test_named_levels_are_minigrids_own(task: str, capsys: pytest.CaptureFixture[str]) -> None:
    stock = gymnasium.make(task, disable_env_checker=True).unwrapped
    for seed in range(5):
        ours = make_level(Episode(task, seed))
        stock.reset(seed=seed)
        assert ours.mission == stock.mission
        assert ours.hash() == stock.hash()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("task", SOME)
def test_what_is_told_is_there_and_what_is_in_sight_is_told(task: str) -> None:
    environment = BabyAIEnvironment()
    generator = Random(task)
    for seed in range(3):
        environment.reset(Episode(task, seed))
        while not environment.done and environment.steps < 40:
            environment.step(generator.choice(ACTIONS))
            check_state(environment)


def check_state(environment: BabyAIEnvironment) -> None:
    """Compare with the map, by coordinates of the whole level."""
    state, world = environment.state(), environment.level
    assert json.loads(json.dumps(state)) == state
    assert set(state) == {"mission", "changed", "direction", "carrying", "objects", "walls", "free"}

    def at(cell: list[int]) -> Any:
        x, y = np.array(world.agent_pos) + cell[1] * world.dir_vec + cell[0] * world.right_vec
        inside = 0 <= x < world.width and 0 <= y < world.height
        return world.grid.get(int(x), int(y)) if inside else "outside"

    for told in state["objects"]:
        thing = at(told["position"])
        assert (thing.type, thing.color) == (told["type"], told["color"])
        if thing.type == "door":
            assert told["state"] == ("open" if thing.is_open else "locked" if thing.is_locked else "closed")
        else:
            assert told["state"] is None
    assert all(cell == "outside" or cell.type == "wall" for cell in map(at, state["walls"]))
    assert all(at(cell) is None for cell in state["free"])
    assert state["direction"] == ("east", "south", "west", "north")[world.agent_dir]
    carried = world.carrying
    assert state["carrying"] == (carried and {"type": carried.type, "color": carried.color})
    seen = int(world.gen_obs_grid()[1].sum()) - 1
    assert len(state["objects"]) + len(state["walls"]) + len(state["free"]) == seen


def prepared(*things: Any) -> BabyAIEnvironment:
    """The agent in the corner of an empty room, facing east, with things at (x, y)."""
    environment = BabyAIEnvironment()
    environment.reset(Episode("BabyAI-GoToRedBallNoDists-v0", 0))
    world = environment.level
    for x in range(1, 7):
        for y in range(1, 7):
            world.grid.set(x, y, None)
    for thing, x, y in things:
        world.put_obj(thing, x, y)
    world.agent_pos, world.agent_dir = (1, 1), 0
    return environment


def test_the_six_actions() -> None:
    from minigrid.core.world_object import Box, Key

    environment = prepared((Key("blue"), 3, 1), (Box("green", Key("red")), 1, 3))
    world = environment.level
    assert environment.step("toggle").observation.startswith("Nothing happens.\n")
    assert "You face east" in environment.step("go forward").observation
    assert world.agent_pos == (2, 1)
    assert environment.step("go forward").observation.startswith("Nothing happens.\n")
    assert not environment.state()["changed"]
    assert "carry a blue key" in environment.step("pick up").observation
    assert environment.state()["changed"]
    assert environment.step("pick up").observation.startswith("Nothing happens.\n")
    assert "carry nothing" in environment.step("drop").observation
    assert environment.step("drop").observation.startswith("Nothing happens.\n")
    assert "You face south" in environment.step("turn right").observation
    assert "You face west" in environment.step("turn right").observation
    environment.step("go forward")
    environment.step("turn left")
    assert "Forward: 0 free, then a green box." in environment.step("go forward").observation
    seen = environment.step("toggle").observation
    assert "red key 1 forward" in seen and "box" not in seen
    assert environment.steps == 13


def test_case_and_spaces_of_an_action_do_not_matter() -> None:
    environment = BabyAIEnvironment()
    traces = []
    for actions in (["turn left", "go forward"], ["  Turn  LEFT\n", "GO FORWARD"]):
        environment.reset(Episode("open", 5))
        traces.append([environment.step(action) for action in actions])
    assert traces[0] == traces[1]


@pytest.mark.parametrize("action", ["", "jump", "turn", "go forward 2", "skill go_to()", "\ud800" * 300])
def test_what_is_no_action_takes_a_step_and_changes_nothing(action: str) -> None:
    environment = BabyAIEnvironment()
    before = environment.reset(Episode("goto", 4))
    seen = environment.level.hash()
    observation, reward, done = environment.step(action)
    assert "is no action" in observation and observation.endswith(before)
    assert (reward, done, environment.steps) == (0.0, False, 1)
    assert environment.level.hash() == seen
    observation.encode()


def test_an_episode_ends_at_the_step_limit() -> None:
    environment = BabyAIEnvironment()
    environment.reset(Episode("pickup", 1))
    taken = [environment.step("turn left") for _ in range(127)]
    assert not any(step.done for step in taken)
    last = environment.step("jump")
    assert last.done and last.observation.endswith("The episode is over: all 128 steps are taken.")
    assert (environment.success, environment.score, environment.total) == (False, 0.0, 0.0)
    with pytest.raises(RuntimeError):
        environment.step("turn left")
    environment.reset(Episode("pickup", 1))
    assert (environment.done, environment.steps) == (False, 0)


def test_a_mission_done_scores_one() -> None:
    environment, oracle = BENCHMARK.make(), BENCHMARK.oracle()
    environment.reset(Episode("putnext", 7))
    while not environment.done:
        step = environment.step(oracle.act(environment, Random(0)))
    assert step == Step(environment.observation, 1.0, True)
    assert step.observation.endswith("The mission is done.")
    assert (environment.success, environment.score, environment.total) == (True, 1.0, 1.0)
    details = environment.details()
    assert details == {
        "task": "putnext",
        "mission": environment.goal,
        "success": True,
        "steps": environment.steps,
    }
    failed = {**details, "success": False, "steps": 128}
    steps = environment.steps
    assert BENCHMARK.summary([details, failed]) == {
        "steps": (steps + 128) / 2,
        "steps to success": steps,
    }
    assert BENCHMARK.summary([failed]) == {"steps": 128}


def test_a_mission_can_fail_in_a_level_named_debug() -> None:
    environment = BabyAIEnvironment()
    for seed in range(50):
        environment.reset(Episode("BabyAI-PickupDistDebug-v0", seed))
        world = environment.level
        wrong = next(
            thing
            for thing in world.grid.grid
            if thing is not None
            and thing.type in ("key", "ball", "box")
            and thing not in world.instrs.desc.obj_set
        )
        x, y = wrong.cur_pos
        beside = [
            number
            for number, step in enumerate([(1, 0), (0, 1), (-1, 0), (0, -1)])
            if world.grid.get(x - step[0], y - step[1]) is None
        ]
        if beside:
            break
    world.agent_dir = beside[0]
    world.agent_pos = tuple(np.array((x, y)) - world.dir_vec)
    step = environment.step("pick up")
    assert step.done and step.reward == 0 and step.observation.endswith("The mission has failed.")
    assert not environment.success


def test_after_picking_up_the_object_the_other_is_still_to_be_gone_to() -> None:
    for seed in range(60):
        world = make_level(Episode("pick_up_seq_go_to", seed))
        one, two = world.instrs.instr_a, world.instrs.instr_b
        picked, visited = (one, two) if ", then " in world.mission else (two, one)
        assert type(picked).__name__ == "PickupInstr" and type(visited).__name__ == "GoToInstr"
        assert not {id(thing) for thing in picked.desc.obj_set} & {
            id(thing) for thing in visited.desc.obj_set
        }


def test_a_level_that_would_never_be_found_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(level._Draws, "left", 3_000)
    monkeypatch.setattr(level.LevelGen, "validate_instrs", _reject)
    with pytest.raises(Problem, match="open with seed 1 makes no level"):
        make_level(Episode("open", 1))


def _reject(*_: object) -> None:
    raise level.roomgrid_level.RejectSampling("never good enough")


def test_threads_do_not_meet() -> None:
    episodes = [Episode(task, seed) for seed in range(2) for task in SOME]
    alone = [trace(BENCHMARK.make(), episode) for episode in episodes]
    together: dict[int, Any] = {}

    def play(number: int) -> None:
        together[number] = trace(BENCHMARK.make(), episodes[number])

    threads = [threading.Thread(target=play, args=(number,)) for number in range(len(episodes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[number] for number in range(len(episodes))] == alone


def test_importing_the_benchmark_leaves_minigrid_alone() -> None:
    heavy = ("minigrid", "httpx", "numpy")
    script = f"import sys, agents.benchmarks.babyai; print([name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_prompts_name_the_actions_and_the_values() -> None:
    assert all(action in BENCHMARK.rules() for action in ACTIONS)
    environment = BENCHMARK.make()
    environment.reset(Episode("open", 0))
    assert all(f'"{key}"' in BENCHMARK.state_help() for key in environment.state())
