"""FIXED: two ways to bring a trainer's weights to the servers.

`folder` writes them to shared memory, from where each server reads them: on any machine. `nccl`
broadcasts them from the trainer's GPU to the servers', with vLLM's own protocol, at the speed of NVLink.
"""

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import torch
from safetensors.torch import save_file
from torch import Tensor

from harness.errors import Problem
from llm.engines.fleet import HOST, Fleet
from llm.engines.processes import free_ports

Way = Literal["folder", "nccl"]


class Transfer(Protocol):
    """A way to bring weights to servers."""

    def send(self, weights: Mapping[str, Tensor], fleet: Fleet) -> None:
        """Give all servers these weights, under the names of transformers, while they are paused."""


def open_transfer(way: Way, dtype: torch.dtype) -> Transfer:
    """The transfer of this name; weights travel as `dtype`."""
    return NcclTransfer(dtype) if way == "nccl" else FolderTransfer(dtype)


def distinct(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Without those that share the memory of an earlier one: a head tied to the embeddings travels once."""
    found: dict[int, str] = {}
    for name, tensor in weights.items():
        found.setdefault(tensor.data_ptr(), name)
    return {name: weights[name] for name in found.values()}


# ---- through a folder ---------------------------------------------------------------------------------


class FolderTransfer:
    """Through a file in shared memory, or on a disk where that is too small."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def send(self, weights: Mapping[str, Tensor], fleet: Fleet) -> None:
        """See `Transfer`; the servers draw on while the file is written."""
        tensors = {
            name: tensor.detach().to("cpu", self.dtype).contiguous()
            for name, tensor in distinct(weights).items()
        }
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        with tempfile.TemporaryDirectory(prefix="weights_", dir=place_for(size)) as folder:
            save_file(tensors, Path(folder) / "model.safetensors")
            with fleet.paused():
                fleet.post_all("/collective_rpc", {"method": "load_folder", "args": [folder]})


def place_for(size: int, places: tuple[str, ...] = ("/dev/shm", tempfile.gettempdir())) -> str:
    """The first folder with room for so many bytes; a Problem where there is none."""
    for place in places:
        if Path(place).is_dir() and shutil.disk_usage(place).free > 1.05 * size:
            return place
    raise Problem(
        f"no room for {size / 1e9:.1f} GB of weights in {' or '.join(places)}",
        remedy="make room there, or name a larger disk in TMPDIR",
    )


# ---- from GPU to GPU ----------------------------------------------------------------------------------


class Source(NamedTuple):
    """What vLLM's trainer side reads."""

    weights: dict[str, Tensor]
    dtype: torch.dtype

    def metadata(self) -> list[Any]:
        from vllm.distributed.weight_transfer.base import ParamMeta

        return [ParamMeta(name, self.dtype, tuple(tensor.shape)) for name, tensor in self.weights.items()]

    def __iter__(self) -> Iterator[Any]:
        return ((name, tensor.to("cuda", self.dtype)) for name, tensor in self.weights.items())


class Control:
    """vLLM's four calls for new weights, made to all servers at once; the trainer has rank 0 in NCCL."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def init_weight_transfer_engine(self, init_info: Mapping[str, object]) -> None:
        ranks = range(1, 1 + len(self.fleet.ports))
        self.fleet.post_each(
            "/init_weight_transfer_engine",
            [{"init_info": {**init_info, "rank_offset": rank}} for rank in ranks],
        )

    def start_weight_update(self) -> None:
        self.fleet.post_all("/start_weight_update")

    def update_weights(self, update_info: object) -> None:
        self.fleet.post_all("/update_weights", {"update_info": update_info})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self.fleet.post_all("/finish_weight_update", {"weight_version": weight_version})


class NcclTransfer:
    """By NCCL, from this process's current GPU; the first call introduces trainer and servers."""

    TIMEOUT_S = 300

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.engine: Any = None

    def send(self, weights: Mapping[str, Tensor], fleet: Fleet) -> None:
        """See `Transfer`."""
        source = Source(distinct(weights), self.dtype)
        if self.engine is None:
            within(self.TIMEOUT_S, lambda: self.connect(source, fleet))
        self.engine.source = source
        with fleet.paused():
            within(self.TIMEOUT_S, self.engine.send_weights)

    def connect(self, source: Source, fleet: Fleet) -> None:
        """Meet the servers."""
        from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory
        from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

        info = NCCLTrainerInitInfo(HOST, free_ports(1)[0], world_size=1 + len(fleet.ports), rank=0)
        self.engine = WeightTransferTrainerFactory.trainer_init(info, client=Control(fleet), source=source)


def within(seconds: float, call: Callable[[], object]) -> None:
    """Make a call that may never return, for NCCL waits for its peers without end.

    Raises:
        Problem: it did not return in time; its thread is left behind.
    """
    errors: list[BaseException] = []
    device = torch.cuda.current_device() if torch.cuda.is_available() else None

    def run() -> None:
        try:
            if device is not None:
                torch.cuda.set_device(device)
            call()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if thread.is_alive():
        raise Problem(
            f"weights did not reach the servers in {seconds:g} s",
            remedy="set NCCL_DEBUG=INFO to see what NCCL waits for, or send them through a folder",
        )
