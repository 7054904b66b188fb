"""Pictures of the live view for the docs: a real search of Quarterstep, its backend, and Chromium.

    python -m benchmarks.live_screenshots [--chromium /usr/bin/chromium]

Needs playwright from PyPI and a Chromium. Writes docs/figures/live_*.png; takes some minutes.
"""

import argparse
import io
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import requests
from PIL import Image

from harness.errors import Unavailable, run_command
from harness.files import write_atomic
from harness.track import ROOT
from retro.live.keys import UPLOAD, VIEW

FIGURES = ROOT / "docs" / "figures"
PORT = 8093
URL = f"http://127.0.0.1:{PORT}"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--autoplay-policy=no-user-gesture-required"),
)
_BRIGHT = """() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 16;
  const context = canvas.getContext("2d");
  context.drawImage(document.querySelector("#frame"), 0, 0, 16, 16);
  return context.getImageData(0, 0, 16, 16).data.reduce((sum, value) => sum + value) > 256 * 255 + 10000;
}"""
"""Whether the newest frame is not black, as it is between two levels."""

CONFIG = """
seed = 3
workers = 4
frames = 60000
patience = 3000
items = 8
item_frames = 500
cells = 4000
crossings = 1
lookahead = 0
shave = 0
settle = 3
modes = {walks = 60, frontier = 20, tree = 20}
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_screenshots", description=__doc__)
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    chromium = parser.parse_args().chromium
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError as error:
        raise Unavailable("playwright is not installed", remedy="pip install playwright") from error
    if not chromium:
        raise Unavailable("there is no chromium", remedy="apt-get install chromium, or name it")
    keys = {UPLOAD: secrets.token_urlsafe(24), VIEW: secrets.token_urlsafe(24)}
    environment = {**os.environ, **keys}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        (folder / "config.toml").write_text(CONFIG)
        with subprocess.Popen(
            _python("live.backend", "--port", PORT, "--data", folder), env=environment
        ) as backend:
            browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
            try:
                _wait_for_backend()
                page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="dark")
                page.set_default_timeout(300_000)
                page.goto(f"{URL}/#key={keys[VIEW]}")
                page.wait_for_selector("#splits")
                _show(page, folder, environment)
            finally:
                browser.close()
                backend.terminate()
    return 0


def _show(page: Any, folder: Path, environment: dict[str, str]) -> None:
    """Search, and take pictures while what was found gets faster."""
    run, config = folder / "run", folder / "config.toml"
    search = _python(
        "run", "search", "quarterstep", config, "--until", "level-3", "--out", run, "--live", URL
    )
    subprocess.run(search, env=environment, check=True)
    page.wait_for_function("() => document.querySelector('#movie').readyState >= 2")
    (folder / "improve.toml").write_text(CONFIG.replace("shave = 0", "shave = 4000"))
    improve = _python(
        "run", "improve", run, "--config", folder / "improve.toml", "--workers", 4, "--live", URL
    )
    with subprocess.Popen(improve, env=environment):
        page.wait_for_function("() => document.querySelector('#badge').className.includes('live')")
        page.wait_for_function("() => document.querySelector('#state').textContent === 'level-2'")
        page.wait_for_function(_BRIGHT)
        page.locator("#rows button:not(:disabled)").nth(2).click()
        page.evaluate("() => document.querySelector('#movie').play()")
        page.wait_for_function("() => document.querySelector('#movie').currentTime > 2")
        page.evaluate("() => document.querySelector('#movie').pause()")
        time.sleep(1)
        _save(page, "live_page", full_page=True)
        page.set_viewport_size({"width": 390, "height": 844})
        page.emulate_media(color_scheme="light")
        time.sleep(1)
        _save(page, "live_phone", full_page=True)
        page.set_viewport_size({"width": 460, "height": 400})
        page.goto(f"{URL}/obs?solid")
        page.wait_for_selector("#rows tr")
        time.sleep(1)
        _save(page, "live_obs")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(URL)
    page.wait_for_function("() => document.querySelector('#comparison').currentTime > 1")
    _save(page.locator("#faster-card"), "live_comparison")


def _save(of: Any, name: str, **whole: bool) -> None:
    """A picture in few colours, which makes it small."""
    content = io.BytesIO()
    Image.open(io.BytesIO(of.screenshot(**whole))).quantize(256, dither=Image.Dither.NONE).save(
        content, "png", optimize=True
    )
    write_atomic(FIGURES / f"{name}.png", content.getvalue())
    print(f"docs/figures/{name}.png: {len(content.getvalue()):,} bytes", flush=True)


def _python(module: str, *words: object) -> list[str]:
    return [sys.executable, "-m", f"retro.{module}", *map(str, words)]


def _wait_for_backend() -> None:
    for _ in range(300):
        try:
            requests.get(URL, timeout=5)
            return
        except requests.ConnectionError:
            time.sleep(0.2)
    raise Unavailable("the backend does not answer")


if __name__ == "__main__":
    run_command(main)
