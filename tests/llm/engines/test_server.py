"""Completions over HTTP, from a small server that speaks vLLM's protocol; test_vllm.py asks vLLM itself."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import torch
from vllm_stand_in import END, StandIn, tokens_for

from harness.errors import Problem
from llm.completion import Generation, Sampling
from llm.engines.fleet import Fleet
from llm.engines.server import ServerEngine
from llm.engines.transfer import FolderTransfer

SAMPLING = Sampling(0.8, top_p=1.0)
COMPLETIONS = "/v1/completions"


@pytest.fixture
def fleet() -> Iterator[list[StandIn]]:
    with ExitStack() as stack:
        yield [stack.enter_context(StandIn().served()) for _ in range(3)]


def engine(fleet: list[StandIn], in_flight: int = 8, timeout_s: float = 20) -> ServerEngine:
    ports = [server.port for server in fleet]
    return ServerEngine(Fleet(ports, timeout_s=timeout_s), END, in_flight, FolderTransfer(torch.float32))


def ask(engine: ServerEngine, count: int) -> list[Generation]:
    prompts = [[5, 6, number] for number in range(count)]
    return engine.generate(prompts, list(range(count)), [4 + number for number in range(count)], SAMPLING)


def test_generations_come_in_order_with_what_the_server_said(fleet: list[StandIn]) -> None:
    generations = ask(engine(fleet), 40)
    for number, generation in enumerate(generations):
        tokens = tokens_for([5, 6, number], number, 4 + number)
        assert generation == (tokens, [-token / 100 for token in tokens], number % 2 == 1)


def test_a_request_says_all_that_decides_the_tokens(fleet: list[StandIn]) -> None:
    engine(fleet[:1]).generate([(7, 8)], [2**63 - 1], [9], Sampling(0.8, 0.95))
    assert fleet[0].calls == [
        (
            "/v1/completions",
            {
                "model": "model",
                "prompt": [7, 8],
                "seed": 2**63 - 1,
                "max_tokens": 9,
                "temperature": 0.8,
                "top_p": 0.95,
                "logprobs": 0,
                "return_token_ids": True,
                "return_tokens_as_token_ids": True,
                "stop_token_ids": [END],
                "ignore_eos": True,
            },
        )
    ]


def test_the_servers_share_the_work_and_no_more_is_in_flight_than_allowed(fleet: list[StandIn]) -> None:
    for server in fleet:
        server.delay_s = 0.05
    ask(engine(fleet, in_flight=6), 30)
    assert [server.most_busy for server in fleet] == [2, 2, 2]


def test_a_slow_server_gets_less(fleet: list[StandIn]) -> None:
    fleet[0].delay_s, fleet[1].delay_s = 0.5, 0.01
    ask(engine(fleet[:2], in_flight=4), 30)
    slow, quick = len(fleet[0].calls), len(fleet[1].calls)
    assert slow + quick == 30 and slow < 8


def test_calls_from_many_threads_share_what_may_be_in_flight(fleet: list[StandIn]) -> None:
    shared = engine(fleet, in_flight=3)
    for server in fleet:
        server.delay_s = 0.02
    results: list[list[Generation]] = []
    threads = [threading.Thread(target=lambda: results.append(ask(shared, 6))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [ask(shared, 6)] * 5
    assert max(server.most_busy for server in fleet) <= 3
    assert sum(server.most_busy for server in fleet) >= 3


def test_nothing_asked_nothing_drawn(fleet: list[StandIn]) -> None:
    assert ask(engine(fleet), 0) == []


# ---- what goes wrong ----------------------------------------------------------------------------------


def test_a_refusal_is_told_in_the_servers_words(fleet: list[StandIn]) -> None:
    fleet[0].replies[COMPLETIONS] = (
        400,
        b'{"error":"max_tokens=1000 cannot be greater than max_model_len=512"}',
    )
    with pytest.raises(
        Problem, match=f"port {fleet[0].port} answers /v1/completions with 400: .*max_model_len=512"
    ):
        ask(engine(fleet[:1]), 1)


def test_the_rest_is_not_asked_after_a_failure(fleet: list[StandIn]) -> None:
    fleet[0].replies[COMPLETIONS] = 500, b"out of memory"
    with pytest.raises(Problem, match="with 500: out of memory"):
        ask(engine(fleet[:1], in_flight=1), 50)
    time.sleep(0.3)
    assert len(fleet[0].calls) < 10


def test_what_is_not_json_is_a_problem(fleet: list[StandIn]) -> None:
    fleet[0].replies[COMPLETIONS] = 200, b"<html>"
    with pytest.raises(Problem, match="without JSON: <html>"):
        ask(engine(fleet[:1]), 1)


def test_a_server_that_takes_too_long_is_a_problem(fleet: list[StandIn]) -> None:
    fleet[0].delay_s = 0.5
    with pytest.raises(Problem, match=r"does not answer /v1/completions in 0\.1 s"):
        ask(engine(fleet[:1], timeout_s=0.1), 1)


def test_a_server_that_is_not_there_is_a_problem() -> None:
    with StandIn().served() as server:
        pass
    with pytest.raises(Problem, match=rf"port {server.port} does not answer .*ConnectionRefused"):
        ask(engine([server]), 1)


def test_the_reason_of_a_death_goes_before_its_symptom() -> None:
    def check() -> None:
        raise Problem("the server ended: out of memory")

    with StandIn().served() as server:
        pass
    dead = ServerEngine(Fleet([server.port], check), END, 1, FolderTransfer(torch.float32))
    with pytest.raises(Problem, match="the server ended: out of memory"):
        ask(dead, 1)


def test_a_completion_that_broke_off_is_a_problem(fleet: list[StandIn]) -> None:
    fleet[0].replies[COMPLETIONS] = (
        200,
        b'{"choices":[{"token_ids":[5],"logprobs":{"token_logprobs":[-1.0]},"finish_reason":"length"}]}',
    )
    with pytest.raises(Problem, match="after 1 of 4 tokens: length"):
        ask(engine(fleet[:1]), 1)


def test_after_closing_nothing_is_drawn(fleet: list[StandIn]) -> None:
    closed = engine(fleet)
    closed.close()
    with pytest.raises(RuntimeError, match="after shutdown"):
        ask(closed, 1)


def test_who_waits_while_it_closes_goes_on_with_a_problem(fleet: list[StandIn]) -> None:
    closing = engine(fleet[:1], in_flight=1)
    fleet[0].delay_s = 0.2
    threading.Timer(0.1, closing.close).start()
    with pytest.raises(Problem, match="being stopped"):
        ask(closing, 100)
    assert len(fleet[0].calls) == 1
