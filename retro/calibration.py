"""FIXED: the set piece that every run plays before the clock, so that machines and hours compare.

Two processes at once do what a search does most: load a savestate, run frames, read memory, save.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

PROCESSES, ROUNDS, FRAMES = 2, 600, 12
BOOT = 60  # frames from power-on to the savestate that rounds begin with


def calibrate() -> float:
    """Seconds for `ROUNDS` rounds of `FRAMES` frames in each of `PROCESSES` processes, the mean of these."""
    from retro.fresh import run_fresh

    with ThreadPoolExecutor(PROCESSES) as pool:
        seconds = pool.map(lambda _: float(run_fresh("retro.calibration:play", {})), range(PROCESSES))
        return sum(seconds) / PROCESSES


def play(job: dict[str, Any]) -> float:
    """What one process does; returns its seconds."""
    from retro.packages import load_package

    emulator = load_package("quarterstep").open()
    emulator.step(0, BOOT)
    state = emulator.save()
    start = time.perf_counter()
    for _ in range(ROUNDS):
        emulator.load(state)
        for _ in range(FRAMES):
            emulator.step(0)
            emulator.values()
        emulator.save()
    seconds = time.perf_counter() - start
    emulator.close()
    return seconds
