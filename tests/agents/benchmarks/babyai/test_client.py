"""What a client says when its server does not answer as hoped; traces are compared in test_server."""

import contextlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agents.benchmarks.babyai import BENCHMARK, BabyAI
from agents.benchmarks.babyai.client import RemoteEnvironment
from agents.benchmarks.base import Episode
from harness.errors import Problem


@contextmanager
def answering(answers: dict[str, tuple[int, str]]) -> Iterator[str]:
    """A server with fixed answers: "GET /health" -> (status, body). Others are 204."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, body = answers.get(f"{self.command} {self.path}", (204, ""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


HEALTHY = {"GET /health": (200, '{"benchmark": "babyai"}')}


def test_no_server() -> None:
    with answering({}) as address:
        pass
    with pytest.raises(Problem, match=f"no answer from {address}") as caught:
        RemoteEnvironment(address)
    assert caught.value.remedy == "start it with: python -m agents.benchmarks.babyai.server"


@pytest.mark.parametrize(
    "address", ["", "127.0.0.1:8080", "ftp://127.0.0.1", "http://127.0.0.1:port", "http://["]
)
def test_no_address(address: str) -> None:
    with pytest.raises(Problem):
        RemoteEnvironment(address)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((200, '{"benchmark": "chess"}'), "not a server of BabyAI"),
        ((200, "<html>"), "no answer"),
        ((200, "[]"), "not a JSON object"),
        ((404, "{}"), "status 404"),
        ((500, '{"error": "broken"}'), "broken"),
    ],
)
def test_another_server(answer: tuple[int, str], told: str) -> None:
    with answering({"GET /health": answer}) as address, pytest.raises(Problem, match=told):
        RemoteEnvironment(address)


LOOK = {
    **dict.fromkeys(("goal", "observation"), "text"),
    **dict.fromkeys(("done", "success"), False),
    **dict.fromkeys(("steps", "score", "total", "reward"), 0),
    **{"actions": [], "state": {}, "details": {}, "session": "abc"},
}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{}", "its answer is none of BabyAI's server: goal is None"),
        (json.dumps({**LOOK, "session": 3}), "its answer is none of BabyAI's server: session is 3"),
        (json.dumps({**LOOK, "done": "no"}), "its answer is none of BabyAI's server: done is 'no'"),
        (json.dumps({**LOOK, "score": True}), "its answer is none of BabyAI's server: score is True"),
        ("[" * 100_000, "no answer from"),
        ('"' + "x" * 2**22 + '"', "no answer from .*: more than 4,194,304 bytes"),
    ],
)
def test_an_answer_that_is_nonsense_is_a_problem(body: str, said: str) -> None:
    with (
        answering({**HEALTHY, "POST /sessions": (200, body)}) as address,
        contextlib.closing(RemoteEnvironment(address)) as environment,
        pytest.raises(Problem, match=said),
    ):
        environment.reset(Episode("goto", 1))


def test_a_step_that_is_nonsense_is_a_problem() -> None:
    answers = {"POST /sessions": (200, json.dumps(LOOK)), "POST /sessions/abc/step": (200, "{}")}
    with (
        answering({**HEALTHY, **answers}) as address,
        contextlib.closing(RemoteEnvironment(address)) as environment,
    ):
        assert environment.reset(Episode("goto", 1)) == "text"
        with pytest.raises(Problem, match="its answer is none of BabyAI's server"):
            environment.step("go forward")


def test_errors_of_the_server_are_passed_on() -> None:
    refusal = '{"error": "all 2 sessions are in use", "remedy": "wait"}'
    with answering({**HEALTHY, "POST /sessions": (503, refusal)}) as address:
        environment = RemoteEnvironment(address + "/")
        with pytest.raises(Problem) as caught:
            environment.reset(Episode("goto", 1))
        environment.close()
    assert str(caught.value) == f"{address}: all 2 sessions are in use. Remedy: wait"


def test_a_benchmark_is_played_here_or_on_a_server() -> None:
    with answering(HEALTHY) as address:
        environment = BabyAI(server=address).make()
        assert isinstance(environment, RemoteEnvironment)
        environment.close()
    assert not isinstance(BENCHMARK.make(), RemoteEnvironment)
