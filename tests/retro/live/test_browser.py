"""The pages in a real browser, while a real search of Quarterstep runs."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browsers
import pytest
from live_views import (
    RUN,
    UPLOAD_KEY,
    VIEW_KEY,
    backend,
    free_port,
    publish,
    snapshot,
    wait_for,
)  # fmt: skip

from harness.files import read_bytes
from harness.track import ROOT
from retro.inputs import parse_inputs
from retro.live.keys import UPLOAD
from retro.live.relay import Relay
from retro.live.snapshot import parse_snapshot
from retro.packages import load_package
from retro.search.route import read_route
from retro.trace import trace

pytestmark = pytest.mark.skipif(bool(browsers.missing()), reason=browsers.missing())

CONFIG = """
seed = 3
workers = 1
frames = 60000
patience = 3000
items = 4
item_frames = 500
cells = 4000
crossings = 2
lookahead = 0
shave = 0
settle = 3
modes = {walks = 60, frontier = 20, tree = 20}
"""
WAIT = 120_000  # ms, on a machine that is busy with other things


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.browser() as opened:
        yield opened


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Of a backend of its own."""
    port = free_port()
    with backend(tmp_path / "data", port):
        yield port


@pytest.fixture
def page(browser: Any, port: int) -> Iterator[Any]:
    """A page that has been given the key; afterwards no script may have failed."""
    failed: list[str] = []
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto(f"http://127.0.0.1:{port}/#key={VIEW_KEY}")
        page.wait_for_selector("#splits")
        yield page
    assert failed == []


def ram_of(page: Any) -> dict[str, str]:
    """The table of variables."""
    cells = page.locator("#ram td").all_inner_texts()
    return dict(zip(cells[::2], cells[1::2], strict=True))


def test_a_search_is_seen_as_it_runs_and_its_movie_afterwards(page: Any, port: int, tmp_path: Path) -> None:
    wait_for(lambda: page.locator("#badge").inner_text() == "waiting for a run", 30)
    (tmp_path / "config.toml").write_text(CONFIG)
    command = [sys.executable, "-m", "retro.run", "search", "quarterstep", str(tmp_path / "config.toml")]
    options = ["--until", "level-2", "--out", str(tmp_path / "run"), "--live", f"http://127.0.0.1:{port}"]
    with subprocess.Popen(
        [*command, *options], cwd=ROOT, env={**os.environ, UPLOAD: UPLOAD_KEY}, stderr=subprocess.DEVNULL
    ) as search:
        try:
            page.wait_for_function("() => document.querySelector('#badge').textContent === 'live'")
            assert page.locator("h1").inner_text() == "Quarterstep"
            assert page.title() == "Quarterstep live"

            page.wait_for_selector("#frame:not([hidden])")
            first = page.get_attribute("#frame", "src")
            page.wait_for_function(
                "(src) => document.querySelector('#frame').src !== src",
                arg=page.evaluate("() => document.querySelector('#frame').src"),
            )
            assert page.get_attribute("#frame", "src") != first
            assert page.evaluate("() => document.querySelector('#frame').naturalHeight") == 224
            assert page.locator("#mosaic").is_visible()

            page.wait_for_function("() => document.querySelector('#state').textContent === 'level-1'")
            assert page.locator("#rows tr:not(.open)").count() >= 1
            page.wait_for_function("() => document.querySelectorAll('#rows tr:not(.open)').length === 3")
            assert search.wait(120) == 0
        finally:
            search.kill()
    route = read_route(tmp_path / "run")
    shown = parse_snapshot(read_bytes(tmp_path / "run" / "live" / "snapshot.json"))
    assert shown.time.frames == route.frames
    assert shown.movie is not None
    page.wait_for_function("() => document.querySelector('#badge').textContent === 'at rest'")
    assert page.locator("#frames").inner_text() == f"{route.frames:,}"
    assert page.locator("#journal li").count() == 5
    assert page.locator("#verified").inner_text() == f"{route.frames} frames, verified from power-on"

    # The movie, from the split that is clicked, and what lies in RAM then.
    page.wait_for_function("() => document.querySelector('#movie').readyState >= 2")
    package = load_package("quarterstep")
    masks = [mask for piece in route.pieces for mask in parse_inputs(piece.inputs, package.console_buttons)]
    names = tuple(package.variables)
    values = trace("quarterstep", masks, names)[:, 1:]
    for place, entered in ((2, 40), (1, 21), (0, 0)):
        page.locator("#rows button").nth(place).click()
        page.wait_for_function(f"() => document.querySelector('#at').textContent === 'frame {entered}'")
        assert ram_of(page) == {name: str(value) for name, value in zip(names, values[entered], strict=True)}
        assert page.locator("#rows tr.playing .name").inner_text() == route.pieces[place].state
    page.evaluate("() => document.querySelector('#movie').play()")
    page.wait_for_function("() => document.querySelector('#movie').currentTime > 1.5")
    page.evaluate("() => document.querySelector('#movie').pause()")
    time.sleep(0.5)  # the last frame is shown
    frame = int(page.locator("#at").inner_text().removeprefix("frame "))
    assert frame >= 80
    assert ram_of(page) == {name: str(value) for name, value in zip(names, values[frame], strict=True)}
    assert page.locator("#rows tr.playing .name").inner_text() == "level-1"

    page.goto(f"http://127.0.0.1:{port}/obs")
    page.wait_for_selector("#rows tr")
    assert page.locator("#rows tr td:first-child").all_inner_texts() == ["level-1"]
    assert (
        page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
        == "rgba(0, 0, 0, 0)"
    )


def test_a_hostile_run_is_text_and_nothing_else(page: Any, port: int, tmp_path: Path) -> None:
    evil = "<img src=x onerror=window.pwned=1><script>window.pwned=1</script>\"'&lt;"
    line = {**snapshot()["journal"][0], "state": evil, "note": evil, "utc": evil}
    split = {**snapshot()["splits"][1], "state": evil, "goal": evil}
    publish(
        tmp_path,
        run={**snapshot()["run"], "title": evil},
        journal=[line],
        splits=[split],
        search={**snapshot()["search"], "state": "x" + evil, "goal": evil},
    )
    with Relay(tmp_path, f"http://127.0.0.1:{port}", UPLOAD_KEY) as relay:
        wait_for(lambda: not relay.cycle(), 30)
    for address in ("/", "/obs"):
        page.goto(f"http://127.0.0.1:{port}{address}")
        page.wait_for_selector("#rows tr")
        assert page.locator("h1").inner_text() == evil
        assert page.evaluate("() => window.pwned") is None
        assert page.locator("img[src=x]").count() == 0
        assert page.locator("script").count() == 1
    page.goto(f"http://127.0.0.1:{port}/")
    page.wait_for_selector("#journal li")
    assert page.locator("#journal li span").inner_text() == f"{evil}: {evil}"
    page.set_viewport_size({"width": 375, "height": 800})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 375


def test_without_the_key_nothing_is_seen(browser: Any, port: int) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{port}/?run={RUN}#key=not-the-key-at-all")
        page.wait_for_function("() => document.querySelector('#said').textContent !== ''")
        assert "#" not in page.url
        page.fill("#key", VIEW_KEY)
        page.keyboard.press("Enter")
        page.wait_for_selector("#splits")
        assert page.url.endswith(f"/?run={RUN}")
        assert page.evaluate("() => document.cookie") == ""


def test_colours_are_chosen_and_kept(page: Any) -> None:
    ground = "() => getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(ground)
    page.emulate_media(color_scheme="light")
    assert page.evaluate(ground) != dark
    page.click("#theme")
    assert page.evaluate(ground) == dark
    page.reload()
    page.wait_for_selector("#splits")
    assert page.evaluate(ground) == dark
    assert page.locator("#theme").inner_text() == "Light"
