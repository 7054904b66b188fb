"""Losses and gradients against TRL's GRPOTrainer on the same completions."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from torch import Tensor
from transformers import Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig, GRPOTrainer
from trl.trainer.utils import nanstd

from llm.completion import Completion
from llm.make_tiny import make_tokenizer
from llm.speedrun import Group, Learner, Policy, Recipe, Setting, advantages, surrogate, token_weights

TOKENIZER = make_tokenizer()
LOSSES = ("grpo", "dr_grpo", "dapo", "cispo")
CLIP_HIGH = {"grpo": 0.2, "dr_grpo": 0.2, "dapo": 0.28, "cispo": 1.3}
GROUP, MAX_TOKENS = 4, 12


def recipe_of(loss: str, **others: Any) -> Recipe:
    return Recipe(
        trainers=1,
        group=GROUP,
        max_tokens=MAX_TOKENS,
        loss=loss,
        clip_high=CLIP_HIGH[loss],
        blame=1.0,  # TRL weighs all advantages alike
        **others,
    )


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Sums this small are slower with more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model() -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(TOKENIZER),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        tie_word_embeddings=True,
        initializer_range=0.5,  # distributions that are far from even
    )
    return Qwen3ForCausalLM(config)


def make_groups(generator: torch.Generator, rewards: Sequence[Sequence[float]]) -> list[Group]:
    """Random tokens of all lengths; the first completion of each group was interrupted."""
    groups = []
    for place, row in enumerate(rewards):
        prompt = torch.randint(4, len(TOKENIZER), (3 + 2 * place,), generator=generator).tolist()
        completions = []
        for index in range(GROUP):
            length = 5 + index if index == 0 else int(torch.randint(1, MAX_TOKENS, (1,), generator=generator))
            tokens = torch.randint(4, len(TOKENIZER), (length,), generator=generator).tolist()
            sampled = [index > 0 or not 2 <= number < 4 for number in range(length)]
            completions.append(Completion(tokens, [0.0] * length, sampled, True, 2 if index == 0 else None))
        groups.append(Group(prompt, completions, [float(reward) for reward in row], 0))
    return groups


def drawn_with(groups: Sequence[Group], log_probabilities: Tensor) -> list[Group]:
    """The groups as a sampler with these log-probabilities (N, T) would have drawn them."""
    rows = iter(log_probabilities.tolist())
    return [
        group._replace(
            completions=[
                completion._replace(log_probabilities=next(rows)[: len(completion.tokens)])
                for completion in group.completions
            ]
        )
        for group in groups
    ]


def our_learner(model: Qwen3ForCausalLM, recipe: Recipe) -> Learner:
    setting = Setting(recipe, TOKENIZER, torch.device("cpu"), 1, 0)
    return Learner(Policy(copy.deepcopy(model), recipe), setting)


def our_loss(learner: Learner, groups: Sequence[Group]) -> tuple[float, dict[str, Tensor]]:
    """The loss of one batch and its gradients."""
    recipe, batch = learner.setting.recipe, learner.batch(groups)
    log_probabilities, _ = learner.policy(batch)
    losses, _ = surrogate(recipe, log_probabilities, batch.sampler_log_probabilities, batch.advantages)
    weights = token_weights(recipe, batch.sampled, len(batch.tokens), float(batch.sampled.sum()))
    loss = (losses * weights).sum()
    loss.backward()
    return loss.item(), gradients(learner.policy.model)


def gradients(model: torch.nn.Module) -> dict[str, Tensor]:
    return {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}


class TheirLoss:
    """A real GRPOTrainer that never trains; its loss method is called with our batch."""

    def __init__(self, model: Qwen3ForCausalLM, recipe: Recipe, folder: Path) -> None:
        config = GRPOConfig(
            str(folder),
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            disable_tqdm=True,
            per_device_train_batch_size=GROUP,
            num_generations=GROUP,
            max_completion_length=recipe.max_tokens,
            temperature=recipe.temperature,
            loss_type=recipe.loss,
            epsilon=recipe.clip_low,
            epsilon_high=recipe.clip_high,
        )
        self.trainer = GRPOTrainer(
            model=copy.deepcopy(model),
            reward_funcs=lambda completions, **_: [0.0] * len(completions),
            args=config,
            train_dataset=Dataset.from_list([{"prompt": "+"}]),
            processing_class=copy.deepcopy(TOKENIZER),
        )
        self.trainer.current_gradient_accumulation_steps = 1  # as the training loop sets it
        self.trainer.model.train()

    def __call__(
        self, learner: Learner, groups: Sequence[Group], off_policy: bool, **others: Tensor
    ) -> tuple[float, dict[str, Tensor]]:
        batch = learner.batch(groups)
        inputs = {
            "prompt_ids": batch.prompts[batch.owner],
            "prompt_mask": batch.prompt_mask[batch.owner],
            "completion_ids": batch.tokens,
            "completion_mask": batch.token_mask,
            "tool_mask": batch.sampled.long(),  # TRL's name for tokens that others wrote
            "advantages": batch.advantages,
            "num_items_in_batch": batch.sampled.sum(),
            **others,
        }
        if off_policy:
            inputs["old_per_token_logps"] = batch.sampler_log_probabilities
        loss = self.trainer._compute_loss(self.trainer.model, inputs)
        loss.backward()
        found = gradients(self.trainer.model)
        self.trainer.model.zero_grad()
        return loss.item(), found


def assert_equal(ours: tuple[float, dict[str, Tensor]], theirs: tuple[float, dict[str, Tensor]]) -> None:
    assert ours[0] == pytest.approx(theirs[0], rel=1e-4, abs=1e-6)
    assert ours[1].keys() == theirs[1].keys()
    for name, gradient in ours[1].items():
        torch.testing.assert_close(gradient, theirs[1][name], rtol=1e-4, atol=2e-6, msg=name)
    assert any(gradient.abs().max() > 1e-3 for gradient in ours[1].values())


MIXED = ((1, 0, 0, 1), (0, 0, 0, 1), (1, 1, 0, 1))


def log_probabilities_of(learner: Learner, groups: Sequence[Group]) -> Tensor:
    with torch.no_grad():
        return learner.policy(learner.batch(groups))[0]


@pytest.mark.parametrize("shared_prompts", [True, False])
@pytest.mark.parametrize("off_policy", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_loss_and_gradients_are_those_of_trl(
    model: Qwen3ForCausalLM, tmp_path: Path, loss: str, off_policy: bool, shared_prompts: bool
) -> None:
    generator = torch.Generator().manual_seed(1)
    recipe = recipe_of(loss, shared_prompts=shared_prompts, temperature=0.9, scaled=off_policy)
    learner = our_learner(model, recipe)
    groups = make_groups(generator, MIXED)
    drawn = log_probabilities_of(learner, groups)
    if off_policy:
        drawn = drawn + 0.4 * torch.randn(drawn.shape, generator=generator)
    groups = drawn_with(groups, drawn)
    if off_policy:  # ratios on both sides of both limits, or the test would say little
        batch = learner.batch(groups)
        policy = log_probabilities_of(learner, groups)
        _, clipped = surrogate(recipe, policy, batch.sampler_log_probabilities, batch.advantages)
        assert 0.1 < clipped[batch.sampled].float().mean() < 0.9
    theirs = TheirLoss(model, recipe, tmp_path)(learner, groups, off_policy)
    assert_equal(our_loss(learner, groups), theirs)


@pytest.mark.parametrize("loss", LOSSES)
def test_groups_that_teach_nothing_do_not_dilute_the_others(
    model: Qwen3ForCausalLM, tmp_path: Path, loss: str
) -> None:
    """TRL averages over constant groups too; ours leaves them out, and its gradients are larger."""
    recipe = recipe_of(loss)
    learner = our_learner(model, recipe)
    groups = make_groups(torch.Generator().manual_seed(2), (*MIXED, (1, 1, 1, 1), (0, 0, 0, 0)))
    groups = drawn_with(groups, log_probabilities_of(learner, groups))
    _, found = TheirLoss(model, recipe, tmp_path)(learner, groups, off_policy=False)
    norm = torch.stack([gradient.norm() for gradient in found.values()]).norm().item()
    tokens = [sum(sum(row.sampled) for row in group.completions) for group in groups]
    factor = len(groups) / 3 if loss in ("grpo", "dr_grpo") else sum(tokens) / sum(tokens[:3])
    numbers = learner.learn(groups, rate=0.0)
    assert numbers["gradient_norm"] == pytest.approx(factor * norm, rel=1e-4)
    assert numbers["clip_ratio"] == 0
    assert numbers["log_probability_gap"] == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_one_ratio_to_the_sampler_or_two(model: Qwen3ForCausalLM, tmp_path: Path, loss: str) -> None:
    """TRL with vLLM multiplies the ratio to the policy before the update by that policy's to the sampler's.

    Ours is the product, the ratio to the sampler. Both come to the same in the first update on a batch, where
    nothing is clipped, and for cispo if TRL limits its second ratio as we limit the only one.
    """
    generator = torch.Generator().manual_seed(3)
    recipe = recipe_of(loss)
    if loss != "cispo":
        recipe = replace(recipe, clip_low=0.9, clip_high=9.0)
    learner = our_learner(model, recipe)
    groups = make_groups(generator, MIXED)
    before = log_probabilities_of(learner, groups)
    sampler = before + 0.3 * torch.randn(before.shape, generator=generator)
    groups = drawn_with(groups, sampler)
    their = TheirLoss(model, recipe, tmp_path)
    their.trainer.use_vllm = True
    second = (before - sampler).exp().clamp(max=recipe.clip_high)
    theirs = their(learner, groups, off_policy=False, importance_sampling_ratio=second)
    assert_equal(our_loss(learner, groups), theirs)


def test_advantages_are_those_of_trl() -> None:
    rewards = torch.tensor(MIXED, dtype=torch.float32)
    groups = [Group([], [], row, 0) for row in rewards.tolist()]
    centred = rewards - rewards.mean(dim=1, keepdim=True)
    torch.testing.assert_close(advantages(groups, recipe_of("dapo", scaled=False)), centred)
    scaled = centred / (nanstd(rewards, dim=1)[:, None] + 1e-4)
    torch.testing.assert_close(advantages(groups, recipe_of("dapo", scaled=True)), scaled)
