"""The loop in small: each part against plain arithmetic, then the whole way as a person runs it."""

import copy
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers import PreTrainedTokenizerBase, Qwen3ForCausalLM

from harness.checks.recipe import read_recipe
from harness.eligibility import eligibility
from harness.errors import Problem
from harness.files import sha256_file
from harness.log import read_log
from harness.manifest import read_manifest
from harness.track import ROOT
from llm.checkpoint import open_checkpoint
from llm.completion import Completion, Generation, Sampling
from llm.engines.local import LocalEngine
from llm.puzzles import Puzzle
from llm.speedrun import (
    RECIPES,
    Group,
    Guard,
    Learner,
    OwnRollouts,
    Policy,
    Puzzles,
    Recipe,
    ServedRollouts,
    Setting,
    advantages,
    draw_groups,
    rehearse,
    reward,
    serving_gpus,
    surrogate,
    token_weights,
)
from llm.track import TASKS, TRACK, read_outcomes, score_outcomes

CPU = torch.device("cpu")
LOSSES = ("grpo", "dr_grpo", "dapo", "cispo")
FIXED: dict[str, Any] = {
    "trainers": 1, "puzzles": 8, "group": 4, "steps": 1, "max_tokens": 96, "answer_tokens": 16,
    "temperature": 1.0, "loss": "dapo", "clip_low": 0.2, "clip_high": 0.28, "scaled": False, "blame": 1.0,
    "learning_rate": 1e-3, "warmup_steps": 0, "final_rate": 1.0, "beta2": 0.99, "max_gradient_norm": 1.0,
}  # fmt: skip
ONE_MOVE = Puzzle(0, "+++++\n+*@X+\n+++++", "R")

pytestmark = pytest.mark.usefixtures("one_thread")


def recipe_of(**fields: Any) -> Recipe:
    """One process, groups of four, and a first step at the whole learning rate."""
    return Recipe(**{**FIXED, **fields})


def random_groups(seed: int, rewards: Sequence[Sequence[float]]) -> list[Group]:
    """Groups with prompts and completions of all lengths; one completion in each was interrupted."""
    generator = torch.Generator().manual_seed(seed)

    def integers(low: int, high: int, count: int) -> list[int]:
        return [int(number) for number in torch.randint(low, high, (count,), generator=generator)]

    groups = []
    for row in rewards:
        completions = []
        for index, length in enumerate(integers(3, 10, len(row))):
            sampled = [not (index == 1 and place == 1) for place in range(length)]
            drawn = (-4 + torch.randn(length, generator=generator)).tolist()
            tokens = integers(4, 90, length)
            completions.append(Completion(tokens, drawn, sampled, True, 1 if index == 1 else None))
        groups.append(Group(integers(4, 90, integers(2, 8, 1)[0]), completions, [*map(float, row)], 0))
    return groups


MIXED = ((1, 0, 0, 1), (0, 0, 0, 1), (1, 1, 0, 1), (0, 1, 0, 0))


def learner_of(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase, recipe: Recipe) -> Learner:
    setting = Setting(recipe, tokenizer, CPU, 1, 0)
    return Learner(Policy(copy.deepcopy(model), recipe), setting)


def weights_of(learner: Learner) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in learner.policy.state_dict().items()}


def assert_weights(found: dict[str, Tensor], expected: dict[str, Tensor], atol: float) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, expected[name], atol=atol, rtol=0, msg=name)


# ---- recipes ------------------------------------------------------------------------------------------


def test_every_class_has_a_recipe_and_a_smoke_version() -> None:
    assert set(RECIPES) == set(TASKS) == {hardware.name for hardware in TRACK.classes}
    for name, recipe in RECIPES.items():
        assert recipe.task == name
        smoke = recipe.smoke()
        assert smoke.steps * smoke.puzzles * smoke.group < recipe.steps * recipe.puzzles * recipe.group / 10


def test_a_verifier_reads_the_recipes_without_running_them() -> None:
    text = (ROOT / "llm/speedrun.py").read_text()
    for name, recipe in RECIPES.items():
        read = {field: setting.value for field, setting in read_recipe(text, name).items()}
        assert read == {field: getattr(recipe, field) for field in recipe.__dataclass_fields__}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"trainers": 3, "puzzles": 32}, "3 trainers cannot share 32 puzzles"),
        ({"group": 1}, "group is 1. Remedy: give 2 or more"),
        ({"steps": 0}, "steps is 0"),
        ({"trainers": 0}, "trainers is 0"),
        ({"puzzles": -2}, "puzzles is -2"),
        ({"seed": -1}, "seed is -1"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"learning_rate": -1.0}, "learning_rate is -1.0"),
        ({"learning_rate": math.nan}, "learning_rate is nan"),
        ({"beta2": 2.0}, "beta2 is 2.0. Remedy: give a number from 0 to 1"),
        ({"task": "nope"}, "there is no task 'nope'. Remedy: choose one of: 8xH100, cpu"),
        ({"sharded": True, "staleness": 1}, "sharded trainers read whole completions"),
        ({"sharded": True, "shared_prompts": False}, "sharded trainers"),
        ({"prompt": "Solve this Sokoban: {question}"}, "Sokoban"),
    ],
)
def test_recipes_that_cannot_run_are_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(Problem, match=reason):
        Recipe(**fields)


def test_servers_get_the_gpus_that_do_not_train() -> None:
    assert serving_gpus(RECIPES["8xH100"].trainers, 8) == [3, 4, 5, 6, 7]
    assert serving_gpus(1, 2) == [1]
    for trainers, gpus in ((8, 8), (3, 2)):
        with pytest.raises(Problem, match="leave none to serve"):
            serving_gpus(trainers, gpus)


# ---- the policy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
@torch.no_grad()
def test_log_probabilities_and_entropies_are_those_of_plain_forward_passes(
    small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase, shared: bool, temperature: float
) -> None:
    recipe = recipe_of(shared_prompts=shared, temperature=temperature)
    learner = learner_of(small_model, tokenizer, recipe)
    groups = random_groups(1, MIXED)
    found, entropies = learner.policy(learner.batch(groups))
    assert len({len(group.prompt) for group in groups}) > 1
    rows = [(group.prompt, completion) for group in groups for completion in group.completions]
    for place, (prompt, completion) in enumerate(rows):
        logits = small_model(input_ids=torch.tensor([[*prompt, *completion.tokens]])).logits[0].double()
        everything = (logits / temperature).log_softmax(dim=1)[len(prompt) - 1 : -1]
        for t, token in enumerate(completion.tokens):
            expected = float(everything[t, token]) if completion.sampled[t] else 0.0
            entropy = -float((everything[t].exp() * everything[t]).sum()) if completion.sampled[t] else 0.0
            assert float(found[place, t]) == pytest.approx(expected, abs=1e-4)
            assert float(entropies[place, t]) == pytest.approx(entropy, abs=1e-4)
        assert not found[place, len(completion.tokens) :].any()


def test_sharing_prompts_changes_no_gradient(
    small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase
) -> None:
    gradients = []
    for shared in (True, False):
        learner = learner_of(small_model, tokenizer, recipe_of(shared_prompts=shared))
        batch = learner.batch(random_groups(2, MIXED))
        log_probabilities, _ = learner.policy(batch)
        (log_probabilities * torch.linspace(-1, 1, log_probabilities.shape[1])).sum().backward()
        gradients.append({name: weight.grad for name, weight in learner.policy.named_parameters()})
    assert all(gradient is not None and gradient.any() for gradient in gradients[0].values())
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], atol=1e-3, rtol=1e-3, msg=name)


# ---- losses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["grpo", "dr_grpo", "dapo"])
def test_the_surrogate_is_clipped_where_it_would_go_too_far(loss: str) -> None:
    """Ratios 0.5, 1, 1.1, 2 between limits 0.8 and 1.2, for a good completion and a bad one."""
    ratios = torch.tensor([0.5, 1.0, 1.1, 2.0], dtype=torch.float64).expand(2, 4)
    policy = ratios.log().requires_grad_()
    recipe = recipe_of(loss=loss, clip_low=0.2, clip_high=0.2)
    losses, clipped = surrogate(recipe, policy, torch.zeros_like(policy), torch.tensor([0.5, -0.5]))
    expected = [[-0.25, -0.5, -0.55, -0.6], [0.4, 0.5, 0.55, 1.0]]
    torch.testing.assert_close(losses, torch.tensor(expected, dtype=torch.float64))
    assert clipped.tolist() == [[False, False, False, True], [True, False, False, False]]
    losses.sum().backward()  # the gradient of ratio * advantage by the log-probability is itself
    slope = [[-0.25, -0.5, -0.55, 0.0], [0.0, 0.5, 0.55, 1.0]]
    torch.testing.assert_close(policy.grad, torch.tensor(slope, dtype=torch.float64))


def test_cispo_limits_the_ratio_and_keeps_every_gradient() -> None:
    policy = torch.tensor([[0.5, 1.0, 3.0]], dtype=torch.float64).log().requires_grad_()
    sampler = torch.zeros_like(policy).detach()
    losses, clipped = surrogate(recipe_of(loss="cispo", clip_high=2.0), policy, sampler, torch.tensor([-0.5]))
    expected = [[0.25 * math.log(0.5), 0.0, 1.0 * math.log(3.0)]]
    torch.testing.assert_close(losses, torch.tensor(expected, dtype=torch.float64))
    assert clipped.tolist() == [[False, False, True]]
    losses.sum().backward()
    torch.testing.assert_close(policy.grad, torch.tensor([[0.25, 0.5, 1.0]], dtype=torch.float64))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("grpo", [[1 / 20, 0, 1 / 20], [1 / 10, 0, 0]]),  # 10 completions, of 2 and 1 tokens
        ("dr_grpo", [[1 / 960, 0, 1 / 960], [1 / 960, 0, 0]]),  # 10 completions of at most 96
        ("dapo", [[1 / 40, 0, 1 / 40], [1 / 40, 0, 0]]),  # 40 tokens
        ("cispo", [[1 / 40, 0, 1 / 40], [1 / 40, 0, 0]]),
    ],
)
def test_token_weights_by_hand(loss: str, expected: list[list[float]]) -> None:
    sampled = torch.tensor([[True, False, True], [True, False, False]])
    found = token_weights(recipe_of(loss=loss), sampled, completions=10, tokens=40)
    torch.testing.assert_close(found, torch.tensor(expected))


def test_advantages_by_hand() -> None:
    groups = [Group([], [], [1.0, 0.0, 0.0, 1.0], 0), Group([], [], [1.0, 0.0, 0.0, 0.0], 0)]
    centred = [[0.5, -0.5, -0.5, 0.5], [0.75, -0.25, -0.25, -0.25]]
    assert advantages(groups, recipe_of()).tolist() == centred
    assert advantages(groups, recipe_of(blame=0.5)).tolist() == [
        [value / 2 if value < 0 else value for value in row] for row in centred
    ]
    deviations = [math.sqrt(1 / 3), 0.5]  # of samples
    expected = [
        [value / (deviation + 1e-4) for value in row]
        for row, deviation in zip(centred, deviations, strict=True)
    ]
    torch.testing.assert_close(advantages(groups, recipe_of(scaled=True)), torch.tensor(expected))


# ---- learning -----------------------------------------------------------------------------------------


@given(
    sizes=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=12),
    bound=st.integers(1, 1500),
)
def test_parts_hold_every_group_once_and_keep_the_bound(
    small_model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerBase,
    sizes: list[tuple[int, int]],
    bound: int,
) -> None:
    recipe = recipe_of(pass_tokens=bound, group=2)
    learner = Learner(Policy(small_model, recipe), Setting(recipe, tokenizer, CPU, 1, 0))
    groups = []
    for number, (prompt, length) in enumerate(sizes):
        rows = [Completion([5] * n, [0.0] * n, [True] * n, True, None) for n in (1, length)]
        groups.append(Group([4] * prompt, rows, [0.0, 1.0], number))
    parts = list(learner.parts(groups))
    assert sorted(group.version for part in parts for group in part) == list(range(len(groups)))
    for part in parts:
        batch = learner.batch(part)
        width = batch.prompts.shape[1] + batch.tokens.shape[1]
        assert len(part) == 1 or len(batch.tokens) * width <= bound


@pytest.mark.parametrize("loss", LOSSES)
def test_a_step_in_passes_is_a_step_at_once(
    small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase, loss: str
) -> None:
    groups = random_groups(3, MIXED)
    results = []
    for pass_tokens in (1_000_000, 1):
        learner = learner_of(small_model, tokenizer, recipe_of(loss=loss, pass_tokens=pass_tokens))
        assert len(list(learner.parts(groups))) == (1 if pass_tokens > 1 else 4)
        numbers = learner.learn(groups, learner.rate(1))
        results.append((numbers, weights_of(learner)))
    (numbers, weights), (again, others) = results
    assert numbers == pytest.approx(again, rel=1e-3, abs=1e-5)
    assert numbers["gradient_norm"] > 1e-3
    assert_weights(weights, others, atol=2e-4)


def test_a_step_moves_probabilities_along_the_advantages(
    small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase
) -> None:
    learner = learner_of(small_model, tokenizer, recipe_of())
    (group,) = drawn_by(learner, random_groups(4, MIXED[:1]))
    batch = learner.batch([group])
    before = learner.policy(batch)[0].sum(dim=1).detach()
    learner.learn([group], learner.rate(1))
    rise = learner.policy(batch)[0].sum(dim=1).detach() - before
    assert (rise[batch.advantages > 0] > 0).all() and rise[batch.advantages < 0].mean() < 0


def drawn_by(learner: Learner, groups: list[Group]) -> list[Group]:
    """The groups with the log-probabilities of the policy as it is."""
    with torch.no_grad():
        rows = iter(learner.policy(learner.batch(groups))[0].tolist())
    return [
        group._replace(
            completions=[
                row._replace(log_probabilities=next(rows)[: len(row.tokens)]) for row in group.completions
            ]
        )
        for group in groups
    ]


def test_what_the_log_says_of_a_step_by_hand(
    small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase
) -> None:
    """Three groups, one of them constant, of a sampler that is 0.1 nats off at every token."""
    learner = learner_of(small_model, tokenizer, recipe_of())
    groups = drawn_by(learner, random_groups(5, [(1, 0, 0, 1), (1, 1, 1, 1), (0, 0, 0, 1)]))
    groups = [
        group._replace(
            completions=[
                row._replace(log_probabilities=[value - 0.1 for value in row.log_probabilities])
                for row in group.completions
            ]
        )
        for group in groups
    ]
    groups[0].completions[0] = groups[0].completions[0]._replace(stopped=False)
    numbers = learner.learn(groups, learner.rate(1))
    tokens = sum(sum(row.sampled) for group in groups for row in group.completions)
    expected = {
        "pass_rate": 7 / 12,
        "pass_in_group": 1,
        "constant_groups": 1 / 3,
        "length": tokens / 12,
        "tokens": tokens,
        "interrupted": 3 / 12,
        "cut_off": 1 / 12,
        "log_probability_gap": 0.1,
        "kl": math.exp(0.1) - 1.1,
        "clip_ratio": 0.0,
        "learning_rate": 1e-3,
    }
    assert {name: numbers[name] for name in expected} == pytest.approx(expected, rel=1e-3)
    assert 0 < numbers["entropy"] < math.log(len(tokenizer))
    assert all(math.isfinite(number) for number in numbers.values())


def test_constant_groups_teach_nothing(
    small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase
) -> None:
    groups = random_groups(6, (*MIXED[:2], (1, 1, 1, 1), (0, 0, 0, 0)))
    weights = []
    for some in (groups, groups[:2]):
        learner = learner_of(small_model, tokenizer, recipe_of())
        learner.learn(some, learner.rate(1))
        weights.append(weights_of(learner))
    assert_weights(weights[0], weights[1], atol=1e-6)
    learner = learner_of(small_model, tokenizer, recipe_of())
    before = weights_of(learner)
    numbers = learner.learn(groups[2:], learner.rate(1))
    assert numbers["gradient_norm"] == 0 and numbers["constant_groups"] == 1
    assert_weights(weights_of(learner), before, atol=0)


def test_long_gradients_are_shortened(
    small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase
) -> None:
    """By a plain step of the optimizer on the gradient of the loss, cut to the length 0.01."""
    recipe = recipe_of(max_gradient_norm=0.01)
    learner = learner_of(small_model, tokenizer, recipe)
    groups = random_groups(7, MIXED)
    batch = learner.batch(groups)
    log_probabilities, _ = learner.policy(batch)
    losses, _ = surrogate(recipe, log_probabilities, batch.sampler_log_probabilities, batch.advantages)
    parameters = list(learner.policy.parameters())
    gradients = torch.autograd.grad((losses * batch.sampled).sum() / batch.sampled.sum(), parameters)
    norm = math.sqrt(sum(float(gradient.double().square().sum()) for gradient in gradients))
    assert norm > 0.01
    # Adam's first step: the rate times g / (|g| + eps).
    expected = [
        weight.detach() - 1e-3 * (gradient * 0.01 / norm) / ((gradient * 0.01 / norm).abs() + 1e-8)
        for weight, gradient in zip(parameters, gradients, strict=True)
    ]
    numbers = learner.learn(groups, learner.rate(1))
    assert numbers["gradient_norm"] == pytest.approx(norm, rel=1e-3)
    difference = torch.cat(
        [
            (weight.detach() - wanted).abs().flatten()
            for weight, wanted in zip(parameters, expected, strict=True)
        ]
    )
    assert float(difference.quantile(0.99)) < 1e-4  # the rest has gradients near the 1e-8


def test_the_learning_rate_rises_and_falls(
    small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase
) -> None:
    recipe = recipe_of(steps=8, warmup_steps=3, final_rate=0.2, learning_rate=2e-3)
    learner = learner_of(small_model, tokenizer, recipe)
    groups = random_groups(8, MIXED[:1])
    found = [learner.learn(groups, learner.rate(step))["learning_rate"] for step in range(1, 9)]
    factors = [0.25, 0.5, 0.75, 0.84, 0.68, 0.52, 0.36, 0.2]
    assert found == pytest.approx([2e-3 * factor for factor in factors])


# ---- what stops a run ---------------------------------------------------------------------------------


def numbers_of(**changes: float) -> dict[str, float]:
    return {"log_probability_gap": 0.01, "constant_groups": 0.5, "pass_rate": 0.5, **changes}


@pytest.mark.parametrize("gap", [0.051, math.nan, math.inf])
def test_a_sampler_that_parts_from_the_trainer_stops_the_run(gap: float) -> None:
    guard = Guard(recipe_of(gap_limit=0.05))
    guard.check(numbers_of(log_probability_gap=0.05))
    with pytest.raises(Problem, match=r"sampler and trainer are .* nats apart, over 0\.05"):
        guard.check(numbers_of(log_probability_gap=gap))


def test_five_steps_without_anything_to_learn_stop_the_run() -> None:
    guard = Guard(recipe_of())
    for constant in (1.0, 1.0, 1.0, 1.0, 0.9, 1.0, 1.0, 1.0, 1.0):
        guard.check(numbers_of(constant_groups=constant))
    with pytest.raises(Problem, match="for 5 steps all rewards of each group were equal"):
        guard.check(numbers_of(constant_groups=1.0))


def test_a_pass_rate_that_falls_stops_the_run() -> None:
    guard = Guard(recipe_of())
    for rate in [*[0.5] * 15, 0.0, *[0.5] * 9, *[0.41] * 20]:  # one bad step alone is no reason
        guard.check(numbers_of(pass_rate=rate))
    with pytest.raises(Problem, match=r"pass rate of 10 steps is 0\.\d+, it began at 0\.500"):
        for _ in range(3):
            guard.check(numbers_of(pass_rate=0.3))


def test_a_run_that_learns_is_not_stopped() -> None:
    guard = Guard(recipe_of())
    for step in range(200):
        noise = 0.2 * math.sin(step)
        guard.check(numbers_of(pass_rate=0.5 + noise + step / 1000, constant_groups=step % 5 / 4))


def test_a_rehearsal_leaves_the_weights_and_finds_a_sampler_with_others(
    small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase
) -> None:
    learner = learner_of(small_model, tokenizer, recipe_of(weight_decay=0.1))
    before = weights_of(learner)
    rollouts = OwnRollouts(learner.policy.model, learner.setting)
    rehearse(rollouts, learner, learner.setting)
    assert_weights(weights_of(learner), before, atol=0)
    fresh = learner_of(small_model, tokenizer, recipe_of(weight_decay=0.1))
    groups = random_groups(9, MIXED)
    for one in (learner, fresh):  # what was rehearsed is forgotten
        one.learn(groups, one.rate(1))
    assert_weights(weights_of(learner), weights_of(fresh), atol=1e-6)
    other = copy.deepcopy(small_model)
    with torch.no_grad():
        other.model.embed_tokens.weight.mul_(0.9)
    rollouts.engine = LocalEngine(other, 1)
    with pytest.raises(Problem, match=r"nats apart on a probe, over 0\.05.*same weights"):
        rehearse(rollouts, learner, learner.setting)


# ---- completions --------------------------------------------------------------------------------------


def test_puzzles_come_once_a_pass_in_an_order_of_the_seed() -> None:
    puzzles = [Puzzle(index, ONE_MOVE.board, "R") for index in range(5)]
    prompts = [[index] for index in range(5)]
    source = Puzzles(puzzles, prompts, seed=1)
    taken = [*source.take(3), *source.take(4), *source.take(3)]
    assert [number for number, _, _ in taken] == list(range(10))
    assert all(prompt == [puzzle.index] for _, puzzle, prompt in taken)
    order = [puzzle.index for _, puzzle, _ in taken]
    assert sorted(order[:5]) == sorted(order[5:]) == list(range(5))
    assert order == [puzzle.index for _, puzzle, _ in Puzzles(puzzles, prompts, seed=1).take(10)]
    assert order != [puzzle.index for _, puzzle, _ in Puzzles(puzzles, prompts, seed=2).take(10)]


def test_only_a_completion_that_ended_with_the_solution_is_rewarded(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    def paid(text: str, stopped: bool = True) -> float:
        tokens = tokenizer.encode(text, add_special_tokens=False)
        completion = Completion(tokens, [0.0] * len(tokens), [True] * len(tokens), stopped, None)
        return reward(ONE_MOVE, tokenizer, completion)

    assert paid("so <answer>R</answer><|end|>") == 1
    assert paid("<answer>R</answer>", stopped=False) == 0
    assert paid("<answer>L</answer><|end|>") == 0
    assert paid("R<|end|>") == 0


def test_groups_are_the_same_in_any_order(
    small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase
) -> None:
    setting = Setting(recipe_of(), tokenizer, CPU, 1, 0)
    engine = LocalEngine(small_model, 1)
    drawn = [(number, ONE_MOVE, [5 + number, 6]) for number in range(3)]
    forward = draw_groups(engine, drawn, 3, setting)
    backward = draw_groups(engine, drawn[::-1], 3, setting)[::-1]
    assert [group.version for group in forward] == [3] * 3
    for one, other in zip(forward, backward, strict=True):
        assert [row.tokens for row in one.completions] == [row.tokens for row in other.completions]
        assert len({tuple(row.tokens) for row in one.completions}) == 4
    (other_seed, *_) = draw_groups(engine, drawn, 3, setting._replace(seed=2))
    assert other_seed.completions != forward[0].completions


class Server:
    """Serves completions with weights of its own, slowly; and, if told so, no more."""

    def __init__(self, model: Qwen3ForCausalLM) -> None:
        self.model = copy.deepcopy(model)
        self.engine = LocalEngine(self.model, 1)
        self.lock = threading.Lock()
        self.broken = False

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        max_tokens: Sequence[int],
        sampling: Sampling,
    ) -> list[Generation]:
        with self.lock:
            if self.broken:
                raise Problem("the server is gone")
            return self.engine.generate(prompts, seeds, max_tokens, sampling)

    def update(self, weights: dict[str, Tensor]) -> None:
        with self.lock:
            self.model.load_state_dict(weights, strict=False)  # the head is the embeddings


def test_served_completions_are_fresh_enough_and_failures_come_through(
    small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase
) -> None:
    recipe = recipe_of(staleness=1, puzzles=2, in_flight=8, max_tokens=60, answer_tokens=4)
    setting = Setting(recipe, tokenizer, CPU, 1, 0)
    server = Server(small_model)
    learner = learner_of(small_model, tokenizer, recipe)
    rollouts = ServedRollouts(server, setting)  # type: ignore[arg-type]
    rehearse(rollouts, learner, setting)
    rollouts.start(Puzzles([ONE_MOVE], [[5, 6]], seed=1))
    try:
        for version in range(6):
            groups = rollouts.take(version)
            assert len(groups) == 2 and all(version - 1 <= group.version <= version for group in groups)
            learner.learn([group._replace(rewards=[0.0, 1.0] * 2) for group in groups], learner.rate(1))
            rollouts.update(learner.policy, version + 1)
        served, trained = server.model.state_dict(), learner.policy.model.state_dict()
        assert all(torch.equal(tensor, trained[name]) for name, tensor in served.items())
        server.broken = True
        with pytest.raises(Problem, match="the server is gone"):
            for _ in range(10):
                rollouts.take(6)
    finally:
        rollouts.close()
    for thread in rollouts.threads:
        thread.join(timeout=20)
        assert not thread.is_alive()


def test_a_task_of_one_move_is_learned(
    small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase
) -> None:
    """A model that answers U, D, L and R alike learns that R is right, by the loop's own parts."""
    model = copy.deepcopy(small_model)
    prompt = tokenizer.encode(ONE_MOVE.board + "\n", add_special_tokens=False)
    rows = [tokenizer.encode(f"<answer>{move}</answer><|end|>", add_special_tokens=False) for move in "UDLR"]
    ids = torch.tensor([prompt + row for row in rows])
    labels = ids.clone()
    labels[:, : len(prompt)] = -100
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(40):
        optimizer.zero_grad()
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
    recipe = recipe_of(group=8, puzzles=4, steps=16, learning_rate=2e-3)
    learner = learner_of(model, tokenizer, recipe)
    rollouts = OwnRollouts(learner.policy.model, learner.setting)
    rollouts.start(Puzzles([ONE_MOVE], [prompt], seed=1))
    rates = [learner.learn(rollouts.take(step - 1), learner.rate(step))["pass_rate"] for step in range(1, 17)]
    assert 0.05 < rates[0] < 0.6
    assert sum(rates[-3:]) / 3 > 0.9


# ---- the whole way ------------------------------------------------------------------------------------


def test_smoke_goes_the_whole_way(smoke_run: tuple[Path, str]) -> None:
    run, output = smoke_run
    log, manifest = read_log(run / "log.jsonl"), read_manifest(run / "manifest.json")
    assert {file.name for file in run.iterdir()} == {
        "manifest.json",
        "log.jsonl",
        "speedrun.py",
        "checkpoint",
        "checkpoint.json",
        "evidence.jsonl.xz",
        ".lock",
    }
    assert log.status == "complete" and "pass@1" in output and "No record" in output
    assert "it is a smoke run" in eligibility(manifest, log)
    assert manifest.data.items() <= dict(TRACK.data_files()).items() and manifest.data
    assert [step.fields["step"] for step in log.steps] == [1, 2]
    assert {"pass_rate", "kl", "tokens_per_s", "rollout_s", "update_s", "sync_s"} <= log.steps[
        0
    ].fields.keys()
    assert log.steps[1].fields["log_probability_gap"] < 1e-4
    assert open_checkpoint(run) == run / "checkpoint"


def test_the_evidence_of_a_smoke_run_is_worth_what_its_log_says(smoke_run: tuple[Path, str]) -> None:
    run, _ = smoke_run
    evidence = run / "evidence.jsonl.xz"
    outcomes = read_outcomes(evidence)
    score = score_outcomes(outcomes)
    logged = read_log(run / "log.jsonl").get("eval_stop").fields
    assert (score.value, score.low, score.high) == (logged["value"], logged["low"], logged["high"])
    assert 0.1 < score.value < 0.9
    assert outcomes.header["checkpoint_sha256"] == sha256_file(run / "checkpoint.json")
    with pytest.raises(Problem, match="not on 'tiny_eval'"):  # experiments do not see the held-out puzzles
        TRACK.score(evidence)


@pytest.mark.parametrize(
    ("event", "number"),
    [
        ("run_start", signal.SIGINT),  # while the others start
        ("run_start", signal.SIGTERM),
        ("step", signal.SIGINT),
        ("step", signal.SIGTERM),
        ("eval_start", signal.SIGINT),  # while the evaluation's processes start
    ],
)
def test_an_interrupted_run_says_so_and_leaves_no_process(
    tmp_path: Path, environment: dict[str, str], number: signal.Signals, event: str
) -> None:
    flags = ["--smoke"] if event == "eval_start" else ["--recipe.steps", "100000"]
    command = [sys.executable, "-m", "llm.speedrun", *flags]
    with (tmp_path / "output").open("w") as output:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    family = [psutil.Process(process.pid)]
    try:
        log = wait_for(event, process, tmp_path)
        if event != "step":
            time.sleep(0.5)  # into the imports of the others
        family += family[0].children(recursive=True)
        assert len(family) >= RECIPES["cpu"].trainers
        os.killpg(process.pid, number)  # as a terminal does, and `timeout`
        status = process.wait(timeout=300)
        _, alive = psutil.wait_procs(family, timeout=60)
        assert alive == []
    finally:
        for member in family:
            if member.is_running():
                member.kill()
    said = (tmp_path / "output").read_text()
    assert status == (130 if number == signal.SIGINT else 1), said
    last = json.loads(log.read_text().splitlines()[-1])
    assert (last["event"], last["status"]) == ("run_stop", "interrupted")
    assert last["reason"] == ("Ctrl-C" if number == signal.SIGINT else "terminated")
    assert read_log(log).status == "interrupted"
    assert "is incomplete" in said and "Traceback" not in said


def wait_for(event: str, process: subprocess.Popen[bytes], folder: Path) -> Path:
    """The log of the run in this folder, once it holds this event."""
    for _ in range(6000):
        for log in folder.glob("outputs/[0-9]*/log.jsonl"):
            if f'"{event}"' in log.read_text():
                return log
        assert process.poll() is None, (folder / "output").read_text()
        time.sleep(0.1)
    raise AssertionError(f"no {event} in ten minutes")
