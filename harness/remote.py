"""A run on a machine that is lent and may be taken away: what `modal_app.py` does there.

The store is a folder that outlives the machine; what is in it lasts once `commit` was called. A launch is a
folder of the store:

    attempt-1.json   who began it and when, one file for each attempt
    run/             the files of the run folder
    console.txt      what the command printed
    files.json       every file of run/ with its size and SHA-256 (`Listing`); written last
"""

import json
import os
import platform
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, NonNegativeInt

from harness.errors import Problem
from harness.files import STRICT, sha256_file, write_atomic, write_model
from harness.manifest import Sha256, overriding
from harness.run import LOG_NAME
from harness.state import STATE_NAME

VOLUME = "learning-speedruns"
"""Name of Modal's volume that is the store."""
RUN, FILES, CONSOLE = "run", "files.json", "console.txt"
BEAT_S = 60.0
"""Seconds between two signs of life, each with a commit."""
GRACE_S = 10.0
"""Seconds that a command gets to end by itself."""


class StoredFile(BaseModel):
    """A file as the machine that made it had it."""

    model_config = STRICT

    size: NonNegativeInt
    """Bytes."""
    sha256: Sha256


class Listing(BaseModel):
    """files.json."""

    model_config = STRICT

    status: int
    """Exit status of the command; negative = the signal that ended it."""
    files: dict[str, StoredFile]
    """By path from the run folder."""


def carry_out(
    command: Sequence[str],
    launch: Path,
    commit: Callable[[], object],
    *,
    folder: Path,
    limit_s: float,
    beat_s: float = BEAT_S,
) -> int:
    """Run the command of a speedrun in `folder`, keep in `launch` what it makes; returns its exit status.

    Every `beat_s` seconds a line tells the last event of the run's log, and what is there is committed.
    However this ends, the command is ended, and what it made is listed and committed.

    Raises:
        Problem: the launch was begun before, here or on another machine, or takes longer than `limit_s`.
    """
    _begin(launch, commit)
    with tempfile.TemporaryDirectory() as scratch:
        work = _Work(command, launch, folder, Path(scratch) / CONSOLE)
        try:
            while (status := work.wait(beat_s)) is None:
                print(f"[{work.seconds:.0f} s] {work.last_event()}", flush=True)
                if work.seconds > limit_s:
                    raise Problem(f"stopped, for it took longer than {limit_s:.0f} s", file=launch.name)
                try:
                    work.save()
                    commit()
                except Exception as error:  # a store that fails for a while ends no run
                    print(f"Not stored this time: {error}", flush=True)
            return status
        finally:
            try:
                work.end()
                work.save()
                write_model(launch / FILES, work.listing())
            finally:
                commit()


def _begin(launch: Path, commit: Callable[[], object]) -> None:
    """Write down this attempt; a Problem where it is not the first."""
    again = launch.exists()
    number = max(len(list(launch.glob("attempt-*.json"))), int(again)) + 1
    machine = os.environ.get("MODAL_TASK_ID") or platform.node()
    attempt = {"attempt": number, "utc": datetime.now(UTC).isoformat(), "machine": machine}
    launch.mkdir(parents=True, exist_ok=True)
    write_atomic(launch / f"attempt-{number}.json", json.dumps(attempt) + "\n")
    commit()
    if again:
        raise Problem(
            f"attempt {number} is refused: an earlier one began this run, and its machine was taken away",
            file=launch.name,
            remedy="launch anew, for a record is made in one go",
        )


class _Work:
    """A command under way, what it prints, and the run folder that it names."""

    def __init__(self, command: Sequence[str], launch: Path, folder: Path, console: Path) -> None:
        self.launch, self.folder, self.console = launch, folder, console
        self.run: Path | None = None
        self._stored: dict[Path, tuple[int, int]] = {}
        self._started = time.monotonic()
        removed = overriding(os.environ)  # Modal sets numbers of threads, with which no run ranks
        print(f"Not in the environment of the run: {', '.join(removed) or 'nothing'}", flush=True)
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={name: value for name, value in os.environ.items() if name not in removed},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def wait(self, seconds: float) -> int | None:
        """The exit status, or None where the command still runs after so many seconds."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def last_event(self) -> str:
        """The last event of the log, and how long ago it was."""
        try:
            log = (self.run or Path()) / LOG_NAME
            event = json.loads(log.read_bytes().splitlines()[-1])
            age = time.time() - log.stat().st_mtime
            return f"last event {event['event']} {event.get('step', '')}".rstrip() + f", {age:.0f} s ago"
        except (OSError, ValueError, LookupError, TypeError):
            return "no event yet"

    def end(self) -> None:
        """End the command, politely at first so that its log says so, and all that it started."""
        if self._process.poll() is None:
            self._process.terminate()
            self.wait(GRACE_S)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(GRACE_S)  # what left the group may hold the pipe open

    def save(self) -> None:
        """Copy what is new to the store, small files first."""
        copies = {path: self.launch / RUN / name for name, path in self._made().items()}
        copies[self.console] = self.launch / CONSOLE
        for path, copy in sorted(copies.items(), key=lambda pair: pair[0].stat().st_size):
            state = path.stat()
            if self._stored.get(path) != (state.st_size, state.st_mtime_ns):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
                self._stored[path] = state.st_size, state.st_mtime_ns

    def listing(self) -> Listing:
        """What is here when the command has ended, whatever became of the copies."""
        files = {
            name: StoredFile(size=path.stat().st_size, sha256=sha256_file(path))
            for name, path in self._made().items()
        }
        return Listing(status=self._process.wait(), files=files)

    def _made(self) -> dict[str, Path]:
        """The files of the run folder by their path from it, but for those of no use to another machine."""
        folder = self.run
        if folder is None:
            return {}
        # Hidden files are locks and unfinished ones; a run that goes on elsewhere ranks nowhere.
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != STATE_NAME]
        return {path.relative_to(folder).as_posix(): path for path in paths if not path.name.startswith(".")}

    def _read(self) -> None:
        """Print what the command prints, keep it, and find the run folder in it."""
        assert self._process.stdout is not None
        with self._process.stdout as lines, self.console.open("ab", buffering=0) as console:
            for line in lines:
                console.write(line)
                text = line.decode(errors="backslashreplace")
                print(text, end="", flush=True)
                if self.run is None and text.startswith("Run folder: "):
                    self.run = self.folder / text.removeprefix("Run folder: ").strip()
