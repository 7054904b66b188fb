"""A real HTTP server on this machine whose answers a test decides, and shorthands for tests of models."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agents.llm.cache import Cache
from agents.llm.chat_app import background
from agents.llm.ledger import Budget, Ledger
from agents.llm.messages import Message
from agents.llm.model import Model
from agents.llm.settings import ModelSettings

CANARY = "sk-canary-0123456789abcdef"
HELLO = [Message("system", "Be brief."), Message("user", "Hello")]

running = background
"""An application in a thread, at a free port; yields its address."""

Script = Callable[[dict[str, Any], int], Response]
"""(body of the request, how many came before) -> what is answered."""


def completion(
    text: str | None = "Good day", prompt: int = 12, tokens: int = 3, **changes: Any
) -> dict[str, Any]:
    """The body of a plain chat completion, with changes of its parts."""
    message = {"role": "assistant", "content": text, **changes.pop("message", {})}
    choice = {"index": 0, "message": message, "finish_reason": changes.pop("finish", "stop")}
    usage = {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "served-model",
        "choices": [choice],
        "usage": usage,
    }
    return {**body, **changes}


def plain(body: dict[str, Any], count: int) -> Response:
    """Answer every request with the number of those before it."""
    return JSONResponse(completion(f"answer {count}"))


class ChatServer:
    """Answers with a script, and keeps what it was asked."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.open = 0
        self.most_open = 0
        self._lock = threading.Lock()
        self.url = ""

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
            ]
        )

    def _models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "served-model", "object": "model"}]})

    async def _chat(self, request: Request) -> Response:
        body = json.loads(await request.body())
        return await run_in_threadpool(self._answer, body, dict(request.headers))

    def _answer(self, body: dict[str, Any], headers: dict[str, str]) -> Response:
        with self._lock:
            count = len(self.bodies)
            self.bodies.append(body)
            self.headers.append(headers)
            self.times.append(time.monotonic())
            self.open += 1
            self.most_open = max(self.most_open, self.open)
        try:
            return self.script(body, count)
        finally:
            with self._lock:
                self.open -= 1


@contextlib.contextmanager
def serving(script: Script = plain) -> Iterator[ChatServer]:
    """A server in a thread, at a free port."""
    server = ChatServer(script)
    with background(server.app()) as server.url:
        yield server


@contextlib.contextmanager
def dropping() -> Iterator[tuple[str, list[bytes]]]:
    """A server that hangs up in the middle of every answer; its address, and what it received."""
    listener = socket.create_server(("127.0.0.1", 0))
    received: list[bytes] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    received.append(connection.recv(65536))
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                    connection.sendall(b'Content-Length: 500\r\n\r\n{"id": "chat')

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", received
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def settings(url: str | None, **changes: Any) -> ModelSettings:
    """A local model with few, short attempts."""
    given = {"name": "served-model", "provider": "local", "base_url": url, "timeout_s": 5.0, "retries": 2}
    return ModelSettings(**{**given, **changes})


@contextlib.contextmanager
def model(
    url: str | None,
    folder: Path | None = None,
    budget: Budget | None = None,
    cache: Cache | None = None,
    **changes: Any,
) -> Iterator[Model]:
    """A model at an address; with a folder its calls are written to calls.jsonl there."""
    ledger = Ledger(folder / "calls.jsonl" if folder else None, budget or Budget())
    with contextlib.closing(ledger):
        asked = Model(settings(url, **changes), ledger, cache)
        with contextlib.closing(asked):
            yield asked


def calls(folder: Path) -> list[dict[str, Any]]:
    """The lines of a folder's calls.jsonl."""
    return [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]
