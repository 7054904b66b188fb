"""The policy in numpy, and its file."""

import io
import random
from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from stable_baselines3.common.policies import ActorCriticPolicy

from harness.errors import Problem
from retro.guidance.policy import CLIP, Export, Policy, read_policy, write_policy
from retro.guidance.training import EPSILON, policy_of
from scripted_game import Hopper

EXPORT = Export(
    (3, "00ff00ff00ff00ff"),
    Policy(
        np.zeros(2, np.float32),
        np.ones(2, np.float32),
        (
            (np.full((2, 3), 0.5, np.float32), np.zeros(3, np.float32)),
            (np.ones((3, 2), np.float32), np.array([0, np.log(3)], np.float32)),
        ),
        (0, 4),
        4,
    ),
    ((4, 12), (0, 3)),
    {"reward": 1.5, "exits": 2},
)


@pytest.mark.parametrize("seed", range(5))
def test_numpy_gives_the_chances_that_torch_gives(seed: int) -> None:
    torch.manual_seed(seed)
    generator = np.random.default_rng(seed)
    space = gymnasium.spaces.Box(-1000, 1000, (7,), np.float32)
    network = ActorCriticPolicy(space, gymnasium.spaces.Discrete(5), lambda _: 1e-3, net_arch=[64, 64])
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.from_numpy(generator.normal(0, 0.5, tuple(parameter.shape))))
    mean, variance = generator.normal(0, 30, 7), generator.uniform(0, 900, 7)
    policy = policy_of(network, mean, variance, [0, 1, 2, 4, 8], 4)
    for _ in range(20):
        ram = tuple(generator.integers(-1000, 1000, 7).tolist())
        seen = np.clip((np.array(ram) - mean) / np.sqrt(variance + EPSILON), -CLIP, CLIP)
        with torch.no_grad():
            expected = network.get_distribution(torch.tensor(seen[None], dtype=torch.float32)).distribution
        assert policy.chances(ram) == pytest.approx(expected.probs[0].numpy(), abs=1e-5)


def test_moves_are_drawn_by_their_chances() -> None:
    generator, count = random.Random(1), 4_000
    moves = Counter(EXPORT.policy.propose(Hopper(), (0, 0), generator) for _ in range(count))
    assert set(moves) == {(0, 4), (4, 4)}
    low, high = (binom.ppf(chance, count, 0.75) for chance in (1e-6, 1 - 1e-6))
    assert low <= moves[4, 4] <= high


def same(one: Export, other: Export) -> bool:
    arrays = zip(one.policy.layers, other.policy.layers, strict=True)
    return (
        (one.start, one.exit, dict(one.figures)) == (other.start, other.exit, dict(other.figures))
        and (one.policy.masks, one.policy.hold) == (other.policy.masks, other.policy.hold)
        and np.array_equal(one.policy.mean, other.policy.mean)
        and np.array_equal(one.policy.scale, other.policy.scale)
        and all(np.array_equal(a, b) for pair in arrays for a, b in zip(*pair, strict=True))
    )


def test_a_file_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "policy.npz"
    write_policy(path, EXPORT)
    assert same(read_policy(path), EXPORT)
    assert [file.name for file in tmp_path.iterdir()] == ["policy.npz"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_file_is_refused_or_says_the_same(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "policy.npz"
    write_policy(path, EXPORT)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        assert same(read_policy(path), EXPORT)  # dates and attributes in the archive mean nothing
    except Problem as problem:
        assert problem.file == str(path)


def _written(path: Path, **changes: Any) -> None:
    """A file whose checksum holds, with other arrays."""
    from retro.guidance.policy import _check

    write_policy(path, EXPORT)
    with np.load(io.BytesIO(path.read_bytes())) as file:
        arrays = {name: file[name] for name in file if name != "check"} | changes
    with path.open("wb") as target:
        np.savez(target, check=_check(arrays), **arrays)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"weights_0": np.zeros((5, 3), np.float32)}, "layers of shapes"),
        ({"mean": np.full(2, np.nan, np.float32)}, "weights that are not numbers"),
        ({"biases_1": np.zeros(2, np.float64)}, "weights that are not numbers"),
        ({"masks": np.array([], np.int64)}, "no moves"),
        ({"hold": np.array(0)}, "no moves"),
        ({"meta": np.frombuffer(b"[]", np.uint8)}, "no policy"),
        ({"exit": np.array([[1, 2, 3]])}, "no policy"),
    ],
)
def test_a_file_that_cannot_be_followed_is_refused(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    path = tmp_path / "policy.npz"
    _written(path, **changes)
    with pytest.raises(Problem, match=reason):
        read_policy(path)


def test_there_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(Problem):
        read_policy(tmp_path / "policy.npz")
