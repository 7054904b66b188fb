"""Live views without a search: a snapshot, pictures and videos of a few pixels, a true route, a backend."""

import io
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import requests
from PIL import Image

from harness.files import sha256_bytes
from harness.track import ROOT
from retro.inputs import format_inputs, parse_inputs
from retro.live.keys import UPLOAD, VIEW
from retro.live.relay import Relay
from retro.live.snapshot import COMPARISON, FRAME, MOSAIC, MOVIE, RAM, SNAPSHOT
from retro.packages import load_package
from retro.replay import replay_fresh
from retro.search.route import Piece

UPLOAD_KEY, VIEW_KEY = "the-key-of-the-relay", "the-key-of-whoever-looks"
RUN = "0123456789abcdef" * 2
OWNER = {"Authorization": f"Bearer {UPLOAD_KEY}"}
LOOKER = {"Authorization": f"Bearer {VIEW_KEY}"}


def snapshot(**changes: Any) -> dict[str, Any]:
    """A snapshot as plain values, some of them changed at the top level."""
    search = {"doing": "search", "state": "level-2", "goal": "reach the exit", "frames": 10, "budget": 100}
    search |= {"cells": 3, "dropped": 0, "deaths": 1, "best": None, "workers": 2, "frames_per_s": 1.5}
    line = {"utc": "2026-11-30T17:00:00Z", "event": "piece", "state": "level-1", "frames": 60, "saved": None}
    utc = {"began_utc": "2026-11-30T17:00:00Z", "updated_utc": "2026-11-30T17:00:05Z"}
    run = {"id": RUN, "game": "Game-Nes-v0", "title": "Game", "rom_sha256": "5" * 64, "seed": 1}
    splits = [
        {"state": "power-on", "goal": "", "frames": 20, "entered": 0, "best_before": None},
        {"state": "level-1", "goal": "run", "frames": 40, "entered": 20, "best_before": 44},
    ]
    counts = {"pieces": 2, "levels_beaten": 1, "found": 2, "improved": 1, "checkpoints": 0, "stuck": 0}
    return {
        "version": 1,
        "run": {**run, **utc, "console_rate": 60.0},
        "time": {"frames": 60, "start_frame": 20},
        "splits": splits,
        "search": {**search, "attempt": 0},
        "counts": {**counts, "frames_shaved": 4},
        "journal": [{**line, "note": "40 frames"}],
        "movie": None,
        **changes,
    }


@cache
def picture(shade: int = 0) -> bytes:
    """A PNG."""
    content = io.BytesIO()
    Image.fromarray(np.full((8, 8, 3), shade, np.uint8)).save(content, "png")
    return content.getvalue()


@cache
def video(frames: int = 4) -> bytes:
    """An MP4 of noise, so that its size grows with its frames."""
    content = io.BytesIO()
    generator = np.random.default_rng(1)
    with av.open(content, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for _ in range(frames):
            noise = generator.integers(0, 256, (64, 64, 3), np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(noise)))
        container.mux(stream.encode(None))
    return content.getvalue()


def publish(folder: Path, frames: int = 4, **changes: Any) -> dict[str, bytes]:
    """Write a whole live view into a run folder; name -> content."""
    movie = {"sha256": sha256_bytes(video(frames)), "frames": frames, "verified": True}
    ram = {
        "movie": movie["sha256"],
        "names": ["x", "y"],
        "every": 1,
        "values": [[n, 0] for n in range(frames)],
    }
    content = {
        SNAPSHOT: json.dumps(snapshot(movie=movie, **changes)).encode(),
        FRAME: picture(1),
        MOSAIC: picture(2),
        RAM: json.dumps(ram).encode(),
        MOVIE: video(frames),
        COMPARISON: video(3),
    }
    (folder / "live").mkdir(exist_ok=True)
    for name, data in content.items():
        partial = folder / "live" / f".{name}"
        partial.write_bytes(data)
        partial.replace(folder / "live" / name)
    return content


def route(inputs: str, spec: str = "quarterstep") -> list[Piece]:
    """The pieces of a movie, as its replay splits it."""
    package = load_package(spec)
    masks = parse_inputs(inputs, package.console_buttons)
    shown = replay_fresh(spec, masks, hash_every=1)
    edges = [("power-on", 0), *shown.splits.items()]
    pieces = []
    for (state, start), (entered, end) in pairwise(edges):
        text = format_inputs(masks[start:end], package.console_buttons)
        hashed = shown.ram_hashes[end - 1]
        pieces.append(Piece(state, entered, text, end - start, hashed, "solved", end - start, 9, 1, 1, 0, 0))
    return pieces


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def backend(data: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A backend in a process of its own, ready."""
    keys = {UPLOAD: UPLOAD_KEY, VIEW: VIEW_KEY}
    command = [sys.executable, "-m", "retro.live.backend", "--port", str(port), "--data", str(data)]
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **keys}, stdout=subprocess.DEVNULL
    ) as process:
        try:
            wait_for(lambda: answers(port), 60)
            yield process
        finally:
            process.terminate()


def answers(port: int) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{port}/api/runs", timeout=5).status_code == 401
    except requests.ConnectionError:
        return False


def held(port: int, run: str = RUN) -> dict[str, bytes]:
    """Every file of a run that a backend shows: name -> content."""
    with requests.get(
        f"http://127.0.0.1:{port}/api/runs/{run}/events", headers=LOOKER, stream=True, timeout=20
    ) as answer:
        if answer.status_code == 404:
            return {}
        line = next(line for line in answer.iter_lines() if line.startswith(b"data: "))
        files: dict[str, str] = json.loads(line[6:])["files"]
    found = {}
    for name, digest in files.items():
        address = f"http://127.0.0.1:{port}/api/runs/{run}/{name}/{digest}"
        found[name] = requests.get(address, headers=LOOKER, timeout=20).content
    return found


def wait_for(true: Any, seconds: float) -> None:
    """Until it is true; fails after so many seconds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not true after {seconds} s"
        time.sleep(0.05)


def run_id(number: int) -> str:
    return f"{number:032x}"


def of_run(folder: Path, number: int, frames: int = 4) -> dict[str, bytes]:
    return publish(folder, frames, run={**snapshot()["run"], "id": run_id(number)})


def to_the_end(relay: Relay, cycles: int = 500) -> int:
    """Cycles until nothing is left to send."""
    for number in range(cycles):
        if not relay.cycle():
            return number
    raise AssertionError(f"something is left after {cycles} cycles")
