"""A model behind a real server: what goes wrong there is tried again, answered, or said plainly."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from chat_servers import CANARY, HELLO, calls, completion, dropping, model, plain, serving
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from agents.llm.cache import Cache
from agents.llm.ledger import Amount, Budget, BudgetSpent
from agents.llm.messages import Message
from agents.llm.model import prompt_bound
from agents.llm.reply import Usage
from harness.errors import Problem


def failing(times: int, *failures: Response) -> Any:
    """A script that fails so many times, then answers."""
    return lambda body, count: failures[count % len(failures)] if count < times else plain(body, count)


def refusal(status: int, message: str, **error: Any) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "type": "error", **error}}, status)


def test_a_plain_answer(tmp_path: Path) -> None:
    with serving() as server, model(server.url, tmp_path, temperature=0.5) as asked:
        reply = asked.ask(HELLO, label="wake/000000/0", max_tokens=77)
        assert (reply.text, reply.finish, reply.model, reply.cached) == (
            "answer 0",
            "stop",
            "served-model",
            False,
        )
        assert reply.usage == Usage(12, 3) and reply.dollars is None and 0 < reply.seconds < 5
        assert server.bodies == [
            {
                "model": "served-model",
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "Hello"},
                ],
                "max_tokens": 77,
                "temperature": 0.5,
            }
        ]
    (line,) = calls(tmp_path)
    assert line["label"] == "wake/000000/0" and line["attempts"] == 1 and line["error"] is None
    assert line["reply"]["text"] == "answer 0" and line["reply"]["cached"] is False
    assert line["request"]["messages"] == server.bodies[0]["messages"]
    assert line["charged"] == {"calls": 1, "tokens": 15, "dollars": 0.0}


def test_dollars_of_a_stated_price() -> None:
    with serving() as server, model(server.url, price={"input": 1.0, "output": 10.0}) as asked:
        assert asked.ask(HELLO, label="wake/0").dollars == pytest.approx((12 + 30) / 1e6)


def test_a_budget_in_dollars_needs_a_price() -> None:
    with (
        pytest.raises(Problem, match="price of served-model is unknown"),
        model(None, budget=Budget(dollars=1.0)),
    ):
        pass


def test_retry_after_is_kept_by_all_threads() -> None:
    wait = PlainTextResponse("slow down", 429, {"retry-after": "0.4"})
    with serving(failing(1, wait)) as server, model(server.url) as asked:
        with ThreadPoolExecutor(4) as pool:
            first = pool.submit(asked.ask, HELLO, label="wake/0")
            while not server.bodies:
                time.sleep(0.005)
            time.sleep(0.1)
            rest = [pool.submit(asked.ask, HELLO, label=f"wake/{place}") for place in range(1, 4)]
            assert {one.result().finish for one in [first, *rest]} == {"stop"}
        assert len(server.times) == 5
        assert min(server.times[1:]) - server.times[0] > 0.38
        assert asked.ledger.totals().retries == 1


def test_a_wait_too_long_ends_the_run() -> None:
    wait = PlainTextResponse("", 429, {"retry-after": "86400"})
    with serving(failing(9, wait)) as server, model(server.url) as asked:
        with pytest.raises(Problem, match="wants no request for 86400 s"):
            asked.ask(HELLO, label="wake/0")
        assert len(server.bodies) == 1


@pytest.mark.parametrize(
    "failure",
    [
        PlainTextResponse("boom", 500),
        refusal(503, "overloaded"),
        PlainTextResponse("", 408),
        PlainTextResponse("{", 200, media_type="application/json"),
        PlainTextResponse("<html>", 200),
        JSONResponse({"error": {"message": "busy", "code": 502}}),
    ],
)
def test_what_fails_in_passing_is_tried_again(failure: Response, tmp_path: Path) -> None:
    failure.headers["retry-after"] = "0"
    with serving(failing(1, failure)) as server, model(server.url, tmp_path) as asked:
        assert asked.ask(HELLO, label="wake/0").text == "answer 1"
        assert server.bodies[0] == server.bodies[1]
    assert calls(tmp_path)[0]["attempts"] == 2


def test_the_openai_client_itself_does_not_retry() -> None:
    with serving(failing(9, PlainTextResponse("", 500))) as server, model(server.url, retries=0) as asked:
        with pytest.raises(Problem, match="did not answer 'wake/0' in 1 attempts, at last: status 500"):
            asked.ask(HELLO, label="wake/0")
        assert len(server.bodies) == 1


def test_a_server_that_stays_down_is_given_up(tmp_path: Path) -> None:
    failure = PlainTextResponse("boom", 500, {"retry-after": "0"})
    with serving(failing(9, failure)) as server, model(server.url, tmp_path) as asked:
        with pytest.raises(Problem, match="in 3 attempts") as caught:
            asked.ask(HELLO, label="wake/0")
        assert len(server.bodies) == 3
        assert "resume the run" in str(caught.value)
        assert asked.ledger.totals().failed == 1 and asked.ledger.spent == Amount()
    (line,) = calls(tmp_path)
    assert line["reply"] is None and line["attempts"] == 3 and "status 500" in line["error"]


def test_silence_ends_in_time_and_counts_as_billed() -> None:
    def slow(body: dict[str, Any], count: int) -> Response:
        time.sleep(0.6 if count == 0 else 0)
        return plain(body, count)

    with serving(slow) as server, model(server.url, timeout_s=0.25, budget=Budget(tokens=10**6)) as asked:
        assert asked.ask(HELLO, label="wake/0", max_tokens=50).text == "answer 1"
        assert asked.ledger.spent == Amount(1, 15 + prompt_bound(HELLO) + 50, 0.0)
        assert asked.ledger.totals().tokens == 15


def test_an_answer_that_drips_ends_in_time_too() -> None:
    def drip(body: dict[str, Any], count: int) -> Response:
        async def parts() -> Any:
            for _ in range(40):
                yield b" "
                await asyncio.sleep(0.05)

        return StreamingResponse(parts(), media_type="application/json")

    with serving(drip) as server, model(server.url, timeout_s=0.3, retries=0) as asked:
        start = time.monotonic()
        with pytest.raises(Problem, match=r"no answer within 0.3 s"):
            asked.ask(HELLO, label="wake/0")
        assert time.monotonic() - start < 1.0


def test_a_budget_that_lost_attempts_have_spent_is_spent() -> None:
    def silent(body: dict[str, Any], count: int) -> Response:
        time.sleep(0.3)
        return plain(body, count)

    limit = int(1.5 * (prompt_bound(HELLO) + 50))
    with serving(silent) as server, model(server.url, timeout_s=0.1, budget=Budget(tokens=limit)) as asked:
        with pytest.raises(BudgetSpent):
            asked.ask(HELLO, label="wake/0", max_tokens=50)
        assert len(server.bodies) == 1


def test_a_connection_that_drops_is_tried_again() -> None:
    with dropping() as (url, received), model(url, retries=1) as asked:
        with pytest.raises(
            Problem, match=r"in 2 attempts, at last: the connection broke \((RemoteProtocol|Read)Error\)"
        ):
            asked.ask(HELLO, label="wake/0", max_tokens=50)
        assert len(received) == 2
        assert asked.ledger.spent.tokens == 2 * (prompt_bound(HELLO) + 50)


def test_no_server_at_all_costs_nothing() -> None:
    with model("http://127.0.0.1:9/v1", retries=1, budget=Budget(tokens=10**5)) as asked:
        with pytest.raises(Problem, match=r"in 2 attempts, at last: no connection to 127.0.0.1:9"):
            asked.ask(HELLO, label="wake/0")
        assert asked.ledger.spent == Amount()


@pytest.mark.parametrize(
    ("change", "text", "finish"),
    [
        ({"text": None}, "", "stop"),
        ({"text": None, "finish": "length"}, "", "length"),
        ({"text": "half an ans", "finish": "length"}, "half an ans", "length"),
        ({"text": None, "message": {"refusal": "No."}}, "", "refusal"),
        ({"text": "", "finish": "content_filter"}, "", "content_filter"),
        ({"text": "north", "message": {"reasoning": "Hm."}}, "north", "stop"),
    ],
)
def test_odd_answers_are_answers(change: dict[str, Any], text: str, finish: str) -> None:
    with (
        serving(lambda body, count: JSONResponse(completion(**change))) as server,
        model(server.url) as asked,
    ):
        reply = asked.ask(HELLO, label="wake/0")
        assert (reply.text, reply.finish) == (text, finish)
        assert len(server.bodies) == 1


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ],
)
def test_a_prompt_too_long_is_an_empty_answer(message: str) -> None:
    for body in ({"error": {"message": message}}, [{"error": {"code": 400, "message": message}}]):
        failure = JSONResponse(body, 400)
        with serving(failing(9, failure)) as server, model(server.url) as asked:
            reply = asked.ask(HELLO, label="wake/0")
            assert (reply.text, reply.finish, reply.usage) == ("", "context", Usage(0, 0))
            assert len(server.bodies) == 1


def test_a_filtered_prompt_is_an_empty_answer() -> None:
    failure = refusal(400, "The prompt was filtered.", code="content_filter")
    with serving(failing(9, failure)) as server, model(server.url) as asked:
        reply = asked.ask(HELLO, label="wake/0")
        assert (reply.text, reply.finish, reply.refusal) == ("", "content_filter", "The prompt was filtered.")


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (refusal(404, "The model `x` does not exist"), "has no model 'served-model'"),
        (refusal(401, "no key"), "refuses a request without a key"),
        (refusal(402, "pay first"), "out of credit"),
        (refusal(429, "You exceeded your quota", code="insufficient_quota"), "out of credit"),
        (
            refusal(400, 'Unknown name "seed"\n\nhere'),
            'does not take the request (status 400: Unknown name "seed" ',
        ),
        (JSONResponse([{"error": {"message": "odd"}}], 422), "does not take the request (status 422: odd)"),
        (PlainTextResponse("", 400), "does not take the request (status 400)"),
    ],
)
def test_what_no_retry_can_help_is_said_at_once(failure: Response, said: str) -> None:
    with serving(failing(9, failure)) as server, model(server.url) as asked:
        with pytest.raises(Problem) as caught:
            asked.ask(HELLO, label="wake/0")
        assert said in str(caught.value)
        assert len(server.bodies) == 1
        assert asked.ledger.spent == Amount() and asked.ledger.totals().failed == 1


def test_a_missing_model_lists_those_that_are_there() -> None:
    with (
        serving(failing(9, refusal(404, "not found"))) as server,
        model(server.url, name="x") as asked,
        pytest.raises(Problem, match="it has served-model"),
    ):
        asked.ask(HELLO, label="wake/0")


def test_a_wrong_key_is_never_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOME_KEY", CANARY)

    def refuse(body: dict[str, Any], count: int) -> Response:
        return refusal(401, f"Incorrect API key provided: {CANARY}.")

    with serving(refuse) as server, model(server.url, tmp_path, api_key_env="SOME_KEY") as asked:
        with pytest.raises(Problem, match="refuses the key in SOME_KEY") as caught:
            asked.ask(HELLO, label="wake/0")
        assert server.headers[0]["authorization"] == f"Bearer {CANARY}"
        assert CANARY not in str(caught.value)


def test_an_account_is_not_told_to_other_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with serving() as server, model(server.url) as asked:
        asked.ask(HELLO, label="wake/0")
        assert server.headers[0]["authorization"] == "Bearer none"
        assert "openai-organization" not in server.headers[0]


def test_a_proxy_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving() as server, model(server.url, retries=0) as asked:
        assert asked.ask(HELLO, label="wake/0").text == "answer 0"


def test_so_many_requests_at_a_time() -> None:
    def slow(body: dict[str, Any], count: int) -> Response:
        time.sleep(0.03)
        return plain(body, count)

    with serving(slow) as server, model(server.url, concurrency=3) as asked:
        with ThreadPoolExecutor(9) as pool:
            list(pool.map(lambda place: asked.ask(HELLO, label=f"wake/{place}"), range(18)))
        assert server.most_open == 3


def test_a_recorded_run_is_made_again_without_server_or_key(tmp_path: Path) -> None:
    labels = ["wake/0/0", "wake/0/1", "sleep/0"]
    record = Cache(tmp_path / "cache.sqlite")
    with (
        serving() as server,
        model(server.url, cache=record, seed=5, price={"input": 1.0, "output": 2.0}) as asked,
    ):
        first = [asked.ask(HELLO, label=label) for label in labels]
        totals = asked.ledger.phases()
    record.close()
    assert len({reply.text for reply in first}) == 3  # equal messages, other labels
    replay = Cache(tmp_path / "cache.sqlite", "replay")
    with model("http://127.0.0.1:9/v1", cache=replay, seed=5, api_key_env="NO_SUCH_KEY") as asked:
        again = [asked.ask(HELLO, label=label) for label in labels]
        assert [reply.to_json() for reply in again] == [reply.to_json() for reply in first]
        assert all(reply.cached for reply in again)
        assert asked.ledger.phases() == totals
        with pytest.raises(Problem, match="does not answer 'wake/0/2'"):
            asked.ask(HELLO, label="wake/0/2")
        with pytest.raises(Problem, match="other messages"):
            asked.ask([*HELLO, Message("assistant", "")], label="wake/0/1")
    replay.close()


def test_a_resumed_run_does_not_pay_twice(tmp_path: Path) -> None:
    with serving() as server:
        for again in (False, True):
            cache = Cache(tmp_path / "cache.sqlite")
            with model(server.url, tmp_path, budget=Budget(calls=2), cache=cache) as asked:
                for label in ("wake/0/0", "wake/0/1"):
                    assert asked.ask(HELLO, label=label).cached == again
                assert asked.ledger.totals().calls == 2
                with pytest.raises(BudgetSpent):
                    asked.ask(HELLO, label="wake/0/2")
            cache.close()
        assert len(server.bodies) == 2
    assert [line["label"] for line in calls(tmp_path)] == ["wake/0/0", "wake/0/1"]


def test_a_failure_is_not_recorded(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    down = PlainTextResponse("", 500)
    with serving(failing(1, down)) as server, model(server.url, cache=cache, retries=0) as asked:
        with pytest.raises(Problem):
            asked.ask(HELLO, label="wake/0")
        assert asked.ask(HELLO, label="wake/0").text == "answer 1"
    cache.close()


def test_half_a_character_can_be_asked() -> None:
    with serving() as server, model(server.url) as asked:
        asked.ask([Message("user", "a\ud800b")], label="wake/0")
        assert server.bodies[0]["messages"][0]["content"] == "a?b"


def test_closing_sends_home_whoever_waits() -> None:
    wait = PlainTextResponse("", 429, {"retry-after": "300"})
    with serving(failing(9, wait)) as server, model(server.url) as asked:
        caught: list[BaseException] = []

        def ask() -> None:
            try:
                asked.ask(HELLO, label="wake/0")
            except Problem as problem:
                caught.append(problem)

        thread = threading.Thread(target=ask)
        thread.start()
        while not server.bodies:
            time.sleep(0.005)
        time.sleep(0.1)
        asked.close()
        thread.join(5)
        assert not thread.is_alive() and "stopped" in str(caught[0])
