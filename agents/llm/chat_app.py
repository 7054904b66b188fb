"""FIXED: the HTTP side of a small OpenAI-compatible server; what is answered comes from a function.

GET  /health                  {"status": "ok"}
GET  /v1/models               the models by name
POST /v1/chat/completions     an answer, without streaming
"""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agents.llm.messages import Message
from harness.errors import Problem

_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True)
class ChatRequest:
    """A request for a chat completion."""

    model: str
    messages: tuple[Message, ...]
    max_tokens: int | None
    temperature: float
    top_p: float
    seed: int | None
    body: dict[str, Any]
    """All of it, as it came."""


class Refused(Exception):
    """An answer that is an error: its status, and a message for people."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code = status, code


Answering = Callable[[ChatRequest], Response]
"""May raise Refused. It is called in threads, several at a time."""


def chat_app(models: Sequence[str], answer: Answering) -> Starlette:
    """The application; requests for other models are refused with status 404."""

    async def chat(request: Request) -> Response:
        try:
            asked = read_request(await request.body())
            if asked.model not in models:
                raise Refused(404, f"the model {asked.model!r} does not exist", "model_not_found")
            return await run_in_threadpool(answer, asked)
        except Refused as refused:
            error = {"message": str(refused), "type": "invalid_request_error", "code": refused.code}
            return JSONResponse({"error": error}, refused.status)

    def known(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": name, "object": "model"} for name in models]})

    def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    return Starlette(
        routes=[
            Route("/health", health, methods=["GET"]),
            Route("/v1/models", known, methods=["GET"]),
            Route("/v1/chat/completions", chat, methods=["POST"]),
        ]
    )


def read_request(body: bytes) -> ChatRequest:
    """Read the body of a request.

    Raises:
        Refused: it is malformed, or asks for what is not offered.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "the request is not JSON") from None
    if not isinstance(value, dict) or not isinstance(value.get("model"), str):
        raise Refused(400, "the request names no model")
    said = value.get("messages")
    if not isinstance(said, list) or not said:
        raise Refused(400, "the request holds no messages")
    messages = []
    for message in said:
        role = message.get("role") if isinstance(message, dict) else None
        if role not in _ROLES or not isinstance(message.get("content"), str):
            raise Refused(400, f"a message needs a role of {', '.join(_ROLES)}, and content that is text")
        messages.append(Message(role, message["content"]))
    if value.get("stream"):
        raise Refused(400, "this server does not stream")
    if value.get("n") not in (None, 1):
        raise Refused(400, "this server gives one answer at a time")
    limit = value.get("max_completion_tokens", value.get("max_tokens"))
    return ChatRequest(
        value["model"],
        tuple(messages),
        None if limit is None else int(_number("max_tokens", limit, 1, 2**31)),
        _number("temperature", value.get("temperature", 1), 0, 100),
        _number("top_p", value.get("top_p", 1), 0, 1),
        None if value.get("seed") is None else int(_number("seed", value["seed"], 0, 2**63)),
        value,
    )


def completion(
    request: ChatRequest,
    text: str | None,
    *,
    finish: str = "stop",
    prompt_tokens: int,
    completion_tokens: int,
    cached_tokens: int = 0,
    message: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The body of an answer; `message` adds to what the assistant says."""
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }
    said = {"role": "assistant", "content": text, **(message or {})}
    return {
        "id": "chatcmpl-local",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.model,
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
        "usage": usage,
    }


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 = any that is free.

    Raises:
        Problem: the address cannot be had.
    """
    try:
        return socket.create_server((host, port))
    except (OSError, OverflowError) as error:
        raise Problem(
            f"cannot listen on {host}, port {port}: {error}", remedy="choose another --port"
        ) from None


def serve(app: Starlette, listening: socket.socket) -> None:
    """Answer until the process is told to end."""
    config = uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=3)
    uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def background(app: Starlette) -> Iterator[str]:
    """Answer in a thread of this process while the context lasts; yields the address, /v1 included."""
    with listen("127.0.0.1", 0) as listening:
        config = uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            while not server.started:
                time.sleep(0.005)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            thread.join(5)


def _number(name: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise Refused(400, f"{name} is {value!r}, expected a number from {low} to {high}")
    return value
