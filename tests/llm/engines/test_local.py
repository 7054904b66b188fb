"""The engine against forward passes of one row at a time and a sampler written with numpy alone."""

import copy
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from transformers import Qwen3ForCausalLM

from llm.completion import Generation, Sampling
from llm.engines.local import LocalEngine, draw

END = 7
PLAIN, NARROW = Sampling(1.0, 1.0), Sampling(0.8, 0.7)
PROMPTS = [[5, 6, 7, 8], [9], [20, 21, 22, 23, 24, 25, 26], [9], [5, 6, 7, 8]]
SEEDS = [1, 2, 3, 2**63 - 1, 5]
LIMITS = [12, 5, 1, 12, 7]

pytestmark = pytest.mark.usefixtures("one_thread")


def distribution(logits: NDArray[np.float64], sampling: Sampling) -> tuple[NDArray[np.float64], list[int]]:
    """Log-probabilities of all tokens, and those that may be drawn, likeliest first."""
    scaled = logits / sampling.temperature
    log_probabilities = scaled - scaled.max() - math.log(np.exp(scaled - scaled.max()).sum())
    order = np.argsort(-log_probabilities, kind="stable").tolist()
    allowed, mass = [], 0.0
    for token in order:
        if mass >= sampling.top_p:
            break
        allowed.append(token)
        mass += math.exp(log_probabilities[token])
    return log_probabilities, allowed


def choose(logits: NDArray[np.float64], uniform: float, sampling: Sampling) -> tuple[int, float, float]:
    """The token at a uniform number, its log-probability, and how near the number is to another token."""
    log_probabilities, allowed = distribution(logits, sampling)
    if sampling.top_p >= 1:
        allowed = sorted(allowed)  # then tokens lie in order of their numbers
    masses = np.exp([log_probabilities[token] for token in allowed])
    bounds = masses.cumsum() / masses.sum()
    place = int((bounds <= uniform).sum())
    token = allowed[min(place, len(allowed) - 1)]
    return token, float(log_probabilities[token]), float(np.abs(bounds[:-1] - uniform).min(initial=1.0))


@torch.no_grad()
def by_hand(
    model: Qwen3ForCausalLM,
    prompt: Sequence[int],
    seed: int,
    most: int,
    sampling: Sampling,
    end: int = END,
) -> Generation:
    """A completion drawn without batch and cache."""
    uniforms = np.random.Generator(np.random.Philox(seed)).random(most, dtype=np.float32)
    tokens: list[int] = []
    chosen: list[float] = []
    for uniform in uniforms:
        logits = model(input_ids=torch.tensor([[*prompt, *tokens]])).logits[0, -1].double().numpy()
        token, log_probability, _ = choose(logits, float(uniform), sampling)
        tokens.append(token)
        chosen.append(log_probability)
        if token == end:
            break
    return Generation(tokens, chosen, tokens[-1] == end)


def assert_alike(found: Generation, expected: Generation) -> None:
    assert (found.tokens, found.stopped) == (expected.tokens, expected.stopped)
    assert found.log_probabilities == pytest.approx(expected.log_probabilities, abs=1e-4)


@pytest.mark.parametrize("sampling", [PLAIN, NARROW, Sampling(1.3, 0.95)])
def test_completions_are_those_of_plain_forward_passes(
    small_model: Qwen3ForCausalLM, sampling: Sampling
) -> None:
    found = LocalEngine(small_model, END).generate(PROMPTS, SEEDS, LIMITS, sampling)
    for prompt, seed, most, generation in zip(PROMPTS, SEEDS, LIMITS, found, strict=True):
        assert_alike(generation, by_hand(small_model, prompt, seed, most, sampling))
        assert generation.stopped or len(generation.tokens) == most


def test_rows_that_end_leave_the_others_as_they_were(small_model: Qwen3ForCausalLM) -> None:
    """Many rows, whose ends come early and late, so that the batch shrinks several times."""
    prompts = [[5 + number % 7, 11] for number in range(40)]
    seeds, most = list(range(100, 140)), [16] * 40
    endless = LocalEngine(small_model, END).generate(prompts, seeds, most, PLAIN)
    drawn = Counter(token for generation in endless for token in generation.tokens)
    ((end, _),) = drawn.most_common(1)
    found = LocalEngine(small_model, end).generate(prompts, seeds, most, PLAIN)
    lengths = [len(generation.tokens) for generation in found]
    assert len(set(lengths)) > 4 and any(generation.stopped for generation in found)
    for prompt, seed, generation in zip(prompts, seeds, found, strict=True):
        assert_alike(generation, by_hand(small_model, prompt, seed, 16, PLAIN, end))
        assert end not in generation.tokens[:-1]


def test_company_order_and_limits_change_nothing(small_model: Qwen3ForCausalLM) -> None:
    engine = LocalEngine(small_model, END)
    together = engine.generate(PROMPTS, SEEDS, LIMITS, NARROW)
    for place, expected in enumerate(together):
        (alone,) = engine.generate([PROMPTS[place]], [SEEDS[place]], [LIMITS[place]], NARROW)
        assert_alike(alone, expected)
        (longer,) = engine.generate([PROMPTS[place]], [SEEDS[place]], [20], NARROW)
        assert longer.tokens[: len(expected.tokens)] == expected.tokens
    backwards = engine.generate(PROMPTS[::-1], SEEDS[::-1], LIMITS[::-1], NARROW)
    in_pairs = LocalEngine(small_model, END, rows=2).generate(PROMPTS, SEEDS, LIMITS, NARROW)
    for first, second, third in zip(together, backwards[::-1], in_pairs, strict=True):
        assert_alike(second, first)
        assert_alike(third, first)


def test_new_weights_count_at_once(small_model: Qwen3ForCausalLM) -> None:
    model = copy.deepcopy(small_model)
    engine = LocalEngine(model, END)
    before = engine.generate(PROMPTS, SEEDS, LIMITS, PLAIN)
    with torch.no_grad():
        model.model.embed_tokens.weight.mul_(0.5)
    after = engine.generate(PROMPTS, SEEDS, LIMITS, PLAIN)
    assert before != after
    for prompt, seed, most, generation in zip(PROMPTS, SEEDS, LIMITS, after, strict=True):
        assert_alike(generation, by_hand(model, prompt, seed, most, PLAIN))


# Sixteenths, so that two logits are equal for both samplers or for none.
logit_rows = st.lists(
    st.lists(st.integers(-128, 128).map(lambda number: number / 16), min_size=6, max_size=6),
    min_size=1,
    max_size=4,
)


@given(
    rows=logit_rows,
    uniform=st.floats(0, 1, exclude_max=True, width=32),
    temperature=st.floats(0.3, 2),
    top_p=st.floats(0.05, 1),
)
def test_draws_are_those_of_another_sampler(
    rows: list[list[float]], uniform: float, temperature: float, top_p: float
) -> None:
    sampling = Sampling(temperature, top_p)
    tokens, log_probabilities = draw(torch.tensor(rows), torch.full((len(rows),), uniform), sampling)
    for row, token, log_probability in zip(rows, tokens.tolist(), log_probabilities.tolist(), strict=True):
        logits = np.array(row)
        everything, allowed = distribution(logits, sampling)
        assert log_probability == pytest.approx(everything[token], abs=1e-4)
        expected, _, margin = choose(logits, uniform, sampling)
        cut = np.exp(sorted(everything, reverse=True)).cumsum() - top_p
        if margin > 1e-4 and np.abs(cut).min() > 1e-5:  # away from where rounding decides
            assert token == expected
            assert token in allowed


def test_draws_come_as_often_as_top_p_lets_them() -> None:
    """Probabilities 0.5, 0.3, 0.15, 0.05: at 0.7 the first two are left, five to three."""
    logits = torch.tensor([0.05, 0.5, 0.15, 0.3]).log().expand(80_000, -1)
    uniform = torch.rand(80_000, generator=torch.Generator().manual_seed(0))
    tokens, log_probabilities = draw(logits, uniform, Sampling(1.0, 0.7))
    counts = tokens.bincount(minlength=4) / 80_000
    torch.testing.assert_close(counts, torch.tensor([0, 0.625, 0, 0.375]), atol=0.006, rtol=0)
    assert set(log_probabilities.exp().mul(100).round().tolist()) == {50, 30}  # before the truncation
    tokens, _ = draw(logits, uniform, Sampling(1.0, 1.0))
    counts = tokens.bincount(minlength=4) / 80_000
    torch.testing.assert_close(counts, torch.tensor([0.05, 0.5, 0.15, 0.3]), atol=0.006, rtol=0)


@pytest.mark.parametrize("sampling", [PLAIN, NARROW])
def test_the_ends_of_the_unit_interval_draw_tokens_that_are_possible(sampling: Sampling) -> None:
    """Tokens without any probability stand first and last; 1 - 2**-24 is the largest number there is."""
    logits = torch.tensor([[-torch.inf, 1.0, 0.5, -torch.inf]]).expand(2, -1)
    tokens, log_probabilities = draw(logits, torch.tensor([0.0, 1 - 2**-24]), sampling)
    assert set(tokens.tolist()) <= {1, 2} and log_probabilities.isfinite().all()
