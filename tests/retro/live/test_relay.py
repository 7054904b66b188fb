"""The relay against real servers: broken lines, a backend that dies midway, wrong keys, none at all."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from live_views import (
    RUN,
    UPLOAD_KEY,
    VIEW_KEY,
    backend,
    free_port,
    held,
    of_run,
    picture,
    publish,
    run_id,
    snapshot,
    to_the_end,
    wait_for,
)

from harness.track import ROOT
from retro.live.keys import UPLOAD
from retro.live.relay import Relay

Relays = Callable[..., Relay]


def test_all_is_uploaded_once_and_what_changes_again(
    port: int, tmp_path: Path, small_parts: None, relays: Relays
) -> None:
    said: list[str] = []
    files = of_run(tmp_path, 1, frames=8)
    relay = relays(tmp_path, f"http://127.0.0.1:{port}/", said.append)
    assert to_the_end(relay) >= len(files["movie.mp4"]) // 4096
    assert held(port, run_id(1)) == files
    assert relay.cycle() is False
    (tmp_path / "live" / "frame.png").write_bytes(picture(77))
    to_the_end(relay)
    assert held(port, run_id(1)) == {**files, "frame.png": picture(77)}
    assert said == []


def test_between_two_parts_of_a_movie_newer_snapshots_go(
    port: int, tmp_path: Path, small_parts: None, relays: Relays
) -> None:
    of_run(tmp_path, 2, frames=12)
    relay = relays(tmp_path, f"http://127.0.0.1:{port}")
    assert relay.cycle()
    newer = json.dumps(snapshot(run={**snapshot()["run"], "id": run_id(2), "title": "Newer"})).encode()
    (tmp_path / "live" / "snapshot.json").write_bytes(newer)
    assert relay.cycle()
    shown = held(port, run_id(2))
    assert shown["snapshot.json"] == newer
    assert "movie.mp4" not in shown


def test_a_backend_that_dies_midway_gets_the_rest(tmp_path: Path, small_parts: None, relays: Relays) -> None:
    (tmp_path / "run").mkdir()
    files = publish(tmp_path / "run", frames=12)
    port = free_port()
    relay = relays(tmp_path / "run", f"http://127.0.0.1:{port}")
    assert relay.cycle()
    assert relay.wait == 1.0  # nobody is there yet
    with backend(tmp_path / "data", port) as process:
        for _ in range(5):
            assert relay.cycle()
        process.kill()
        process.wait()
    (part,) = (tmp_path / "data" / "partial").glob("*.movie.mp4.*")
    sent = part.stat().st_size
    assert sent > 4096
    for expected in (1.0, 2.0, 4.0):
        assert relay.cycle()
        assert relay.wait == expected
    with backend(tmp_path / "data", port):
        cycles = to_the_end(relay)
        assert held(port) == files
    assert cycles <= (len(files["movie.mp4"]) - sent) // 4096 + 3  # it went on, and did not begin again


def test_a_backend_that_lost_everything_gets_it_again(tmp_path: Path, relays: Relays) -> None:
    (tmp_path / "run").mkdir()
    files = publish(tmp_path / "run")
    port = free_port()
    relay = relays(tmp_path / "run", f"http://127.0.0.1:{port}")
    for data in ("one", "other"):
        with backend(tmp_path / data, port):
            (tmp_path / "run" / "live" / "frame.png").write_bytes(picture(1 if data == "one" else 2))
            for _ in range(20):
                relay.cycle()
            expected = {**files, "frame.png": picture(1 if data == "one" else 2)}
            if data == "other":  # until the snapshot changes, it is not known that it is lost
                relay.cycle()
            assert held(port) == expected


@contextmanager
def server(answer: Callable[[BaseHTTPRequestHandler, bytes], None]) -> Iterator[str]:
    """An HTTP server that answers as it likes."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            answer(self, self.rfile.read(int(self.headers["Content-Length"])))

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{served.server_address[1]}"
        finally:
            served.shutdown()
            thread.join()


def test_lines_that_break_only_delay(port: int, tmp_path: Path, small_parts: None, relays: Relays) -> None:
    """Every other answer is lost, some of them after the backend has taken what was sent."""
    import requests

    number = 0

    def passed_on(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        nonlocal number
        number += 1
        if number % 4 == 0:
            handler.connection.close()
            return
        address = f"http://127.0.0.1:{port}{handler.path}"
        said = requests.put(address, data=body, headers=dict(handler.headers), timeout=20)
        if number % 4 == 2:
            handler.connection.close()
            return
        handler.send_response(said.status_code)
        handler.send_header("Content-Length", str(len(said.content)))
        handler.end_headers()
        handler.wfile.write(said.content)

    files = of_run(tmp_path, 3, frames=12)
    with server(passed_on) as url:
        to_the_end(relays(tmp_path, url))
    assert held(port, run_id(3)) == files


@pytest.mark.parametrize("status", [301, 302, 307, 401, 403, 404, 429, 500, 503, 507])
def test_what_may_pass_is_tried_again_ever_later(tmp_path: Path, status: int, relays: Relays) -> None:
    keys, said = [], []

    def refuse(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        keys.append(handler.headers["Authorization"])
        handler.send_response(status)
        handler.send_header("Location", "http://127.0.0.1:1/elsewhere")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    publish(tmp_path)
    with server(refuse) as url:
        relay = relays(tmp_path, url, said.append)
        waits = []
        for _ in range(8):
            assert relay.cycle()
            waits.append(relay.wait)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert keys == [f"Bearer {UPLOAD_KEY}"] * 8
    assert len(said) == 1
    assert str(status) in said[0]
    assert UPLOAD_KEY not in said[0]


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (200, b"<html>Welcome</html>"),
        (200, b'{"whole":true}'),
        (200, b'{"whole":"yes","files":{}}'),
        (200, b'{"whole":true,"files":[]}'),
        (409, b"{}"),
        (409, b'{"received":null}'),
        (409, b'{"received":-5}'),
        (409, b'{"received":0}'),
        (409, b'{"received":99999999}'),
    ],
)
def test_what_is_no_backend_is_told_and_tried_again_later(
    tmp_path: Path, status: int, answer: bytes, relays: Relays
) -> None:
    said: list[str] = []

    def respond(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)

    publish(tmp_path)
    with server(respond) as url:
        relay = relays(tmp_path, url, said.append)
        assert [(relay.cycle(), relay.wait) for _ in range(2)] == [(True, 1), (True, 2)]
    assert len(said) == 1
    assert "not as a backend does" in said[0]


def test_a_file_that_is_refused_for_good_is_told_once_and_left(
    port: int, tmp_path: Path, relays: Relays
) -> None:
    said: list[str] = []
    files = of_run(tmp_path, 4)
    (tmp_path / "live" / "mosaic.png").write_bytes(b"no picture")
    relay = relays(tmp_path, f"http://127.0.0.1:{port}", said.append)
    to_the_end(relay)
    assert relay.cycle() is False
    del files["mosaic.png"]
    assert held(port, run_id(4)) == files
    assert len(said) == 1
    assert "mosaic.png is refused" in said[0]


def test_a_snapshot_that_cannot_be_read_is_no_end(tmp_path: Path, relays: Relays) -> None:
    said: list[str] = []
    publish(tmp_path)
    (tmp_path / "live" / "snapshot.json").write_bytes(b"{")
    relay = relays(tmp_path, "http://127.0.0.1:9", said.append)
    assert relay.cycle()
    assert "not JSON" in said[0]


def test_where_nothing_is_published_nothing_is_sent(tmp_path: Path, relays: Relays) -> None:
    assert relays(tmp_path, "http://127.0.0.1:9").cycle() is False


def test_the_command_ends_with_its_caller_and_tells_no_key(port: int, tmp_path: Path) -> None:
    files = of_run(tmp_path, 5)
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "retro.live.relay", str(tmp_path), "--url", url, "--with-caller"]
    for key in (UPLOAD_KEY, VIEW_KEY):
        with subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, UPLOAD: key}, stdin=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdin is not None
            assert process.stderr is not None
            if key == UPLOAD_KEY:
                process.stdin.close()
                said = process.stderr.read()
                assert process.wait(60) == 0
                assert said == b""
                assert held(port, run_id(5)) == files
            else:
                said = process.stderr.readline()
                assert b"401" in said
                assert key.encode() not in said
                process.kill()
        assert key not in " ".join(command)


def test_the_relay_waits_between_looks_and_ends_at_once(port: int, tmp_path: Path, relays: Relays) -> None:
    files = of_run(tmp_path, 6)
    relay = relays(tmp_path, f"http://127.0.0.1:{port}")
    ended = threading.Event()
    thread = threading.Thread(target=relay.run, args=[ended], daemon=True)
    thread.start()
    wait_for(lambda: held(port, run_id(6)) == files, 30)
    began = time.monotonic()
    ended.set()
    thread.join(10)
    assert not thread.is_alive()
    assert time.monotonic() - began < 5
    assert run_id(6) != RUN
