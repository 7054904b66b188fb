"""The pinned recipe, in small: each part against plain arithmetic, then the whole way as a person runs it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.multiprocessing
from torch import nn

from harness.eligibility import eligibility
from harness.errors import Problem
from harness.log import read_log
from harness.manifest import read_manifest
from harness.track import ROOT
from non_llm.eval_speedrun import play
from non_llm.speedrun import (
    PLAIN,
    RECIPES,
    Learner,
    Muon,
    Network,
    Player,
    Recipe,
    Samples,
    average_gradients,
    choose,
    go_on,
    group,
    load_policy,
    pack,
    ppo_loss,
    rehearse,
    save,
)
from sokoban.generator import practice_levels
from sokoban.rules import SokobanBatch, unpack

TINY = Recipe(processes=1, boards=16, horizon=12, minibatch=32, channels=8, blocks=1)
CPU = torch.device("cpu")


@pytest.fixture
def network() -> Network:
    torch.manual_seed(0)
    network = Network(8, 1)
    for parameter in network.parameters():  # heads that start at zero would hide mistakes
        nn.init.normal_(parameter, std=0.3)
    return network


def player(network: Network, recipe: Recipe = TINY, seed: int = 3) -> Player:
    levels = practice_levels().take(slice(0, 40))
    generator = torch.Generator().manual_seed(seed)
    batch = SokobanBatch(levels, recipe.boards, generator=generator, symmetries=True)
    return Player(network, batch, recipe, seed, PLAIN)


def legal_pushes(samples: Samples) -> torch.Tensor:
    """(N, 256) booleans."""
    return unpack(samples.words[:, 5:]).flatten(1)


def test_every_class_has_a_recipe_and_a_smoke_version() -> None:
    assert set(RECIPES) == {"1xH100", "cpu"}
    for recipe in RECIPES.values():
        assert recipe.smoke().pushes < recipe.pushes / 10


def test_samples_are_legal_and_reproducible(network: Network) -> None:
    samples, counts = player(network).play()
    again, _ = player(network).play()
    assert all(torch.equal(a, b) for a, b in zip(samples, again, strict=True))
    assert len(samples.actions) == TINY.boards * TINY.horizon
    legal = legal_pushes(samples)
    playable = legal.any(dim=1)
    assert legal.gather(1, samples.actions[:, None])[playable].all()
    moves, ends, solves = counts.tolist()
    assert moves >= len(samples.actions) and 0 <= solves <= ends


def test_log_probabilities_are_those_of_the_network(network: Network) -> None:
    samples, _ = player(network).play()
    with torch.no_grad():
        log_probabilities, _ = network(samples.words[:16])
    legal = legal_pushes(samples)[:16]
    torch.testing.assert_close(torch.where(legal, log_probabilities.exp(), 0).sum(dim=1), torch.ones(16))
    expected = log_probabilities.gather(1, samples.actions[:16, None]).squeeze(1)
    torch.testing.assert_close(samples.log_probabilities[:16], expected, atol=1e-4, rtol=1e-4)


def test_draws_follow_the_policy(network: Network) -> None:
    """Drawn 20,000 times on one board, actions come as often as their probabilities say."""
    samples, _ = player(network).play()
    legal = legal_pushes(samples)
    row = int(legal.sum(dim=1).argmax())
    words = samples.words[row].repeat(20_000, 1)
    uniform = torch.rand(20_000, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        actions, log_probabilities, _ = choose(network, words, uniform)
        expected = network(words[:1])[0][0].exp()
    counts = actions.bincount(minlength=256)
    assert not counts[~legal[row]].any()
    torch.testing.assert_close(counts / 20_000, expected, atol=0.015, rtol=0)
    torch.testing.assert_close(log_probabilities.exp(), expected[actions], atol=1e-3, rtol=1e-2)


def test_advantages_are_the_exponentially_weighted_sum(network: Network) -> None:
    """Against the definition: A_t = sum over k of (gamma lambda)^k delta_(t+k), cut where an episode ends."""
    recipe = replace(TINY, gamma=0.9, gae_lambda=0.8)
    played = player(network, recipe)
    rewards, dones = [], []
    push = played.batch.push

    def listen(actions: torch.Tensor, walks: object) -> object:
        outcome = push(actions, walks)  # type: ignore[arg-type]
        rewards.append(outcome.reward)
        dones.append(outcome.done)
        return outcome

    played.batch.push = listen  # type: ignore[assignment, method-assign]
    samples, _ = played.play()
    with torch.no_grad():
        last_value = network(played.look()[1])[1]
    values = (samples.returns - samples.advantages).view(recipe.horizon, recipe.boards)
    assert any(done.any() for done in dones)
    for board in range(recipe.boards):
        for start in range(recipe.horizon):
            expected, weight = 0.0, 1.0
            for t in range(start, recipe.horizon):
                done = bool(dones[t][board])
                following = values[t + 1] if t + 1 < recipe.horizon else last_value
                bootstrap = 0.0 if done else recipe.gamma * float(following[board])
                expected += weight * (float(rewards[t][board]) + bootstrap - float(values[t, board]))
                weight *= recipe.gamma * recipe.gae_lambda
                if done:
                    break
            found = float(samples.advantages.view(recipe.horizon, recipe.boards)[start, board])
            assert found == pytest.approx(expected, abs=1e-3)


def test_muon_steps_along_the_nearest_orthogonal_matrix() -> None:
    torch.manual_seed(0)
    weight = nn.Parameter(torch.zeros(4, 3, 3, 3))
    gradient = torch.randn(4, 27)
    weight.grad = gradient.view(4, 3, 3, 3).clone()
    Muon([weight]).step(0.5)
    u, _, v = torch.linalg.svd(gradient, full_matrices=False)
    step = -weight.detach().view(4, 27) / 0.5
    singular = torch.linalg.svdvals(step)
    assert singular.min() > 0.6 and singular.max() < 1.3  # the quintic stops near 1, by design
    torch.testing.assert_close(step, u @ torch.diag((u.T @ step @ v.T).diag()) @ v, atol=1e-3, rtol=0)


def test_learning_makes_good_actions_likelier(network: Network) -> None:
    samples, _ = player(network).play()
    recipe = replace(TINY, kept=1.0, entropy_weight=0.0)
    learner = Learner(network, recipe, 0, PLAIN)
    before = ppo_loss(network, samples._replace(advantages=torch.ones_like(samples.advantages)), recipe)
    chosen = samples.take(legal_pushes(samples).sum(dim=1) > 1)
    for _ in range(3):
        learner.step(chosen._replace(advantages=torch.ones_like(chosen.advantages)), rate=0.1)
    after = ppo_loss(network, samples._replace(advantages=torch.ones_like(samples.advantages)), recipe)
    assert after < before
    with torch.no_grad():
        log_probabilities, _ = network(chosen.words)
    rise = log_probabilities.gather(1, chosen.actions[:, None]).squeeze(1) - chosen.log_probabilities
    assert rise.mean() > 0


def test_the_update_keeps_the_samples_with_large_advantages(network: Network) -> None:
    samples, _ = player(network).play()
    learner = Learner(network, replace(TINY, kept=0.25), 0, PLAIN)
    seen: list[Samples] = []
    learner.step = lambda chosen, rate: seen.append(chosen)  # type: ignore[method-assign, misc]
    learner.learn(samples, 0, 1)
    kept = torch.cat([chosen.advantages for chosen in seen]).abs()
    normalised = (samples.advantages - samples.advantages.mean()) / samples.advantages.std()
    assert len(kept) == 32  # a quarter of 192, in whole minibatches
    assert kept.min() >= normalised.abs().quantile(0.74)


def test_a_checkpoint_plays_as_the_network_did(network: Network) -> None:
    levels = practice_levels().take(slice(0, 20))
    moves = play(load_policy(save(network.state_dict()), CPU), levels, CPU)
    assert moves == play(load_policy(save(network.state_dict()), CPU), levels, CPU)
    assert any(moves)


def test_what_broke_off_goes_on_to_the_last_bit(network: Network) -> None:
    first = player(network)
    learner = Learner(network, TINY, 5, PLAIN)
    learner.learn(first.play()[0], 0, 0.5)
    packed = pack(1, first, learner)
    torch.manual_seed(9)
    fresh = Network(8, 1)
    second, other = player(fresh, seed=3), Learner(fresh, TINY, 6, PLAIN)
    second.generator.manual_seed(8)
    assert go_on(packed, 0, second, other) == 1
    for one, its in ((first, learner), (second, other)):
        for _ in range(2):
            its.learn(one.play()[0], 0.5, 1)
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, fresh.state_dict()[name]), name


def averaged(rank: int, meeting_place: str, results: "torch.multiprocessing.Queue[list[float]]") -> None:
    with group(rank, replace(TINY, processes=2), meeting_place):
        parameters = [nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1, 1))]
        parameters[0].grad = torch.tensor([1.0, 3.0]) * (rank + 1)
        parameters[1].grad = torch.full((1, 1), 10.0 * rank)
        average_gradients(parameters)
        results.put([number for p in parameters for number in p.grad.flatten().tolist()])  # type: ignore[union-attr]


def test_processes_share_the_mean_of_their_gradients(tmp_path: Path) -> None:
    context = torch.multiprocessing.get_context("spawn")
    results = context.Queue()
    arguments = (f"file://{tmp_path}/rendezvous", results)
    workers = [context.Process(target=averaged, args=(rank, *arguments)) for rank in range(2)]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    assert found == [[1.5, 4.5, 5.0]] * 2


def offline(folder: Path) -> dict[str, str]:
    """An environment in which no official level can be had: no folder, an empty cache, no network."""
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    here = {name: value for name, value in os.environ.items() if name != "BOXOBAN_LEVELS"}
    return {**here, **nowhere, "XDG_CACHE_HOME": str(folder), "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module")
def smoke_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """`python -m non_llm.speedrun --smoke` where no official level can be had: the run folder, the output."""
    folder = tmp_path_factory.mktemp("smoke")
    environment = offline(folder)
    done = subprocess.run(
        [sys.executable, "-m", "non_llm.speedrun", "--smoke"],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (run,) = (folder / "outputs").iterdir()
    yield run, done.stdout + done.stderr


def test_smoke_goes_the_whole_way_on_generated_levels(smoke_run: tuple[Path, str]) -> None:
    run, output = smoke_run
    log, manifest = read_log(run / "log.jsonl"), read_manifest(run / "manifest.json")
    assert log.status == "complete"
    assert "Generated levels stand in for them" in output and "solve rate" in output and "No record" in output
    assert "it is a smoke run" in eligibility(manifest, log)
    assert list(manifest.data) == ["generated"]
    assert [step.fields["step"] for step in log.steps] == list(range(1, len(log.steps) + 1))
    header = json.loads((run / "evidence.jsonl").read_text().splitlines()[0])
    assert header["levels"] == "practice"


def test_evaluating_again_gives_the_same_evidence(smoke_run: tuple[Path, str], tmp_path: Path) -> None:
    run, _ = smoke_run
    before = (run / "evidence.jsonl").read_bytes()
    command = [sys.executable, "-m", "non_llm.eval_speedrun", str(run)]
    done = subprocess.run(
        command, cwd=ROOT, env=offline(tmp_path), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert (run / "evidence.jsonl").read_bytes() == before
    assert read_log(run / "log.jsonl").status == "complete"


def test_a_wrong_levels_folder_stops_before_the_run(tmp_path: Path) -> None:
    environment = {**offline(tmp_path), "BOXOBAN_LEVELS": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "non_llm.speedrun", "--smoke"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2
    assert "Remedy" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "outputs").exists()


def test_recipes_that_do_not_fit_are_refused() -> None:
    for wrong in ({"boards": 7}, {"pushes": 1}, {"minibatch": 0}, {"kept": 0.01}):
        with pytest.raises(Problem):
            replace(Recipe(), **wrong)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # of the compiler itself
def test_compiled_functions_agree_with_plain_ones(network: Network) -> None:
    recipe = replace(TINY, boards=32, minibatch=64)
    tools = rehearse(Network(8, 1), recipe, CPU)
    assert tools is not PLAIN
    samples, _ = player(network, recipe).play()
    uniform = torch.rand(32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        _, expected, values = choose(network, samples.words[:32], uniform)
        _, found, found_values = tools.choose(network, samples.words[:32], uniform)
    assert (expected - found).abs().median() < 0.02
    torch.testing.assert_close(found_values, values, atol=0.05, rtol=0.05)
    few = samples.take(torch.arange(64))
    loss, plain = tools.ppo_loss(network, few, recipe), ppo_loss(network, few, recipe)
    torch.testing.assert_close(loss, plain, atol=0.02, rtol=0.02)
