"""The page of the live view in a headless Chromium, for benchmarks: its backend, and what it shows.

Needs playwright from PyPI and a Chromium.
"""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import requests

from harness.errors import Unavailable
from harness.track import ROOT
from retro.live.keys import UPLOAD, VIEW

_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--autoplay-policy=no-user-gesture-required"),
)
BRIGHT = """() => {
  const image = document.querySelector("#frame");
  if (!image.complete || !image.naturalWidth) return false;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 16;
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0, 16, 16);
  return context.getImageData(0, 0, 16, 16).data.reduce((sum, value) => sum + value) > 256 * 255 + 10000;
}"""
"""Whether the newest frame is not black, as it is between two levels."""
_LOOK = """() => {
  const text = (id) => document.getElementById(id).textContent;
  const texts = (row, what) => [...row.querySelectorAll(what)].map((cell) => cell.textContent);
  return {
    badge: text("badge"), frame: document.getElementById("frame").src, time: text("power"),
    frames: text("frames"), movie: text("verified"),
    splits: [...document.querySelectorAll("#rows tr:not(.open)")].map(
      (row) => [texts(row, ".name")[0], texts(row, "td")[1]]),
    journal: [...document.querySelectorAll("#journal li")].map(
      (line) => [line.querySelector("time").dateTime, texts(line, "b")[0], texts(line, "span")[0]]),
  };
}"""
_PLAYED = """(from) => {
  const movie = document.querySelector("#movie");
  return movie.currentTime > from + 0.5 || movie.ended;
}"""


class Look(NamedTuple):
    """What the page says at one moment."""

    badge: str
    run: str
    """Its id."""
    newest: str
    """SHA-256 of the newest frame; "" = none is shown."""
    time: str
    """From power-on, m:ss.ff."""
    frames: str
    """Of the run so far."""
    movie: str
    splits: tuple[tuple[str, str], ...]
    """(state, frames)."""
    journal: frozenset[tuple[str, str, str]]
    """(utc, event, the rest) of the lines that are shown."""


def look(page: Any) -> Look:
    """Read the page."""
    said = page.evaluate(_LOOK)
    source = said["frame"].split("/")  # .../api/runs/<run>/frame.png/<sha256>
    run, newest = (source[-3], source[-1]) if len(source) > 3 else ("", "")
    splits = tuple((name, frames) for name, frames in said["splits"])
    journal = frozenset((utc, event, rest) for utc, event, rest in said["journal"])
    return Look(said["badge"], run, newest, said["time"], said["frames"], said["movie"], splits, journal)


def play(page: Any, seconds: float) -> bool:
    """Click on the last split of the movie and play half a second of it; whether RAM went along."""
    from playwright.sync_api import Error

    page.set_default_timeout(1000 * seconds)
    try:
        page.wait_for_function("() => document.querySelector('#movie').readyState >= 2")
        page.locator("#rows button:not(:disabled)").last.click()
        page.wait_for_function("() => !document.querySelector('#movie').seeking")
        before = page.locator("#ram td").all_inner_texts(), page.locator("#at").inner_text()
        start = page.evaluate("() => document.querySelector('#movie').currentTime")
        page.evaluate("() => document.querySelector('#movie').play()")
        page.wait_for_function(_PLAYED, arg=start)
        after = page.locator("#ram td").all_inner_texts(), page.locator("#at").inner_text()
        return bool(before[0]) and before[0] != after[0] and before[1] != after[1]
    except Error:
        return False
    finally:
        page.evaluate("() => document.querySelector('#movie')?.pause()")


@contextmanager
def backend(data: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """(its address, environment with its keys) of a backend at a free port; keys of the environment stay."""
    keys = {name: os.environ.get(name) or secrets.token_urlsafe(24) for name in (UPLOAD, VIEW)}
    environment = {**os.environ, **keys}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "retro.live.backend", "--port", str(port), "--data", str(data)]
    with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for(url)
            yield url, environment
        finally:
            process.terminate()


@contextmanager
def browser(chromium: str | None = None) -> Iterator[Any]:
    """Chromium without a screen."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError as error:
        raise Unavailable("playwright is not installed", remedy="pip install playwright") from error
    path = chromium or shutil.which("chromium")
    if path is None:
        raise Unavailable("there is no chromium", remedy="apt-get install chromium, or name it")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        try:
            yield opened
        finally:
            opened.close()


def _wait_for(url: str) -> None:
    for _ in range(300):
        try:
            requests.get(url, timeout=5)
            return
        except requests.ConnectionError:
            time.sleep(0.2)
    raise Unavailable("the backend does not answer")
