"""FIXED: one call as the host holds it: steps are served and counted, and every message is doubted."""

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from agents.sandbox.process import Broken, Process
from agents.sandbox.protocol import DEEPEST, OVER, STEPS, cut, encode, json_text, too_deep

View = Mapping[str, Any]
"""What a skill's `env` shows. A value that is a function is called if and when the skill looks there."""
Serve = Callable[[str], View]
"""Takes an environment action and returns the view after it; raises EpisodeOver when there is no more."""


class EpisodeOver(Exception):
    """Raised by a Serve: the skill ends at its `env.step`, and its call returns what was done."""


def shown(view: View) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parts of a view that are sent with it, and those that are asked for."""
    hidden = {name: value for name, value in view.items() if callable(value)}
    return {name: value for name, value in view.items() if name not in hidden}, hidden


class Call:
    """A request, the steps until its end, and what came of it."""

    def __init__(self, process: Process, serve: Serve | None, hidden: dict[str, Any]) -> None:
        """`hidden`: what `shown` left out of the view that the request holds."""
        self._process, self._serve, self._hidden = process, serve, hidden
        self._limits = process.limits
        self._nonce = secrets.token_hex(8)
        self.steps = 0
        """Steps that were served."""
        self.stopped = ""
        """OVER or STEPS, once the worker was told to end."""

    def converse(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request, serve the steps and return the answer: it has a "value", or a "kind" of error.

        Raises:
            Broken: the worker cannot be used any more.
        """
        self._send(request)
        while True:
            message = self._process.receive()
            if message.get("nonce") != self._nonce:
                raise Broken("protocol", "the worker sent a message that does not belong to this call")
            if "end" in message:
                return self._checked(message["end"])
            self._send(self._answer(message))

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        action, name = message.get("step"), message.get("look")
        if self._serve is not None and not self.stopped:
            if isinstance(action, str):
                return self._step(self._serve, cut(action))
            if isinstance(name, str) and name in self._hidden:
                look = self._hidden.pop(name)  # the worker keeps what it saw, so it asks once
                return {"look": look()}
        raise Broken("protocol", "the worker asked for what is not to be had")

    def _step(self, serve: Serve, action: str) -> dict[str, Any]:
        if self.steps >= self._limits.steps:
            self.stopped = STEPS
        else:
            try:
                view = serve(action)
            except EpisodeOver:
                self.stopped = OVER
            else:
                self.steps += 1
                seen, self._hidden = shown(view)
                return {"view": seen}
        return {"stop": self.stopped}

    def _send(self, message: dict[str, Any]) -> None:
        self._process.send(encode({"nonce": self._nonce, **message}))

    def _checked(self, end: object) -> dict[str, Any]:
        if not isinstance(end, dict):
            raise Broken("protocol", "the worker sent no proper end")
        checked = {key: end.get(key, "") for key in ("kind", "message", "trace", "output")}
        if not all(isinstance(value, str) for value in checked.values()):
            raise Broken("protocol", "the worker sent no proper end")
        chars = {"output": self._limits.output_chars + 100}
        checked = {key: cut(value, chars.get(key, 2_100)) for key, value in checked.items()}
        try:
            text = json_text(end.get("value"))
            text.encode()
        except (ValueError, RecursionError) as error:
            raise Broken("protocol", f"the worker sent a value that is none: {error}") from None
        if len(text) > self._limits.value_chars + 2:
            raise Broken("protocol", "the worker sent too long a value")
        if too_deep(end.get("value")):
            raise Broken("protocol", f"the worker sent a value that is nested more than {DEEPEST} deep")
        return {"value": end.get("value"), **checked}
