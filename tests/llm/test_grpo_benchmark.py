"""Both contestants of the comparison with TRL make their steps, on the same puzzles."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import grpo_against_trl as benchmark
from llm import speedrun
from llm.answers import judge


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_both_make_their_steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recipe = replace(
        benchmark.settings_of_both(benchmark.Settings(steps=2), processes=1), puzzles=4, max_tokens=70
    )
    seen: dict[str, list[str]] = {"ours": [], "TRL": []}

    def noted(system: str) -> Any:
        def judged(puzzle: Any, *arguments: Any, **others: Any) -> Any:
            seen[system].append(puzzle.board)
            return judge(puzzle, *arguments, **others)

        return judged

    monkeypatch.setattr(speedrun, "judge", judge)  # the benchmark puts its timer there
    monkeypatch.setattr(benchmark, "judge", noted("ours"))
    ours = benchmark.train_ours(recipe, seed=3, rank=0)
    monkeypatch.setattr(benchmark, "judge", noted("TRL"))
    theirs = benchmark.train_trl(recipe, seed=3, folder=tmp_path)
    rehearsal = recipe.group  # ours judges a made-up puzzle before the first step
    assert seen["ours"][rehearsal:] == seen["TRL"]
    assert len(seen["TRL"]) == 2 * 4 * recipe.group
    for steps in (ours, theirs):
        assert len(steps) == 2
        for step in steps:
            assert min(step.rollout, step.reward, step.update) > 0 and step.rest >= 0
            assert step.seconds < 60
            assert 0 <= step.pass_rate <= 1 and step.tokens > 1
