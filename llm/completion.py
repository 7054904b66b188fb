"""FIXED: how a completion is sampled, and what happens when it runs out of tokens; the same in training.

A completion may have `Limits.max_tokens` tokens. If it has not ended while there is just room for it, it is
interrupted: `INTERRUPTION` is put where it stopped, and at most `Limits.answer_tokens` more tokens follow.
"""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from harness.errors import Problem

if TYPE_CHECKING:  # verification reads this file without transformers
    from transformers import PreTrainedTokenizerBase

INTERRUPTION = "\n\n(Out of tokens. Give the final answer now.)\n\n"


class Sampling(NamedTuple):
    """How tokens are drawn."""

    temperature: float
    top_p: float


class Limits(NamedTuple):
    """How long a completion may be, in tokens."""

    max_tokens: int
    """All of it, the interruption and what follows included."""
    answer_tokens: int
    """What may follow the interruption."""


class Generation(NamedTuple):
    """What an engine drew for one prompt."""

    tokens: list[int]
    """With the end token, if it came."""
    log_probabilities: list[float]
    """Of each token at the sampling temperature, before top-p takes away the unlikely ones."""
    stopped: bool
    """Whether it ended by itself, with the end token."""


class Engine(Protocol):
    """Draws completions. The same prompt and seed give the same tokens, whatever else is in the batch.

    What rounding decides is excepted: sums come in another order in another batch.
    """

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        max_tokens: Sequence[int],
        sampling: Sampling,
    ) -> list[Generation]:
        """One completion for every prompt (token ids), of at most so many tokens, in order."""


class Completion(NamedTuple):
    """A finished completion; the first three fields have one entry a token."""

    tokens: list[int]
    log_probabilities: list[float]
    sampled: list[bool]
    """False for the tokens of the interruption."""
    stopped: bool
    """Whether it ended by itself; otherwise it was cut off and counts as a failure."""
    interrupted: int | None
    """How many tokens came before the interruption; None where there was none."""


def completion_seed(seed: int, puzzle: int, index: int) -> int:
    """The seed, 63 bits, of completion `index` of a puzzle: order and batches do not matter."""
    digest = hashlib.sha256(f"{seed}:{puzzle}:{index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def complete(
    engine: Engine,
    tokenizer: "PreTrainedTokenizerBase",
    prompts: Sequence[Sequence[int]],
    seeds: Sequence[int],
    limits: Limits,
    sampling: Sampling,
) -> list[Completion]:
    """One completion for every prompt, interrupted where it runs out of tokens.

    Raises:
        Problem: the limits leave no room to think.
    """
    sentence = tokenizer.encode(INTERRUPTION, add_special_tokens=False)
    thinking = limits.max_tokens - limits.answer_tokens - len(sentence)
    if thinking < 1 or limits.answer_tokens < 1:
        reason = f"{limits} leaves no room beside the {len(sentence)} tokens of the interruption"
        raise Problem(reason, remedy="raise max_tokens, or lower answer_tokens, but not below 1")
    first = engine.generate(prompts, seeds, [thinking] * len(prompts), sampling)
    completions = [
        Completion(*generation[:2], [True] * len(generation.tokens), generation.stopped, None)
        for generation in first
    ]
    cut = [row for row, generation in enumerate(first) if not generation.stopped]
    if not cut:
        return completions
    longer = [[*prompts[row], *first[row].tokens, *sentence] for row in cut]
    # Another seed, so that the answer does not repeat the draws that the thinking began with.
    again = engine.generate(
        longer, [seeds[row] ^ 1 for row in cut], [limits.answer_tokens] * len(cut), sampling
    )
    for row, answer in zip(cut, again, strict=True):
        thought = first[row]
        completions[row] = Completion(
            [*thought.tokens, *sentence, *answer.tokens],
            [*thought.log_probabilities, *[0.0] * len(sentence), *answer.log_probabilities],
            [True] * len(thought.tokens) + [False] * len(sentence) + [True] * len(answer.tokens),
            answer.stopped,
            len(thought.tokens),
        )
    return completions


def completion_text(tokenizer: "PreTrainedTokenizerBase", completion: Completion) -> tuple[str, int | None]:
    """The text without special tokens, and how many characters come before the interruption, if any."""
    if completion.interrupted is None:
        return _decode(tokenizer, completion.tokens), None
    before = completion.tokens[: completion.interrupted]
    after = completion.tokens[completion.interrupted :]
    after = [
        token for token, sampled in zip(after, completion.sampled[len(before) :], strict=True) if sampled
    ]
    thought = _decode(tokenizer, before)
    return thought + INTERRUPTION + _decode(tokenizer, after), len(thought)


def _decode(tokenizer: "PreTrainedTokenizerBase", tokens: list[int]) -> str:
    return str(tokenizer.decode(tokens, skip_special_tokens=True))
