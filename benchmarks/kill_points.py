"""Kill a training at random moments, again and again, and go on with it: nothing may be half written.

    python -m benchmarks.kill_points --track non_llm --points 50 --seed 1

Every attempt is ended at a random moment after its start, or after one of the first events that it logs,
mostly by SIGKILL, else by SIGINT or SIGTERM. Then all files of the run must be whole and every helper process
gone, and the next attempt goes on with --resume. A run that was killed often enough in its evaluation is
left, and another one begun; the last one goes on to its end. All runs must end training with the same
checkpoint. Exits 1 if anything is not as it should be.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from harness.eligibility import eligibility
from harness.errors import Problem
from harness.files import read_bytes, sha256_file
from harness.folder import mend
from harness.log import LOG_NAME, read_log
from harness.manifest import MANIFEST_NAME, read_manifest
from harness.state import STATE_NAME, read_state
from harness.track import ROOT, load_track

EVALUATIONS = 3  # kills of one run's evaluation
MOST_EVENTS = 10  # of an attempt, after which it is killed
PATIENCE_S = 60.0  # for an end after SIGINT or SIGTERM
ORPHANS_S = 60.0  # for helpers to end after their run, which they notice once they are imported


@dataclass(frozen=True)
class Case:
    """How a track is trained here."""

    module: str
    arguments: tuple[str, ...]
    """Of the first attempt; a short training, larger than a smoke run's."""
    chosen: tuple[str, ...] = ()
    """Of every attempt."""
    start_s: float = 20.0
    """The latest kill that counts from the start of an attempt, ..."""
    within_s: float = 1.0
    """... and that counts from an event."""
    exact: bool = True
    """Whether all runs end with the same checkpoint."""


CASES = {
    "toy": Case("toy_track.slow", (), start_s=3.0, within_s=0.3),
    "non_llm": Case(
        "non_llm.speedrun",
        (
            *("--recipe.pushes", "81920", "--recipe.boards", "128", "--recipe.minibatch", "128"),
            *("--recipe.level-files", "1", "--recipe.no-compiled"),
        ),
    ),
    "llm": Case("llm.speedrun", ("--recipe.steps", "12", "--recipe.puzzles", "8")),
    "retro": Case("retro.speedrun", ("--smoke",), within_s=3.0),
    "agents": Case("agents.speedrun", ("--smoke",), ("babyai",)),
}


@dataclass
class Point:
    """One kill and what was found after it."""

    name: str
    """Of the signal."""
    after_s: float
    phase: str
    steps: int
    lost: int
    """Steps that the next attempt repeats."""
    faults: list[str] = field(default_factory=list)


class Killer:
    """Attempts of one track in a folder of their own."""

    def __init__(self, case: Case, folder: Path, generator: random.Random) -> None:
        self.case, self.folder, self.generator = case, folder, generator
        self.run: Path | None = None
        self.known: set[Path] = set()
        self.checkpoints: set[str] = set()
        self.was_resumed = self.is_trained = self.is_complete = False

    def point(self) -> Point:
        """Start or go on, kill at a random moment, look at what is left."""
        number = self.generator.choices((signal.SIGKILL, signal.SIGINT, signal.SIGTERM), (8, 1, 1))[0]
        events = self.generator.randrange(2 if self.is_trained else MOST_EVENTS)  # 0 = the start itself
        after_s = self.generator.uniform(0, self.case.within_s if events else self.case.start_s)
        helpers: set[psutil.Process] = set()
        with self.attempt() as process:
            begun = started = time.monotonic()
            while process.poll() is None and time.monotonic() - started < after_s:
                if self.logged(begun) < events:
                    started = time.monotonic()
                helpers |= _children(process.pid)
                time.sleep(0.02)
            ended = process.poll()
            after_s = time.monotonic() - begun
            helpers |= _children(process.pid)
            if ended is None:
                process.send_signal(number)
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                return self.look("none", after_s, helpers, ["it did not end"])
        faults = [f"it ended with status {ended}: {self.said()}"] if ended else []
        name = "none" if ended is not None else signal.Signals(number).name
        return self.look(name, after_s, helpers, faults)

    def finish(self) -> list[str]:
        """Go on to the end; what is wrong then."""
        with self.attempt() as process:
            if process.wait():
                return [f"the last attempt ended with status {process.returncode}: {self.said()}"]
        point = self.look("none", 0.0, set(), [])
        assert self.run is not None
        log, manifest = read_log(self.run / LOG_NAME), read_manifest(self.run / MANIFEST_NAME)
        faults = point.faults
        if log.status != "complete":
            faults.append(f"the log is {log.status} in the end")
        if self.was_resumed and "it is resumed" not in eligibility(manifest, log):
            faults.append("the run is eligible in spite of all")
        left = [path.name for path in self.run.glob(".*.partial")] + [
            name for name in (STATE_NAME, "searches") if (self.run / name).exists()
        ]
        return faults + [f"{name} is left" for name in left]

    @contextmanager
    def attempt(self) -> Iterator["subprocess.Popen[bytes]"]:
        command = [sys.executable, "-m", self.case.module, *self.case.chosen, "--save-every", "0"]
        command += self.case.arguments if self.run is None else ("--resume", str(self.run))
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
        with (self.folder / "said.txt").open("wb") as said:
            process = subprocess.Popen(command, cwd=self.folder, env=environment, stdout=said, stderr=said)
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()

    def runs(self) -> set[Path]:
        """The run folders that were not left."""
        return set((self.folder / "outputs").glob("[0-9]*")) - self.known

    def logged(self, begun: float) -> int:
        """How many events, but for most of the steps, the present attempt has logged."""
        count = 0
        for path in self.runs():
            for line in read_bytes(path / LOG_NAME).splitlines()[-2 * MOST_EVENTS :]:
                with contextlib.suppress(ValueError, KeyError):  # a line that is being written
                    count += json.loads(line)["monotonic"] >= begun
        return count

    def said(self) -> str:
        return " | ".join((self.folder / "said.txt").read_text(errors="replace").splitlines()[-3:])

    def look(self, name: str, after_s: float, helpers: set[psutil.Process], faults: list[str]) -> Point:
        """Everything that must hold after a kill."""
        _, alive = psutil.wait_procs(helpers, timeout=ORPHANS_S)
        faults += [f"the process {orphan.pid} is left" for orphan in alive]
        runs = self.runs()
        if not runs:
            return Point(name, after_s, "before the run", 0, 0, faults)
        if len(runs) > 1:
            faults.append(f"{len(runs)} run folders instead of one")
        self.run = max(runs)
        try:
            phase, steps, lost = self.check(self.run)
        except (Problem, OSError) as error:
            return Point(name, after_s, "?", 0, 0, [*faults, str(error)])
        return Point(name, after_s, phase, steps, lost, faults)

    def check(self, run: Path) -> tuple[str, int, int]:
        """Read every file of a run as whoever goes on with it does; phase, steps and steps lost."""
        manifest = read_manifest(run / MANIFEST_NAME)
        if sha256_file(run / "speedrun.py") != manifest.source_sha256:
            raise Problem("is not the source that ran", file=run / "speedrun.py")
        content = read_bytes(run / LOG_NAME)
        if not content.endswith(b"\n"):
            mend(run)  # all that may be cut short is the last line
        log = read_log(run / LOG_NAME)
        events = [event for event in log.events if event.name != "run_stop"]
        steps, phase = len(log.steps), events[-1].name
        state = read_state(run, manifest.run_id)
        self.is_complete = log.status == "complete"
        self.was_resumed |= log.find("resume") is not None
        saved = log.find("checkpoint")
        if saved is not None:
            self.is_trained = True
            track = load_track(manifest.track)
            if sha256_file(run / track.checkpoint_name) != saved.fields["sha256"]:
                raise Problem("is not what the log names", file=run / track.checkpoint_name)
            self.checkpoints.add(str(saved.fields["sha256"]))
            return phase if phase != "checkpoint" else "evaluation", steps, 0
        return phase, steps, steps - (state.step if state else 0)

    def leave(self) -> None:
        """Begin another run next time."""
        assert self.run is not None
        self.known.add(self.run)
        self.run = None
        self.was_resumed = self.is_trained = self.is_complete = False


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kill_points",
        description="Kill a training at random moments, go on with it, and look for anything half written.",
    )
    parser.add_argument("--track", choices=CASES, required=True)
    parser.add_argument("--points", type=int, default=50, help="kills (50)")
    parser.add_argument("--seed", type=int, default=1, help="of their moments (1)")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    if options.track == "toy":
        sys.path.append(str(ROOT / "tests"))
    with tempfile.TemporaryDirectory() as folder:
        points, faults = kill(options.track, options.points, options.seed, Path(folder))
    show(options.track, points)
    for fault in faults:
        print(f"FAIL: {fault}")
    return 1 if faults else 0


def kill(track: str, count: int, seed: int, folder: Path) -> tuple[list[Point], list[str]]:
    """All points, and all that was wrong."""
    case = CASES[track]
    killer = Killer(case, folder, random.Random(seed))
    points: list[Point] = []
    evaluations = 0
    while len(points) < count:
        if killer.is_complete or evaluations == EVALUATIONS:
            killer.leave()
            evaluations = 0
        point = killer.point()
        if point.name == "none" and not point.faults:  # it was complete before the kill
            continue
        points.append(point)
        print(
            f"{len(points):3d} {point.name} after {point.after_s:4.1f} s, at {point.phase}, "
            f"{point.steps} steps, {point.lost} lost {'; '.join(point.faults)}",
            flush=True,
        )
        evaluations += point.phase.startswith("eval")
    if killer.is_complete:
        killer.leave()
    faults = [fault for point in points for fault in point.faults] + killer.finish()
    if case.exact and len(killer.checkpoints) != 1:
        faults.append(f"the runs ended training with {len(killer.checkpoints)} different checkpoints")
    return points, faults


def show(track: str, points: list[Point]) -> None:
    """A row for each phase in which there were kills."""
    table = Table("last event", title=f"{track}: {len(points)} kills", title_justify="left")
    for name in ("SIGKILL", "SIGINT", "SIGTERM", "most steps lost", "faults"):
        table.add_column(name, justify="right")
    for phase in dict.fromkeys(point.phase for point in points):
        there = [point for point in points if point.phase == phase]
        counts = [sum(p.name == name for p in there) for name in ("SIGKILL", "SIGINT", "SIGTERM")]
        wrong = sum(len(point.faults) for point in there)
        table.add_row(phase, *map(str, counts), str(max(p.lost for p in there)), str(wrong))
    Console(width=100).print(table)


def _children(pid: int) -> set[psutil.Process]:
    try:
        return set(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return set()


if __name__ == "__main__":
    sys.exit(main())
