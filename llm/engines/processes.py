"""FIXED: vLLM servers as processes of this machine: their command lines, their start, their sure end."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import NamedTuple

from harness.errors import Problem
from harness.track import ROOT
from llm.engines.fleet import HOST

MODEL = "model"
"""The name that requests give the model."""

EXTENSION = "llm.engines.vllm_process.WeightLoading"
"""What vLLM's workers learn."""

TAIL = 40  # lines of a log that are shown

# torchrun's variables: a server that inherited them would take itself for one of the trainers, with one
# thread.
TORCHRUN = {
    "RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
    "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS",
}  # fmt: skip


class Server(NamedTuple):
    """A server to be started."""

    port: int
    command: list[str]
    environment: dict[str, str]


def server_arguments(
    folder: Path, port: int, *, max_model_len: int, in_flight: int, dtype: str, nccl: bool
) -> list[str]:
    """Arguments of `vllm serve` for a model folder.

    Tokens go in and out, so no tokenizer is loaded. Log-probabilities are those of the distribution that
    tokens are drawn from. What a generation_config.json says of sampling does not count: Qwen's would
    restrict it to 20 tokens.
    """
    arguments = [
        f"--model={folder}",
        f"--served-model-name={MODEL}",
        f"--host={HOST}",  # the calls for weights must not be open to a network
        f"--port={port}",
        f"--max-model-len={max_model_len}",
        f"--max-num-seqs={in_flight}",
        f"--dtype={dtype}",
        "--seed=0",
        "--skip-tokenizer-init",
        "--generation-config=vllm",
        "--logprobs-mode=processed_logprobs",
        f"--worker-extension-cls={EXTENSION}",
        "--disable-uvicorn-access-log",
    ]
    return [*arguments, '--weight-transfer-config={"backend":"nccl"}'] if nccl else arguments


def server_environment(base: Mapping[str, str], gpu: int | None) -> dict[str, str]:
    """The environment of a server on one of the GPUs that are visible in `base`; None: on CPUs.

    Raises:
        Problem: `base` does not make so many GPUs visible.
    """
    environment = {
        name: value
        for name, value in base.items()
        if name not in TORCHRUN and not name.startswith("TORCHELASTIC_")
    }
    visible = ""
    if gpu is not None:
        names = base["CUDA_VISIBLE_DEVICES"].split(",") if "CUDA_VISIBLE_DEVICES" in base else None
        if names is not None and gpu >= len(names):
            raise Problem(f"there is no GPU {gpu} among CUDA_VISIBLE_DEVICES={','.join(names)}")
        visible = names[gpu].strip() if names is not None else str(gpu)
    else:
        environment["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"  # or all servers take the same cores
    paths = [str(ROOT), *filter(None, [base.get("PYTHONPATH")])]
    return environment | {
        "CUDA_VISIBLE_DEVICES": visible,
        "PYTHONPATH": os.pathsep.join(paths),
        "VLLM_SERVER_DEV_MODE": "1",  # or there are no calls for weights
        "VLLM_NO_USAGE_STATS": "1",
    }


def free_ports(count: int) -> list[int]:
    """Different ports that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [int(each.getsockname()[1]) for each in sockets]


def servers(
    folder: Path,
    gpus: Sequence[int | None],
    *,
    max_model_len: int,
    in_flight: int,
    dtype: str,
    nccl: bool = False,
    options: Sequence[str] = (),
) -> list[Server]:
    """One server for each GPU; `options` are more arguments for vLLM."""
    return [
        Server(
            port,
            [
                sys.executable,
                "-m",
                "llm.engines.vllm_process",
                *server_arguments(
                    folder, port, max_model_len=max_model_len, in_flight=in_flight, dtype=dtype, nccl=nccl
                ),
                *options,
            ],
            server_environment(os.environ, gpu),
        )
        for port, gpu in zip(free_ports(len(gpus)), gpus, strict=True)
    ]


class Processes:
    """Starts servers, and ends them and all that they have started; their logs stay if one fails."""

    START_S = 900
    STOP_S = 20

    def __init__(self, servers: Sequence[Server]) -> None:
        self.servers = servers
        self.running: list[subprocess.Popen[bytes]] = []
        self.failed = False

    def start(self) -> None:
        """Start all servers and wait until they answer.

        Raises:
            Problem: one ended, or did not answer within `START_S` seconds.
        """
        self.logs = Path(tempfile.mkdtemp(prefix="vllm_"))
        try:
            for server in self.servers:
                with self.log(server).open("wb") as log:
                    self.running.append(
                        subprocess.Popen(
                            server.command,
                            env=server.environment,
                            stdin=subprocess.DEVNULL,
                            stdout=log,
                            stderr=subprocess.STDOUT,
                            start_new_session=True,  # Ctrl-C is for us, who then end them
                        )
                    )
            deadline = time.monotonic() + self.START_S
            while not all(healthy(server.port) for server in self.servers):
                self.check(patience_s=0)
                if time.monotonic() > deadline:
                    self.fail(self.servers[0], f"no answer from all servers in {self.START_S} s")
                time.sleep(0.5)
        except BaseException:
            self.stop()
            raise

    def check(self, patience_s: float = 5) -> None:
        """A Problem, with the end of its log, if a server ended or does so in the next moments."""
        deadline = time.monotonic() + patience_s
        while True:
            for server, process in zip(self.servers, self.running, strict=False):
                if (status := process.poll()) is not None:
                    self.fail(server, f"the server on port {server.port} ended with status {status}")
            if time.monotonic() >= deadline:
                return
            time.sleep(0.1)

    def fail(self, server: Server, reason: str) -> None:
        """Raise a Problem that shows the end of a server's log."""
        self.failed = True
        lines = self.log(server).read_text(errors="replace").splitlines()[-TAIL:]
        raise Problem("\n".join([f"{reason}; its log ends:", *lines]), file=self.log(server))

    def log(self, server: Server) -> Path:
        """Where a server's output goes."""
        return self.logs / f"server_{server.port}.log"

    def stop(self) -> None:
        """End all servers: ask, wait, then kill them with all their processes."""
        try:
            self.send(signal.SIGTERM)
            deadline = time.monotonic() + self.STOP_S
            for process in self.running:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(0, deadline - time.monotonic()))
        finally:
            self.send(signal.SIGKILL)
            for process in self.running:
                process.wait()
            self.running = []
            if not self.failed:
                shutil.rmtree(self.logs, ignore_errors=True)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process group of every server, its leader ended or not."""
        for process in self.running:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)


def healthy(port: int) -> bool:
    """Whether a server is ready to draw."""
    connection = HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
