"""What a package's variables hold, frame by frame, when a movie is played from power-on."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def trace(spec: str, inputs: Sequence[int], names: Sequence[str]) -> NDArray[np.int64]:
    """Play in a fresh process and watch.

    Returns, (frames, 1 + names), after each frame the index of the state that holds, -1 in transit, and then
    the values of the variables of these names.
    """
    from retro.fresh import run_fresh

    job = {"package": spec, "inputs": list(inputs), "names": list(names)}
    return np.array(run_fresh("retro.trace:watch", job), np.int64).reshape(-1, 1 + len(names))


def watch(job: dict[str, Any]) -> list[list[int]]:
    """What `trace` has done in the fresh process."""
    from retro.packages import load_package
    from retro.replay import replay

    package = load_package(job["package"])
    rows: list[list[int]] = []

    def note(emulator: Any, ram: Any) -> None:
        rows.append([package.state_of(ram), *(getattr(ram, name) for name in job["names"])])

    replay(package, job["inputs"], watch=note)
    return rows
