"""What a package's variables hold, frame by frame, when a movie is played from power-on."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray


def trace(spec: str, inputs: Sequence[int], names: Sequence[str]) -> NDArray[np.int64]:
    """Play in a fresh process and watch.

    Returns, (frames, 1 + names), after each frame the index of the state that holds, -1 in transit, and then
    the values of the variables of these names.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_watch, spec, list(inputs), list(names)).result()


def _watch(spec: str, inputs: list[int], names: list[str]) -> NDArray[np.int64]:
    from retro.packages import load_package
    from retro.replay import replay

    package = load_package(spec)
    rows: list[list[int]] = []

    def note(emulator: Any, ram: Any) -> None:
        rows.append([package.state_of(ram), *(getattr(ram, name) for name in names)])

    replay(package, inputs, watch=note)
    return np.array(rows, dtype=np.int64).reshape(-1, 1 + len(names))
