"""FIXED: BabyAI played on a server: the same episodes and traces as in this process."""

import contextlib
import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from agents.benchmarks.babyai.text import plain
from agents.benchmarks.base import Environment, Episode, Step
from harness.errors import Problem

_SECONDS = 60.0  # that a reply may take
_LONGEST = 2**22  # bytes of a reply
_NUMBER = (int, float)
_LOOK: Mapping[str, tuple[type, ...]] = {
    "goal": (str,),
    "observation": (str,),
    "done": (bool,),
    "steps": (int,),
    "score": _NUMBER,
    "total": _NUMBER,
    "success": (bool,),
    "actions": (list,),
    "state": (dict,),
    "details": (dict,),
}
"""What every reply of a session holds."""
_SESSION: Mapping[str, tuple[type, ...]] = {**_LOOK, "session": (str,)}
_STEP: Mapping[str, tuple[type, ...]] = {**_LOOK, "reward": _NUMBER}
_KEEP_ALIVE = 30.0  # seconds; the server closes idle connections after more


class RemoteEnvironment(Environment):
    """An episode on a server, `python -m agents.benchmarks.babyai.server`; one request a step."""

    def __init__(self, server: str) -> None:
        """`server`: its address, as "http://127.0.0.1:8080".

        Raises:
            Problem: no server of BabyAI answers there.
        """
        self._server = server.rstrip("/")
        self._key: str | None = None
        self._told: dict[str, Any] = {}
        try:
            # Settings of a proxy in the environment are not for a server next door.
            self._client = httpx.Client(
                base_url=self._server,
                timeout=_SECONDS,
                trust_env=False,
                limits=httpx.Limits(max_connections=1, keepalive_expiry=_KEEP_ALIVE),
            )
        except httpx.InvalidURL as error:
            raise Problem(f"{server!r} is not an address: {error}", remedy="http://127.0.0.1:8080") from None
        try:
            health = self._ask("GET", "/health")
            if health.get("benchmark") != "babyai":
                raise Problem(
                    f"what answers at {server} is not a server of BabyAI", remedy="check host and port"
                )
            versions = health.get("versions", {})
            self.versions: dict[str, str] = versions if isinstance(versions, dict) else {}
            """What makes the levels there, by distribution."""
        except Problem:
            self._client.close()
            raise

    def reset(self, episode: Episode) -> str:
        """Begin an episode; returns the first observation.

        Raises:
            Problem: no such task or level, too many sessions, or no answer.
        """
        self._give_back()
        told = self._ask("POST", "/sessions", {"task": episode.task, "seed": episode.seed})
        self._take(told, _SESSION)
        self._key = told["session"]
        self.episode = episode
        return self.observation

    def step(self, action: str) -> Step:
        """Take an action.

        Raises:
            RuntimeError: the episode is over.
            Problem: the session is closed, or there is no answer.
        """
        if self.done:
            raise RuntimeError("the episode is over")
        told = self._ask("POST", f"/sessions/{self._key}/step", {"action": plain(action)})
        self._take(told, _STEP)
        return Step(self.observation, told["reward"], self.done)

    def actions(self) -> Sequence[str]:
        return tuple(self._told["actions"])

    def state(self) -> dict[str, Any]:
        return copy.deepcopy(self._told["state"])

    def details(self) -> Mapping[str, Any]:
        return dict(self._told["details"])

    @property
    def success(self) -> bool:
        return bool(self._told["success"])

    def close(self) -> None:
        self._give_back()
        self._client.close()

    def _take(self, told: dict[str, Any], kinds: Mapping[str, tuple[type, ...]]) -> None:
        for name, kind in kinds.items():
            if type(told.get(name)) not in kind:
                reason = f"its answer is none of BabyAI's server: {name} is {told.get(name)!r:.60}"
                remedy = "start it from the same version: python -m agents.benchmarks.babyai.server"
                raise Problem(f"{self._server}: {reason}", remedy=remedy)
        self._told = told
        self.goal, self.observation = told["goal"], told["observation"]
        self.done, self.steps = told["done"], told["steps"]
        self.score, self.total = told["score"], told["total"]

    def _give_back(self) -> None:
        """Close the session; one that is gone, or whose server is, expires by itself."""
        key, self._key = self._key, None
        if key is not None:
            with contextlib.suppress(httpx.HTTPError):
                self._client.delete(f"/sessions/{key}")

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        content = b""
        try:
            with self._client.stream(method, path, json=body) as reply:
                for piece in reply.iter_bytes():
                    content += piece
                    if len(content) > _LONGEST:
                        raise ValueError(f"more than {_LONGEST:,} bytes")
            told = json.loads(content)
        except (httpx.HTTPError, ValueError, RecursionError) as error:
            raise Problem(
                f"no answer from {self._server}: {error or type(error).__name__}",
                remedy="start it with: python -m agents.benchmarks.babyai.server",
            ) from None
        if not isinstance(told, dict):
            told = {"error": "its answer is not a JSON object"}
        if "error" in told or not reply.is_success:
            reason = told.get("error", f"status {reply.status_code}")
            raise Problem(f"{self._server}: {reason}", remedy=told.get("remedy"))
        return told
