"""Missions and observations are read as Minigrid means them."""

import pytest

from agents.benchmarks.babyai import BENCHMARK
from agents.benchmarks.babyai.environment import BabyAIEnvironment
from agents.benchmarks.base import Episode
from agents.scripted.missions import Part, Thing, carries, fits, free_ahead, read_mission, read_view

VERBS = {"GoToInstr": "go to", "PickupInstr": "pick up", "OpenInstr": "open", "PutNextInstr": "put"}
TASKS = ["goto", "pickup", "open", "putnext", "pick_up_seq_go_to", "BabyAI-GoToSeq-v0", "BabyAI-SynthLoc-v0"]


@pytest.fixture(scope="module")
def environment() -> BabyAIEnvironment:
    made = BENCHMARK.make()
    assert isinstance(made, BabyAIEnvironment)
    return made


def meant(instruction: object) -> list[object]:
    """The actions of Minigrid's instruction, in the order in which they are to be done."""
    name = type(instruction).__name__
    if name in ("BeforeInstr", "AndInstr"):
        return [*meant(instruction.instr_a), *meant(instruction.instr_b)]  # type: ignore[attr-defined]
    if name == "AfterInstr":
        return [*meant(instruction.instr_b), *meant(instruction.instr_a)]  # type: ignore[attr-defined]
    return [instruction]


def thing(description: object) -> Thing:
    return Thing(description.type or "object", description.color)  # type: ignore[attr-defined]


@pytest.mark.parametrize("task", TASKS)
def test_missions_are_what_minigrid_checks(task: str, environment: BabyAIEnvironment) -> None:
    for seed in range(25):
        environment.reset(Episode(task, seed))
        expected = []
        for action in meant(environment.level.instrs):
            verb = VERBS[type(action).__name__]
            names = ("desc_move", "desc_fixed") if verb == "put" else ("desc",)
            expected.append(Part(verb, tuple(thing(getattr(action, name)) for name in names)))
        assert read_mission(environment.goal) == expected, environment.goal


@pytest.mark.parametrize("text", ["", "dance", "go to the moon", "put the red ball away", "pick up"])
def test_what_is_no_mission_has_no_parts(text: str) -> None:
    assert read_mission(text) == []


@pytest.mark.parametrize(
    ("mission", "calls"),
    [
        ("go to a ball", ["skill go_to('ball')"]),
        ("pick up the red key", ["skill pick_up('key', 'red')"]),
        ("open a door", ["skill open_door()"]),
        ("open the blue door on your left", ["skill open_door('blue')"]),
        ("put a box next to the grey ball", ["skill put_next('box', None, 'ball', 'grey')"]),
        ("put the red box next to a ball", ["skill put_next('box', 'red', 'ball')"]),
        (
            "go to the green object after you pick up a key",
            ["skill pick_up('key')", "skill go_to('object', 'green')"],
        ),
        (
            "open a door, then go to a box and pick up a ball",
            ["skill open_door()", "skill go_to('box')", "skill pick_up('ball')"],
        ),
    ],
)
def test_parts_are_calls_of_skills(mission: str, calls: list[str]) -> None:
    assert [part.call for part in read_mission(mission)] == calls


def test_what_is_in_view_is_what_the_state_says(environment: BabyAIEnvironment) -> None:
    for seed in range(25):
        environment.reset(Episode("putnext", seed))
        for action in ("turn left", "go forward", "pick up", "turn left"):
            observation = environment.step(action).observation
            state = environment.state()
            expected = [(one["type"], one["color"], *one["position"]) for one in state["objects"]]
            assert [tuple(seen) for seen in read_view(observation)] == expected
            assert carries(observation) == (state["carrying"] is not None)
            free = [tuple(cell) for cell in state["free"]]
            count = free_ahead(observation)
            assert all((0, ahead) in free for ahead in range(1, count + 1))
            assert (0, count + 1) not in free


def test_what_a_mission_names() -> None:
    (ball,) = read_view("Objects in view: red ball 2 forward 1 left.")
    assert tuple(ball) == ("ball", "red", -1, 2)
    assert fits(ball, Thing("ball", None)) and fits(ball, Thing("object", "red"))
    assert not fits(ball, Thing("ball", "blue")) and not fits(ball, Thing("key", "red"))
