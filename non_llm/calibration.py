"""FIXED: the set piece that every run plays before the clock, so that machines and hours compare.

It does the arithmetic of a small convolutional policy, forward and backward, a fixed number of times. The
seconds that it takes stand in the manifest and beside the time on the board.
"""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

ROUNDS, BATCH, CHANNELS, LAYERS = 60, 512, 32, 4


def calibrate() -> float:
    """Seconds for `ROUNDS` training steps of 3x3 convolutions in bfloat16, one process a core or one GPU."""
    import torch

    if torch.cuda.is_available():
        _train(torch.device("cuda"), rounds=10)
        return _train(torch.device("cuda"), rounds=20 * ROUNDS)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        _train(torch.device("cpu"), rounds=3)
        return _train(torch.device("cpu"), rounds=ROUNDS)
    finally:
        torch.set_num_threads(threads)


def _train(device: "torch.device", rounds: int) -> float:
    import torch
    from torch.nn.functional import conv2d, relu

    generator = torch.Generator().manual_seed(0)
    boards = torch.randn(BATCH, CHANNELS, 8, 8, generator=generator)
    kernels = torch.randn(LAYERS, CHANNELS, CHANNELS, 3, 3, generator=generator) / (3 * CHANNELS**0.5)
    boards = boards.to(device, torch.bfloat16, memory_format=torch.channels_last)
    kernels = kernels.to(device, torch.bfloat16).requires_grad_()
    start = time.perf_counter()
    for _ in range(rounds):
        features = boards
        for kernel in kernels:
            features = relu(features + conv2d(features, kernel, padding=1))
        features.float().square().mean().backward()
    kernels.grad.sum().item()  # waits for the device
    return time.perf_counter() - start
