"""OPEN: fine-tune a language model by RL until it solves Sokoban. All of this file is yours to make faster.

    python -m llm.speedrun                                     the pinned recipe of this machine's class
    torchrun --standalone --nproc_per_node=3 -m llm.speedrun   the same on 8xH100: 3 GPUs train, 5 serve
    python -m llm.speedrun --smoke                             seconds on a CPU; ranks nowhere
    python -m llm.speedrun --recipe.learning-rate 2e-4         an experiment; ranks nowhere until pinned
    python -m llm.speedrun --verify records/llm/<record>
    python -m llm.speedrun --resume outputs/<run>              goes on with a run that broke off

A step takes some puzzles and draws a group of completions for each. A completion's reward is 1 if its answer
solves the puzzle, its advantage the reward less the mean of its group (Shao et al. 2024), and one gradient
step makes the tokens of good completions likelier. On CPUs every process draws its own completions with the
weights that it trains. On a node of GPUs some train, sharded, while vLLM on the others draws without pause
from weights that are a few updates old, and each token's importance ratio makes up for that.
"""

import io
import multiprocessing
import os
import queue
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.utils.checkpoint import checkpoint
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from harness.errors import Problem, run_command
from harness.launch import launch
from harness.run import Run
from harness.silent import SilentRun, end_with_parent, ignored_signals, killed_on_error
from llm.answers import judge
from llm.checkpoint import save_checkpoint
from llm.completion import Completion, Engine, Limits, Sampling, complete, completion_seed, completion_text
from llm.engines.local import LocalEngine
from llm.engines.server import ServerEngine, Servers
from llm.eval_speedrun import evaluate
from llm.models import end_token, load_model, load_tokenizer, model_folder, prompt_tokens
from llm.prompt import check_prompt
from llm.puzzles import Puzzle, dataset_sha256, read_puzzles
from llm.track import TASKS, TRACK

# ---- recipe -------------------------------------------------------------------------------------------

Loss = Literal["grpo", "dr_grpo", "dapo", "cispo"]


@dataclass(frozen=True)
class Recipe:
    """One way to train. Numbers of puzzles and completions are totals over all processes."""

    task: str = "cpu"
    """Whose model and puzzles: the class of hardware."""
    seed: int = 1
    """Of the order of the puzzles and of the completions; the verification has another."""
    prompt: str = "{question}"
    """What stands around the question; `llm.prompt` says what may."""
    trainers: int = 2
    """Processes that train: one a core, or one a GPU while vLLM serves on the others."""
    steps: int = 170
    """Gradient steps."""
    puzzles: int = 64
    """Puzzles a step."""
    group: int = 8
    """Completions a puzzle."""
    context: int = 256
    """Most tokens of prompt and completion together, where servers draw."""
    max_tokens: int = 96
    """Of a completion, the interruption included."""
    answer_tokens: int = 16
    """After the interruption."""
    temperature: float = 1.2
    """Of training's completions; top_p is 1, or sampler and trainer would have two distributions."""
    loss: Loss = "dapo"
    """Which surrogate, see `surrogate` and `token_weights`."""
    clip_low: float = 0.2
    """The importance ratio may fall by this before its gradient is cut; not for cispo."""
    clip_high: float = 0.28
    """... and rise by this; for cispo the largest ratio itself."""
    scaled: bool = True
    """Divide advantages by the standard deviation of their group."""
    blame: float = 0.25
    """The weight of negative advantages; below 1 a step learns more from what went well."""
    learning_rate: float = 2e-4
    """Of AdamW, at its highest."""
    warmup_steps: int = 5
    """The rate rises linearly over these, ..."""
    final_rate: float = 0.1
    """... then falls linearly to this fraction at the last step."""
    beta2: float = 0.99
    """Decay of AdamW's second moment."""
    weight_decay: float = 0.0
    """Of AdamW."""
    max_gradient_norm: float = 1.0
    """Longer gradients are shortened to this."""
    shared_prompts: bool = True
    """Read a prompt once for its whole group; pays where completions are shorter than prompts."""
    sharded: bool = False
    """Shard weights and optimizer over the trainers, compute in bfloat16, and recompute activations."""
    pass_tokens: int = 1_000_000
    """Most tokens, padding included, in a forward and backward pass of more than one group."""
    staleness: int = 0
    """Most updates that a completion's weights may be behind; 0 = drawn by the trainers themselves."""
    in_flight: int = 64
    """Completions being drawn at any time by the servers."""
    gap_limit: float = 0.05
    """Stop where sampler and trainer differ by more, as the mean over tokens, in nats."""

    def __post_init__(self) -> None:
        check_prompt(self.prompt)
        if self.task not in TASKS:
            raise Problem(f"there is no task {self.task!r}", remedy=f"choose one of: {', '.join(TASKS)}")
        smallest = {
            **dict.fromkeys(("trainers", "steps", "puzzles", "answer_tokens", "pass_tokens", "in_flight"), 1),
            **dict.fromkeys(("seed", "staleness", "warmup_steps", "blame", "weight_decay"), 0),
            **dict.fromkeys(("temperature", "learning_rate", "max_gradient_norm", "gap_limit"), 1e-9),
            "group": 2,
        }
        for name, least in smallest.items():
            if not getattr(self, name) >= least:
                raise Problem(f"{name} is {getattr(self, name)}", remedy=f"give {least} or more")
        for name in ("beta2", "final_rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise Problem(f"{name} is {getattr(self, name)}", remedy="give a number from 0 to 1")
        if self.staleness == 0 and self.puzzles % self.trainers:
            remedy = "give a multiple of trainers as puzzles"
            raise Problem(f"{self.trainers} trainers cannot share {self.puzzles} puzzles", remedy=remedy)
        if self.sharded and (self.shared_prompts or self.staleness == 0):
            remedy = "shared_prompts must be false and staleness at least 1"
            raise Problem("sharded trainers read whole completions that servers drew", remedy=remedy)

    def smoke(self) -> "Recipe":
        """Two small steps, to see the whole way work."""
        return replace(self, steps=2, puzzles=2 * self.trainers, group=4)


RECIPES = {
    "8xH100": Recipe(
        task="8xH100",
        prompt="{question}\n\nThink step by step, check each step, and then give the final answer.",
        trainers=3,  # an update on 3 GPUs takes less than its completions on the other 5
        steps=48,  # public runs went from 75 to 48 at this rate and batch before they changed more
        puzzles=16,  # 128 completions a step, those of the public records
        group=8,  # at a pass rate of 0.6 fewer than one group in fifty is all right or all wrong by chance
        context=6_144,  # a question of 600 tokens, a completion and room to spare
        max_tokens=4_800,  # nearly all completions that succeed are shorter, and the longest decide the wait
        answer_tokens=512,  # as in the evaluation
        temperature=1.0,  # the policy's own distribution, which the gradient is about
        loss="cispo",  # every token keeps its gradient, however far the weights have moved
        clip_high=4.0,  # bounds the weight of a token that stale weights thought unlikely
        scaled=False,  # a deviation over 8 rewards is mostly noise
        blame=1.0,  # the plain policy gradient
        learning_rate=1.6e-6,  # that of the public records; AdamW moves each weight by about this much a step
        warmup_steps=5,  # its second moments have seen nothing
        final_rate=0.3,  # where a fall to 0.15 over 60 steps stands after 48
        beta2=0.999,  # AdamW's own
        weight_decay=0.01,  # too little to matter in 48 steps, kept as it was tried
        shared_prompts=False,  # prompts are a tenth of a completion here
        sharded=True,  # float32 weights, gradients and moments take 64 GB
        pass_tokens=44_000,  # one group of the longest completions, or more of shorter ones
        staleness=4,  # 192 in flight and a step in the queue are at most about three updates behind
        in_flight=192,  # a step and a half: reading the weights bounds decoding, so more at once is faster
        gap_limit=0.1,  # bfloat16 on both sides and four updates between them
    ),
    "cpu": Recipe(),
}

# ---- completions and their rewards --------------------------------------------------------------------


class Group(NamedTuple):
    """The completions of one puzzle, from weights that had been updated `version` times when they began."""

    prompt: list[int]
    completions: list[Completion]
    rewards: list[float]
    version: int

    @property
    def constant(self) -> bool:
        """Whether nothing can be learned from it, because all rewards are equal."""
        return len(set(self.rewards)) == 1


class Puzzles:
    """Puzzles in an order drawn anew for every pass, each with a number that no other draw has."""

    def __init__(self, puzzles: list[Puzzle], prompts: list[list[int]], seed: int) -> None:
        self.puzzles, self.prompts = puzzles, prompts
        self.generator = torch.Generator().manual_seed(seed)
        self.order: list[int] = []
        self.drawn = 0

    def take(self, count: int) -> list[tuple[int, Puzzle, list[int]]]:
        """The next `count`: number, puzzle and prompt."""
        taken = []
        for _ in range(count):
            if not self.order:
                self.order = torch.randperm(len(self.puzzles), generator=self.generator).tolist()
            index = self.order.pop()
            taken.append((self.drawn, self.puzzles[index], self.prompts[index]))
            self.drawn += 1
        return taken


def reward(puzzle: Puzzle, tokenizer: PreTrainedTokenizerBase, completion: Completion) -> float:
    """1 if the completion ended and its answer solves the puzzle, else 0."""
    text, _ = completion_text(tokenizer, completion)
    return float(judge(puzzle, text, stopped=completion.stopped).solved)


class OwnRollouts:
    """Completions that this process draws from the weights that it trains, for its share of the puzzles."""

    def __init__(self, model: PreTrainedModel, setting: "Setting") -> None:
        self.engine = LocalEngine(model, end_token(setting.tokenizer))
        self.setting = setting

    def start(self, source: Puzzles) -> None:
        """Take puzzles from here."""
        self.source = source

    def take(self, version: int) -> list[Group]:
        """This process's groups of the next step."""
        return self.draw(self.source.take(self.setting.recipe.puzzles), version)

    def draw(self, drawn: Sequence[tuple[int, Puzzle, list[int]]], version: int = 0) -> list[Group]:
        """Groups of this process's share of these puzzles."""
        own = drawn[self.setting.rank :: self.setting.recipe.trainers]
        return draw_groups(self.engine, own, version, self.setting)

    def update(self, policy: "Policy", version: int) -> None:
        """Nothing to do: the weights are the same ones."""


def draw_groups(
    engine: Engine, drawn: Sequence[tuple[int, Puzzle, list[int]]], version: int, setting: "Setting"
) -> list[Group]:
    """A group of completions for every puzzle, with rewards."""
    recipe = setting.recipe
    completions = complete(
        engine,
        setting.tokenizer,
        [prompt for _, _, prompt in drawn for _ in range(recipe.group)],
        [
            completion_seed(setting.seed, number, index)
            for number, _, _ in drawn
            for index in range(recipe.group)
        ],
        Limits(recipe.max_tokens, recipe.answer_tokens),
        Sampling(recipe.temperature, top_p=1.0),
    )
    groups = []
    for place, (_, puzzle, prompt) in enumerate(drawn):
        own = completions[place * recipe.group : (place + 1) * recipe.group]
        rewards = [reward(puzzle, setting.tokenizer, completion) for completion in own]
        groups.append(Group(prompt, own, rewards, version))
    return groups


# ---- policy -------------------------------------------------------------------------------------------

SCORED = 4096  # tokens whose logits are in memory at a time


class Batch(NamedTuple):
    """Completions to learn from: N rows of T tokens, padded on the right, of P prompts padded on the left."""

    prompts: Tensor
    prompt_mask: Tensor
    owner: Tensor
    """(N,) the prompt of each completion."""
    tokens: Tensor
    token_mask: Tensor
    """(N, T) where there are tokens."""
    sampled: Tensor
    """(N, T) where the model chose them: all but padding and interruptions."""
    sampler_log_probabilities: Tensor
    """(N, T) as the engine drew them."""
    advantages: Tensor
    """(N,)"""

    def to(self, device: torch.device) -> "Batch":
        return Batch(*(column.to(device) for column in self))


class Policy(nn.Module):
    """The model as RL sees it: a batch to the log-probabilities and entropies (N, T) of its tokens."""

    def __init__(self, model: PreTrainedModel, recipe: Recipe) -> None:
        super().__init__()
        self.model, self.recipe = model, recipe

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        hidden = self.hidden(batch)[batch.sampled]  # (M, H), where the M sampled tokens are foretold
        targets = batch.tokens[batch.sampled]
        parts = [
            checkpoint(self.score, *part, use_reentrant=False)
            for part in zip(hidden.split(SCORED), targets.split(SCORED), strict=True)
        ]
        log_probabilities, entropies = (torch.cat(column) for column in zip(*parts, strict=True))
        empty = torch.zeros(batch.tokens.shape, device=hidden.device)
        return empty.masked_scatter(batch.sampled, log_probabilities), empty.masked_scatter(
            batch.sampled, entropies
        )

    def score(self, hidden: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities (M,) of the targets and entropies (M,) at the temperature of the sampler."""
        logits = self.model.lm_head(hidden).float() / self.recipe.temperature
        log_probabilities = logits.log_softmax(dim=1)
        with torch.no_grad():
            entropies = -(log_probabilities.exp() * log_probabilities).sum(dim=1)
        return log_probabilities.gather(1, targets[:, None])[:, 0], entropies

    def hidden(self, batch: Batch) -> Tensor:
        """(N, T, H), at each place the state that foretells the token there."""
        positions = (batch.prompt_mask.cumsum(dim=1) - 1).clamp(min=0)
        last = positions[batch.owner, -1:]
        if not self.recipe.shared_prompts:
            ids = torch.cat([batch.prompts[batch.owner], batch.tokens], dim=1)[:, :-1]
            mask = torch.cat([batch.prompt_mask[batch.owner], batch.token_mask], dim=1)[:, :-1]
            everything = self.model.model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=(mask.cumsum(dim=1) - 1).clamp(min=0),
                use_cache=False,
            ).last_hidden_state
            return everything[:, batch.prompts.shape[1] - 1 :]
        cache = DynamicCache(config=self.model.config)
        prompts = self.model.model(
            input_ids=batch.prompts,
            attention_mask=batch.prompt_mask,
            position_ids=positions,
            past_key_values=cache,
        ).last_hidden_state
        cache.batch_select_indices(batch.owner)
        rest = self.model.model(
            input_ids=batch.tokens[:, :-1],
            attention_mask=torch.cat([batch.prompt_mask[batch.owner], batch.token_mask[:, :-1]], dim=1),
            position_ids=last + batch.token_mask[:, :-1].cumsum(dim=1),
            past_key_values=cache,
        ).last_hidden_state
        return torch.cat([prompts[batch.owner, -1:], rest], dim=1)


# ---- learning -----------------------------------------------------------------------------------------


def advantages(groups: Sequence[Group], recipe: Recipe) -> Tensor:
    """(P, G) rewards less their group's mean; `scaled`, over their deviation too (Shao et al. 2024)."""
    rewards = torch.tensor([group.rewards for group in groups])
    centred = rewards - rewards.mean(dim=1, keepdim=True)
    if recipe.scaled:
        centred = centred / (rewards.std(dim=1, keepdim=True) + 1e-4)
    return torch.where(centred < 0, recipe.blame * centred, centred)


def surrogate(
    recipe: Recipe, log_probabilities: Tensor, sampler: Tensor, advantages: Tensor
) -> tuple[Tensor, Tensor]:
    """What each token adds to the loss, before weights, and whether its ratio is clipped; both (N, T).

    The ratio is that of the policy's probability to the one with which the sampler drew the token, so stale
    weights and other arithmetic are corrected for alike. grpo, dr_grpo and dapo clip as PPO does (Schulman et
    al. 2017, equation 7); cispo stops the gradient of the clipped ratio instead (MiniMax 2025, equation 4).
    """
    ratio = (log_probabilities - sampler).exp()
    advantages = advantages[:, None]
    if recipe.loss == "cispo":
        clipped = ratio.detach() > recipe.clip_high
        return -ratio.detach().clamp(max=recipe.clip_high) * advantages * log_probabilities, clipped
    bounded = ratio.clamp(1 - recipe.clip_low, 1 + recipe.clip_high)
    clipped = torch.where(advantages > 0, ratio > bounded, ratio < bounded)
    return -torch.minimum(ratio * advantages, bounded * advantages), clipped


def token_weights(recipe: Recipe, sampled: Tensor, completions: float, tokens: float) -> Tensor:
    """(N, T) the weight of each token in the loss, given how many of both there are over all processes.

    grpo weighs completions alike and their tokens by length; dr_grpo (Liu et al. 2025) divides by the most
    tokens a completion may have; dapo (Yu et al. 2025) and cispo weigh all tokens alike.
    """
    mask = sampled.float()
    if recipe.loss == "grpo":
        return mask / mask.sum(dim=1, keepdim=True).clamp(min=1) / completions
    return mask / (completions * recipe.max_tokens if recipe.loss == "dr_grpo" else tokens)


class Setting(NamedTuple):
    """What all parts of a run share."""

    recipe: Recipe
    tokenizer: PreTrainedTokenizerBase
    device: torch.device
    seed: int
    rank: int


class Learner:
    """Improves the policy: one gradient step on the groups of all processes."""

    def __init__(self, policy: Policy, setting: Setting) -> None:
        self.policy, self.setting = policy, setting
        self.parameters = [parameter for parameter in policy.parameters() if parameter.requires_grad]
        self.reset()

    def reset(self) -> None:
        """Begin with an optimizer that has seen nothing."""
        recipe = self.setting.recipe
        self.adam = torch.optim.AdamW(
            self.parameters, lr=0.0, betas=(0.9, recipe.beta2), weight_decay=recipe.weight_decay, fused=True
        )

    def rate(self, step: int) -> float:
        """The fraction of the learning rate to use at step 1, 2, 3, ..."""
        recipe = self.setting.recipe
        if step <= recipe.warmup_steps:
            return step / (recipe.warmup_steps + 1)
        progress = (step - recipe.warmup_steps) / max(1, recipe.steps - recipe.warmup_steps)
        return 1 - progress * (1 - recipe.final_rate)

    def learn(self, groups: Sequence[Group], rate: float) -> dict[str, float]:
        """One step at this fraction of the learning rate; returns what there is to say about it."""
        recipe = self.setting.recipe
        kept = [group for group in groups if not group.constant]
        kept_tokens = sum(sum(completion.sampled) for group in kept for completion in group.completions)
        counts = total(
            torch.tensor([kept_tokens, len(kept) * recipe.group, *tally(groups)], dtype=torch.float64)
        )
        tokens, completions = counts[:2].clamp(min=1).tolist()
        batches = [self.batch(part) for part in self.parts(kept)]
        if recipe.sharded:  # every process must go through the shards equally often
            passes = int(total(torch.tensor(float(len(batches))), largest=True))
            idle = self.batch(groups[:1])
            idle = idle._replace(advantages=torch.zeros_like(idle.advantages))
            batches += [idle] * (passes - len(batches))
        sums = torch.zeros(4, dtype=torch.float64)
        for batch in batches:
            batch = batch.to(self.setting.device)
            log_probabilities, entropies = self.policy(batch)
            losses, clipped = surrogate(
                recipe, log_probabilities, batch.sampler_log_probabilities, batch.advantages
            )
            weights = token_weights(recipe, batch.sampled, completions, tokens)
            loss = (losses * weights).sum()
            if recipe.sharded:
                loss = loss * recipe.trainers  # shards take the mean of the processes, and not the sum
            loss.backward()
            difference = (log_probabilities.detach() - batch.sampler_log_probabilities)[batch.sampled]
            divergence = difference.exp() - 1 - difference  # Schulman 2020, the third estimator of KL
            columns = (
                difference.abs(),
                divergence,
                entropies[batch.sampled],
                clipped[batch.sampled],
            )
            if batch.advantages.any():
                sums += torch.stack([column.sum(dtype=torch.float64) for column in columns]).cpu()
        sums = total(sums) / tokens
        norm = self.step(rate)
        gap, divergence, entropy, clip_ratio = sums.tolist()
        return {
            **summary(counts[2:].tolist(), recipe),
            "log_probability_gap": gap,
            "kl": divergence,
            "entropy": entropy,
            "clip_ratio": clip_ratio,
            "gradient_norm": norm,
            "learning_rate": rate * recipe.learning_rate,
        }

    def step(self, rate: float) -> float:
        """Move the weights along the gradients of all processes; returns the gradients' norm."""
        for parameter in self.parameters:
            if parameter.grad is None:  # this process had nothing to learn from
                parameter.grad = torch.zeros_like(parameter)
        if not self.setting.recipe.sharded:
            add_gradients(self.parameters)
        norm = nn.utils.clip_grad_norm_(self.parameters, self.setting.recipe.max_gradient_norm)
        for group in self.adam.param_groups:
            group["lr"] = rate * self.setting.recipe.learning_rate
        self.adam.step()
        for parameter in self.parameters:
            parameter.grad = None
        return float(norm.full_tensor() if isinstance(norm, DTensor) else norm)

    def parts(self, groups: Sequence[Group]) -> Iterator[list[Group]]:
        """Groups of like length together, at most `pass_tokens` in a part, padding included."""
        recipe = self.setting.recipe
        widths = [(len(group.prompt), max(len(c.tokens) for c in group.completions)) for group in groups]
        part: list[int] = []
        for place in sorted(range(len(groups)), key=lambda place: sum(widths[place])):
            padded = [max(column) for column in zip(*(widths[row] for row in [*part, place]), strict=True)]
            if part and (len(part) + 1) * recipe.group * sum(padded) > recipe.pass_tokens:
                yield [groups[row] for row in part]
                part = []
            part.append(place)
        if part:
            yield [groups[row] for row in part]

    def batch(self, groups: Sequence[Group]) -> Batch:
        """The tensors of some groups."""
        rows = [completion for group in groups for completion in group.completions]
        width = max(len(group.prompt) for group in groups)
        before = [width - len(group.prompt) for group in groups]
        token_mask = pad([[True] * len(row.tokens) for row in rows], False)
        return Batch(
            torch.tensor([[0] * fill + group.prompt for fill, group in zip(before, groups, strict=True)]),
            torch.tensor(
                [[0] * fill + [1] * len(group.prompt) for fill, group in zip(before, groups, strict=True)]
            ),
            torch.arange(len(groups)).repeat_interleave(self.setting.recipe.group),
            pad([row.tokens for row in rows], 0),
            token_mask.long(),
            pad([row.sampled for row in rows], False),
            pad([row.log_probabilities for row in rows], 0.0),
            advantages(groups, self.setting.recipe).flatten(),
        )


def pad(rows: Sequence[Sequence[float]], value: float) -> Tensor:
    """Rows of different lengths as one tensor, filled up on the right."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows])


def tally(groups: Sequence[Group]) -> list[float]:
    """Counts that add up over processes, see `summary`."""
    rewards = [reward for group in groups for reward in group.rewards]
    completions = [completion for group in groups for completion in group.completions]
    return [
        len(groups),
        len(completions),
        sum(rewards),
        sum(max(group.rewards) for group in groups),
        sum(group.constant for group in groups),
        sum(sum(completion.sampled) for completion in completions),
        sum(completion.interrupted is not None for completion in completions),
        sum(not completion.stopped for completion in completions),
    ]


def summary(counts: Sequence[float], recipe: Recipe) -> dict[str, float]:
    """Rates from the counts of `tally`."""
    groups, completions, solved, solved_groups, constant, tokens, interrupted, cut_off = counts
    return {
        "pass_rate": solved / completions,
        "pass_in_group": solved_groups / groups,
        "constant_groups": constant / groups,
        "length": tokens / completions,
        "interrupted": interrupted / completions,
        "cut_off": cut_off / completions,
        "tokens": tokens,
    }


def total(values: Tensor, largest: bool = False) -> Tensor:
    """The sum over all processes, or the largest of them, in place."""
    if dist.is_initialized():
        dist.all_reduce(values, dist.ReduceOp.MAX if largest else dist.ReduceOp.SUM)
    return values


def add_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """Give every process the sum of all processes' gradients."""
    if not dist.is_initialized():
        return
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = total(torch.cat([gradient.flatten() for gradient in gradients]))
    parts = flat.split([gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


class Guard:
    """Stops a run that goes wrong, with a reason, before it burns more hours."""

    WINDOW, MARGIN, CONSTANT_STEPS = 10, 0.1, 5

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.rates: list[float] = []
        self.constant = 0

    def check(self, numbers: dict[str, float]) -> None:
        """A Problem where sampler and trainer part, nothing can be learned, or the pass rate fell."""
        gap = numbers["log_probability_gap"]
        if not gap <= self.recipe.gap_limit:
            raise Problem(
                f"stopped: sampler and trainer are {gap:.4f} nats apart, over {self.recipe.gap_limit}",
                remedy="lower the learning rate or the staleness; see that the weights are synchronised",
            )
        self.constant = self.constant + 1 if numbers["constant_groups"] == 1 else 0
        if self.constant == self.CONSTANT_STEPS:
            raise Problem(
                f"stopped: for {self.constant} steps all rewards of each group were equal",
                remedy="take a larger group; see in the log whether answers are interrupted or cut off",
            )
        self.rates.append(numbers["pass_rate"])
        start, now = (
            sum(part) / self.WINDOW for part in (self.rates[: self.WINDOW], self.rates[-self.WINDOW :])
        )
        if len(self.rates) >= 2 * self.WINDOW and now < start - self.MARGIN:
            raise Problem(
                f"stopped: the pass rate of {self.WINDOW} steps is {now:.3f}, it began at {start:.3f}",
                remedy="lower the learning rate",
            )


# ---- the run ------------------------------------------------------------------------------------------


class ServedRollouts:
    """Completions that vLLM servers draw without pause; rank 0 asks for them and deals them out.

    Each of `in_flight / group` threads always has one group in the making. A group whose weights are more
    than `staleness` updates old when its turn comes is thrown away.
    """

    def __init__(self, servers: ServerEngine | None, setting: Setting) -> None:
        self.servers, self.setting = servers, setting
        self.version = 0
        self.ready: queue.Queue[Group | Exception] = queue.Queue(maxsize=setting.recipe.puzzles)
        self.stopped = threading.Event()
        self.lock = threading.Lock()
        self.threads: list[threading.Thread] = []

    def start(self, source: Puzzles) -> None:
        """Begin to draw."""
        if self.servers is None:
            return
        count = max(1, self.setting.recipe.in_flight // self.setting.recipe.group)
        self.threads = [
            threading.Thread(target=self.keep_drawing, args=(self.servers, source), daemon=True)
            for _ in range(count)
        ]
        for thread in self.threads:
            thread.start()

    def keep_drawing(self, engine: ServerEngine, source: Puzzles) -> None:
        """What each thread does until `close`."""
        while not self.stopped.is_set():
            with self.lock:
                drawn, version = source.take(1), self.version
            try:
                result: Group | Exception = draw_groups(engine, drawn, version, self.setting)[0]
            except Exception as error:  # for the main thread to raise
                result = error
            while not self.stopped.is_set():
                try:
                    self.ready.put(result, timeout=0.5)
                    break
                except queue.Full:
                    continue

    def take(self, version: int) -> list[Group]:
        """The next groups for this process."""
        recipe = self.setting.recipe
        groups: list[Group] = []
        while self.servers is not None and len(groups) < recipe.puzzles:
            result = self.ready.get()
            if isinstance(result, Exception):
                raise result
            if version - result.version <= recipe.staleness:
                groups.append(result)
        return self.deal(groups)

    def draw(self, drawn: Sequence[tuple[int, Puzzle, list[int]]]) -> list[Group]:
        """Groups of these puzzles for this process, at once."""
        return self.deal(draw_groups(self.servers, drawn, 0, self.setting) if self.servers else [])

    def deal(self, groups: list[Group]) -> list[Group]:
        """Give every process about as many tokens; all groups are rank 0's."""
        trainers = self.setting.recipe.trainers
        groups = sorted(groups, key=lambda group: -sum(len(row.tokens) for row in group.completions))
        shares = [groups[rank::trainers] for rank in range(trainers)]
        received: list[list[Group] | None] = [None]
        if not dist.is_initialized():
            return shares[0]
        dist.scatter_object_list(received, shares if self.setting.rank == 0 else None, src=0)
        return received[0] or []

    def update(self, policy: Policy, version: int) -> None:
        """Give the servers the policy's weights."""
        weights = full_weights(policy)
        if self.servers is not None:
            self.servers.update(weights)
            self.version = version
        if dist.is_initialized():
            dist.barrier()

    def close(self) -> None:
        """Stop drawing."""
        self.stopped.set()


@contextmanager
def open_rollouts(policy: Policy, folder: Path, setting: Setting) -> "Iterator[OwnRollouts | ServedRollouts]":
    """Where completions come from; starts the servers, on rank 0, if there are to be any."""
    recipe = setting.recipe
    if recipe.staleness == 0:
        yield OwnRollouts(policy.model, setting)
        return
    with ExitStack() as stack:
        servers = None
        if setting.rank == 0:
            gpus = serving_gpus(recipe.trainers, torch.cuda.device_count())
            servers = stack.enter_context(
                Servers(
                    folder,
                    gpus,
                    end=end_token(setting.tokenizer),
                    max_model_len=recipe.context,
                    in_flight=recipe.in_flight,
                )
            )
        if dist.is_initialized():
            dist.barrier()
        rollouts = ServedRollouts(servers, setting)
        stack.callback(rollouts.close)
        yield rollouts


def serving_gpus(trainers: int, gpus: int) -> list[int]:
    """The GPUs that are left to the servers; a Problem where there are none."""
    if trainers >= gpus:
        remedy = "take fewer trainers, or a staleness of 0, with which the trainers draw themselves"
        raise Problem(f"{trainers} trainers on {gpus} GPUs leave none to serve completions", remedy=remedy)
    return list(range(trainers, gpus))


def train(run: Run | SilentRun, recipe: Recipe) -> None:
    """Train in this process and `trainers - 1` more, which torchrun has started or this one starts."""
    if "LOCAL_RANK" in os.environ:
        if int(os.environ["WORLD_SIZE"]) != recipe.trainers:
            raise Problem(
                f"the recipe has {recipe.trainers} trainers", remedy=f"--nproc_per_node={recipe.trainers}"
            )
        rank = int(os.environ["RANK"])
        with group(rank, recipe, "env://"):
            work(run, recipe, rank)
        return
    with tempfile.TemporaryDirectory() as folder:
        meeting_place = f"file://{folder}/rendezvous"
        context = multiprocessing.get_context("spawn")
        others = [
            context.Process(target=assist, args=(rank, recipe, run.seed, meeting_place), daemon=True)
            for rank in range(1, recipe.trainers)
        ]
        with ignored_signals():
            for other in others:
                other.start()
        with killed_on_error(others):
            await_others(others, Path(folder))
            with group(0, recipe, meeting_place), killed_on_error(others):
                work(run, recipe, 0)
            for other in others:
                other.join()


def await_others(others: Sequence[BaseProcess], folder: Path) -> None:
    """Wait until every other process is about to join, here where signals are heard, as in gloo they are not.

    Raises:
        Problem: one of them has ended.
    """
    while len(list(folder.glob("ready-*"))) < len(others):
        if not all(other.is_alive() for other in others):
            raise Problem("a process that should help ended at its start", remedy="see its error above")
        time.sleep(0.02)


def assist(rank: int, recipe: Recipe, seed: int, meeting_place: str) -> None:
    """The other processes: the same work, without clock and log, until the first one ends them."""
    end_with_parent()
    Path(meeting_place.removeprefix("file://")).with_name(f"ready-{rank}").touch()
    with group(rank, recipe, meeting_place):
        work(SilentRun(seed), recipe, rank)


@contextmanager
def group(rank: int, recipe: Recipe, meeting_place: str) -> Iterator[None]:
    """One thread in this process, and a line to the other processes if there are any."""
    if torch.cuda.is_available():
        torch.cuda.set_device(rank)
    else:
        torch.set_num_threads(1)
    if recipe.trainers == 1:
        yield
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(
        backend, meeting_place, rank=rank, world_size=recipe.trainers, timeout=timedelta(minutes=15)
    )
    try:
        yield
    finally:
        dist.destroy_process_group()


def shard(policy: Policy, device: torch.device) -> None:
    """Spread weights, gradients and moments over the trainers, layer by layer (FSDP2), in float32."""
    policy.model.gradient_checkpointing_enable({"use_reentrant": False})
    policy.model.train()  # only then are activations recomputed; there is no dropout
    half = torch.bfloat16 if device.type == "cuda" else torch.float32
    precision = MixedPrecisionPolicy(param_dtype=half, reduce_dtype=torch.float32)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for layer in policy.model.model.layers:
        fully_shard(layer, mesh=mesh, mp_policy=precision)
    fully_shard(policy, mesh=mesh, mp_policy=precision)


def full_weights(policy: Policy) -> dict[str, Tensor]:
    """The whole model's weights in float32 on rank 0; elsewhere nothing."""
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights = get_model_state_dict(policy, options=options)
    if policy.model.config.tie_word_embeddings:
        weights.pop("model.lm_head.weight", None)  # the embeddings are the head
    return {
        name.removeprefix("model."): tensor for name, tensor in weights.items() if isinstance(tensor, Tensor)
    }


def rehearse(rollouts: "OwnRollouts | ServedRollouts", learner: Learner, setting: Setting) -> None:
    """Go through a whole step on a made-up puzzle, with a learning rate of 0.

    Raises:
        Problem: sampler and trainer do not agree on the log-probabilities of what the sampler drew.
    """
    puzzle = Puzzle(0, "+++++\n+*@X+\n+++++", "R")
    task = TASKS[setting.recipe.task]
    (prompt,) = prompt_tokens(setting.tokenizer, setting.recipe.prompt, task, [puzzle])
    rollouts.update(learner.policy, 0)
    groups = rollouts.draw([(number, puzzle, prompt) for number in range(setting.recipe.trainers)])
    made_up = [float(number % 2) for number in range(setting.recipe.group)]
    gap = learner.learn([group._replace(rewards=made_up) for group in groups], rate=0.0)[
        "log_probability_gap"
    ]
    if not gap <= setting.recipe.gap_limit:
        raise Problem(
            f"sampler and trainer are {gap:.4f} nats apart on a probe, over {setting.recipe.gap_limit}",
            remedy="see that both have the same weights, temperature and precision",
        )
    learner.reset()


def work(run: Run | SilentRun, recipe: Recipe, rank: int) -> None:
    """Build, rehearse, start the clock, read the puzzles, draw and learn, stop the clock, save."""
    task = TASKS[recipe.task]
    device = torch.device("cuda", rank) if torch.cuda.is_available() else torch.device("cpu")
    with ExitStack() as stack:
        with run.warmup():
            folder = model_folder(task)
            tokenizer = load_tokenizer(folder)
            setting = Setting(recipe, tokenizer, device, run.seed, rank)
            policy = Policy(load_model(folder, device), recipe)
            if recipe.sharded:
                shard(policy, device)
            rollouts = stack.enter_context(open_rollouts(policy, folder, setting))
            learner = Learner(policy, setting)
            rehearse(rollouts, learner, setting)

        run.train_start()
        run.record_data([(task.train, dataset_sha256(task.train))])
        puzzles = read_puzzles(task.train)
        prompts = prompt_tokens(tokenizer, recipe.prompt, task, puzzles)
        progress = Progress(learner, Puzzles(puzzles, prompts, run.seed), Guard(recipe))
        state, begun = from_first(run.state), 0
        if state is not None:
            begun = progress.go_on(state)
            rollouts.update(policy, begun)
        rollouts.start(progress.puzzles)
        size = 12 * sum(parameter.numel() for parameter in learner.parameters)  # a weight and two moments
        with run.progress(recipe.steps, "step") as bar:
            bar.update(begun)
            for step in range(begun + 1, recipe.steps + 1):
                clock = Stopwatch()
                groups = rollouts.take(step - 1)
                clock.lap("rollout_s")
                numbers = learner.learn(groups, learner.rate(step))
                clock.lap("update_s")
                rollouts.update(policy, step)
                clock.lap("sync_s")
                numbers["tokens_per_s"] = numbers["tokens"] / sum(clock.laps.values())
                run.log_step(step, **numbers, **clock.laps)
                progress.guard.check(numbers)
                if from_first(run.state_due(size)):
                    run.save_state(partial(progress.pack, step))
                bar.set_postfix(pass_rate=f"{numbers['pass_rate']:.3f}", refresh=False)
                bar.update()
        run.train_stop(torch.cuda.synchronize if device.type == "cuda" else None)
        weights = full_weights(policy)
        if isinstance(run, Run):
            run.save_checkpoint(save_checkpoint(run.path, policy.model, weights, tokenizer))


@dataclass
class Progress:
    """What changes from step to step, and so what a run that is resumed must have."""

    learner: Learner
    puzzles: Puzzles
    guard: Guard

    def pack(self, step: int) -> bytes:
        """All of it after this step, whole, in the first process; nothing in the others."""
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        tensors = get_state_dict(self.learner.policy, self.learner.adam, options=options)
        packed = io.BytesIO()
        if self.learner.setting.rank == 0:
            puzzles = (self.puzzles.generator.get_state(), self.puzzles.order, self.puzzles.drawn)
            guard = (self.guard.rates, self.guard.constant)
            torch.save((step, puzzles, guard, tensors), packed)
        return packed.getvalue()

    def go_on(self, packed: bytes) -> int:
        """Take up what was packed; returns after which step."""
        state = torch.load(io.BytesIO(packed), weights_only=True)
        step, puzzles, guard, (weights, moments) = state
        generator, self.puzzles.order, self.puzzles.drawn = puzzles
        self.puzzles.generator.set_state(generator)
        self.guard.rates, self.guard.constant = guard
        options = StateDictOptions(full_state_dict=True)
        set_state_dict(
            self.learner.policy,
            self.learner.adam,
            model_state_dict=weights,
            optim_state_dict=moments,
            options=options,
        )
        return int(step)


T = TypeVar("T")


def from_first(value: T) -> T:
    """What the first process has, in every process."""
    box = [value]
    if dist.is_initialized():
        dist.broadcast_object_list(box)
    return box[0]


class Stopwatch:
    """Seconds of the parts of a step."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self.last = time.monotonic()

    def lap(self, name: str) -> None:
        """Put down the time since the last call under this name."""
        now = time.monotonic()
        self.laps[name] = now - self.last
        self.last = now


if __name__ == "__main__":
    run_command(lambda: launch(TRACK, RECIPES, train=train, evaluate=evaluate, source=Path(__file__)))
