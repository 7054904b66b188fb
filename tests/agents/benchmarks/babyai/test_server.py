"""The server, over real HTTP: in its own process, and in a thread of this one."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from random import Random
from typing import Any

import httpx
import pytest
from babyai_servers import Running

from agents.benchmarks.babyai import BENCHMARK, BabyAI, server
from agents.benchmarks.babyai.environment import ACTIONS
from agents.benchmarks.babyai.sessions import Sessions
from agents.benchmarks.babyai.tasks import FAMILIES, TASKS
from agents.benchmarks.base import Environment, Episode
from harness.errors import Problem


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Running(Sessions(64, 60.0)) as running:
        yield running.address


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, trust_env=False) as opened:
        yield opened


def test_health_and_tasks(client: httpx.Client) -> None:
    health = client.get("/health").json()
    assert health["status"] == "ok" and health["benchmark"] == "babyai"
    assert (health["versions"]["minigrid"], health["limit"]) == ("3.2.0", 64)
    tasks = client.get("/tasks").json()["tasks"]
    assert tuple(tasks) == TASKS and tasks["goto"] == 128


def test_an_episode_by_hand(client: httpx.Client) -> None:
    begun = client.post("/sessions", json={"task": "goto", "seed": 1})
    assert begun.status_code == 201
    told = begun.json()
    path = f"/sessions/{told.pop('session')}"
    assert client.get(path).json() == told
    step = client.post(path + "/step", json={"action": "turn left"})
    assert step.status_code == 200 and step.json()["steps"] == 1
    closed = client.delete(path)
    assert (closed.status_code, closed.content) == (204, b"")
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "told"),
    [
        ("GET", "/", "", 404, "GET /: Not Found"),
        ("GET", "/sessions", "", 405, "GET /sessions: Method Not Allowed"),
        ("POST", "/sessions", "", 422, "body: Invalid JSON"),
        ("POST", "/sessions", "[1]", 422, "body: Input should be"),
        ("POST", "/sessions", '{"task": "goto"}', 422, "seed: Field required"),
        ("POST", "/sessions", '{"task": "goto", "seed": "1"}', 422, "seed: Input should be a valid integer"),
        ("POST", "/sessions", '{"task": "goto", "seed": -1}', 422, "seed: "),
        ("POST", "/sessions", '{"task": "goto", "seed": 1, "speed": 2}', 422, "speed: Extra inputs"),
        ("POST", "/sessions", '{"task": "go to", "seed": 1}', 422, "BabyAI has no task 'go to'"),
        ("POST", "/sessions", " " * 10_001, 413, "at most 10,000 bytes"),
        ("GET", "/sessions/none", "", 404, "no such session"),
        ("DELETE", "/sessions/none", "", 404, "no such session"),
        ("POST", "/sessions/none/step", '{"action": "drop"}', 404, "no such session"),
        ("POST", "/sessions/none/step", '{"action": 4}', 422, "action: Input should be a valid string"),
    ],
)
def test_errors_are_plain_json(
    client: httpx.Client, method: str, path: str, body: str, status: int, told: str
) -> None:
    reply = client.request(method, path, content=body)
    assert reply.status_code == status
    assert told in reply.json()["error"]


def test_a_fault_of_the_server_is_json_too(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = Sessions(1, 60.0)
    monkeypatch.setattr(sessions, "look", lambda key: 1 / 0)
    with Running(sessions) as running:
        reply = httpx.get(f"{running.address}/sessions/x", trust_env=False)
    assert (reply.status_code, reply.json()) == (500, {"error": "ZeroDivisionError: division by zero"})


def trace(environment: Environment, episode: Episode) -> list[Any]:
    """Everything that is told of random actions; a few of them are none."""
    generator = Random(episode.seed)
    told: list[Any] = [environment.reset(episode), environment.episode, environment.goal]
    while not environment.done and environment.steps < 30:
        action = generator.choice([*ACTIONS, " Turn  LEFT ", "jump \ud800", "x y " * 3000])
        told.append(environment.step(action))
        told.append([environment.observation, environment.state(), tuple(environment.actions())])
        told.append([environment.score, environment.total, environment.steps, environment.success])
    return [*told, dict(environment.details())]


def test_many_clients_at_once_see_what_is_seen_in_this_process(address: str) -> None:
    benchmark = BabyAI(server=address)
    episodes = [Episode(task, seed) for seed in range(2) for task in (*FAMILIES, "BabyAI-BossLevel-v0")]
    seen: dict[Episode, list[Any]] = {}

    def play(episode: Episode) -> None:
        environment = benchmark.make()
        trace(environment, Episode("goto", 9))
        seen[episode] = trace(environment, episode)
        environment.close()

    threads = [threading.Thread(target=play, args=(episode,)) for episode in episodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    here = BENCHMARK.make()
    assert seen == {episode: trace(here, episode) for episode in episodes}
    assert httpx.get(f"{address}/health", trust_env=False).json()["sessions"] == 0


def test_a_whole_episode_ends_alike(address: str) -> None:
    here, there, player = BENCHMARK.make(), BabyAI(server=address).make(), BENCHMARK.oracle()
    here.reset(Episode("putnext", 3))
    there.reset(Episode("putnext", 3))
    while not here.done:
        action = player.act(here, Random(0))
        assert there.step(action) == here.step(action)
    assert there.done and there.success and there.score == there.total == 1.0
    with pytest.raises(RuntimeError):
        there.step("drop")
    there.close()


def test_small_replies_come_at_once(address: str) -> None:
    # asyncio sends without delay only where the listening socket says that it is TCP's.
    with server.listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


def test_a_taken_port_is_a_problem() -> None:
    with server.listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(Problem, match=f"cannot listen on 127.0.0.1, port {port}"):
            server.listen("127.0.0.1", port)
    for port in (-1, 70_000):
        with pytest.raises(Problem):
            server.listen("127.0.0.1", port)


def test_the_command_serves_until_ctrl_c() -> None:
    command = [sys.executable, "-W", "error", "-m", "agents.benchmarks.babyai.server"]
    run = subprocess.Popen(
        [*command, "--port", "0", "--sessions", "1", "--idle", "30"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert run.stdout is not None
    said = run.stdout.readline()
    found = re.fullmatch(r"BabyAI at (http://127\.0\.0\.1:\d+); Ctrl-C ends it\.\n", said)
    assert found is not None, said
    environment = BabyAI(server=found[1]).make()
    environment.reset(Episode("goto", 1))
    other = BabyAI(server=found[1]).make()
    with pytest.raises(Problem, match="all 1 sessions are in use"):
        other.reset(Episode("goto", 2))
    other.close()
    run.send_signal(signal.SIGINT)  # while a connection is open
    out, errors = run.communicate(timeout=30)
    assert (run.returncode, out, errors) == (130, "", "Stopped by Ctrl-C.\n")
    with pytest.raises(Problem, match="no answer from http"):
        environment.step("drop")
    environment.close()
