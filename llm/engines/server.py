"""FIXED: completions from vLLM servers over HTTP, with weights that can be replaced while they draw.

    with Servers(folder, gpus=[3, 4], end=end_token(tokenizer), max_model_len=6144) as engine:
        generations = engine.generate(prompts, seeds, max_tokens, sampling)
        engine.update(weights)

See docs/llm_engines.md.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import torch
from torch import Tensor

from harness.errors import Problem
from llm.completion import Generation, Sampling
from llm.engines.fleet import Fleet
from llm.engines.processes import MODEL, Processes, servers
from llm.engines.transfer import Transfer, Way, open_transfer
from llm.engines.vllm import finished


class ServerEngine:
    """Draws from servers that run already; safe to call from many threads.

    At most `in_flight` completions are being drawn at a time, all calls together; each goes to the server
    that has the fewest. `end` is the token that ends a completion.
    """

    def __init__(self, fleet: Fleet, end: int, in_flight: int, transfer: Transfer) -> None:
        self.fleet, self.end, self.transfer = fleet, end, transfer
        self.pool = ThreadPoolExecutor(in_flight, thread_name_prefix="draw")
        self.lock = threading.Lock()
        self.busy = dict.fromkeys(fleet.ports, 0)
        self.closed = False

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        max_tokens: Sequence[int],
        sampling: Sampling,
    ) -> list[Generation]:
        """See `llm.completion.Engine`. With top_p below 1, log-probabilities are those after it.

        Raises:
            Problem: a server ended, refused, or did not answer in time.
        """
        futures = [
            self.pool.submit(self.draw, *row, sampling)
            for row in zip(prompts, seeds, max_tokens, strict=True)
        ]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:  # the first that failed says why; those that wait for it are not waited for
                future.result()
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def draw(self, prompt: Sequence[int], seed: int, max_tokens: int, sampling: Sampling) -> Generation:
        """One completion."""
        request = {
            "model": MODEL,
            "prompt": list(prompt),
            "seed": seed,
            "max_tokens": max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "logprobs": 0,  # of the drawn token and no others
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
            "stop_token_ids": [self.end],
            "ignore_eos": True,  # which would be any that the model's configuration names
        }
        if self.closed:
            raise Problem("the servers are being stopped")
        with self.least_busy() as port:
            answer = self.fleet.post(port, "/v1/completions", request)
        (choice,) = answer["choices"]
        return finished(
            choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["finish_reason"], max_tokens
        )

    @contextmanager
    def least_busy(self) -> Iterator[int]:
        """The port of the server with the fewest requests, with one more in the meantime."""
        with self.lock:
            port = min(self.busy, key=self.busy.__getitem__)
            self.busy[port] += 1
        try:
            yield port
        finally:
            with self.lock:
                self.busy[port] -= 1

    def update(self, weights: Mapping[str, Tensor]) -> None:
        """Give all servers new weights, under the names of transformers; returns when all have them.

        A forward pass has the old weights or the new ones, never some of both. Completions that are being
        drawn go on with the new ones, and each token's log-probability is the one that it was drawn with.
        """
        self.transfer.send(weights, self.fleet)

    def close(self) -> None:
        """Draw no more: what has not begun fails, so that whoever waits for it goes on."""
        self.closed = True
        self.pool.shutdown(wait=False)


class Servers(ServerEngine):
    """Starts servers of a model, one on each of these GPUs (None: on CPUs), and ends them on leaving.

    `max_model_len` bounds prompt and completion together, in tokens. `transfer` is the way of new weights,
    see `llm.engines.transfer`. `options` are more arguments of `vllm serve`.
    """

    def __init__(
        self,
        folder: Path,
        gpus: Sequence[int | None],
        *,
        end: int,
        max_model_len: int,
        in_flight: int = 64,
        dtype: str = "bfloat16",
        transfer: Way = "folder",
        options: Sequence[str] = (),
    ) -> None:
        self.processes = Processes(
            servers(
                folder,
                gpus,
                max_model_len=max_model_len,
                in_flight=in_flight,
                dtype=dtype,
                nccl=transfer == "nccl",
                options=options,
            )
        )
        ports = [server.port for server in self.processes.servers]
        super().__init__(
            Fleet(ports, self.processes.check),
            end,
            in_flight,
            open_transfer(transfer, getattr(torch, dtype)),
        )

    def __enter__(self) -> Self:
        self.processes.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self.processes.stop()
