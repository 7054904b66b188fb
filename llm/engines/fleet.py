"""FIXED: calls to vLLM servers on this machine."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from typing import Any

from harness.errors import Problem

HOST = "127.0.0.1"


class Fleet:
    """Servers that are called one by one or all together; every call has its own connection.

    `check` raises a Problem that says more where it can, such as that a server has ended.
    """

    def __init__(
        self, ports: Sequence[int], check: Callable[[], None] = lambda: None, timeout_s: float = 1800
    ) -> None:
        self.ports, self.check, self.timeout_s = tuple(ports), check, timeout_s

    def post(self, port: int, path: str, body: object = None) -> Any:
        """What one server answers; waits at most `timeout_s` for it.

        Raises:
            Problem: it does not answer in time, or not with JSON, or refuses.
        """
        connection = HTTPConnection(HOST, port, timeout=self.timeout_s)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            status, text = response.status, response.read().decode(errors="replace")
        except (OSError, HTTPException) as error:
            self.check()
            reason = f"in {self.timeout_s:g} s" if isinstance(error, TimeoutError) else f"({error!r})"
            raise Problem(f"the server on port {port} does not answer {path} {reason}") from error
        finally:
            connection.close()
        try:
            if status == 200:
                return json.loads(text)
        except ValueError as error:
            raise Problem(f"the server on port {port} answers {path} without JSON: {text:.200}") from error
        if status >= 500:
            self.check()
        raise Problem(f"the server on port {port} answers {path} with {status}: {text:.500}")

    def post_each(self, path: str, bodies: Sequence[object]) -> list[Any]:
        """What the servers answer, each to its own body, all called at once."""
        with ThreadPoolExecutor(len(self.ports)) as pool:
            return list(pool.map(lambda port, body: self.post(port, path, body), self.ports, bodies))

    def post_all(self, path: str, body: object = None) -> list[Any]:
        """What the servers answer to the same body."""
        return self.post_each(path, [body] * len(self.ports))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """No server computes in the meantime; its requests wait, then go on.

        What it had computed for them is thrown away, so after new weights each token comes from these alone.
        After an exception the servers stay paused: their weights may be half old, half new.
        """
        self.post_all("/pause?mode=keep")
        yield
        self.post_all("/resume")
