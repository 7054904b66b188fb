"""What the benchmarks read off the page."""

from pathlib import Path

import browsers
import pytest
from live_views import RUN, UPLOAD_KEY, VIEW_KEY, backend, free_port, publish, wait_for

from benchmarks.live_page import BRIGHT, look, play
from harness.files import sha256_bytes
from retro.live.relay import Relay

pytestmark = pytest.mark.skipif(bool(browsers.missing()), reason=browsers.missing())


def test_a_look_and_a_movie_that_plays(tmp_path: Path) -> None:
    port = free_port()
    content = publish(tmp_path, 60)
    with backend(tmp_path / "data", port), browsers.browser() as opened:
        page = opened.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"http://127.0.0.1:{port}/#key={VIEW_KEY}")
        page.wait_for_selector("#splits")
        assert look(page).run == look(page).newest == ""
        with Relay(tmp_path, f"http://127.0.0.1:{port}", UPLOAD_KEY) as relay:
            wait_for(lambda: not relay.cycle(), 30)
        wait_for(lambda: look(page).newest, 30)
        found = look(page)
        assert found.badge == "live"
        assert found.run == RUN
        assert found.newest == sha256_bytes(content["frame.png"])
        assert (found.time, found.frames) == ("0:01.00", "60")
        assert found.movie == "60 frames, verified from power-on"
        assert found.splits == (("power-on", "20"), ("level-1", "40"))
        assert found.journal == {("2026-11-30T17:00:00Z", "piece", "level-1: 40 frames")}
        assert page.evaluate(BRIGHT) is False
        assert play(page, 20)
        page.evaluate("() => document.querySelector('#movie').remove()")
        assert not play(page, 0.5)
