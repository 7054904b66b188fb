"""The trained policy as workers use it: a small network in numpy, and the file that it comes in.

`policy.npz` holds plain arrays, a text of figures and a checksum over all of them; it is written whole or not
at all, and nothing in it is executed.
"""

import io
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from harness.errors import Problem
from harness.files import canonical_json, parse_json, read_bytes, write_atomic
from retro.packages import GamePackage, Ram
from retro.search.archive import Runs
from retro.search.guidance import Move

POLICY = "policy.npz"
CLIP = 10.0  # observations, once normalized

Array = NDArray[np.float32]
Start = tuple[int, str]
"""What a policy was trained for: the segment, and the hash of work RAM at its start."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A network of tanh layers over the package's variables, and the moves that its outputs stand for."""

    mean: Array
    """(V,) of the variables."""
    scale: Array
    """(V,) what their distance from the mean is multiplied with."""
    layers: tuple[tuple[Array, Array], ...]
    """(weights, biases) of each layer: (inputs, outputs) and (outputs,)."""
    masks: tuple[int, ...]
    """Button masks; outputs past the last count on from the first."""
    hold: int
    """Frames of a decision."""
    share: float = 0.0

    def chances(self, ram: Ram) -> NDArray[np.float64]:
        """The probability of each output, (A,)."""
        x = np.clip((np.asarray(ram, np.float32) - self.mean) * self.scale, -CLIP, CLIP)
        for weights, biases in self.layers[:-1]:
            x = np.tanh(x @ weights + biases)
        weights, biases = self.layers[-1]
        outputs = (x @ weights + biases).astype(np.float64)
        chances = np.exp(outputs - outputs.max())
        return np.asarray(chances / chances.sum())

    def propose(self, package: GamePackage, ram: Ram, generator: random.Random) -> Move:
        """A move, drawn by its probability."""
        edges = np.cumsum(self.chances(ram))
        drawn = int(np.searchsorted(edges, generator.random() * edges[-1], side="right"))
        return self.masks[min(drawn, len(edges) - 1) % len(self.masks)], self.hold


@dataclass(frozen=True, slots=True)
class Export:
    """What training writes after each round."""

    start: Start
    policy: Policy
    exit: Runs
    """The shortest way out that was found from the start; () = none was."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Since the start: rounds, decisions, exits (episodes that ended with one), exit_frames (of the shortest
    way out, 0 = none). Of the newest round: reward (mean of its episodes), exit_rate, entropy,
    explained_variance."""


def write_policy(path: Path, export: Export) -> None:
    """Write an export, whole or not at all."""
    policy = export.policy
    arrays: dict[str, NDArray[Any]] = {
        "mean": policy.mean,
        "scale": policy.scale,
        "masks": np.array(policy.masks, np.int64),
        "hold": np.array(policy.hold, np.int64),
        "exit": np.array(export.exit, np.int64).reshape(-1, 2),
        "meta": np.frombuffer(
            canonical_json({"start": export.start, "figures": dict(export.figures)}).encode(), np.uint8
        ),
    }
    for number, (weights, biases) in enumerate(policy.layers):
        arrays |= {f"weights_{number}": weights, f"biases_{number}": biases}
    buffer = io.BytesIO()
    np.savez(buffer, check=_check(arrays), **arrays)  # type: ignore[arg-type]
    write_atomic(path, buffer.getvalue())


def read_policy(path: Path) -> Export:
    """Read an export; a Problem where the file is missing, cut short, corrupt or none."""
    content = read_bytes(path)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = dict(file)
        if not np.array_equal(arrays.pop("check"), _check(arrays)):
            raise ValueError("the checksum differs")
        return _rebuild(arrays, path)
    except Exception as error:  # whatever numpy and zipfile say to what is no archive of arrays
        raise Problem(
            f"no policy: {error}", file=path, remedy="remove the file: training writes it"
        ) from error


def _rebuild(arrays: dict[str, NDArray[Any]], path: Path) -> Export:
    count = sum(name.startswith("weights_") for name in arrays)
    layers = tuple((arrays[f"weights_{i}"], arrays[f"biases_{i}"]) for i in range(count))
    widths = [len(arrays["mean"]), *(len(biases) for _, biases in layers)]
    shapes = [weights.shape for weights, _ in layers]
    if not layers or shapes != list(pairwise(widths)):
        raise ValueError(f"layers of shapes {shapes} for {widths[0]} variables")
    numbers = [arrays["mean"], arrays["scale"], *(array for layer in layers for array in layer)]
    if not all(array.dtype == np.float32 and np.isfinite(array).all() for array in numbers):
        raise ValueError("weights that are not numbers")
    masks = tuple(int(mask) for mask in arrays["masks"])
    hold = int(arrays["hold"])
    if not masks or min(masks) < 0 or hold < 1:
        raise ValueError("no moves")
    meta = parse_json(arrays["meta"].tobytes(), path, 1)
    segment, ram_hash = meta["start"]
    figures = {name: float(meta["figures"][name]) for name in meta["figures"]}
    if not all(math.isfinite(value) for value in figures.values()):
        raise ValueError("figures that are not numbers")
    runs = tuple((int(bits), int(frames)) for bits, frames in arrays["exit"])
    policy = Policy(arrays["mean"], arrays["scale"], layers, masks, hold)
    return Export((segment, ram_hash), policy, runs, figures)


def _check(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """A checksum over names, types, shapes and contents."""
    digest = xxhash.xxh3_128()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)
