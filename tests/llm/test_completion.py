"""Seeds, and what becomes of completions that run out of tokens, with a scripted engine and a real model."""

import hashlib
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerBase, Qwen3ForCausalLM

from harness.errors import Problem
from llm.completion import (
    INTERRUPTION,
    Completion,
    Generation,
    Limits,
    Sampling,
    complete,
    completion_seed,
    completion_text,
)
from llm.engines.local import LocalEngine
from llm.evidence import completion_fault, completion_row

SAMPLING = Sampling(0.7, 0.9)
END, NEVER = 1, 0  # the random model does not happen to draw the second with the seeds used here


class Scripted:
    """Says what its script says to each prompt, as far as it may, and remembers what it was asked."""

    def __init__(self, script: dict[tuple[int, ...], list[int]]) -> None:
        self.script = script
        self.asked: list[tuple[list[list[int]], list[int], list[int], Sampling]] = []

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        max_tokens: Sequence[int],
        sampling: Sampling,
    ) -> list[Generation]:
        self.asked.append(([list(prompt) for prompt in prompts], [*seeds], [*max_tokens], sampling))
        generations = []
        for prompt, most in zip(prompts, max_tokens, strict=True):
            tokens = self.script[tuple(prompt)][:most]
            generations.append(Generation(tokens, [-float(token) for token in tokens], tokens[-1] == END))
        return generations


def test_a_seed_is_63_bits_of_a_hash() -> None:
    for seed, puzzle, index in ((12345, 0, 0), (1, 511, 7), (2**31, 3, 2)):
        digest = hashlib.sha256(f"{seed}:{puzzle}:{index}".encode()).hexdigest()
        assert completion_seed(seed, puzzle, index) == int(digest[:16], 16) // 2 < 2**63
    # The first by `printf 12345:0:0 | sha256sum`.
    assert completion_seed(12345, 0, 0) == 0xB0A3A2347EE42ABF // 2
    assert len({completion_seed(1, puzzle, index) for puzzle in range(50) for index in range(8)}) == 400


def test_only_what_does_not_end_is_interrupted(tokenizer: PreTrainedTokenizerBase) -> None:
    sentence = tokenizer.encode(INTERRUPTION, add_special_tokens=False)
    limits = Limits(max_tokens=5 + len(sentence) + 3, answer_tokens=3)
    thought = [10, 11, 12, 13, 14]
    engine = Scripted(
        {
            (2,): [20, 21, END],
            (3,): [*thought, 15, 16],
            (4,): [*thought, 15, END],
            (5,): [10, 11, 12, 13, END],  # ends with the last token it may have
            (3, *thought, *sentence): [30, END],
            (4, *thought, *sentence): [30, 31, 32, 33],
        }
    )
    short, answered, cut_off, just = complete(
        engine, tokenizer, [[2], [3], [4], [5]], [100, 200, 201, 300], limits, SAMPLING
    )
    assert short == Completion([20, 21, END], [-20, -21, -1], [True] * 3, True, None)
    assert just == Completion([10, 11, 12, 13, END], [-10, -11, -12, -13, -1], [True] * 5, True, None)
    pause, none = [False] * len(sentence), [0.0] * len(sentence)
    assert answered.tokens == [*thought, *sentence, 30, END]
    assert answered.log_probabilities == [*(-token for token in thought), *none, -30, -1]
    assert answered.sampled == [*[True] * 5, *pause, *[True] * 2]
    assert (answered.stopped, answered.interrupted) == (True, 5)
    assert cut_off.tokens == [*thought, *sentence, 30, 31, 32]
    assert cut_off.sampled == [*[True] * 5, *pause, *[True] * 3]
    assert (cut_off.stopped, cut_off.interrupted) == (False, 5)
    assert len(cut_off.tokens) == limits.max_tokens
    first, second = engine.asked
    assert first == ([[2], [3], [4], [5]], [100, 200, 201, 300], [5] * 4, SAMPLING)
    assert second[0] == [[3, *thought, *sentence], [4, *thought, *sentence]]
    assert second[2:] == ([3, 3], SAMPLING)
    assert second[1][0] != 200 and second[1][1] != 201  # or the answer's draws were the thought's again


def test_without_anything_to_interrupt_the_engine_is_asked_once(tokenizer: PreTrainedTokenizerBase) -> None:
    engine = Scripted({(2,): [END]})
    complete(engine, tokenizer, [[2]], [1], Limits(96, 16), SAMPLING)
    assert len(engine.asked) == 1


def test_limits_without_room_are_refused(tokenizer: PreTrainedTokenizerBase) -> None:
    length = len(tokenizer.encode(INTERRUPTION, add_special_tokens=False))
    engine = Scripted({(2,): [END]})
    for limits in (Limits(length + 4, 4), Limits(length + 10, 0), Limits(0, 0)):
        with pytest.raises(Problem, match=f"no room beside the {length} tokens"):
            complete(engine, tokenizer, [[2]], [1], limits, SAMPLING)
    assert engine.asked == []
    (completion,) = complete(engine, tokenizer, [[2]], [1], Limits(length + 5, 4), SAMPLING)
    assert completion.tokens == [END]


def test_a_model_that_never_stops_is_interrupted_and_cut_off(
    small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase, one_thread: None
) -> None:
    engine = LocalEngine(small_model, NEVER)
    limits = Limits(max_tokens=70, answer_tokens=6)
    prompts = [tokenizer.encode(text, add_special_tokens=False) for text in ("+++", "a longer prompt\n")]
    sentence = tokenizer.encode(INTERRUPTION, add_special_tokens=False)
    thinking = 70 - 6 - len(sentence)
    seeds = [completion_seed(1, puzzle, 0) for puzzle in range(2)]
    for prompt, seed, completion in zip(
        prompts, seeds, complete(engine, tokenizer, prompts, seeds, limits, SAMPLING), strict=True
    ):
        assert len(completion.tokens) == len(completion.log_probabilities) == len(completion.sampled) == 70
        assert (completion.stopped, completion.interrupted) == (False, thinking)
        assert completion.tokens[thinking : thinking + len(sentence)] == sentence
        assert completion.sampled == [True] * thinking + [False] * len(sentence) + [True] * 6
        (thought,) = engine.generate([prompt], [seed], [thinking], SAMPLING)
        assert completion.tokens[:thinking] == thought.tokens
        text, before = completion_text(tokenizer, completion)
        assert before is not None and text.startswith(INTERRUPTION, before)
        assert completion_fault(completion_row(completion, text, before), limits) is None


def test_text_is_without_special_tokens_and_says_where_it_was_interrupted(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    def tokens(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False))

    plain = tokens("so <answer>RD</answer><|end|>")
    completion = Completion(plain, [0.0] * len(plain), [True] * len(plain), True, None)
    assert completion_text(tokenizer, completion) == ("so <answer>RD</answer>", None)
    # A thought that says the sentence by itself does not move the place of the real one.
    thought, sentence, answer = (
        tokens(f"well{INTERRUPTION}no"),
        tokens(INTERRUPTION),
        tokens("<answer>U</answer><|end|>"),
    )
    sampled = [True] * len(thought) + [False] * len(sentence) + [True] * len(answer)
    whole = [*thought, *sentence, *answer]
    completion = Completion(whole, [0.0] * len(whole), sampled, True, len(thought))
    text, before = completion_text(tokenizer, completion)
    assert text == f"well{INTERRUPTION}no{INTERRUPTION}<answer>U</answer>"
    assert before == len(f"well{INTERRUPTION}no")


@given(
    script=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=12), min_size=1, max_size=6),
    thinking=st.integers(1, 6),
    answer=st.integers(1, 6),
    seed=st.integers(0, 2**31),
)
def test_evidence_admits_every_completion(
    tokenizer: PreTrainedTokenizerBase, script: list[list[int]], thinking: int, answer: int, seed: int
) -> None:
    """Whatever an engine draws, the rules for evidence admit what comes of it."""
    sentence = tokenizer.encode(INTERRUPTION, add_special_tokens=False)
    limits = Limits(thinking + len(sentence) + answer, answer)
    draws = random.Random(seed)
    written: dict[tuple[int, ...], list[int]] = {}
    for place, tokens in enumerate(script):
        whole = [token for token in tokens if token != END] + [5] * 20
        whole.insert(draws.randrange(len(whole)), END)
        whole = whole[: whole.index(END) + 1]
        written[(place,)] = whole
        written[(place, *whole[:thinking], *sentence)] = [*whole[::-1][1:], END]
    engine = Scripted(written)
    prompts = [[place] for place in range(len(script))]
    for completion in complete(engine, tokenizer, prompts, list(range(len(script))), limits, SAMPLING):
        row = completion_row(completion, *completion_text(tokenizer, completion))
        assert completion_fault(row, limits) is None
