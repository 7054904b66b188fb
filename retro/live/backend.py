"""Shows runs of searches live: takes uploads of relays, keeps them, and serves a page, its data and events.

    RETRO_LIVE_UPLOAD_KEY=... RETRO_LIVE_VIEW_KEY=... python -m retro.live.backend --data live_data

Uploads need the one key, and all that shows a run the other. docs/retro_live.md says more.
"""

import argparse
import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from harness.errors import Problem, run_command
from harness.lock import locked
from retro.live.asked import CHUNK, HASH, RUN, bearer_of, body_of, matched, name_of, upload_of
from retro.live.content import TYPES
from retro.live.events import Events, TooMany
from retro.live.keys import UPLOAD, VIEW, read_key, same
from retro.live.pages import Page, page
from retro.live.store import Refusal, Store

COOKIE = "retro_live"

Handler = Callable[[Request], Awaitable[Response]]


class Backend:
    """The handlers of the app."""

    def __init__(self, store: Store, upload_key: str, view_key: str) -> None:
        self.store, self._upload_key, self._view_key = store, upload_key, view_key
        # What a browser keeps is no key: it opens the page, and nothing can be made of it.
        self._token = hashlib.sha256(b"retro live view\n" + view_key.encode()).hexdigest()
        self.events = Events(store)
        self._turns: dict[str, asyncio.Lock] = {}
        self._pages = {name: page(name) for name in ("run", "obs", "enter")}

    # ---- keys ----------------------------------------------------------------------------------------------

    def uploads(self, handler: Handler) -> Handler:
        """Whatever needs the key for uploads."""

        async def guarded(request: Request) -> Response:
            if not same(bearer_of(request), self._upload_key):
                raise HTTPException(401, "the key for uploads is missing or wrong")
            return await handler(request)

        return guarded

    def views(self, handler: Handler) -> Handler:
        """Whatever needs the key of whoever looks, or the cookie that it gave."""

        async def guarded(request: Request) -> Response:
            if self._may_look(request):
                return await handler(request)
            raise HTTPException(401, "the key for looking is missing or wrong")

        return guarded

    def _may_look(self, request: Request) -> bool:
        cookie = request.cookies.get(COOKIE, "")
        return same(cookie, self._token) or same(bearer_of(request), self._view_key)

    # ---- pages ---------------------------------------------------------------------------------------------

    def show(self, name: str) -> Handler:
        """A page, or the one that asks for the key."""

        async def handler(request: Request) -> Response:
            if self._may_look(request):
                return _html(self._pages[name], 200)
            return _html(self._pages["enter"], 401)

        return handler

    async def enter(self, request: Request) -> Response:
        """The form with the key."""
        fields = parse_qs((await body_of(request, 4096)).decode("utf-8", "replace"))
        if not same(fields.get("key", [""])[0].strip(), self._view_key):
            return _html(self._pages["enter"], 401)
        response = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        response.set_cookie(
            COOKIE, self._token, max_age=30 * 86_400, httponly=True, samesite="strict", secure=secure
        )
        return response

    # ---- looking -------------------------------------------------------------------------------------------

    async def runs(self, request: Request) -> Response:
        return JSONResponse(self.store.runs())

    async def stream(self, request: Request) -> Response:
        """Server-sent events: how a run stands, now and whenever that changes."""
        run = matched(RUN, request.path_params["run"])
        if not self.store.files(run):
            raise HTTPException(404, "there is no such run")
        try:
            events = self.events.follow(run)
        except TooMany as error:
            raise HTTPException(503, str(error)) from error
        return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def file(self, request: Request) -> Response:
        """A version of a file; parts of it where a range is asked for."""
        run, name = matched(RUN, request.path_params["run"]), name_of(request)
        digest = matched(HASH, request.path_params["sha256"])
        path = self.store.path(run, name, digest)
        if path is None or not path.is_file():
            raise HTTPException(404, "there is no such file")
        headers = {"Cache-Control": "private, max-age=31536000, immutable"}
        return FileResponse(path, media_type=TYPES[path.suffix], headers=headers)

    # ---- uploads -------------------------------------------------------------------------------------------

    async def receive(self, request: Request) -> Response:
        """The next part of a file."""
        upload, offset = upload_of(request)
        chunk = await body_of(request, CHUNK)
        if not chunk:
            raise HTTPException(400, "a part has at least one byte")
        async with self._turns.setdefault(upload.run, asyncio.Lock()):
            try:
                whole = await run_in_threadpool(self.store.receive, upload, offset, chunk)
            except Refusal as refusal:
                answer = {"error": str(refusal), "received": refusal.received}
                return JSONResponse(answer, refusal.status)
            finally:
                if len(self._turns) > 1000:
                    self._turns = {run: turn for run, turn in self._turns.items() if turn.locked()}
        if whole:
            self.events.changed(upload.run)
        return JSONResponse({"whole": whole, "files": self.store.files(upload.run)})


def make_app(store: Store, upload_key: str, view_key: str) -> Starlette:
    """The app; it closes the store when it ends."""
    backend = Backend(store, upload_key, view_key)
    look, upload = backend.views, backend.uploads

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        yield
        store.close()

    return Starlette(
        routes=[
            Route("/", backend.show("run")),
            Route("/obs", backend.show("obs")),
            Route("/enter", backend.enter, methods=["POST"]),
            Route("/api/runs", look(backend.runs)),
            Route("/api/runs/{run}/events", look(backend.stream)),
            Route("/api/runs/{run}/{name}/{sha256}", look(backend.file)),
            Route("/api/uploads/{run}/{name}/{sha256}", upload(backend.receive), methods=["PUT"]),
        ],
        exception_handlers={HTTPException: _said},
        lifespan=life,
    )


async def _said(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


def _html(shown: Page, status: int) -> Response:
    return HTMLResponse(shown.html, status, headers=dict(shown.headers))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m retro.live.backend", description=__doc__.split("\n")[0])
    parser.add_argument("--host", default="127.0.0.1", help="default: this machine alone can reach it")
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--data", type=Path, required=True, help="the folder to keep runs in")
    parser.add_argument("--gigabytes", type=float, default=4.0, help="to keep at most (default: 4)")
    parser.add_argument("--upload-key-file", type=Path, help=f"instead of {UPLOAD}")
    parser.add_argument("--view-key-file", type=Path, help=f"instead of {VIEW}")
    options = parser.parse_args()
    upload, view = read_key(UPLOAD, options.upload_key_file), read_key(VIEW, options.view_key_file)
    if same(upload, view):
        raise Problem("the two keys are the same", remedy="make another: whoever looks must not upload")
    options.data.mkdir(parents=True, exist_ok=True)
    with locked(options.data):
        store = Store(options.data, int(options.gigabytes * (1 << 30)))
        print(f"The live view: http://{options.host}:{options.port}/", flush=True)
        uvicorn.run(
            make_app(store, upload, view), host=options.host, port=options.port, log_level="warning",
            access_log=False, server_header=False, timeout_graceful_shutdown=2,
        )  # fmt: skip
    return 0


if __name__ == "__main__":
    run_command(main)
