"""FIXED: the environment as a skill sees it, inside the worker."""

import os
from typing import Any

from agents.sandbox.protocol import OVER, cut, decode, encode


class EpisodeOver(BaseException):
    """Ends a skill when the episode is over; no Exception, so that `except Exception` lets it pass."""


class StepsOver(BaseException):
    """Ends a skill that has taken its steps."""


class Channel:
    """The two descriptors, and the nonce of the call that is on."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._nonce = ""

    def send(self, key: str, value: object) -> None:
        line = encode({"nonce": self._nonce, key: value})
        while len(line) > (written := os.write(self._writing, line)):
            line = line[written:]

    def receive(self) -> Any:
        parts = [os.read(self._reading, 65_536)]  # the host sends nothing before it is asked
        while not parts[-1].endswith(b"\n"):
            if not parts[-1]:
                os._exit(0)
            parts.append(os.read(self._reading, 65_536))
        message = decode(b"".join(parts))
        self._nonce = message["nonce"]
        return message


class Env:
    """The environment as a skill sees it."""

    def __init__(self, channel: Channel, view: dict[str, Any]) -> None:
        self._channel = channel
        self._see(view)

    def _see(self, view: dict[str, Any]) -> None:
        self.goal: str = view["goal"]
        self.observation: str = view["observation"]
        self.state: Any = view["state"]
        self._actions: list[str] | None = view.get("actions")
        self.done: bool = view["done"]
        self.steps: int = view["steps"]
        self.reward: float = view["reward"]

    @property
    def actions(self) -> list[str]:
        """The actions that make sense now; the host may not have said before it is asked."""
        if self._actions is None:
            self._channel.send("look", "actions")
            self._actions = self._channel.receive()["look"]
        return self._actions

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("env is the one environment and cannot be copied; keep what it shows instead")

    def step(self, action: str) -> str:
        """Take one primitive action; returns what is seen then."""
        if not isinstance(action, str):
            raise TypeError(f"env.step takes an action as a string, not {type(action).__name__}")
        self._channel.send("step", cut(action))
        answer = self._channel.receive()
        if "stop" in answer:
            raise EpisodeOver if answer["stop"] == OVER else StepsOver
        self._see(answer["view"])
        return self.observation
