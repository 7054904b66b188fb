"""The recipe's path on a CUDA device against the same path on the CPU: `pytest -m gpu`."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from harness.log import read_log
from harness.manifest import read_manifest
from harness.track import ROOT
from non_llm.eval_speedrun import play
from non_llm.speedrun import (
    PLAIN,
    RECIPES,
    Learner,
    Network,
    Player,
    Samples,
    choose,
    load_policy,
    ppo_loss,
    rehearse,
    save,
)
from sokoban.generator import practice_levels
from sokoban.reference import replay
from sokoban.rules import SokobanBatch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),  # of the compiler itself
]
CPU = torch.device("cpu")
RECIPE = replace(RECIPES["1xH100"], boards=256, horizon=8, minibatch=256)


@pytest.fixture
def cuda() -> torch.device:
    return torch.device("cuda")


@pytest.fixture
def samples() -> Samples:
    """What a CPU plays with a fresh network."""
    generator = torch.Generator().manual_seed(5)
    batch = SokobanBatch(practice_levels(), RECIPE.boards, generator=generator, symmetries=True)
    return Player(network(), batch, RECIPE, 0, PLAIN).play()[0]


def network() -> Network:
    torch.manual_seed(0)
    made = Network(RECIPE.channels, RECIPE.blocks)
    for parameter in made.policy.parameters():  # a head that starts at zero would hide mistakes
        torch.nn.init.normal_(parameter, std=0.1)
    return made


def test_the_network_says_the_same_on_both(samples: Samples, cuda: torch.device) -> None:
    words = samples.words[:512]
    with torch.no_grad():
        expected, values = network()(words)
        found, found_values = network().to(cuda)(words.to(cuda))
    torch.testing.assert_close(found.cpu().exp(), expected.exp(), atol=0.02, rtol=0)
    torch.testing.assert_close(found_values.cpu(), values, atol=0.05, rtol=0.05)


def test_the_loss_and_its_gradient_are_the_same_on_both(samples: Samples, cuda: torch.device) -> None:
    on_cpu, on_gpu = network(), network().to(cuda)
    expected = ppo_loss(on_cpu, samples, RECIPE)
    found = ppo_loss(on_gpu, Samples(*(column.to(cuda) for column in samples)), RECIPE)
    torch.testing.assert_close(found.cpu(), expected, atol=0.02, rtol=0.02)
    expected.backward()
    found.backward()
    for one, other in zip(on_cpu.parameters(), on_gpu.parameters(), strict=True):
        assert one.grad is not None and other.grad is not None
        torch.testing.assert_close(other.grad.cpu(), one.grad, atol=0.02, rtol=0.1)


def test_draws_on_the_device_are_legal(samples: Samples, cuda: torch.device) -> None:
    words = samples.words.to(cuda)
    made = network().to(cuda)
    with torch.no_grad():
        actions, chosen, _ = choose(made, words, torch.rand(len(words), device=cuda))
        expected = made(words)[0].gather(1, actions[:, None]).squeeze(1)
    torch.testing.assert_close(chosen, expected)
    assert (chosen[(words[:, 5:] != 0).any(dim=1)] > -100).all()


def test_a_rollout_waits_for_nothing(cuda: torch.device) -> None:
    made = network().to(cuda)
    tools = rehearse(made, RECIPE, cuda)
    batch = SokobanBatch(
        practice_levels(), RECIPE.boards, generator=torch.Generator().manual_seed(5), device=cuda
    )
    player = Player(made, batch, RECIPE, 0, tools)
    player.play()
    torch.cuda.set_sync_debug_mode("error")
    try:
        played, _ = player.play()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    Learner(made, RECIPE, 0, tools).learn(played, 0, 1)
    assert all(torch.isfinite(parameter).all() for parameter in made.parameters())


def test_evidence_from_the_device_replays(cuda: torch.device) -> None:
    levels = practice_levels().take(slice(0, 100))
    for level, moves in enumerate(play(load_policy(save(network().state_dict()), cuda), levels, cuda)):
        assert replay(levels.level(level), moves).moves > 0


def test_smoke_on_the_device(tmp_path: Path) -> None:
    environment = {**os.environ, "BOXOBAN_LEVELS": str(tmp_path), "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-m", "non_llm.speedrun", "--smoke"], cwd=tmp_path, env=environment, check=True
    )
    (run,) = (tmp_path / "outputs").iterdir()
    assert read_log(run / "log.jsonl").status == "complete"
    assert read_manifest(run / "manifest.json").recipe_name == "1xH100"
