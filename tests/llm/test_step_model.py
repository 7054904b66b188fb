"""The step model: sizes against transformers, arithmetic against torch's counter, times by hand."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import Qwen3Config, Qwen3ForCausalLM

from benchmarks.llm_step_check import Settings, measure
from benchmarks.llm_step_model import (
    QWEN3_4B,
    Architecture,
    Device,
    Efficiency,
    Layout,
    Workload,
    all_reduce,
    busy,
    decode,
    decode_pass,
    optimizer,
    prefill,
    steady_decode,
    step,
    sync_by_broadcast,
    sync_by_host,
    update,
)

# One layer, hidden 2, one head of 2 with its own keys and values, intermediate 3, five tokens:
# projections 4*2*2 = 16, feed-forward 3*2*3 = 18, head 5*2 = 10, norms 2 + 2 + 2 + 2 and 2 = 10.
SMALL = Architecture(1, 2, 1, 1, 2, 3, 5)
READS = Device(flops=math.inf, bandwidth=1.0, link=1.0, host_link=1.0, value_bytes=2)
COMPUTES = Device(flops=1.0, bandwidth=math.inf, link=1.0, host_link=1.0, value_bytes=2)


def config(model: Architecture, **others: Any) -> Qwen3Config:
    return Qwen3Config(
        num_hidden_layers=model.layers,
        hidden_size=model.hidden,
        num_attention_heads=model.heads,
        num_key_value_heads=model.kv_heads,
        head_dim=model.head_dim,
        intermediate_size=model.intermediate,
        vocab_size=model.vocabulary,
        tie_word_embeddings=True,
        **others,
    )


TINY = Architecture(4, 128, 4, 2, 32, 384, 105)


@pytest.mark.parametrize("model", [QWEN3_4B, TINY, Architecture(2, 64, 4, 1, 32, 96, 50)])
def test_parameters_are_those_of_transformers(model: Architecture) -> None:
    with torch.device("meta"):
        real = Qwen3ForCausalLM(config(model))
    assert model.parameters == sum(parameter.numel() for parameter in real.parameters())
    assert Architecture.of(real.config) == model


def test_parameters_of_qwen3_4b() -> None:
    assert QWEN3_4B.parameters == 4_022_468_096
    assert QWEN3_4B.kv_values * 2 == 147_456  # bytes a token in bfloat16


def test_small_sizes_by_hand() -> None:
    assert (SMALL.body, SMALL.head, SMALL.parameters, SMALL.kv_values) == (34, 10, 54, 4)


def test_flops_are_those_that_torch_counts() -> None:
    # Written out, because torch does not count the fused attention of a CPU.
    model = Qwen3ForCausalLM(config(TINY, attn_implementation="eager")).train()
    batch, width = 3, 17
    tokens = torch.randint(TINY.vocabulary, (batch, width))
    with FlopCounterMode(display=False) as forward, torch.no_grad():
        model(input_ids=tokens, use_cache=False)
    # Attention is to all of a row, although half of it is masked; the angles of the positions come on top.
    counted = forward.get_total_flops() - 2 * TINY.head_dim // 2 * width
    assert counted == TINY.flops(batch * width, batch * width**2, batch * width)
    with FlopCounterMode(display=False) as training:
        model(input_ids=tokens, use_cache=False).logits.sum().backward()
    assert training.get_total_flops() == pytest.approx(3 * counted, rel=0.03)


def test_a_pass_takes_the_longer_of_reading_and_computing() -> None:
    read = (54 + 4 * 2 * 3) * 2
    flops = 2 * (34 * 2 + 10 * 2 + 2 * 1 * 1 * 2 * (2 * 3))
    assert decode_pass(SMALL, READS, 2, 3) == read == 156
    assert decode_pass(SMALL, COMPUTES, 2, 3) == flops == 224
    assert decode_pass(SMALL, Device(flops=1.0, bandwidth=1.0), 2, 3) == 224


def test_decoding_drops_completions_as_they_end() -> None:
    # Lengths 1 and 3 after a prompt of 2: two rows of context 3, then one of 4, then one of 5.
    assert decode(SMALL, READS, 2, np.array([1, 3])) == 2 * ((54 + 24) + (54 + 16) + (54 + 20))


def test_steady_decoding_by_hand() -> None:
    # Two passes for four tokens; a completion of 2 is met after 1 token on average, so the context is 2.
    assert steady_decode(SMALL, READS, 1, np.array([2, 2]), 2) == 2 * (54 + 4 * 2 * 2) * 2


def test_a_long_completion_is_met_more_often() -> None:
    # Tokens 1 and 3: three quarters of the time it is the long one; mean age (1 + 9) / 4 / 2 = 1.25.
    assert steady_decode(SMALL, READS, 0, np.array([1, 3]), 1) == pytest.approx(4 * (54 + 4 * 1.25) * 2)


def test_a_group_keeps_its_places_until_its_longest_is_done() -> None:
    # Groups of two: places for 2 * 3 and 2 * 4 tokens, of which 1 + 3 and 4 + 4 are used.
    assert busy(np.array([1, 3, 4, 4]), 2) == 12 / 14
    assert busy(np.array([1, 3, 4, 4]), 1) == 1


def test_prefill_and_update_by_hand() -> None:
    # Two prompts of 3 tokens: 6 tokens, 12 pairs, 2 rows of logits.
    assert prefill(SMALL, COMPUTES, 3, 2) == 2 * (34 * 6 + 10 * 2 + 4 * 12)
    assert prefill(SMALL, READS, 3, 2) == 108
    # A prompt of 1 and a completion of 1: 2 tokens, 3 pairs, 1 row of logits, four times.
    assert update(SMALL, COMPUTES, 1, np.array([1]), 4) == 4 * 2 * (34 * 2 + 10 + 2 * 2 * 3)
    # Two completions of 1 and one prompt of 3: 5 tokens, 6 pairs in the prompt and 4 for each completion.
    assert update(SMALL, COMPUTES, 3, np.array([1, 1]), 3, sharing=2) == 3 * 2 * (
        34 * 5 + 10 * 2 + 2 * 2 * 14
    )


def test_moving_weights_by_hand() -> None:
    assert optimizer(SMALL, READS) == 54 * (8 + 24 + 2)
    assert all_reduce(SMALL, READS, 3) == pytest.approx(54 * 4 * 4 / 3)
    assert all_reduce(SMALL, READS, 1) == 0
    assert sync_by_broadcast(SMALL, READS) == 108
    assert sync_by_host(SMALL, READS) == 216


def test_efficiency_scales_every_speed() -> None:
    scaled = Efficiency(flops=0.5, bandwidth=0.25, links=0.1).of(Device())
    assert (scaled.flops, scaled.bandwidth) == (989e12 / 2, 3.35e12 / 4)
    assert (scaled.link, scaled.host_link) == pytest.approx((45e9, 6.4e9))


def test_lengths_have_the_mean_and_stay_below_the_maximum() -> None:
    for mean in (500.0, 2400.0, 4000.0):
        lengths = Workload(mean_tokens=mean, max_tokens=4800).lengths()
        assert lengths.shape == (128,)
        assert lengths.mean() == pytest.approx(mean, rel=0.02)
        assert 0 < lengths.min() <= lengths.max() <= 4800


def test_the_step_is_made_of_its_phases() -> None:
    seconds = step(QWEN3_4B, Device(), Workload(), Layout())
    learning = seconds["forward and backward"] + seconds["all-reduce"] + seconds["optimizer"]
    rollout = seconds["prefill"] + seconds["decode, all at once"]
    assert seconds["synchronous step"] == pytest.approx(rollout + learning + seconds["sync by broadcast"])
    rollout = seconds["prefill"] + seconds["decode, always in flight"]
    assert seconds["asynchronous step"] == pytest.approx(
        max(rollout, learning) + seconds["sync by broadcast"]
    )


def test_decoding_of_qwen3_4b_by_hand() -> None:
    # One completion at context 1,000 on one H100 at peak: 8.04 GB of weights and 0.147 GB of keys and values.
    seconds = decode_pass(QWEN3_4B, Device(), 1, 1000)
    assert seconds == pytest.approx((8.044936e9 + 0.147456e9) / 3.35e12, rel=1e-6)


def test_a_measured_step_takes_longer_than_its_bound() -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = measure(Settings(steps=2))
    finally:
        torch.set_num_threads(threads)
    for phase in ("rollout", "update", "step"):
        assert 0 < found[phase]["bound"] < found[phase]["bound with fixed costs"]
        assert found[phase]["bound"] < found[phase]["measured"]
