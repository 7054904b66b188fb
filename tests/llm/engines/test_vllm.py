"""vLLM itself, in this process and as a server, with a tiny Qwen3: what it draws, and new weights.

Log-probabilities are held against those of transformers for the same tokens, so that the weights that drew
a token are known from it.
"""

import tempfile
import threading
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel, Qwen3Config, Qwen3ForCausalLM
from vllm_stand_in import StandIn, gone

from harness.errors import Problem
from llm.completion import Engine, Generation, Sampling
from llm.engines.fleet import Fleet
from llm.engines.processes import server_arguments
from llm.engines.server import Servers
from llm.engines.transfer import Control, NcclTransfer, Source, distinct
from llm.engines.vllm import VllmEngine

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed"),
    pytest.mark.filterwarnings("default"),  # vLLM and what it imports warn of each other
]

END = 2
SAMPLING = Sampling(0.8, top_p=1.0)
BOUND = 1e-3
"""Mean difference of log-probabilities, in nats; both compute in float32."""
CONTEXT = 1024


def tiny_model(seed: int) -> PreTrainedModel:
    """Qwen3 with random weights, larger than usual, so that different weights foretell different tokens."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=100,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        eos_token_id=3,  # not END: the engine's is what counts
        bos_token_id=1,
        pad_token_id=0,
    )
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.normal_(0, 0.06)
    model.eval()
    return model


@pytest.fixture(scope="module")
def models() -> list[PreTrainedModel]:
    return [tiny_model(1), tiny_model(2)]


@pytest.fixture(scope="module")
def folder(models: list[PreTrainedModel], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    models[0].save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def colocated(folder: Path) -> VllmEngine:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_CPU_OMP_THREADS_BIND", "nobind")  # the cores are the servers' as well
        return VllmEngine(
            folder,
            END,
            max_model_len=CONTEXT,
            dtype="float32",
            enforce_eager=True,
            max_num_seqs=64,
            kv_cache_memory_bytes=2**27,
        )


@pytest.fixture(scope="module")
def servers(folder: Path) -> Iterator[Servers]:
    with Servers(
        folder,
        [None, None],
        end=END,
        max_model_len=CONTEXT,
        in_flight=32,
        dtype="float32",
        options=["--enforce-eager", f"--kv-cache-memory-bytes={2**27}"],
    ) as servers:
        yield servers


@pytest.fixture(params=["colocated", "servers"])
def engine(request: pytest.FixtureRequest, models: list[PreTrainedModel]) -> Any:
    """Each engine, with the first model's weights."""
    engine = request.getfixturevalue(request.param)
    engine.update(models[0].state_dict())
    return engine


def ask(engine: Engine, rows: Sequence[int], most: int = 60) -> list[Generation]:
    """Completions of prompts of different lengths; row by row the same ones."""
    prompts = [prompt(row) for row in rows]
    return engine.generate(prompts, [2**62 + row for row in rows], [most] * len(rows), SAMPLING)


def prompt(row: int) -> list[int]:
    return [5 + (row * 7 + place) % 90 for place in range(3 + row % 5)]


@torch.no_grad()
def differences(model: PreTrainedModel, row: int, generation: Generation) -> Tensor:
    """How far each token's log-probability is from transformers'."""
    start = len(prompt(row))
    ids = torch.tensor([prompt(row) + generation.tokens])
    logits = model(input_ids=ids).logits[0, start - 1 : -1].float() / SAMPLING.temperature
    expected = logits.log_softmax(dim=1).gather(1, ids[0, start:, None])[:, 0]
    return (expected - torch.tensor(generation.log_probabilities)).abs()


def gap(model: PreTrainedModel, rows: Sequence[int], generations: Sequence[Generation]) -> float:
    """The mean over all tokens."""
    parts = [differences(model, row, generation) for row, generation in zip(rows, generations, strict=True)]
    return float(torch.cat(parts).mean())


def test_log_probabilities_are_those_of_the_weights_before_and_after_an_update(
    engine: Any, models: list[PreTrainedModel]
) -> None:
    rows = range(24)
    before = ask(engine, rows)
    engine.update(models[1].state_dict())
    after = ask(engine, rows)
    assert gap(models[0], rows, before) < BOUND and gap(models[1], rows, before) > 0.3
    assert gap(models[1], rows, after) < BOUND and gap(models[0], rows, after) > 0.3


def test_only_the_seed_and_the_prompt_decide(engine: Any) -> None:
    together = ask(engine, range(24))
    again = ask(engine, range(24))
    alone = ask(engine, [7])
    few = ask(engine, [11, 7])
    assert [row.tokens for row in together] == [row.tokens for row in again]
    assert together[7].tokens == alone[0].tokens == few[1].tokens
    assert together[11].tokens == few[0].tokens
    (other,) = engine.generate([prompt(7)], [5], [60], SAMPLING)
    assert other.tokens != together[7].tokens


def test_both_engines_draw_the_same(
    colocated: VllmEngine, servers: Servers, models: list[PreTrainedModel]
) -> None:
    for each in (colocated, servers):
        each.update(models[0].state_dict())
    assert [row.tokens for row in ask(colocated, range(8))] == [row.tokens for row in ask(servers, range(8))]


def test_a_completion_ends_with_the_end_token_and_with_no_other(engine: Any) -> None:
    generations = ask(engine, range(24), most=80)
    ended = [row for row in generations if row.stopped]
    assert 0 < len(ended) < len(generations)
    assert all(row.tokens[-1] == END and END not in row.tokens[:-1] for row in ended)
    assert all(len(row.tokens) == 80 and END not in row.tokens for row in generations if not row.stopped)
    assert any(3 in row.tokens[:-1] for row in generations)  # what the configuration calls the end


def test_top_p_keeps_to_the_likeliest_tokens(engine: Any, models: list[PreTrainedModel]) -> None:
    (row,) = engine.generate([prompt(0)], [1], [200], Sampling(0.8, top_p=0.3))
    with torch.no_grad():
        logits = models[0](input_ids=torch.tensor([prompt(0) + row.tokens])).logits[0, 2:-1] / 0.8
    chosen = torch.tensor(row.tokens)[:, None]
    probabilities = logits.softmax(dim=1)
    likelier = (probabilities * (probabilities > probabilities.gather(1, chosen))).sum(dim=1)
    assert float(likelier.max()) < 0.3 + 1e-5


def test_a_completion_that_does_not_fit_is_a_problem(engine: Any) -> None:
    with pytest.raises(Problem, match=r"max_model_len|maximum context length"):
        engine.generate([[5] * (CONTEXT - 4)], [1], [10], SAMPLING)


def test_completions_in_flight_go_on_with_the_new_weights_from_one_token_on(
    servers: Servers, models: list[PreTrainedModel]
) -> None:
    servers.update(models[0].state_dict())
    rows = range(48)
    results: list[Generation] = []
    thread = threading.Thread(target=lambda: results.extend(ask(servers, rows, most=600)))
    start = drawn_tokens(servers)
    thread.start()
    while drawn_tokens(servers) < start + 500:
        time.sleep(0.02)
    servers.update(models[1].state_dict())
    thread.join()
    switched = 0
    for row, generation in zip(rows, results, strict=True):
        old, new = (differences(model, row, generation) < 0.01 for model in models)
        count = len(generation.tokens)
        places = [place for place in range(count + 1) if old[:place].all() and new[place:].all()]
        assert places, f"row {row} has tokens that neither the old weights nor the new drew"
        switched += 0 < places[0] < count
    assert switched > 8


def drawn_tokens(servers: Servers) -> float:
    """How many tokens the servers have drawn since they started."""
    count = 0.0
    for port in servers.fleet.ports:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        count += sum(
            float(line.split()[-1]) for line in lines if line.startswith("vllm:generation_tokens_total")
        )
    return count


# ---- servers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nccl", [False, True])
def test_vllm_understands_the_arguments(folder: Path, nccl: bool) -> None:
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    arguments = server_arguments(folder, 8001, max_model_len=512, in_flight=64, dtype="bfloat16", nccl=nccl)
    parsed: Namespace = make_arg_parser(FlexibleArgumentParser()).parse_args(arguments)
    validate_parsed_serve_args(parsed)
    found = AsyncEngineArgs.from_cli_args(parsed)
    assert (parsed.host, parsed.port, parsed.served_model_name) == ("127.0.0.1", 8001, ["model"])
    assert (found.model, found.max_model_len, found.max_num_seqs) == (str(folder), 512, 64)
    assert (found.dtype, found.logprobs_mode, found.generation_config) == (
        "bfloat16",
        "processed_logprobs",
        "vllm",
    )
    assert found.skip_tokenizer_init
    assert (found.weight_transfer_config.backend if found.weight_transfer_config else None) == (
        "nccl" if nccl else None
    )


def test_a_server_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # the log stays
    (tmp_path / "config.json").write_text('{"model_type": "no_such_model"}')
    with (
        pytest.raises(Problem, match="no_such_model"),
        Servers(tmp_path, [None], end=END, max_model_len=CONTEXT, dtype="float32"),
    ):
        pass


def test_the_death_of_a_server_ends_a_call_with_the_reason(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # the log stays
    before = set(psutil.Process().children(recursive=True))
    with Servers(
        folder,
        [None],
        end=END,
        max_model_len=CONTEXT,
        dtype="float32",
        options=["--enforce-eager", f"--kv-cache-memory-bytes={2**27}"],
    ) as servers:
        started = set(psutil.Process().children(recursive=True)) - before
        assert len(started) >= 2
        engine_core = psutil.Process(servers.processes.running[0].pid).children()[-1]
        threading.Timer(1.0, engine_core.kill).start()
        with pytest.raises(Problem, match="ended with status"):
            ask(servers, range(8), most=1000)
    assert gone([process.pid for process in started])


@pytest.mark.skipif(torch.cuda.is_available(), reason="NCCL would wait for servers that are none")
def test_vllms_trainer_side_speaks_to_every_server_up_to_nccl(models: list[PreTrainedModel]) -> None:
    from vllm.distributed.weight_transfer.nccl_common import NCCLWeightTransferInitInfo
    from vllm.distributed.weight_transfer.nccl_engine import (
        NCCLTrainerWeightTransferEngine,
        NCCLWeightTransferUpdateInfo,
    )

    weights = models[0].state_dict()
    source = Source(distinct(weights), torch.bfloat16)
    with StandIn().served() as first, StandIn().served() as second:
        fleet = Fleet([first.port, second.port], timeout_s=20)
        with pytest.raises(RuntimeError, match="accelerator"):
            NcclTransfer(torch.bfloat16).connect(source, fleet)
        trainer = NCCLTrainerWeightTransferEngine(client=Control(fleet), source=source)
        with pytest.raises(AssertionError, match="before _broadcast"):
            trainer.send_weights()
        deadline = time.monotonic() + 20
        while len(first.calls) + len(second.calls) < 6 and time.monotonic() < deadline:
            time.sleep(0.02)
    for rank, server in enumerate((first, second), start=1):
        bodies = dict(server.calls)
        assert list(bodies) == ["/init_weight_transfer_engine", "/start_weight_update", "/update_weights"]
        info = NCCLWeightTransferInitInfo(**bodies["/init_weight_transfer_engine"]["init_info"])
        assert (info.rank_offset, info.world_size, info.master_address) == (rank, 3, "127.0.0.1")
        update = NCCLWeightTransferUpdateInfo(**bodies["/update_weights"]["update_info"])
        assert update.names == [name for name in weights if name != "lm_head.weight"]
        assert set(update.dtype_names) == {"bfloat16"}
        assert update.shapes == [list(weights[name].shape) for name in update.names]


# ---- GPUs ---------------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("way", ["folder", "nccl"])
def test_a_trainer_on_one_gpu_updates_servers_on_others(
    folder: Path, models: list[PreTrainedModel], way: Any
) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU trains and at least one serves")
    gpus = range(1, torch.cuda.device_count())
    rows = range(24)
    torch.cuda.set_device(0)
    with Servers(
        folder, list(gpus), end=END, max_model_len=CONTEXT, dtype="float32", transfer=way
    ) as servers:
        before = ask(servers, rows)
        servers.update({name: tensor.cuda() for name, tensor in models[1].state_dict().items()})
        after = ask(servers, rows)
    assert gap(models[0], rows, before) < 0.01 and gap(models[1], rows, before) > 0.3
    assert gap(models[1], rows, after) < 0.01 and gap(models[0], rows, after) > 0.3


@pytest.mark.gpu
def test_half_precision_is_near_enough_to_train_with(folder: Path, models: list[PreTrainedModel]) -> None:
    rows = range(24)
    with Servers(folder, [0], end=END, max_model_len=CONTEXT) as servers:
        generations = ask(servers, rows)
    assert gap(models[0].to(torch.bfloat16), rows, generations) < 0.05
