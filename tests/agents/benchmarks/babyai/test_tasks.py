"""Tasks, limits and seeds, against what Minigrid registers."""

import gymnasium
import minigrid  # noqa: F401 (registers the levels)
import pytest

from agents.benchmarks.babyai import BENCHMARK
from agents.benchmarks.babyai.level import make_level
from agents.benchmarks.babyai.tasks import FAMILIES, LEVELS, TASKS, check_task, seeds, step_limit
from agents.benchmarks.base import Episode
from harness.errors import Problem

UNSOLVABLE = {"BabyAI-OpenDoorsOrderN2Debug-v0", "BabyAI-OpenDoorsOrderN4Debug-v0"}


def test_every_level_but_two_is_a_task() -> None:
    registered = {name for name in gymnasium.registry if name.startswith("BabyAI-")}
    assert set(LEVELS) == registered - UNSOLVABLE
    assert len(TASKS) == len(set(TASKS)) == 5 + len(LEVELS)
    assert BENCHMARK.tasks == TASKS


@pytest.mark.parametrize("task", sorted(UNSOLVABLE))
def test_the_two_left_out_fail_once_the_first_door_is_open(task: str) -> None:
    for seed in range(20):
        level = gymnasium.make(task, disable_env_checker=True).unwrapped
        level.reset(seed=seed)
        if " then " in level.mission or " after " in level.mission:
            break
    first = level.instrs.instr_a if " then " in level.mission else level.instrs.instr_b
    (door,) = first.desc.obj_set
    x, y = door.cur_pos
    level.agent_pos, level.agent_dir = next(
        ((x - dx, y - dy), number)
        for number, (dx, dy) in enumerate([(1, 0), (0, 1), (-1, 0), (0, -1)])
        if level.grid.get(x - dx, y - dy) is None
    )
    _, reward, over, _, _ = level.step(level.actions.toggle)
    assert door.is_open and over and reward == 0


@pytest.mark.parametrize("task", LEVELS)
def test_limits_are_the_cells_of_the_rooms(task: str) -> None:
    level = make_level(Episode(task, 0))
    cells = level.room_size**2 * level.num_rows * level.num_cols
    assert step_limit(task) == BENCHMARK.step_limit(task) == max(128, cells)


def test_families_allow_as_many_steps_as_balrog() -> None:
    assert [step_limit(task) for task in FAMILIES] == [128] * 5


def test_splits_share_no_seed() -> None:
    splits = [seeds("goto", split) for split in ("train", "valid", "test")]
    for place, one in enumerate(splits):
        assert len(one) >= 100_000
        for other in splits[place + 1 :]:
            assert one.stop <= other.start


def test_an_unknown_task_is_refused_with_a_near_one() -> None:
    with pytest.raises(Problem) as caught:
        check_task("BabyAI-GoToRedBal-v0")
    assert caught.value.remedy == "did you mean BabyAI-GoToRedBall-v0?"
    with pytest.raises(Problem) as caught:
        step_limit("chess")
    assert caught.value.remedy is not None and "putnext" in caught.value.remedy
    with pytest.raises(Problem):
        seeds("chess", "train")
