"""The environment: what actions do to it, when episodes end, what it tells programs."""

import json
import random

import pytest
from crafter import constants, objects

from agents.benchmarks.base import Environment, Episode
from agents.benchmarks.crafter import BENCHMARK, STEP_LIMIT
from agents.benchmarks.crafter.environment import CrafterEnvironment
from agents.benchmarks.crafter.text import ACHIEVEMENTS, ACTIONS, GOAL

EPISODE = Episode("survive", 3)


@pytest.fixture(scope="module")
def shared() -> CrafterEnvironment:
    return CrafterEnvironment(40)


@pytest.fixture
def environment(shared: CrafterEnvironment) -> CrafterEnvironment:
    """A new episode; the world of seed 3 begins on a meadow."""
    shared.reset(EPISODE)
    return shared


def things(environment: CrafterEnvironment) -> dict[str, int]:
    return environment.game.player.inventory  # type: ignore[no-any-return]


def test_an_episode_begins(environment: CrafterEnvironment) -> None:
    assert environment.observation.splitlines()[:3] == [
        "Status: health 9/9, food 9/9, drink 9/9, energy 9/9; awake; daylight: bright.",
        "Inventory: empty.",
        "Facing down: grass.",
    ]
    assert (environment.steps, environment.score, environment.total, environment.done) == (0, 0, 0, False)
    assert environment.goal == GOAL
    assert environment.actions() == ACTIONS


def test_moving_turns_and_is_stopped(environment: CrafterEnvironment) -> None:
    world, player = environment.game.world, environment.game.player
    before = tuple(player.pos)
    assert environment.step("move left").observation.startswith("Last step: You moved left.\n")
    assert tuple(player.pos) == (before[0] - 1, before[1])
    world[player.pos[0], player.pos[1] - 1] = "stone"
    assert environment.step(" MOVE_UP ").observation.startswith("Last step: You turned up.\n")
    assert environment.state()["facing"] == {
        "direction": "up",
        "right": 0,
        "down": -1,
        "material": "stone",
        "creature": None,
    }


def test_unlocking_is_told_and_rewarded_once(environment: CrafterEnvironment) -> None:
    x, y = environment.game.player.pos
    environment.game.world[x, y + 1] = "tree"
    step = environment.step("do")
    first = step.observation.splitlines()[0]
    assert first == "Last step: wood +1. Achievement unlocked: collect wood."
    assert (step.reward, environment.score) == (1.0, 1 / 22)
    environment.game.world[x, y + 1] = "tree"
    assert environment.step("do").reward == 0
    assert environment.step("place table").reward == 1
    assert environment.step("place table").observation.startswith("Last step: That had no effect.\n")
    assert environment.details() == {
        "achievements": ["collect_wood", "place_table"],
        "died": False,
        "return": 2.0,
        "steps": 4,
    }
    assert environment.state()["achievements"] == ["collect wood", "place table"]
    assert environment.score == 2 / 22 and environment.total == 2


def test_what_is_no_action_takes_a_step_but_no_time(environment: CrafterEnvironment) -> None:
    things_before, clock = dict(things(environment)), environment.game._step
    step = environment.step("fly away" + "!" * 100)
    assert step.observation.startswith('Last step: There is no action "fly away!')
    assert len(step.observation.splitlines()[0]) < 120
    assert (step.reward, step.done, environment.steps) == (0, False, 1)
    assert things(environment) == things_before and environment.game._step == clock


def test_hitting_a_cow(environment: CrafterEnvironment) -> None:
    world, player = environment.game.world, environment.game.player
    world.add(objects.Cow(world, (player.pos[0], player.pos[1] + 1)))
    environment._look()
    assert environment.state()["facing"]["creature"] == "cow"
    assert environment.step("do").observation.startswith("Last step: You hit the cow.\n")


def test_sleeping_goes_on_until_rested(environment: CrafterEnvironment) -> None:
    assert environment.step("sleep").observation.startswith("Last step: You cannot sleep now.\n")
    things(environment)["energy"] = 8
    assert environment.step("sleep").observation.startswith("Last step: You fell asleep.\n")
    assert environment.state()["status"]["sleeping"]
    place = tuple(environment.game.player.pos)
    assert environment.step("move left").observation.startswith("Last step: You sleep on")
    while environment.state()["status"]["sleeping"]:
        observation = environment.step("noop").observation
        assert environment.steps < 30
    first = observation.splitlines()[0]
    assert first.startswith("Last step: You woke up") and first.endswith("Achievement unlocked: wake up.")
    assert tuple(environment.game.player.pos) == place


def test_death_ends_the_episode(environment: CrafterEnvironment) -> None:
    x, y = environment.game.player.pos
    environment.game.world[x, y + 1] = "lava"
    step = environment.step("move down")
    assert step.done and environment.died and not environment.success
    assert step.observation.endswith("health -9.\nYou died.")
    assert step.reward == pytest.approx(-0.9) and environment.total == step.reward
    with pytest.raises(RuntimeError):
        environment.step("noop")


def test_the_limit_ends_the_episode(environment: CrafterEnvironment) -> None:
    for count in range(1, 41):
        assert environment.step("noop" if count % 2 else "what?").done == (count == 40)
    with pytest.raises(RuntimeError):
        environment.step("noop")


def test_everything_unlocked_ends_the_episode(environment: CrafterEnvironment) -> None:
    counts = environment.game.player.achievements
    counts.update(dict.fromkeys(ACHIEVEMENTS, 1))
    counts["collect_sapling"] = 0
    assert not environment.step("noop").done and environment.score == 21 / 22
    counts["collect_sapling"] = 1
    assert environment.step("noop").done and environment.success and environment.score == 1


def test_state_is_json_and_agrees_with_the_observation() -> None:
    environment = BENCHMARK.make()
    environment.reset(Episode("survive", 11))
    generator = random.Random(2)
    for _ in range(250):
        if environment.done:
            break
        environment.step(BENCHMARK.random_player().act(environment, generator))
        state = environment.state()
        assert json.loads(json.dumps(state)) == state
        assert set(state) == {"grid", "creatures", "facing", "status", "inventory", "achievements"}
        if environment.details()["died"]:
            break
        for name in ("health", "food", "drink", "energy"):
            assert f"{name} {state['status'][name]}/9" in environment.observation
        facing = state["facing"]
        assert state["grid"][3 + facing["down"]][4 + facing["right"]] == facing["material"]
        for row in state["grid"]:
            for material in row:
                assert material in {*constants.materials, "unseen", "outside"}
        for creature in state["creatures"]:
            assert state["grid"][3 + creature["down"]][4 + creature["right"]] in {
                "grass",
                "sand",
                "path",
                "water",
                "lava",
            }
            assert f"- {creature['kind']}" in environment.observation
        assert ("too dark" in environment.observation) == any("unseen" in row for row in state["grid"])
    assert environment.steps > 100


def test_moves_succeed_as_the_help_says() -> None:
    """Keeping count of one's place from what is seen alone."""
    environment = CrafterEnvironment(500)
    environment.reset(Episode("survive", 5))
    generator = random.Random(0)
    start = tuple(environment.game.player.pos)
    x = y = moved = 0
    while environment.steps < 300 and not environment.done:
        right, down, side = generator.choice(
            [(-1, 0, "left"), (1, 0, "right"), (0, -1, "up"), (0, 1, "down")]
        )
        state = environment.state()
        free = state["grid"][3 + down][4 + right] in {"grass", "sand", "path", "lava"}
        taken = any((thing["right"], thing["down"]) == (right, down) for thing in state["creatures"])
        things(environment)["health"] = 9
        environment.step(f"move {side}")
        if free and not taken:
            x, y, moved = x + right, y + down, moved + 1
        assert tuple(environment.game.player.pos) == (start[0] + x, start[1] + y)
    assert 100 < moved < 300


def test_the_benchmark() -> None:
    assert BENCHMARK.tasks == ("survive",)
    seeds = [set(BENCHMARK.seeds("survive", split)) for split in ("train", "valid", "test")]
    assert sum(len(some) for some in seeds) == len(set.union(*seeds))
    assert BENCHMARK.step_limit("survive") == STEP_LIMIT
    made: Environment = BENCHMARK.make()
    assert isinstance(made, CrafterEnvironment)
    assert BENCHMARK.summary([]) == {}
    for words in (BENCHMARK.rules(), BENCHMARK.state_help()):
        assert words.isascii() and not words.endswith("\n")


def test_random_players_take_every_action_alike() -> None:
    environment, player, generator = BENCHMARK.make(), BENCHMARK.random_player(), random.Random(1)
    taken = [player.act(environment, generator) for _ in range(17_000)]
    assert set(taken) == set(ACTIONS)
    assert all(850 < taken.count(action) < 1150 for action in ACTIONS)
