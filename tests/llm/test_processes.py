"""Several processes train like one: plain and sharded, started by torchrun or by the first of them."""

import json
import multiprocessing
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import Qwen3Config, Qwen3ForCausalLM

from harness.errors import Problem
from harness.files import read_json
from harness.log import read_log
from harness.manifest import overriding, read_manifest
from harness.silent import SilentRun
from llm.checkpoint import FOLDER, save_checkpoint
from llm.completion import Completion
from llm.make_tiny import make_tokenizer
from llm.models import load_model
from llm.speedrun import (
    Group,
    Guard,
    Learner,
    Policy,
    Progress,
    Puzzles,
    Recipe,
    Setting,
    from_first,
    full_weights,
    group,
    shard,
    train,
)
from llm.track import TRACK

CPU = torch.device("cpu")
FIELDS: dict[str, Any] = {
    "group": 4, "steps": 2, "warmup_steps": 0, "final_rate": 1.0, "learning_rate": 1e-3,
    "shared_prompts": False, "staleness": 1, "temperature": 1.0, "scaled": False, "blame": 1.0, "beta2": 0.99,
}  # fmt: skip
# What each of two processes has to learn from: rewards of its groups, for each step.
UNEVEN = (
    (((1, 0, 0, 1),), ((0, 0, 0, 1), (1, 1, 0, 1), (0, 1, 0, 0))),
    (((1, 1, 1, 1),), ((0, 1, 1, 0), (0, 0, 0, 0))),  # the first process learns nothing here
    (((0, 0, 0, 0),), ((1, 1, 1, 1),)),  # and here nobody does
)


class Case(NamedTuple):
    """One way to share the work."""

    name: str
    fields: dict[str, Any]
    resumed: bool = False
    """Whether the processes end after the first step, and others go on from what they packed."""


CASES = (
    Case("plain", {}),
    Case("in-passes", {"pass_tokens": 1}),
    Case("sharded", {"sharded": True}),
    Case("sharded-in-passes", {"sharded": True, "pass_tokens": 1}),
    Case("resumed", {}, resumed=True),
    Case("sharded-resumed", {"sharded": True}, resumed=True),
)


def make_model() -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=100, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, tie_word_embeddings=True, initializer_range=0.3,
        pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    return Qwen3ForCausalLM(config).eval()


def make_groups(seed: int, rewards: Sequence[Sequence[float]]) -> list[Group]:
    generator = torch.Generator().manual_seed(seed)
    groups = []
    for row in rewards:
        lengths = torch.randint(2, 8, (len(row) + 1,), generator=generator).tolist()
        prompt, *rows = [torch.randint(4, 90, (length,), generator=generator).tolist() for length in lengths]
        drawn = [
            Completion(tokens, [-4.0] * len(tokens), [True] * len(tokens), True, None) for tokens in rows
        ]
        groups.append(Group(prompt, drawn, [*map(float, row)], 0))
    return groups


def learn(
    rank: int, recipe: Recipe, sharded: bool, resumed: bool = False
) -> tuple[Policy, list[dict[str, float]], int]:
    """All steps; also how often the first layer was entered."""
    entered = [0]

    def count(*_: object) -> None:
        entered[0] += 1

    def begin() -> Progress:
        policy = Policy(make_model(), recipe)
        policy.model.model.layers[0].mlp.register_forward_pre_hook(count)
        if sharded:
            shard(policy, CPU)
        learner = Learner(policy, Setting(recipe, make_tokenizer(), CPU, 1, rank))
        return Progress(learner, Puzzles([], [], 1), Guard(recipe))

    progress = begin()
    numbers = []
    for step, shares in enumerate(UNEVEN):
        if resumed and step == 1:
            progress.guard.rates, progress.puzzles.drawn, progress.puzzles.order = [0.5], 7, [3, 1]
            progress.puzzles.generator.manual_seed(99)
            packed = from_first(progress.pack(step))
            progress = begin()
            assert progress.go_on(packed) == 1
            assert progress.guard.rates == [0.5]
            assert (progress.puzzles.drawn, progress.puzzles.order) == (7, [3, 1])
            assert progress.puzzles.generator.initial_seed() == 99
        learner = progress.learner
        whole = [make_groups(10 * step + place, rewards) for place, rewards in enumerate(shares)]
        own = whole[rank] if recipe.trainers > 1 else [group for part in whole for group in part]
        numbers.append(learner.learn(own, learner.rate(1)))
    return progress.learner.policy, numbers, entered[0]


def learn_in_two(rank: int, folder: Path) -> None:
    """What each of two processes does for all cases; the first writes down what came of them."""
    for name, fields, resumed in CASES:
        recipe = Recipe(trainers=2, **{**FIELDS, **fields})
        with group(rank, recipe, f"file://{folder}/meeting-{name}"):
            policy, numbers, entered = learn(rank, recipe, recipe.sharded, resumed)
            weights = full_weights(policy)
            (folder / f"{name}-{rank}.json").write_text(json.dumps([numbers, entered]))
            if rank == 0:
                save_file(weights, folder / f"{name}.safetensors")
                (folder / name).mkdir()
                save_checkpoint(folder / name, policy.model, weights, make_tokenizer())
            else:
                assert not recipe.sharded or not weights


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("processes")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=learn_in_two, args=(rank, folder)) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=600)
        assert worker.exitcode == 0
    return folder


@pytest.fixture(scope="module")
def alone() -> tuple[dict[str, Tensor], list[dict[str, float]], int]:
    """One process with the groups of both."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    policy, numbers, entered = learn(0, Recipe(trainers=1, **FIELDS), sharded=False)
    torch.set_num_threads(threads)
    return dict(policy.model.state_dict()), numbers, entered


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_two_processes_learn_what_one_would(
    results: Path, alone: tuple[dict[str, Tensor], list[dict[str, float]], int], case: Case
) -> None:
    expected, numbers, _ = alone
    found = load_file(results / f"{case.name}.safetensors")
    assert found.keys() == expected.keys() - {"lm_head.weight"}
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, expected[name], atol=3e-4, rtol=0, msg=name)
    moved = [(tensor - make_model().state_dict()[name]).abs().mean() for name, tensor in found.items()]
    assert min(moved) > 3e-4  # so that the comparison says something
    for rank in range(2):
        both, _ = read_json(results / f"{case.name}-{rank}.json")
        for one, other in zip(both, numbers, strict=True):
            assert one == pytest.approx(other, rel=2e-3, abs=1e-4)
    assert numbers[2]["gradient_norm"] == 0 and numbers[2]["constant_groups"] == 1


@pytest.mark.parametrize(("whole", "resumed"), [("plain", "resumed"), ("sharded", "sharded-resumed")])
def test_a_run_that_broke_off_learns_the_same_to_the_last_bit(
    results: Path, whole: str, resumed: str
) -> None:
    expected = load_file(results / f"{whole}.safetensors")
    for name, tensor in load_file(results / f"{resumed}.safetensors").items():
        assert torch.equal(tensor, expected[name]), name


def test_sharded_processes_pass_equally_often_and_recompute(results: Path) -> None:
    """Uneven groups in passes of one: 3 passes in the first step and 1 in the second, each entered twice."""
    for rank in range(2):
        assert read_json(results / f"sharded-in-passes-{rank}.json")[1] == 2 * (3 + 1)
    assert [read_json(results / f"in-passes-{rank}.json")[1] for rank in range(2)] == [1, 3 + 1]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_checkpoint_holds_the_trained_weights(results: Path, case: Case) -> None:
    weights = load_file(results / f"{case.name}.safetensors")
    model = load_model(results / case.name / FOLDER, CPU)
    for name, tensor in weights.items():
        assert torch.equal(model.state_dict()[name], tensor), name
    assert model.lm_head.weight is model.model.embed_tokens.weight
    by_hand = make_model()
    by_hand.load_state_dict({**weights, "lm_head.weight": weights["model.embed_tokens.weight"]})
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        torch.testing.assert_close(model(input_ids=ids).logits, by_hand(input_ids=ids).logits)


def torchrun(count: int, *arguments: str) -> list[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={count}"]
    return [*launcher, "-m", "llm.speedrun", *arguments]


def test_torchrun_makes_one_run_of_its_processes(tmp_path: Path, environment: dict[str, str]) -> None:
    environment = {name: value for name, value in environment.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run(
        torchrun(2, "--smoke"), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    (run,) = (tmp_path / "outputs").iterdir()
    log, manifest = read_log(run / "log.jsonl"), read_manifest(run / "manifest.json")
    assert log.status == "complete"
    lines = (run / "log.jsonl").read_text().splitlines()
    assert len(lines) == len(set(lines)) and [step.fields["step"] for step in log.steps] == [1, 2]
    for said in ("Run folder:", "Trained in", "Calibration:", "pass@1"):
        assert output.count(said) == 1, output
    # torchrun tells its processes to use one thread; whoever started torchrun did not.
    assert "OMP_NUM_THREADS" not in manifest.environment
    assert manifest.overriding_environment == overriding(environment)
    score = log.get("eval_stop").fields["value"]
    assert isinstance(score, float) and 0.1 < score < 0.9
    # Both processes were imported and warmed up before the clock: two seconds of CPU each, at the least.
    assert log.get("train_start").fields["cpu_s"] > 4
    assert manifest.data.items() <= dict(TRACK.data_files()).items()


def test_another_number_of_processes_than_the_recipe_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LOCAL_RANK", "0"), ("RANK", "0"), ("WORLD_SIZE", "3")):
        monkeypatch.setenv(name, value)
    with pytest.raises(Problem, match=r"the recipe has 2 trainers\. Remedy: --nproc_per_node=2"):
        train(SilentRun(1), Recipe(trainers=2))
