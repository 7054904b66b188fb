"""The Gymnasium environments against Gymnasium's own checks, the plain rules, and each other."""

import warnings
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from sokoban.boxoban import table_of
from sokoban.environment import (
    ENV_ID,
    GENERATED_LEVELS,
    BoxobanEnv,
    BoxobanVectorEnv,
    load_levels,
)
from sokoban.generator import generate_solved
from sokoban.levels import parse_levels
from sokoban.reference import LETTERS, STEP_LIMIT
from sokoban.render import ansi, picture

ROOM = "######\n#    #\n# $. #\n# .$ #\n# @  #\n######\n"
CORRIDOR = "########\n#@ $  .#\n########\n"
ON_AND_OFF = "#######\n#@* $.#\n#######\n"
LEVELS = table_of(parse_levels(ROOM + "\n" + CORRIDOR + "\n" + ON_AND_OFF))
RIGHT, UP = np.int64(3), np.int64(0)


@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
def test_gymnasium_finds_nothing_to_complain_about(render_mode: str | None) -> None:
    env = gymnasium.make(ENV_ID, levels="practice", render_mode=render_mode)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    env.close()


def test_spaces_are_those_of_the_documentation() -> None:
    env = BoxobanEnv(LEVELS)
    assert env.action_space == gymnasium.spaces.Discrete(4)
    assert env.observation_space == gymnasium.spaces.Box(0, 1, (4, 10, 10), np.uint8)
    envs = BoxobanVectorEnv(3, LEVELS)
    assert envs.single_action_space == env.action_space
    assert envs.single_observation_space == env.observation_space
    assert envs.action_space.shape == (3,)
    assert envs.observation_space.shape == (3, 4, 10, 10)


def test_planes_are_walls_goals_boxes_player() -> None:
    env = BoxobanEnv(LEVELS)
    observation, info = env.reset(options={"level": 0})
    level = LEVELS.level(0)
    expected = np.zeros((4, 10, 10), dtype=np.uint8)
    for plane, cells in enumerate((level.walls, level.goals, level.boxes, {level.player})):
        for row, column in cells:
            expected[plane, row, column] = 1
    assert (observation == expected).all()
    assert observation.dtype == np.uint8
    assert expected.sum(axis=(1, 2)).tolist() == [100 - 16, 2, 2, 1]
    assert info == {"level": 0, "solved": False}


def test_a_solution_ends_the_episode_with_the_rewards_of_the_literature() -> None:
    env = BoxobanEnv(LEVELS)
    env.reset(options={"level": 1})
    rewards, ends = [], []
    for _ in range(4):
        _, reward, terminated, truncated, info = env.step(RIGHT)
        rewards.append(reward)
        ends.append((terminated, truncated, info["solved"]))
    assert rewards == pytest.approx([-0.1, -0.1, -0.1, -0.1 + 1 + 10])
    assert ends == [(False, False, False)] * 3 + [(True, False, True)]


def test_a_box_pushed_off_its_goal_costs_one() -> None:
    env = BoxobanEnv(LEVELS)
    env.reset(options={"level": 2})
    assert env.step(RIGHT)[1] == pytest.approx(-1.1)


def test_120_steps_are_a_truncation() -> None:
    env = BoxobanEnv(LEVELS)
    env.reset(options={"level": 1})
    ends = [env.step(UP)[2:4] for _ in range(STEP_LIMIT)]
    assert ends == [(False, False)] * 119 + [(False, True)]


def test_a_solve_on_the_last_step_is_a_termination() -> None:
    env = BoxobanEnv(LEVELS)
    env.reset(options={"level": 1})
    for _ in range(116):
        env.step(UP)
    ends = [env.step(RIGHT)[2:4] for _ in range(4)]
    assert ends == [(False, False)] * 3 + [(True, False)]


def test_rendering_shows_the_position() -> None:
    level = LEVELS.level(1)
    moved = replace(level, boxes=frozenset({(1, 4)}), player=(1, 3))
    texts, pictures = (BoxobanEnv(LEVELS, render_mode=mode) for mode in ("ansi", "rgb_array"))
    for env in (texts, pictures):
        env.reset(options={"level": 1})
        env.step(RIGHT)
        env.step(RIGHT)
    assert texts.render() == ansi(moved) != ansi(level)
    shown = pictures.render()
    assert (shown == np.asarray(picture(moved))).all()
    assert (shown.dtype, shown.ndim, shown.shape[2]) == (np.uint8, 3, 3)
    envs = BoxobanVectorEnv(2, LEVELS, render_mode="ansi")
    envs.reset(seed=0)
    assert envs.render() == tuple(ansi(LEVELS.level(row)) for row in envs.order[:2])


def test_a_render_mode_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="render mode 'human'"):
        BoxobanEnv(LEVELS, render_mode="human")


def test_a_seed_decides_the_levels() -> None:
    def drawn(seed: int) -> list[int]:
        env = BoxobanEnv("practice")
        first = env.reset(seed=seed)[1]["level"]
        return [first, *(env.reset()[1]["level"] for _ in range(20))]

    assert drawn(4) == drawn(4) != drawn(5)
    assert len(set(drawn(4))) > 15
    orders = []
    for seed in (4, 4, 5):
        envs = BoxobanVectorEnv(30, "practice")
        orders.append(envs.reset(seed=seed)[1]["level"].tolist())
        assert envs.reset()[1]["level"].tolist() != orders[-1]  # the generator goes on
    assert orders[0] == orders[1] != orders[2]
    assert len(set(orders[0])) == 30


def test_the_vector_environment_is_many_single_ones() -> None:
    """Random play with a bias to one direction a board; equal in everything, over several restarts."""
    count = 24
    envs = gymnasium.make_vec(ENV_ID, num_envs=count, levels="practice")
    singles = [BoxobanEnv("practice") for _ in range(count)]
    observations, infos = envs.reset(seed=3)
    for index, single in enumerate(singles):
        expected, info = single.reset(options={"level": infos["level"][index]})
        assert (observations[index] == expected).all()
        assert {key: infos[key][index] for key in info} == info
    chance = np.random.default_rng(0)
    ended = 0
    for _ in range(2 * STEP_LIMIT + 3):
        actions = chance.integers(4, size=count)
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        for index, single in enumerate(singles):
            expected, reward, end, cut, info = single.step(actions[index])
            assert rewards[index] == pytest.approx(reward, abs=1e-6)
            assert (terminated[index], truncated[index]) == (end, cut)
            if end or cut:
                ended += 1
                assert infos["_final_obs"][index]
                assert infos["_final_info"][index]
                assert (infos["final_obs"][index] == expected).all()
                assert {key: infos["final_info"][key][index] for key in info} == info
                expected, info = single.reset(options={"level": infos["level"][index]})
            elif "final_obs" in infos:
                assert infos["final_obs"][index] is None
                assert not infos["_final_info"][index]
            assert (observations[index] == expected).all()
            assert {key: infos[key][index] for key in info} == info
    assert ended >= 2 * count
    envs.close()


def test_the_vector_environment_solves_and_says_so() -> None:
    envs = BoxobanVectorEnv(1, table_of(parse_levels(CORRIDOR)))
    envs.reset(seed=0)
    for _ in range(3):
        infos = envs.step(np.array([RIGHT]))[4]
        assert "final_obs" not in infos
    observations, rewards, terminated, truncated, infos = envs.step(np.array([RIGHT]))
    assert rewards == pytest.approx([10.9])
    assert (terminated.tolist(), truncated.tolist()) == ([True], [False])
    assert infos["final_info"]["solved"].tolist() == [True]
    assert infos["solved"].tolist() == [False]
    assert (observations[0, 2] != infos["final_obs"][0][2]).any()


def test_episode_statistics_of_gymnasium_count_the_episodes() -> None:
    envs = RecordEpisodeStatistics(BoxobanVectorEnv(2, table_of(parse_levels(CORRIDOR))))
    envs.reset(seed=0)
    infos: dict[str, Any] = {}
    for step in range(4):
        infos = envs.step(np.array([RIGHT, UP]))[4]
        assert ("episode" in infos) == (step == 3)
    assert infos["episode"]["r"][0] == pytest.approx(10.6)
    assert infos["episode"]["l"][0] == 4


def test_the_autoreset_mode_is_declared() -> None:
    assert BoxobanVectorEnv.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP


@pytest.mark.parametrize("source", ["practice", "generated"])
def test_sources_that_need_no_files(source: str) -> None:
    table = load_levels(source)
    assert len(table) == {"practice": 1000, "generated": GENERATED_LEVELS}[source]
    assert load_levels(source) is table
    assert all(len(table.level(index).boxes) == 4 for index in range(0, len(table), 97))


def test_sources_that_need_files(boxoban_folder: object) -> None:
    table = load_levels("unfiltered/test")
    assert len(table) == 1000
    assert BoxobanEnv("unfiltered/valid", files=1).table.sources[0][0].endswith("unfiltered/valid/000.txt")


def test_a_solution_of_the_generator_pays_out() -> None:
    made = generate_solved(1, seed=3)
    moves = made.moves(0)
    env = BoxobanEnv(made.levels)
    env.reset()
    results = [env.step(np.int64(LETTERS.index(letter)))[1:4] for letter in moves.lower()]
    assert results[-1][1:] == (True, False)
    assert sum(reward for reward, _, _ in results) == pytest.approx(10 + 4 - 0.1 * len(moves))


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="no split 'unfiltered/tset'"):
        BoxobanEnv("unfiltered/tset")
    with pytest.raises(ValueError, match="level 3: the table has 3 levels"):
        BoxobanEnv(LEVELS).reset(options={"level": 3})
    envs = BoxobanVectorEnv(2, LEVELS)
    with pytest.raises(ValueError, match="no reset options"):
        envs.reset(options={"level": 0})
    with pytest.raises(ValueError, match=r"actions of shape \(1,\)"):
        envs.step(np.array([RIGHT]))


def test_pufferlib_can_wrap_it() -> None:
    emulation = pytest.importorskip("pufferlib.emulation")
    env = emulation.GymnasiumPufferEnv(BoxobanEnv(LEVELS))
    observation, _ = env.reset(seed=0)
    assert np.asarray(observation).size == 400
    assert env.single_action_space == gymnasium.spaces.Discrete(4)
    env.step(0)


@pytest.mark.gpu
def test_boards_on_cuda_play_like_boards_on_the_cpu() -> None:
    both = [BoxobanVectorEnv(64, "practice", device=device) for device in ("cpu", "cuda")]
    first, second = (envs.reset(seed=9)[0] for envs in both)
    assert (first == second).all()
    chance = np.random.default_rng(1)
    for _ in range(130):
        actions = chance.integers(4, size=64)
        expected, found = (envs.step(actions) for envs in both)
        assert (expected[0] == found[0]).all()
        assert np.allclose(expected[1], found[1], atol=1e-6)
        assert all((left == right).all() for left, right in zip(expected[2:4], found[2:4], strict=True))
