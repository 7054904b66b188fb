"""The stream of episodes: phases, batches, evaluation, and how far a replay goes."""

from pathlib import Path
from typing import Any

import pytest
from forked_experiments import write_config

from agents.benchmarks import load_benchmark
from agents.config import read_config
from agents.core.loop import Batch, End, Extent, plan_batches, plan_evaluation, up_to
from harness.errors import Problem


def planned(folder: Path, **changes: Any) -> list[Batch]:
    return plan_batches(
        read_config(write_config(folder / "config.yaml", "http://127.0.0.1:9/v1", **changes)),
        load_benchmark("babyai"),
    )


def test_no_batch_reaches_over_two_phases(tmp_path: Path) -> None:
    batches = planned(tmp_path)
    assert [(batch.index, batch.phase, batch.first, len(batch.episodes)) for batch in batches] == [
        (0, 0, 0, 3),
        (1, 0, 3, 1),
        (2, 1, 4, 3),
    ]
    tasks = [episode.task for batch in batches for episode in batch.episodes]
    assert tasks == ["goto"] * 4 + ["pickup", "open", "pickup"]


def test_episodes_follow_from_the_seed_and_belong_to_the_split(tmp_path: Path) -> None:
    assert planned(tmp_path) == planned(tmp_path)
    assert planned(tmp_path) != planned(tmp_path, seed=6)
    for split in ("train", "valid"):
        for batch in planned(tmp_path, split=split):
            for episode in batch.episodes:
                assert episode.seed in load_benchmark("babyai").seeds(episode.task, split)  # type: ignore[arg-type]


def test_a_method_that_learns_from_each_episode_sleeps_after_each(tmp_path: Path) -> None:
    assert [len(batch.episodes) for batch in planned(tmp_path, method="voyager")] == [1] * 7


def test_a_longer_phase_begins_like_a_shorter_one(tmp_path: Path) -> None:
    short = planned(tmp_path, phases=[{"tasks": ["goto"], "episodes": 3}])
    long = planned(tmp_path, phases=[{"tasks": ["goto"], "episodes": 9}])
    assert long[0] == short[0]


def test_the_evaluation_is_drawn_apart(tmp_path: Path) -> None:
    path = write_config(tmp_path / "config.yaml", "http://127.0.0.1:9/v1")
    episodes = plan_evaluation(read_config(path), load_benchmark("babyai"))
    assert [episode.task for episode in episodes] == ["goto", "goto"]
    assert all(episode.seed in load_benchmark("babyai").seeds("goto", "valid") for episode in episodes)
    path = write_config(path, "http://127.0.0.1:9/v1", evaluate=None)
    assert plan_evaluation(read_config(path), load_benchmark("babyai")) == []


@pytest.mark.parametrize(
    ("learned", "sleeps", "expected"),
    [
        (0, 0, []),
        (2, 0, [(2, False)]),
        (3, 0, [(3, False)]),
        (3, 1, [(3, True)]),
        (5, 2, [(3, True), (1, True), (1, False)]),
        (7, 3, [(3, True), (1, True), (3, True)]),
    ],
)
def test_a_replay_goes_as_far_as_its_run(
    tmp_path: Path, learned: int, sleeps: int, expected: list[tuple[int, bool]]
) -> None:
    kept = up_to(planned(tmp_path), Extent(learned, 0, sleeps, End("budget", "spent")))
    assert [(len(batch.episodes), batch.slept) for batch in kept] == expected


def test_an_unknown_benchmark_is_refused() -> None:
    with pytest.raises(Problem, match="no benchmark 'chess'"):
        load_benchmark("chess")
