"""Whether a model can be asked is known before anything is played; the script is served while needed."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from chat_servers import CANARY
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agents.llm.chat_app import background
from agents.llm.settings import ModelSettings
from agents.reach import SCRIPTED, check_reachable, model_server
from harness.errors import Problem

MODELS = json.dumps({"data": [{"id": "models/a-model"}, {"id": "another"}]})


def settings(base_url: str, name: str = "a-model", provider: str = "local") -> ModelSettings:
    own = {"api_key_env": "TEST_KEY"} if provider == "compatible" else {}
    return ModelSettings.model_validate({"name": name, "provider": provider, "base_url": base_url, **own})


@contextmanager
def answering(body: str, status: int = 200) -> Iterator[tuple[str, list[Request]]]:
    """A server that answers GET /v1/models so; its address, and what it was asked."""
    asked: list[Request] = []

    def models(request: Request) -> Response:
        asked.append(request)
        return PlainTextResponse(body, status_code=status)

    with background(Starlette(routes=[Route("/v1/models", models)])) as address:
        yield address, asked


@pytest.mark.parametrize("name", ["a-model", "another"])
def test_a_model_that_is_listed_can_be_asked(name: str) -> None:
    with answering(MODELS) as (address, asked):
        check_reachable(settings(address, name))
    assert len(asked) == 1 and "authorization" not in asked[0].headers


def test_a_model_that_is_not_listed_is_named_with_those_that_are() -> None:
    with answering(MODELS) as (address, _), pytest.raises(Problem) as caught:
        check_reachable(settings(address, "a-modal"))
    assert "has no model 'a-modal'" in caught.value.reason
    assert caught.value.remedy == "choose one that it has: a-model, another"


@pytest.mark.parametrize(
    "body", ["", "[]", "{}", '{"data": 3}', '{"data": [{}]}', "[" * 5000, '{"data": []}']
)
def test_a_server_that_lists_nothing_may_have_the_model(body: str) -> None:
    with answering(body) as (address, _):
        check_reachable(settings(address))


@pytest.mark.parametrize("status", [404, 405, 429, 500])
def test_a_server_that_does_not_list_may_have_the_model(status: int) -> None:
    with answering("no", status) as (address, _):
        check_reachable(settings(address))


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_a_problem_that_does_not_show_it(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", CANARY)
    with answering(f"wrong key {CANARY}", status) as (address, asked), pytest.raises(Problem) as caught:
        check_reachable(settings(address, provider="compatible"))
    assert asked[0].headers["authorization"] == f"Bearer {CANARY}"
    assert f"refuses the key in TEST_KEY (status {status})" in str(caught.value)
    assert CANARY not in str(caught.value)
    with answering("no", status) as (address, _), pytest.raises(Problem, match="a request without a key"):
        check_reachable(settings(address))


def test_nothing_that_answers_is_a_problem_with_three_ways_out() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(
            Problem, match=r"no model answers at http://127.0.0.1:\d+/v1: .*run_server\.sh.*--smoke"
        ):
            check_reachable(settings(f"http://127.0.0.1:{closed.getsockname()[1]}/v1"))


def test_what_speaks_no_http_is_a_problem() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            with listening.accept()[0] as connection:
                connection.sendall(b"SSH-2.0-server\r\n")
                connection.recv(1000)

        thread = threading.Thread(target=greet)
        thread.start()
        with pytest.raises(Problem, match="speaks no HTTP"):
            check_reachable(settings(f"http://127.0.0.1:{listening.getsockname()[1]}/v1"))
        thread.join()


def test_a_missing_key_is_named_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_KEY", raising=False)
    with answering(MODELS) as (address, asked), pytest.raises(Problem, match="TEST_KEY is not set"):
        check_reachable(settings(address, provider="compatible"))
    assert asked == []


def test_the_script_is_served_as_long_as_it_is_needed() -> None:
    with model_server(SCRIPTED) as address:
        assert address is not None
        check_reachable(settings(address, SCRIPTED))
    with pytest.raises(Problem, match="no model answers"):
        check_reachable(settings(address, SCRIPTED))


@pytest.mark.parametrize("address", [None, "http://127.0.0.1:5012/v1"])
def test_any_other_address_is_left_as_it_is(address: str | None) -> None:
    with model_server(address) as found:
        assert found == address
