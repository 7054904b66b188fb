"""New weights on their way to the servers: what is written, what is called and in which order."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from vllm_stand_in import StandIn

from harness.errors import Problem
from llm.engines.fleet import Fleet
from llm.engines.transfer import (
    Control,
    FolderTransfer,
    NcclTransfer,
    distinct,
    open_transfer,
    place_for,
    within,
)


@pytest.fixture
def fleet() -> Iterator[list[StandIn]]:
    with ExitStack() as stack:
        yield [stack.enter_context(StandIn().served()) for _ in range(2)]


def calls_to(servers: list[StandIn]) -> Fleet:
    return Fleet([server.port for server in servers], timeout_s=20)


def test_a_tied_head_travels_once() -> None:
    embeddings, norm = torch.rand(4, 3), torch.rand(3)
    weights = {"model.embed_tokens.weight": embeddings, "norm": norm, "lm_head.weight": embeddings}
    assert list(distinct(weights)) == ["model.embed_tokens.weight", "norm"]


def test_every_server_reads_the_weights_while_all_are_paused(fleet: list[StandIn]) -> None:
    read: list[tuple[list[list[str]], dict[str, Tensor]]] = []

    def load(body: dict[str, Any]) -> None:
        assert body["method"] == "load_folder"
        (folder,) = body["args"]
        read.append(([server.paths() for server in fleet], load_file(Path(folder) / "model.safetensors")))
        folders.add(Path(folder))

    folders: set[Path] = set()
    for server in fleet:
        server.on_rpc = load
    weights = {"a": torch.rand(3, 5), "b": torch.rand(7, requires_grad=True), "c": torch.rand(5, 3).T}
    FolderTransfer(torch.bfloat16).send(weights, calls_to(fleet))
    assert [server.paths() for server in fleet] == [["/pause?mode=keep", "/collective_rpc", "/resume"]] * 2
    assert len(read) == 2
    for paths, found in read:
        assert all(path[0] == "/pause?mode=keep" and "/resume" not in path for path in paths)
        assert set(found) == set(weights)
        for name, tensor in weights.items():
            assert torch.equal(found[name], tensor.detach().to(torch.bfloat16))
    assert len(folders) == 1 and not any(folder.exists() for folder in folders)


def test_servers_that_may_have_half_the_weights_stay_paused(fleet: list[StandIn]) -> None:
    fleet[1].replies["/collective_rpc"] = 500, b"worker failed"
    with pytest.raises(Problem, match="answers /collective_rpc with 500: worker failed"):
        FolderTransfer(torch.float32).send({"a": torch.rand(2)}, calls_to(fleet))
    assert not any("/resume" in server.paths() for server in fleet)


def test_the_first_place_with_room_is_taken(tmp_path: Path) -> None:
    assert place_for(1000, (str(tmp_path / "none"), str(tmp_path))) == str(tmp_path)
    with pytest.raises(Problem, match=r"no room for 1000000000\.0 GB .*Remedy: make room"):
        place_for(10**18, (str(tmp_path),))


def test_each_server_has_a_rank_of_its_own_behind_the_trainer(fleet: list[StandIn]) -> None:
    control = Control(calls_to(fleet))
    control.init_weight_transfer_engine({"master_port": 1234, "rank_offset": 1, "world_size": 3})
    control.start_weight_update()
    control.update_weights({"names": ["a"]})
    control.finish_weight_update()
    for rank, server in enumerate(fleet, start=1):
        info = {"master_port": 1234, "rank_offset": rank, "world_size": 3}
        assert server.calls == [
            ("/init_weight_transfer_engine", {"init_info": info}),
            ("/start_weight_update", None),
            ("/update_weights", {"update_info": {"names": ["a"]}}),
            ("/finish_weight_update", {"weight_version": None}),
        ]


def test_the_ways_have_names() -> None:
    assert isinstance(open_transfer("folder", torch.float32), FolderTransfer)
    assert isinstance(open_transfer("nccl", torch.float32), NcclTransfer)


def test_a_call_that_never_returns_is_a_problem() -> None:
    release = threading.Event()
    with pytest.raises(Problem, match=r"did not reach the servers in 0\.1 s"):
        within(0.1, release.wait)
    release.set()


def test_an_error_of_a_call_comes_through() -> None:
    def fails() -> None:
        raise Problem("the server ended")

    with pytest.raises(Problem, match="the server ended"):
        within(5, fails)
