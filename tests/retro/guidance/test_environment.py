"""The environment around one segment."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import gymnasium.utils.env_checker
import numpy as np
import pytest
import stable_baselines3.common.env_checker

from retro.guidance.environment import DEATH, DECISIONS, EXIT, NEW, SegmentEnv
from retro.packages import load_package
from retro.search.world import Beginning, World

RIGHT, LEFT, WAIT = 2, 1, 0  # actions in the rooms
HELD = 4  # the middle of the rooms' holds


@contextmanager
def opened(spec: str) -> Iterator[SegmentEnv]:
    with closing(SegmentEnv(spec)) as environment:
        yield environment


def beginning(spec: str, *inputs: tuple[int, int]) -> Beginning:
    world = World(load_package(spec))
    found, _ = world.arrive(inputs)
    world.emulator.close()
    return found


@pytest.mark.parametrize(
    "spec", ["scripted_game:Hopper", "scripted_game.guiding:Cliff", "quarterstep", "airstriker"]
)
def test_both_checkers_find_nothing(spec: str) -> None:
    with opened(spec) as environment:
        gymnasium.utils.env_checker.check_env(environment, skip_render_check=True, skip_close_check=True)
        stable_baselines3.common.env_checker.check_env(environment)


def play(environment: SegmentEnv, *actions: int) -> list[tuple[Any, ...]]:
    environment.reset(seed=1)
    return [environment.step(np.int64(action)) for action in actions]


def test_a_way_out_is_rewarded_and_told_with_its_inputs() -> None:
    with opened("scripted_game.guiding:Cliff") as environment:
        steps = play(environment, *[RIGHT] * 6)
    *way, (seen, reward, terminated, truncated, info) = steps
    assert all(not step[2] and not step[3] and step[4] == {} for step in way)
    assert (terminated, truncated, info) == (True, False, {"exit": ((4, 24),)})
    assert seen[0] == 1  # the second room
    assert reward == pytest.approx(EXIT + NEW)  # its number is new


def test_reward_is_progress_over_the_widest_so_far_and_new_values() -> None:
    with opened("scripted_game.guiding:Cliff") as environment:
        steps = play(environment, RIGHT, RIGHT, WAIT)
        assert [step[1] for step in steps] == pytest.approx([1 + NEW, 4 / 8 + NEW, 0])
        environment.reset()
        again = [environment.step(np.int64(RIGHT))[1] for _ in range(3)]
        assert again == pytest.approx([4 / 8, 4 / 8, 4 / 12 + NEW])
        environment.reset(seed=1)
        assert environment.step(np.int64(RIGHT))[1] == pytest.approx(1 + NEW)


def test_death_ends_an_episode_and_many_decisions_cut_it() -> None:
    with opened("scripted_game.guiding:Cliff") as environment:
        (_, reward, terminated, truncated, info), *_ = play(environment, LEFT)
        assert (terminated, truncated, info) == (True, False, {})
        assert reward == pytest.approx(DEATH + NEW)
        steps = play(environment, *[WAIT] * DECISIONS)
        assert [step[2:4] for step in steps] == [(False, False)] * (DECISIONS - 1) + [(False, True)]


def test_an_earlier_state_ends_an_episode_as_a_death_does() -> None:
    spec = "scripted_game.small:Ways"
    second = beginning(spec, (0, 1), (4, 10))
    with opened(spec) as environment:
        environment.turn(second)
        (_, reward, terminated, truncated, info), *_ = play(environment, LEFT)
        assert (terminated, truncated, info) == (True, False, {})
        assert reward < DEATH / 2


def test_it_turns_to_another_segment_and_actions_count_on_from_the_first() -> None:
    spec = "scripted_game:Hopper"
    level = beginning(spec, (0, 1), (8, 1))
    with opened(spec) as environment:
        masks = environment.turn(level)
        assert masks == [0, 2, 4, 1, 5, 8]
        seen, _ = environment.reset(seed=1)
        assert seen.tolist() == [1, 1, 0, 0, 0, 0]
        one = environment.step(np.int64(2))[0]
        environment.reset(seed=1)
        assert environment.step(np.int64(2 + len(masks)))[0].tolist() == one.tolist()


def test_a_real_core_plays_alike_from_the_same_start() -> None:
    spec = "quarterstep"
    level = beginning(spec, (0, 21), (8, 3))
    actions = [2, 5, 2, 0, 2, 3, 1]
    with opened(spec) as environment:
        environment.turn(level)
        first, second = (play(environment, *actions) for _ in range(2))
    for (one, *rest), (other, *others) in zip(first, second, strict=True):
        assert one.tolist() == other.tolist()
        assert rest == others
