"""A real pretrained model, SmolLM2-135M-Instruct, through two steps of the loop and a small evaluation."""

import copy
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from harness.track import ROOT
from llm.answers import REASONS, judge
from llm.completion import Limits
from llm.engines.local import LocalEngine
from llm.eval_speedrun import Job, draw_rows
from llm.evidence import completion_fault
from llm.models import end_token, prompt_tokens
from llm.puzzles import read_puzzles
from llm.speedrun import Learner, OwnRollouts, Policy, Puzzles, Recipe, Setting, rehearse
from llm.track import TASKS

FOLDER = Path(os.environ.get("SMOLLM2", ROOT / ".cache/smollm2"))
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
FILE = next(iter(sorted(FOLDER.glob(f"**/{NAME}"))), None)

pytestmark = [
    pytest.mark.smollm,
    pytest.mark.skipif(FILE is None, reason=f"{NAME} is not in {FOLDER}: make smollm"),
    pytest.mark.usefixtures("one_thread"),
]

# Small enough for a minute: what does not end after a few tokens is interrupted, and soon cut off.
TASK = replace(TASKS["cpu"], completions=2, limits=Limits(max_tokens=32, answer_tokens=8))
RECIPE = Recipe(
    prompt="{question}\n\nThink first.", trainers=1, steps=2, puzzles=2, group=2, max_tokens=32,
    answer_tokens=8, temperature=1.0, scaled=False, blame=1.0, warmup_steps=0, final_rate=1.0,
    learning_rate=1e-5, gap_limit=0.01,
)  # fmt: skip


class Smol(NamedTuple):
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase


@pytest.fixture(scope="module")
def smol() -> Iterator[Smol]:
    assert FILE is not None
    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(FILE.parent, gguf_file=FILE.name)
    model = AutoModelForCausalLM.from_pretrained(FILE.parent, gguf_file=FILE.name, dtype=torch.float32)
    yield Smol(model.eval(), tokenizer)


def test_it_speaks(smol: Smol) -> None:
    """Its chat template and its end token are those it was trained with."""
    turn = [{"role": "user", "content": "What is the capital of France?"}]
    text = smol.tokenizer.apply_chat_template(turn, add_generation_prompt=True, tokenize=False)
    prompt = smol.tokenizer.encode(text, add_special_tokens=False)
    engine = LocalEngine(smol.model, end_token(smol.tokenizer))
    (said,) = engine.generate([prompt], [1], [24], TASK.sampling._replace(temperature=0.1))
    assert said.stopped and "Paris" in smol.tokenizer.decode(said.tokens)


def test_two_steps_of_the_loop_teach_what_is_rewarded(smol: Smol) -> None:
    """No completion solves a puzzle, so the first of each group gets the reward."""
    model = copy.deepcopy(smol.model)
    setting = Setting(RECIPE, smol.tokenizer, torch.device("cpu"), 1, 0)
    learner = Learner(Policy(model, RECIPE), setting)
    rollouts = OwnRollouts(model, setting)
    rehearse(rollouts, learner, setting)
    puzzles = read_puzzles(TASK.train)[:4]
    prompts = prompt_tokens(smol.tokenizer, RECIPE.prompt, TASK, puzzles)
    rollouts.start(Puzzles(puzzles, prompts, seed=1))
    for step in (1, 2):
        groups = [group._replace(rewards=[1.0, 0.0]) for group in rollouts.take(step - 1)]
        batch = learner.batch(groups)
        with torch.no_grad():
            before = learner.policy(batch)[0].sum(dim=1)
        numbers = learner.learn(groups, learner.rate(step))
        with torch.no_grad():
            rise = learner.policy(batch)[0].sum(dim=1) - before
        assert all(math.isfinite(number) for number in numbers.values())
        # The sampler, token by token with a cache, and the policy, all at once, are the same model.
        assert numbers["log_probability_gap"] < 1e-3
        assert 0.1 < numbers["entropy"] < 6 and 1e-3 < numbers["gradient_norm"] < 1e3
        assert (rise * batch.advantages).sum() > 0
        assert 1 <= numbers["length"] <= RECIPE.max_tokens


def test_a_small_evaluation_is_evidence_that_can_be_judged(smol: Smol) -> None:
    engine = LocalEngine(smol.model, end_token(smol.tokenizer))
    puzzles = read_puzzles(TASK.valid)[:3]
    rows = draw_rows(engine, smol.tokenizer, Job(TASK, FOLDER, RECIPE.prompt, {}), puzzles)
    assert [row["puzzle"] for row in rows] == [0, 1, 2]
    for puzzle, row in zip(puzzles, rows, strict=True):
        assert len(row["completions"]) == 2
        for completion in row["completions"]:
            assert completion_fault(completion, TASK.limits) is None
            verdict = judge(puzzle, completion["text"], stopped=completion["finish"] == "stop")
            assert verdict.reason in REASONS and verdict.solved == (verdict.reason == "solved")
