"""FIXED: the set piece that every run plays before the clock, so that machines and hours compare.

It does what a run does between two answers of its model: BabyAI's levels are made, and stepped in words.
"""

import time
from random import Random

LEVELS, STEPS = 60, 100


def calibrate() -> float:
    """Seconds for `LEVELS` levels of `STEPS` steps each, with random actions."""
    from agents.benchmarks import load_benchmark
    from agents.benchmarks.base import Episode

    benchmark, generator = load_benchmark("babyai"), Random(0)
    environment = benchmark.make()
    actions = ("turn left", "turn right", "go forward")  # which end no episode of this task
    environment.reset(Episode("putnext", 0))
    start = time.perf_counter()
    for seed in range(LEVELS):
        environment.reset(Episode("putnext", seed))
        for _ in range(STEPS):
            environment.step(generator.choice(actions))
            environment.state()
    seconds = time.perf_counter() - start
    environment.close()
    return seconds
