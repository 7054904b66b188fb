"""A small HTTP server that speaks as much of vLLM's protocol as the engines use.

python tests/vllm_stand_in.py <port> [quit | deaf | stubborn]
"""

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psutil

END = 2


def tokens_for(prompt: list[int], seed: int, most: int) -> list[int]:
    """What the stand-in draws: even seeds run on to the end, odd ones stop after at most 3 tokens."""
    drawn = random.Random(f"{seed} {prompt}").choices(range(3, 100), k=most)
    return [*drawn[: min(2, most - 1)], END] if seed % 2 else drawn


class StandIn(ThreadingHTTPServer):
    """Counts and keeps what it is asked.

    `delay_s` is how long a completion takes, `replies` are path -> (status, body) of what it refuses, and
    `on_rpc` is called with the body of a /collective_rpc.
    """

    request_queue_size = 128
    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.port = int(self.server_address[1])
        self.calls: list[tuple[str, Any]] = []
        self.lock = threading.Lock()
        self.busy = self.most_busy = 0
        self.delay_s = 0.0
        self.replies: dict[str, tuple[int, bytes]] = {}
        self.on_rpc = lambda body: None

    def paths(self) -> list[str]:
        return [path for path, _ in self.calls]

    @contextmanager
    def served(self) -> "Iterator[StandIn]":
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            self.server_close()
            thread.join()


class Handler(BaseHTTPRequestHandler):
    server: StandIn

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.answer(200 if self.path == "/health" else 404, b"")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        url = urlsplit(self.path)
        with self.server.lock:
            self.server.calls.append((self.path, body))
        if url.path in self.server.replies:
            self.answer(*self.server.replies[url.path])
        elif url.path == "/v1/completions":
            self.complete(body)
        elif url.path == "/pause" and parse_qs(url.query) != {"mode": ["keep"]}:
            self.answer(400, b"requests in flight would be lost")
        else:
            if url.path == "/collective_rpc":
                self.server.on_rpc(body)
            self.answer(200, b'{"results":[null]}')

    def complete(self, body: dict[str, Any]) -> None:
        with self.server.lock:
            self.server.busy += 1
            self.server.most_busy = max(self.server.busy, self.server.most_busy)
        time.sleep(self.server.delay_s)
        with self.server.lock:
            self.server.busy -= 1
        tokens = tokens_for(body["prompt"], body["seed"], body["max_tokens"])
        reason = "stop" if tokens[-1] in body["stop_token_ids"] else "length"
        log_probabilities = [-token / 100 for token in tokens]
        choice = {
            "token_ids": tokens,
            "logprobs": {"token_logprobs": log_probabilities},
            "finish_reason": reason,
        }
        self.answer(200, json.dumps({"choices": [choice]}).encode())

    def answer(self, status: int, body: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except BrokenPipeError:  # the client has lost patience
            pass


def gone(pids: list[int], within_s: float = 5) -> bool:
    """Whether these processes have ended, or do so in time."""
    deadline = time.monotonic() + within_s
    while any(map(alive, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be asked how does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def main(port: int, behaviour: str) -> None:
    if behaviour == "quit":
        print("\n".join(f"line {number}" for number in range(100)))
        sys.exit("no such model")
    if behaviour == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    print(f"child {child.pid}", flush=True)
    if behaviour == "deaf":
        time.sleep(1000)
    StandIn(port).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
