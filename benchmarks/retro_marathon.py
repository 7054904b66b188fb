"""A marathon that is killed and started again: what its movie took over time, and that it never got worse.

    python -m benchmarks.retro_marathon quarterstep marathon --minutes 60 --kills 6

Each start but the last is ended by `kill -9`, after a time that is drawn from the seed; the last is stopped
by SIGTERM. After each the movie on disk is replayed from power-on in a fresh process and compared with what
it claims. The table tells of that; with --figure the movie's frames over time are drawn as SVG.
"""

import argparse
import random
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from harness import figures
from harness.errors import Problem, run_command
from harness.files import read_jsonl, write_atomic
from harness.track import ROOT
from retro.marathon.engine import MOVIE
from retro.marathon.journal import JOURNAL
from retro.packages import load_package
from retro.replay import verify


class Start(NamedTuple):
    """What stood on disk when one start had ended."""

    seconds: float
    """Since the first start."""
    ended: str
    frames: int
    """Of the movie."""
    reached: str
    """The last state that it enters."""
    differences: list[str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("package")
    parser.add_argument("config")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1, help="of the times of the kills")
    parser.add_argument("--out", type=Path, default=Path("outputs/retro/marathon_benchmark"))
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    if (arguments.out / JOURNAL).exists():
        raise Problem("holds a marathon", file=arguments.out, remedy="remove it: this one begins anew")
    generator = random.Random(arguments.seed)
    whole = 60 * arguments.minutes
    times = sorted(generator.uniform(0.02, 0.98) * whole for _ in range(arguments.kills))
    starts = run(arguments.package, arguments.config, arguments.out, [*times, whole])
    show(starts, arguments.out)
    if arguments.figure is not None:
        title = load_package(arguments.package).title
        write_atomic(arguments.figure, draw(arguments.out, title, [start.seconds / 60 for start in starts]))
    order = [(load_package(arguments.package).state_index(one.reached), -one.frames) for one in starts]
    return 0 if order == sorted(order) and not any(start.differences for start in starts) else 1


def run(spec: str, config: str, folder: Path, times: list[float]) -> list[Start]:
    """Starts that are ended at these seconds, the last of them by Ctrl-C."""
    began, starts = time.monotonic(), []
    command = [sys.executable, "-m", "retro.run", "marathon", spec, config, "--out", str(folder.resolve())]
    for number, until in enumerate(times, 1):
        with subprocess.Popen(command, cwd=ROOT) as process:
            try:
                process.wait(max(1.0, until - (time.monotonic() - began)))
                raise Problem(f"the marathon ended by itself with status {process.returncode}")
            except subprocess.TimeoutExpired:
                last = number == len(times)
                process.send_signal(signal.SIGTERM if last else signal.SIGKILL)
        seconds = time.monotonic() - began
        if not (folder / MOVIE).exists():  # killed before there was one
            continue
        shown = verify(folder / MOVIE, spec)
        reached = list(shown.replay.splits)[-1]
        how = "SIGTERM" if last else "kill -9"
        starts.append(Start(seconds, how, shown.replay.frames, reached, shown.differences))
    return starts


def show(starts: list[Start], folder: Path) -> None:
    """Tell what stood on disk after each start, and all that the journal says of the movie."""
    console = Console(width=110)
    table = Table(title="On disk after each start", title_justify="left")
    for name in ("minutes", "ended by", "movie's frames", "reaches", "its replay"):
        table.add_column(name, justify="right" if name in ("minutes", "movie's frames") else "left")
    for start in starts:
        said = "; ".join(start.differences) or "as it claims"
        table.add_row(
            f"{start.seconds / 60:.1f}", start.ended, f"{start.frames:,}", start.reached, said
        )  # fmt: skip
    console.print(table)
    counts: dict[str, int] = {}
    for _, line in read_jsonl(folder / JOURNAL):
        counts[line["event"]] = counts.get(line["event"], 0) + 1
    console.print("Journal: " + ", ".join(f"{count} {event}" for event, count in counts.items()))


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
