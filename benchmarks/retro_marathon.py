"""A marathon that is killed and started again: what its movie took over time, and that it never got worse.

    python -m benchmarks.retro_marathon quarterstep marathon --minutes 60 --kills 6 --page

Each start but the last is ended by `kill -9`, after a time that is drawn from the seed; the last ends at its
bound. After each the movie on disk is replayed from power-on in a fresh process and compared with what it
claims. With --page the marathon has a live view, whose backend and page, in a headless Chromium, are open all
the while; the page is looked at now and then, and its movie played once a start. The tables tell of that;
with --figure the movie's frames over time are drawn as SVG. Exit status 1: something is not as it should be.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from benchmarks import live_page
from benchmarks.live_page import Look
from harness import figures
from harness.errors import Problem, run_command
from harness.files import read_jsonl, sha256_file, write_atomic
from harness.track import ROOT
from retro.config import MARATHON, config_file
from retro.live.keys import VIEW
from retro.marathon.journal import JOURNAL
from retro.marathon.store import MOVIE
from retro.packages import load_package
from retro.replay import verify
from retro.search.route import read_route

EVERY = 10.0  # seconds between two looks at the page
PATIENCE = 20.0  # seconds for its movie to play
LAST = 300.0  # seconds that the last start may take beyond its bound: its movie is filmed and uploaded


class Start(NamedTuple):
    """One start: what stood on disk when it had ended, and what the page had shown."""

    seconds: float
    """Since the first start."""
    ended: str
    frames: int
    """Of the movie; 0 = there was none yet."""
    reached: str
    """The last state that it enters."""
    differences: list[str]
    looks: list[Look]
    live_after: float | None
    """Seconds until the page showed a new frame of this start."""
    played: bool
    """Whether the movie played on the page."""


class Watch:
    """Looks at the page, all starts long."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.failed: list[str] = []
        page.on("pageerror", lambda error: self.failed.append(str(error)))
        self.looks: list[Look] = []
        self.begin()

    def begin(self) -> None:
        """Another start."""
        self._began = time.monotonic()
        self.looks = []
        self.live_after: float | None = None
        self.played = False
        self.look()
        self._before = self.looks[-1].newest if self.looks else ""

    def look(self) -> None:
        """Now; what goes wrong is kept."""
        from playwright.sync_api import Error

        try:
            self._look()
        except Error as error:
            self.failed.append(f"the page cannot be looked at: {error}")

    def _look(self) -> None:
        self.looks.append(one := live_page.look(self.page))
        if len(self.looks) == 1:  # as it stood before this start
            return
        if self.live_after is None and one.newest not in ("", self._before) and one.badge == "live":
            self.live_after = time.monotonic() - self._began
        if self.live_after is not None and not self.played and one.movie:
            self.played = live_page.play(self.page, PATIENCE)

    def rest(self) -> None:
        """The last look, when the search has ended."""
        for _ in range(30):
            time.sleep(2)
            self.look()
            if self.looks and self.looks[-1].badge == "at rest":
                return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("package")
    parser.add_argument("config")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1, help="of the times of the kills")
    parser.add_argument("--out", type=Path, default=Path("outputs/retro/marathon_benchmark"))
    parser.add_argument("--page", action="store_true", help="a live view is published, and looked at")
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    folder = arguments.out / "run"
    if folder.exists():
        raise Problem("holds a marathon", file=folder, remedy="remove it: this one begins anew")
    folder.mkdir(parents=True)
    generator = random.Random(arguments.seed)
    whole = 60 * arguments.minutes
    times = sorted(generator.uniform(0.02, 0.98) * whole for _ in range(arguments.kills))
    with page_of(arguments.out, arguments.config, arguments.page) as (config, environment, watch):
        command = [sys.executable, "-m", "retro.run", "marathon", arguments.package, config]
        starts = run([*command, "--out", str(folder.resolve())], folder, [*times, whole], environment, watch)
    faults = show(starts, folder, watch)
    if arguments.figure is not None:
        title = load_package(arguments.package).title
        write_atomic(arguments.figure, draw(folder, title, [start.seconds / 60 for start in starts]))
    return 1 if faults else 0


@contextmanager
def page_of(out: Path, config: str, wanted: bool) -> Iterator[tuple[str, dict[str, str], Watch | None]]:
    """(configuration, environment, the page) of a marathon, with a backend and a browser if wanted."""
    if not wanted:
        yield config, dict(os.environ), None
        return
    with live_page.backend(out / "backend") as (url, environment), live_page.browser() as opened:
        print(f"The page: {url}", flush=True)
        text = config_file(config, [MARATHON]).read_text()
        text = re.sub("(?m)^live = .*$", "live = true", text)
        text = re.sub("(?m)^live_url = .*$", f'live_url = "{url}"', text)
        (out / "config.toml").write_text(text)
        page = opened.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        page.goto(f"{url}/#key={environment[VIEW]}")
        page.wait_for_selector("#splits")
        yield str((out / "config.toml").resolve()), environment, Watch(page)


def run(
    command: list[str], folder: Path, times: list[float], environment: dict[str, str], watch: Watch | None
) -> list[Start]:
    """Starts that are ended at these seconds; the last of them ends by itself."""
    began, starts = time.monotonic(), []
    for number, until in enumerate(times, 1):
        last = number == len(times)
        left = max(1.0, until - (time.monotonic() - began))
        bound = ["--hours", f"{left / 3600:.4f}"] if last else []
        if watch is not None:
            watch.begin()
        with subprocess.Popen([*command, *bound], cwd=ROOT, env=environment) as process:
            deadline = time.monotonic() + left + (LAST if last else 0)
            while process.poll() is None and (now := time.monotonic()) < deadline:
                if watch is not None:
                    watch.look()
                try:
                    process.wait(max(0.0, min(EVERY, deadline - now)))
                except subprocess.TimeoutExpired:
                    continue
            status = process.poll()
            process.kill()
            if status != (0 if last else None):
                raise Problem(f"the marathon's start {number} ended with status {status}")
        if last and watch is not None:
            watch.rest()
        starts.append(_start(folder, time.monotonic() - began, "its bound" if last else "kill -9", watch))
        print(f"start {number}: {starts[-1]._replace(looks=starts[-1].looks[-1:])}", flush=True)
    return starts


def _start(folder: Path, seconds: float, ended: str, watch: Watch | None) -> Start:
    """What stands on disk, replayed, and what was seen."""
    frames, reached, differences = 0, "", list[str]()
    if (folder / MOVIE).exists():
        shown = verify(folder / MOVIE)
        frames, reached, differences = shown.replay.frames, list(shown.replay.splits)[-1], shown.differences
    seen = (watch.looks, watch.live_after, watch.played) if watch is not None else ([], None, False)
    return Start(seconds, ended, frames, reached, differences, *seen)


def show(starts: list[Start], folder: Path, watch: Watch | None) -> list[str]:
    """Tell what stood on disk after each start, what the page showed, and all that the journal says; what of
    it is not as it should be."""
    console = Console(width=110)
    table = Table(title="After each start", title_justify="left")
    left = ("ended by", "reaches", "its replay", "movie on the page")
    for name in ("minutes", "ended by", "movie's frames", "reaches", "its replay"):
        table.add_column(name, justify="left" if name in left else "right")
    if watch is not None:
        for name in ("page live after, s", "movie on the page"):
            table.add_column(name, justify="left" if name in left else "right")
    for one in starts:
        on_disk = [f"{one.frames:,}", one.reached, "; ".join(one.differences) or "as it claims"]
        live = "" if one.live_after is None else f"{one.live_after:.0f}"
        on_page = [live, "played" if one.played else ""] if watch is not None else []
        table.add_row(
            f"{one.seconds / 60:.1f}", one.ended, *(on_disk if one.frames else ["", "", ""]), *on_page
        )
    console.print(table)
    counts: dict[str, int] = {}
    lines = [line for _, line in read_jsonl(folder / JOURNAL)]
    for line in lines:
        counts[line["event"]] = counts.get(line["event"], 0) + 1
    console.print("Journal: " + ", ".join(f"{count} {event}" for event, count in counts.items()))
    package = load_package(read_route(folder).package)
    order = [(package.state_index(one.reached), -one.frames) for one in starts if one.frames]
    bests = [frames for _, frames in progress(folder)]
    faults = [] if order == sorted(order) else ["a later movie is worse"]
    if bests != sorted(bests, reverse=True):
        faults.append("the journal tells of a worse movie")
    if not starts[-1].frames or any(one.differences for one in starts):
        faults.append("a movie is not what it claims")
    kills = sum(one.ended == "kill -9" for one in starts)
    console.print(f"{kills} kills, {len(starts)} starts; frames of the best movie: " + _told(bests))
    console.print(f"{MOVIE}: {starts[-1].frames:,} frames, sha256 {sha256_file(folder / MOVIE)}")
    if watch is not None:
        faults += seen(console, starts, folder, lines, watch.failed)
    for fault in faults:
        console.print(f"FAULT: {fault}")
    return faults


def _told(bests: list[int]) -> str:
    return ", ".join(f"{frames:,}" for frames in bests) or "the ending was not reached"


def seen(
    console: Console, starts: list[Start], folder: Path, lines: list[dict[str, Any]], failed: list[str]
) -> list[str]:
    """Tell what the page showed; what of it is not so on disk."""
    looks = [look for start in starts for look in start.looks]
    final, pieces = looks[-1], read_route(folder).pieces
    runs = {look.run for look in looks if look.run}
    told = {(line["utc"], line["event"], _rest(line)) for line in lines}
    journal = {line for look in looks for line in look.journal}
    live = [start for start in starts if start.live_after is not None]
    console.print(
        f"The page, opened once: {len(looks)} looks; one run, {', '.join(sorted(runs))}; "
        f"{len({look.newest for look in looks if look.newest})} different frames of the game; "
        f"live in {len(live)} of {len(starts)} starts, its movie played in "
        f"{sum(start.played for start in starts)}; {len(told & journal)} of {len(told)} lines of the journal "
        f"seen; {len({look.splits for look in looks})} states of the splits."
    )
    console.print(
        f"At the end: {final.badge}, {final.time}, {final.frames} frames, {len(final.splits)} splits; "
        f"its movie: {final.movie}"
    )
    checks = {
        "the page showed several runs": len(runs) == 1,
        "a start was not seen live": all(one.live_after is not None for one in starts),
        "the movie did not play in the last start": starts[-1].played,
        "lines of the journal were not seen": told <= journal,
        "the page showed milestones that are not in the journal": journal <= told,
        "splits at the end are not those on disk": [*final.splits]
        == [(piece.state, f"{piece.frames:,}") for piece in pieces],
        "frames at the end are not those on disk": final.frames == f"{starts[-1].frames:,}",
        "the movie at the end is not the one on disk": final.movie
        == f"{starts[-1].frames:,} frames, verified from power-on",
    }
    return [*(fault for fault, right in checks.items() if not right), *failed]


def _rest(line: dict[str, Any]) -> str:
    """What the page shows of a line beside its time and event."""
    return ": ".join(filter(None, (line["state"], line["note"])))


def progress(folder: Path) -> list[tuple[float, int]]:
    """(minutes since the first start, frames of the run) from the ending on, of every improvement."""
    lines = [line for _, line in read_jsonl(folder / JOURNAL)]
    first = datetime.fromisoformat(lines[0]["utc"])
    return [
        ((datetime.fromisoformat(line["utc"]) - first).total_seconds() / 60, line["frames"])
        for line in lines
        if line["event"] in ("ending", "improved")
    ]


def draw(folder: Path, title: str, ends: list[float]) -> str:
    """The frames of the movie over time as SVG text; dotted lines are the ends of starts."""
    points = progress(folder)
    if not points:
        raise Problem("the ending was not reached: there is nothing to draw", file=folder)
    minutes, frames = zip(*[*points, (max(ends[-1], points[-1][0]), points[-1][1])], strict=True)
    with figures.style():
        figure = Figure(figsize=(7, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.step(minutes, frames, where="post")
        for end in ends[:-1]:
            axes.axvline(end, linestyle=":", linewidth=0.8, color="0.5")
        axes.set(
            xlabel="minutes; killed at the dotted lines", ylabel="frames of the movie", xlim=(0, minutes[-1])
        )
        axes.set_title(f"{title}: a marathon")
        return figures.svg(figure)


if __name__ == "__main__":
    run_command(main)
