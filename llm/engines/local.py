"""FIXED: completions from a model in this process, with plain transformers, on a CPU or a GPU.

Prompts that occur several times, as those of a group do, are read once. Rows that have ended leave the batch.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from llm.completion import Generation, Sampling


class LocalEngine:
    """Draws from `model`, whose weights may change between calls, until the token `end` comes."""

    def __init__(self, model: PreTrainedModel, end: int, rows: int = 1024) -> None:
        self.model, self.end, self.rows = model, end, rows

    @torch.no_grad()
    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        max_tokens: Sequence[int],
        sampling: Sampling,
    ) -> list[Generation]:
        """See `llm.completion.Engine`; at most `rows` prompts are in the batch at a time."""
        done: list[Generation] = []
        for start in range(0, len(prompts), self.rows):
            part = slice(start, start + self.rows)
            done += self._generate(prompts[part], seeds[part], max_tokens[part], sampling)
        return done

    def _generate(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        max_tokens: Sequence[int],
        sampling: Sampling,
    ) -> list[Generation]:
        device = self.model.device
        limits = torch.tensor(max_tokens, device=device)
        uniforms = _uniforms(seeds, max(max_tokens)).to(device)
        tokens = torch.zeros(len(prompts), max(max_tokens), dtype=torch.long, device=device)
        chosen = torch.zeros(tokens.shape, device=device)
        lengths = limits.clone()
        stopped = torch.zeros(len(prompts), dtype=torch.bool, device=device)
        logits, cache, mask = self._read(prompts)
        rows = torch.arange(len(prompts), device=device)
        alive = torch.ones_like(stopped)  # of the rows in the batch
        for step in range(max(max_tokens)):
            drawn, log_probabilities = draw(logits, uniforms[rows, step], sampling)
            tokens[rows, step], chosen[rows, step] = drawn, log_probabilities
            ends = rows[alive & (drawn == self.end)]
            stopped[ends] = True
            lengths[ends] = step + 1
            alive = alive & (lengths[rows] > step + 1)
            count = int(alive.sum())
            if not count:
                break
            if count < 0.8 * len(rows):  # to leave the batch costs a copy of the cache
                kept = alive.nonzero()[:, 0]
                rows, drawn, mask, alive = rows[kept], drawn[kept], mask[kept], alive[kept]
                cache.batch_select_indices(kept)
            position = mask.sum(dim=1, keepdim=True)
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
            output = self.model(
                input_ids=drawn[:, None], attention_mask=mask, position_ids=position, past_key_values=cache
            )
            logits = output.logits[:, -1]
        return _generations(tokens, chosen, lengths, stopped)

    def _read(self, prompts: Sequence[Sequence[int]]) -> tuple[Tensor, DynamicCache, Tensor]:
        """Read each different prompt once: the next token's logits (B, V), the cache, the mask (B, T)."""
        different = {tuple(prompt): None for prompt in prompts}
        places = {prompt: place for place, prompt in enumerate(different)}
        width = max(map(len, different))
        ids = torch.tensor([[self.end] * (width - len(prompt)) + list(prompt) for prompt in different])
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in different])
        ids, mask = ids.to(self.model.device), mask.to(self.model.device)
        position = (mask.cumsum(dim=1) - 1).clamp(min=0)
        cache = DynamicCache(config=self.model.config)
        output = self.model(
            input_ids=ids, attention_mask=mask, position_ids=position, past_key_values=cache, logits_to_keep=1
        )
        owner = torch.tensor([places[tuple(prompt)] for prompt in prompts], device=ids.device)
        cache.batch_select_indices(owner)
        return output.logits[owner, -1], cache, mask[owner]


def draw(logits: Tensor, uniform: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor]:
    """Tokens (B,) and their log-probabilities (B,) from logits (B, V) and uniform numbers (B,) in [0, 1).

    A token is drawn where the cumulated probabilities pass the number. With top_p below 1 only the likeliest
    tokens whose probabilities sum to it can be drawn (Holtzman et al. 2020); the log-probability is that of
    the whole distribution at the temperature.
    """
    log_probabilities = (logits.float() / sampling.temperature).log_softmax(dim=1)
    probabilities = log_probabilities.exp()
    order = None
    if sampling.top_p < 1:
        probabilities, order = probabilities.sort(dim=1, descending=True, stable=True)
        before = probabilities.cumsum(dim=1) - probabilities
        probabilities = probabilities * (before < sampling.top_p)
    cumulated = probabilities.cumsum(dim=1)
    threshold = uniform[:, None] * cumulated[:, -1:] * (1 - 1e-6)  # never the very end, whatever is rounded
    places = (cumulated <= threshold).sum(dim=1, keepdim=True)
    drawn = places if order is None else order.gather(1, places)
    return drawn[:, 0], log_probabilities.gather(1, drawn)[:, 0]


def _uniforms(seeds: Sequence[int], count: int) -> Tensor:
    """(B, count) float32 numbers in [0, 1), a row for each seed, alike on every device and in every batch."""
    rows = [np.random.Generator(np.random.Philox(seed)).random(count, dtype=np.float32) for seed in seeds]
    return torch.from_numpy(np.stack(rows))


def _generations(tokens: Tensor, chosen: Tensor, lengths: Tensor, stopped: Tensor) -> list[Generation]:
    columns = (tokens.tolist(), chosen.tolist(), lengths.tolist(), stopped.tolist())
    return [
        Generation(row[:length], values[:length], ended)
        for row, values, length, ended in zip(*columns, strict=True)
    ]
