"""The ledger: totals by hand, budgets that hold under many threads, and files that survive a crash."""

import json
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from chat_servers import HELLO, ChatServer, completion, model, serving
from starlette.responses import JSONResponse, Response

from agents.llm.ledger import NOTHING, Amount, Budget, BudgetSpent, Call, Ledger
from agents.llm.model import prompt_bound
from agents.llm.reply import Reply, Usage
from harness.errors import Problem


def call(label: str, usage: Usage, dollars: float | None = None, charged: Amount = NOTHING) -> Call:
    reply = Reply("text", "stop", usage, dollars, 0.5, "m")
    return Call(label, f"hash of {label}", "m", reply, None, 1, charged, {"messages": []})


def test_totals_by_phase() -> None:
    ledger = Ledger(None)
    for one in (
        call("wake/0/0", Usage(10, 5, 2, 4), 0.1),
        call("wake/0/1", Usage(20, 6), 0.2),
        call("sleep/0", Usage(None, None), None),
        call("sleep/1", Usage(1, None), None),
    ):
        ledger.settle(ledger.reserve(100, 1.0), one)
    ledger.settle(NOTHING, Call("sleep/2", "h", "m", None, "broken", 3, NOTHING, {}))
    wake, sleep, everything = ledger.totals("wake"), ledger.totals("sleep"), ledger.totals()
    assert (wake.calls, wake.prompt, wake.completion, wake.tokens) == (2, 30, 11, 41)
    assert (wake.reasoning, wake.cached, wake.unmetered, wake.unpriced) == (2, 4, 0, 0)
    assert wake.dollars == pytest.approx(0.3) and wake.seconds == 1.0
    assert (sleep.calls, sleep.failed, sleep.tokens) == (2, 1, 1)
    assert (sleep.unmetered, sleep.unpriced, sleep.retries) == (2, 2, 2)
    assert everything.calls == 4 and everything.tokens == 42
    assert ledger.phases() == {"wake": wake, "sleep": sleep}
    assert everything.to_json()["tokens"] == 42


def test_dollars_do_not_depend_on_the_order_of_threads() -> None:
    amounts = [random.Random(place).random() * 10 ** (place % 9) for place in range(200)]
    sums = set()
    for seed in range(5):
        random.Random(seed).shuffle(amounts)
        ledger = Ledger(None)
        for place, amount in enumerate(amounts):
            ledger.settle(NOTHING, call(f"wake/{place}", Usage(1, 1), amount))
        sums.add(ledger.totals().dollars)
    assert len(sums) == 1


@pytest.mark.parametrize(
    ("budget", "said"),
    [(Budget(calls=2), "2 calls"), (Budget(tokens=20), "20 tokens"), (Budget(dollars=0.5), r"\$0.5")],
)
def test_what_does_not_fit_is_refused_before_it_is_asked(budget: Budget, said: str) -> None:
    ledger = Ledger(None, budget)
    for place in range(2):
        charged = Amount(1, 10, 0.25)
        ledger.settle(ledger.reserve(10, 0.25), call(f"wake/{place}", Usage(5, 5), 0.25, charged))
    with pytest.raises(BudgetSpent, match=said):
        ledger.reserve(1, 0.01)
    assert ledger.spent == Amount(2, 20, 0.5)


def test_a_call_waits_for_what_others_may_leave() -> None:
    ledger = Ledger(None, Budget(tokens=100))
    first = ledger.reserve(80, 0.0)
    got: list[Amount] = []
    thread = threading.Thread(target=lambda: got.append(ledger.reserve(50, 0.0)))
    thread.start()
    thread.join(0.1)
    assert not got
    ledger.settle(first, call("wake/0", Usage(10, 10), None, Amount(1, 20, 0.0)))
    thread.join(5)
    assert got == [Amount(1, 50, 0.0)]


def test_lost_attempts_count_once() -> None:
    ledger = Ledger(None, Budget(tokens=100))
    lost = ledger.lose(ledger.reserve(40, 0.0))
    assert ledger.spent == Amount(0, 40, 0.0)
    ledger.settle(ledger.reserve(40, 0.0), call("wake/0", Usage(5, 5), None, Amount(1, 50, 0.0)), lost)
    assert ledger.spent == Amount(1, 50, 0.0)
    with pytest.raises(BudgetSpent):
        ledger.reserve(51, 0.0)


def test_a_file_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    ledger = Ledger(path)
    ledger.settle(NOTHING, call("wake/0", Usage(10, 5, 2, 4), 0.1, Amount(1, 15, 0.1)))
    ledger.settle(NOTHING, Call("wake/1", "h", "m", None, "broken", 3, Amount(0, 7, 0.0), {}))
    before = (ledger.totals(), ledger.spent)
    ledger.close()
    with path.open("ab") as handle:
        handle.write(b'{"label": "wake/2", "ha')  # a crash
    again = Ledger(path)
    assert (again.totals(), again.spent) == before
    assert again.knows("hash of wake/0") and not again.knows("h")
    again.settle(NOTHING, call("wake/2", Usage(1, 1)))
    again.close()
    assert [json.loads(line)["label"] for line in path.read_text().splitlines()] == [
        "wake/0",
        "wake/1",
        "wake/2",
    ]


@pytest.mark.parametrize("line", ["{}", "[]", "3", '{"label": "a"}', "no JSON", '{"reply": 3}'])
def test_a_line_that_is_no_call_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    ledger = Ledger(path)
    ledger.settle(NOTHING, call("wake/0", Usage(1, 1)))
    ledger.close()
    with path.open("a") as handle:
        handle.write(line + "\n")
    with pytest.raises(Problem) as caught:
        Ledger(path)
    assert (caught.value.file, caught.value.line) == (str(path), 2)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("label",), 3),
        (("attempts",), "1"),
        (("charged", "tokens"), "12"),
        (("charged", "dollars"), None),
        (("reply", "text"), None),
        (("reply", "dollars"), "0.1"),
        (("reply", "usage", "prompt"), "12"),
        (("reply", "usage", "prompt"), True),
    ],
)
def test_a_value_of_another_type_is_named_with_its_line(
    place: tuple[str, ...], value: object, tmp_path: Path
) -> None:
    path = tmp_path / "calls.jsonl"
    ledger = Ledger(path)
    ledger.settle(NOTHING, call("wake/0", Usage(10, 5), 0.1, Amount(1, 15, 0.1)))
    ledger.close()
    line = json.loads(path.read_text())
    part = line
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(Problem, match="no call of a model") as caught:
        Ledger(path)
    assert (caught.value.file, caught.value.line) == (str(path), 1)


def test_half_a_character_is_written(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "calls.jsonl")
    ledger.settle(NOTHING, Call("wake/0", "h", "m", None, "\ud800", 1, NOTHING, {"a": "\udfff\u00e9"}))
    ledger.close()
    (line,) = (tmp_path / "calls.jsonl").read_text().splitlines()
    assert json.loads(line)["error"] == "\ud800"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="cannot be written"):
        Ledger(tmp_path / "nowhere" / "calls.jsonl")


def greedy(body: dict[str, Any], count: int) -> Response:
    """Takes all that it may, and a moment."""
    time.sleep(random.Random(count).random() * 0.02)
    prompt = prompt_bound(HELLO) - 1
    return JSONResponse(completion("x", prompt, body["max_tokens"]))


def ask_until_spent(server: ChatServer, budget: Budget) -> tuple[int, Amount, int]:
    """(answers, what counts, refusals) of 60 calls by 12 threads."""
    price = {"input": 1.0, "output": 10.0}
    with model(server.url, budget=budget, concurrency=12, price=price) as asked:

        def ask(place: int) -> bool:
            try:
                asked.ask(HELLO, label=f"wake/{place}", max_tokens=50)
            except BudgetSpent:
                return False
            return True

        with ThreadPoolExecutor(12) as pool:
            answered = list(pool.map(ask, range(60)))
        assert asked.ledger.totals().calls == sum(answered)
        return sum(answered), asked.ledger.spent, len(answered) - sum(answered)


ONE = prompt_bound(HELLO) + 50  # tokens that a call may take


@pytest.mark.parametrize(
    ("budget", "fit"),
    [
        (Budget(calls=17), 17),
        (Budget(tokens=20 * ONE + 25), 20),
        (Budget(dollars=(9 * (prompt_bound(HELLO) + 500) + 100) / 1e6), 9),
        (Budget(calls=1), 1),
        (Budget(tokens=ONE - 1), 0),
    ],
)
def test_calls_side_by_side_never_exceed_the_budget(budget: Budget, fit: int) -> None:
    with serving(greedy) as server:
        answered, spent, refused = ask_until_spent(server, budget)
        assert answered == fit == len(server.bodies) and refused == 60 - fit
    assert spent.calls <= (budget.calls or 60)
    assert spent.tokens <= (budget.tokens or 10**9)
    assert spent.dollars <= (budget.dollars or 10**9)


def test_unknown_usage_counts_at_its_most() -> None:
    with (
        serving(lambda body, count: JSONResponse(completion(usage=None))) as server,
        model(server.url, budget=Budget(tokens=2 * ONE + 1)) as asked,
    ):
        for place in range(2):
            reply = asked.ask(HELLO, label=f"wake/{place}", max_tokens=50)
            assert reply.usage == Usage() and reply.dollars is None
        with pytest.raises(BudgetSpent):
            asked.ask(HELLO, label="wake/2", max_tokens=50)
        assert asked.ledger.spent == Amount(2, 2 * ONE, 0.0)
        assert asked.ledger.totals().unmetered == 2 and asked.ledger.totals().tokens == 0
        assert len(server.bodies) == 2


def test_a_full_disk_is_told_at_the_end_too(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "calls.jsonl")
    assert ledger._file is not None
    ledger._file.close()
    ledger._file = Path("/dev/full").open("ab")  # noqa: SIM115 (closed by the ledger)
    ledger._file.write(b"a line")
    with pytest.raises(Problem, match="cannot be written: No space left on device"):
        ledger.close()
    ledger.close()
