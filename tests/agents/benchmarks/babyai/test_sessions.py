"""Sessions of a server, by a clock of ours."""

import threading

import pytest

from agents.benchmarks.babyai import BENCHMARK
from agents.benchmarks.babyai.sessions import Refused, Sessions
from agents.benchmarks.base import Episode
from harness.errors import Problem


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def refused(status: int, ask: object, *arguments: object) -> str:
    with pytest.raises(Refused) as caught:
        ask(*arguments)  # type: ignore[operator]
    assert caught.value.status == status
    return str(caught.value)


def test_a_session_tells_what_its_environment_does() -> None:
    sessions = Sessions(3, 10.0)
    environment = BENCHMARK.make()
    told = sessions.create(Episode("open", 3))
    key = told.pop("session")
    assert told["observation"] == environment.reset(Episode("open", 3))
    for action in ("turn left", "jump", "go forward"):
        step = environment.step(action)
        told = sessions.step(key, action)
        assert (told["observation"], told["reward"], told["done"]) == step
        assert told == sessions.look(key)
    assert told == {
        "task": "open",
        "seed": 3,
        "goal": environment.goal,
        "observation": environment.observation,
        "reward": 0.0,
        "done": False,
        "success": False,
        "steps": 3,
        "score": 0.0,
        "total": 0.0,
        "actions": list(environment.actions()),
        "state": environment.state(),
        "details": environment.details(),
    }


def test_sessions_are_capped() -> None:
    sessions = Sessions(2, 10.0)
    keys = {sessions.create(Episode("goto", seed))["session"] for seed in range(2)}
    assert len(keys) == len(sessions) == 2
    assert "all 2 sessions" in refused(503, sessions.create, Episode("goto", 2))
    sessions.delete(keys.pop())
    sessions.create(Episode("goto", 2))


def test_unused_sessions_close() -> None:
    clock = Clock()
    sessions = Sessions(2, 10.0, clock)
    one, two = (sessions.create(Episode("goto", seed))["session"] for seed in range(2))
    clock.now = 8.0
    sessions.step(one, "drop")
    clock.now = 16.0
    assert "after 10 s without use" in refused(404, sessions.look, two)
    assert len(sessions) == 1
    sessions.create(Episode("goto", 2))  # there is room again
    sessions.look(one)
    clock.now = 27.0
    assert len(sessions) == 0


def test_what_there_is_not() -> None:
    sessions = Sessions(2, 10.0)
    for ask in (sessions.look, sessions.delete):
        refused(404, ask, "none")
    refused(404, sessions.step, "none", "drop")
    with pytest.raises(Problem):
        sessions.create(Episode("chess", 1))
    key = sessions.create(Episode("goto", 1))["session"]
    for _ in range(128):
        if sessions.step(key, "jump")["done"]:
            break
    assert "over" in refused(409, sessions.step, key, "drop")
    assert sessions.look(key)["done"]
    sessions.delete(key)
    refused(404, sessions.look, key)


def test_actions_of_one_session_wait_for_each_other() -> None:
    sessions = Sessions(1, 10.0)
    key = sessions.create(Episode("goto", 1))["session"]
    seen: list[int] = []

    def act() -> None:
        for _ in range(12):
            seen.append(sessions.step(key, "jump")["steps"])

    threads = [threading.Thread(target=act) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(1, 97))


def test_sessions_begun_at_once_keep_to_the_cap() -> None:
    sessions = Sessions(4, 10.0)
    outcomes: list[bool] = []

    def begin(seed: int) -> None:
        try:
            sessions.create(Episode("goto", seed))
            outcomes.append(True)
        except Refused:
            outcomes.append(False)

    threads = [threading.Thread(target=begin, args=(seed,)) for seed in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 8 + [True] * 4
    assert len(sessions) == 4
