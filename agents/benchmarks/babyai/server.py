"""FIXED: BabyAI behind HTTP, for programs that want the environment apart from them.

    python -m agents.benchmarks.babyai.server --port 8080

    GET    /health                 the server's state
    GET    /tasks                  {"tasks": {name: steps allowed}}
    POST   /sessions               {"task": ..., "seed": ...}: begins an episode; 201
    GET    /sessions/KEY           the situation
    POST   /sessions/KEY/step      {"action": ...}: takes an action
    DELETE /sessions/KEY           closes the session; 204

Replies are JSON objects. Errors have "error", and "remedy" where there is one.
"""

import argparse
import socket
from typing import Any, TypeVar

import uvicorn
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agents.benchmarks.babyai.sessions import Refused, Sessions
from agents.benchmarks.babyai.tasks import TASKS, step_limit
from agents.benchmarks.base import Episode
from agents.task import versions
from harness.errors import Problem, run_command

_BODY = 10_000  # bytes that a request may have
_KEEP_ALIVE = 75  # seconds; clients of ours close their connections earlier


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m agents.benchmarks.babyai.server",
        description=(__doc__ or "").removeprefix("FIXED: "),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", default="127.0.0.1", help="there is no log-in: keep it to this machine")
    parser.add_argument("--port", type=int, default=8080, help="0: any that is free")
    parser.add_argument("--sessions", type=int, default=256, help="at a time")
    parser.add_argument("--idle", type=float, default=1800.0, help="seconds until an unused one is closed")
    options = parser.parse_args()
    listening = listen(options.host, options.port)
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(f"BabyAI at http://{shown}:{port}; Ctrl-C ends it.", flush=True)
    serve(Sessions(options.sessions, options.idle), listening)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        Problem: the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, so that asyncio sends small replies at once; without, each would wait 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(1024)
    except (OSError, OverflowError) as error:
        listening.close()
        raise Problem(
            f"cannot listen on {host}, port {port}: {error}", remedy="choose another --port"
        ) from None
    return listening


def serve(sessions: Sessions, listening: socket.socket) -> None:
    """Answer requests until the process is told to end."""
    config = uvicorn.Config(
        application(sessions),
        log_level="warning",
        lifespan="off",
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=3,
    )
    uvicorn.Server(config).run(sockets=[listening])


# ---- requests ------------------------------------------------------------------------------------------


class Start(BaseModel):
    """The body that begins an episode."""

    model_config = ConfigDict(extra="forbid", strict=True)

    task: str
    seed: int = Field(ge=0, lt=2**63)


class Act(BaseModel):
    """The body of a step."""

    model_config = ConfigDict(extra="forbid", strict=True)

    action: str = Field(max_length=1000)


Body = TypeVar("Body", Start, Act)


def application(sessions: Sessions) -> Starlette:
    """The server, to be run by any ASGI server, in one process."""

    async def health(request: Request) -> Response:
        return JSONResponse(
            {
                "status": "ok",
                "benchmark": "babyai",
                "versions": versions("babyai"),
                "sessions": len(sessions),
                "limit": sessions.limit,
            }
        )

    async def tasks(request: Request) -> Response:
        return JSONResponse({"tasks": {task: step_limit(task) for task in TASKS}})

    async def create(request: Request) -> Response:
        body = await _read(request, Start)
        begun = await run_in_threadpool(sessions.create, Episode(body.task, body.seed))
        return JSONResponse(begun, 201)

    async def look(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(sessions.look, request.path_params["key"]))

    async def step(request: Request) -> Response:
        body = await _read(request, Act)
        return JSONResponse(await run_in_threadpool(sessions.step, request.path_params["key"], body.action))

    async def delete(request: Request) -> Response:
        sessions.delete(request.path_params["key"])
        return Response(status_code=204)

    return Starlette(
        routes=[
            Route("/health", health),
            Route("/tasks", tasks),
            Route("/sessions", create, methods=["POST"]),
            Route("/sessions/{key}", look, methods=["GET"]),
            Route("/sessions/{key}", delete, methods=["DELETE"]),
            Route("/sessions/{key}/step", step, methods=["POST"]),
        ],
        exception_handlers={
            Refused: _refused,
            Problem: _problem,
            HTTPException: _no_such_path,
            Exception: _fault,
        },
    )


async def _read(request: Request, model: type[Body]) -> Body:
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > _BODY:
            raise Refused(413, f"a body has at most {_BODY:,} bytes")
    try:
        return model.model_validate_json(data)
    except ValidationError as errors:
        first = errors.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "body"
        raise Refused(422, f"{where}: {first['msg']}") from None


# ---- errors --------------------------------------------------------------------------------------------


def _told(status: int, reason: str, remedy: str | None = None) -> Response:
    return JSONResponse({"error": reason, **({"remedy": remedy} if remedy else {})}, status)


def _refused(request: Request, error: Any) -> Response:
    return _told(error.status, str(error))


def _problem(request: Request, error: Any) -> Response:
    return _told(422, error.reason, error.remedy)


def _no_such_path(request: Request, error: Any) -> Response:
    return _told(error.status_code, f"{request.method} {request.url.path}: {error.detail}")


def _fault(request: Request, error: Any) -> Response:
    return _told(500, f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    run_command(main)
