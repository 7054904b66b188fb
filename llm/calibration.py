"""FIXED: the set piece that every run plays before the clock, so that machines and hours compare.

It does the arithmetic of a small transformer, forward and backward, a fixed number of times. The seconds that
it takes stand in the manifest and beside the time on the board.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

ROUNDS = 12


def calibrate() -> float:
    """Seconds for `ROUNDS` training steps of a transformer on each of two cores, or more on a GPU."""
    import torch

    if torch.cuda.is_available():
        cuda, bfloat16 = torch.device("cuda"), torch.bfloat16
        _train(cuda, bfloat16, rounds=3, batch=16, length=1024, width=2048, layers=4)
        return _train(cuda, bfloat16, rounds=2 * ROUNDS, batch=16, length=1024, width=2048, layers=4)
    threads = torch.get_num_threads()

    def train_alone(rounds: int) -> float:
        torch.set_num_threads(1)  # of this core
        return _train(torch.device("cpu"), torch.float32, rounds, batch=16, length=64, width=128, layers=4)

    try:
        with ThreadPoolExecutor(2) as cores:
            list(cores.map(train_alone, [1, 1]))
            return max(cores.map(train_alone, [ROUNDS, ROUNDS]))
    finally:
        torch.set_num_threads(threads)


def _train(
    device: "torch.device",
    dtype: "torch.dtype",
    rounds: int,
    batch: int,
    length: int,
    width: int,
    layers: int,
) -> float:
    """Seconds of forward and backward passes through blocks of causal attention and a gated MLP."""
    import torch
    from torch.nn.functional import rms_norm, scaled_dot_product_attention, silu

    generator = torch.Generator().manual_seed(0)

    def made(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).div(shape[-2] ** 0.5).to(device, dtype)

    tokens = made(batch, length, width)
    blocks = [
        [made(width, 3 * width), made(width, width), made(width, 6 * width), made(3 * width, width)]
        for _ in range(layers)
    ]
    weights = [matrix.requires_grad_() for block in blocks for matrix in block]
    heads = (batch, length, 4, width // 4)
    start = time.perf_counter()
    for _ in range(rounds):
        features = tokens
        for attend, mix, widen, narrow in blocks:
            projected = (rms_norm(features, (width,)) @ attend).chunk(3, dim=-1)
            query, key, value = (part.reshape(heads).transpose(1, 2) for part in projected)
            seen = scaled_dot_product_attention(query, key, value, is_causal=True)
            features = features + seen.transpose(1, 2).reshape(batch, length, width) @ mix
            gate, up = (rms_norm(features, (width,)) @ widen).chunk(2, dim=-1)
            features = features + (silu(gate) * up) @ narrow
        gradients = torch.autograd.grad(features.float().square().mean(), weights)
    gradients[0].sum().item()  # waits for the device
    return time.perf_counter() - start
