"""Pictures of the live view for the docs: a real search of Quarterstep, its backend, and Chromium.

    python -m benchmarks.live_screenshots [--chromium /usr/bin/chromium]
    RETRO_LIVE_VIEW_KEY=... python -m benchmarks.live_screenshots --url http://127.0.0.1:8090

Needs playwright from PyPI and a Chromium. Writes docs/figures/live_*.png; takes some minutes. With --url the
pictures are of a search that runs elsewhere and has found a movie and a faster piece.
"""

import argparse
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.live_page import BRIGHT, backend, browser
from harness.errors import Unavailable, run_command
from harness.files import write_atomic
from harness.track import ROOT
from retro.live.keys import VIEW, read_key

FIGURES = ROOT / "docs" / "figures"
WAIT = 300_000  # ms
TRIES = 100  # pictures of the page, until one shows a frame that is not black

_HALFWAY = """() => {
  const film = document.querySelector("#comparison");
  film.pause();
  if (film.duration) film.currentTime = film.duration / 2;
}"""
"""Stop the comparison, if there is one, where something is to be seen."""

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
    parser.add_argument("--chromium", help="the program; default: the one in PATH")
    parser.add_argument("--url", help="of a backend that shows a search")
    arguments = parser.parse_args()
    with browser(arguments.chromium) as opened:
        page = opened.new_page(viewport={"width": 1280, "height": 800}, color_scheme="dark")
        page.set_default_timeout(WAIT)
        if arguments.url is not None:
            url = arguments.url.rstrip("/")
            _open(page, url, read_key(VIEW, None))
            _pictures(page, url)
            _faster(page, url)
            return 0
        with tempfile.TemporaryDirectory() as name, backend(Path(name, "data")) as (url, environment):
            _open(page, url, environment[VIEW])
            _search(page, Path(name), url, environment)
    return 0


def _open(page: Any, url: str, key: str) -> None:
    page.goto(f"{url}/#key={key}")
    page.wait_for_selector("#splits")


def _search(page: Any, folder: Path, url: str, environment: dict[str, str]) -> None:
    """Search, and take pictures while what was found gets faster."""
    run, config = folder / "run", folder / "config.toml"
    config.write_text(CONFIG)
    search = _python(
        "run", "search", "quarterstep", config, "--until", "level-3", "--out", run, "--live", url
    )
    subprocess.run(search, cwd=ROOT, env=environment, check=True)
    page.wait_for_function("() => document.querySelector('#movie').readyState >= 2")
    (folder / "improve.toml").write_text(CONFIG.replace("shave = 0", "shave = 4000"))
    improve = _python(
        "run", "improve", run, "--config", folder / "improve.toml", "--workers", 4, "--live", url
    )
    with subprocess.Popen(improve, cwd=ROOT, env=environment) as process:
        page.wait_for_function("() => document.querySelector('#state').textContent === 'level-2'")
        _pictures(page, url)
        process.wait()
    _faster(page, url)


def _pictures(page: Any, url: str) -> None:
    """Of the page, on a phone too, and of the page for OBS, while a search runs."""
    page.wait_for_function("() => document.querySelector('#badge').className.includes('live')")
    page.wait_for_function("() => document.querySelector('#movie').readyState >= 2")
    page.locator("#rows button:not(:disabled)").nth(2).click()
    page.evaluate("() => document.querySelector('#movie').play()")
    page.wait_for_function("() => document.querySelector('#movie').currentTime > 2")
    page.evaluate("() => document.querySelector('#movie').pause()")
    page.evaluate(_HALFWAY)
    time.sleep(1)
    _save("live_page", lambda: _whole(page))
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="light")
    time.sleep(1)  # colours fade
    _save("live_phone", lambda: _whole(page))
    page.set_viewport_size({"width": 460, "height": 520})
    page.goto(f"{url}/obs?solid")
    page.wait_for_selector("#rows tr")
    time.sleep(1)
    _save("live_obs", page.screenshot)


def _whole(page: Any) -> bytes:
    """The whole page, with a newest frame that is not black, as those between two levels are."""
    page.wait_for_function("() => document.querySelector('#movie').readyState >= 2")
    for _ in range(TRIES):
        page.wait_for_function(BRIGHT)
        taken: bytes = page.screenshot(full_page=True)
        if page.evaluate(BRIGHT):  # a newer one may have come while it was taken
            return taken
    raise Unavailable("every frame is black", remedy="wait until the search is in a level")


def _faster(page: Any, url: str) -> None:
    """Of the comparison."""
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(url)
    page.wait_for_function("() => document.querySelector('#comparison').currentTime > 1")
    _save("live_comparison", page.locator("#faster-card").screenshot)


def _save(name: str, take: Callable[[], bytes]) -> None:
    """A picture in few colours, which makes it small."""
    content = io.BytesIO()
    Image.open(io.BytesIO(take())).quantize(256, dither=Image.Dither.NONE).save(content, "png", optimize=True)
    write_atomic(FIGURES / f"{name}.png", content.getvalue())
    print(f"docs/figures/{name}.png: {len(content.getvalue()):,} bytes", flush=True)


def _python(module: str, *words: object) -> list[str]:
    return [sys.executable, "-m", f"retro.{module}", *map(str, words)]


if __name__ == "__main__":
    run_command(main)
