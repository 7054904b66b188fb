"""FIXED: episodes that a server holds for its clients: how many, for how long, one action at a time."""

import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

from agents.benchmarks.babyai.environment import BabyAIEnvironment
from agents.benchmarks.base import Episode


class Refused(Exception):
    """Something that a client asked for and cannot have."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        """HTTP's."""


class Sessions:
    """Episodes by key. Safe to use from several threads; actions of one session wait for each other."""

    def __init__(self, limit: int, idle: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`limit`: sessions at a time; `idle`: seconds after which an unused one may be closed."""
        self.limit = limit
        self.idle = idle
        self._clock = clock
        self._held: dict[str, _Session] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            self._expire()
            return len(self._held)

    def create(self, episode: Episode) -> dict[str, Any]:
        """Begin an episode; returns its key with what `look` does.

        Raises:
            Refused: there are too many.
            Problem: there is no such task, or no level for the seed.
        """
        environment = BabyAIEnvironment()
        environment.reset(episode)
        session = _Session(environment, self._clock())
        key = secrets.token_urlsafe(12)
        with self._lock:
            self._expire()
            if len(self._held) >= self.limit:
                raise Refused(503, f"all {self.limit} sessions are in use; one must be deleted, or expire")
            self._held[key] = session
        return {"session": key, **session.look(0.0)}

    def step(self, key: str, action: str) -> dict[str, Any]:
        """Take an action; returns what `look` does, with the reward.

        Raises:
            Refused: no such session, or its episode is over.
        """
        return self._find(key).step(action)

    def look(self, key: str) -> dict[str, Any]:
        """Everything that an `Environment` offers.

        Raises:
            Refused: no such session.
        """
        return self._find(key).look(0.0)

    def delete(self, key: str) -> None:
        """Close a session.

        Raises:
            Refused: no such session.
        """
        self._find(key)
        with self._lock:
            self._held.pop(key, None)

    def _find(self, key: str) -> "_Session":
        with self._lock:
            self._expire()
            session = self._held.get(key)
            if session is None:
                raise Refused(404, f"no such session; they close after {self.idle:g} s without use")
            session.used = self._clock()
            return session

    def _expire(self) -> None:
        before = self._clock() - self.idle
        for key in [key for key, session in self._held.items() if session.used < before]:
            del self._held[key]


class _Session:
    """An environment, and who may use it when."""

    def __init__(self, environment: BabyAIEnvironment, used: float) -> None:
        self.used = used
        self._environment = environment
        self._lock = threading.Lock()

    def step(self, action: str) -> dict[str, Any]:
        with self._lock:
            if self._environment.done:
                raise Refused(409, "the episode is over; create another session")
            reward = self._environment.step(action).reward
            return self._told(reward)

    def look(self, reward: float) -> dict[str, Any]:
        with self._lock:
            return self._told(reward)

    def _told(self, reward: float) -> dict[str, Any]:
        environment = self._environment
        return {
            "task": environment.episode.task,
            "seed": environment.episode.seed,
            "goal": environment.goal,
            "observation": environment.observation,
            "reward": reward,
            "done": environment.done,
            "success": environment.success,
            "steps": environment.steps,
            "score": environment.score,
            "total": environment.total,
            "actions": list(environment.actions()),
            "state": environment.state(),
            "details": dict(environment.details()),
        }
