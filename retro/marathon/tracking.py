"""The figures of a marathon in Weights & Biases, sent by a process of its own that reads the folder.

    python -m retro.marathon.tracking

`tracked` starts it, and passes on what it has to say. Its standard input has a line of JSON, and ends with
the search, however that ends. Whatever is wrong with W&B, the search does not wait for it, but for `PATIENCE`
seconds when it stops.
"""

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from tqdm import tqdm

from harness.errors import Problem, Unavailable
from harness.export import Sink, WeightsAndBiases
from harness.files import canonical_json, parse_json, read_bytes, read_json, write_atomic
from harness.track import ROOT
from retro.emulator import CONSOLES, console_of
from retro.guidance.policy import POLICY, read_policy
from retro.marathon.config import Config
from retro.marathon.journal import JOURNAL
from retro.marathon.store import MARATHON, Saved, read_saved
from retro.packages import GamePackage

TRACKING, LOG = "tracking.json", "tracking.log"
EVERY = 60.0  # seconds from one row to the next
PATIENCE = 10.0  # seconds that a search waits at its end for the last row
LAST = 60.0  # seconds after which that row is given up
ANSWER = "30"  # seconds that W&B has for its first answer
PROGRESS = ("piece", "ending", "improved", "practised")
"""Milestones that are progress."""


# ---- the search's side -------------------------------------------------------------------------------------


@contextmanager
def tracked(folder: Path, package: GamePackage, told: Config, patience: float = PATIENCE) -> Iterator[None]:
    """Figures go to the project of W&B that the configuration names, if it names one, meanwhile."""
    if told.tracking is None:
        yield
        return
    job = {
        "folder": str(folder.resolve()),
        "project": told.tracking,
        "name": f"{package.title}: {folder.resolve().name}",
        "rate": float(CONSOLES[console_of(package.rom)].frame_rates[0]),
        "config": {
            "game": package.name,
            "seed": told.seed,
            "workers": told.workers,
            "memory": told.memory,
            "reference": told.reference and told.reference.name,
            "rules": asdict(told.rules),
            "search": asdict(told.settings),
        },
    }
    try:
        with (folder / LOG).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "retro.marathon.tracking"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                text=True,
                start_new_session=True,  # Ctrl-C is for the search, which ends this process
            )
    except OSError as error:
        tqdm.write(f"Tracking: off: {error}")
        yield
        return
    assert process.stdin is not None
    reader = threading.Thread(target=_pass_on, args=[process], daemon=True)
    reader.start()
    with suppress(OSError):  # it has ended, and said why
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
    try:
        yield
    finally:
        with suppress(OSError):
            process.stdin.close()
        reader.join(patience)
        if reader.is_alive():
            tqdm.write(
                f"Tracking: W&B takes long with the last figures; process {process.pid} goes on with them"
            )


def _pass_on(process: "subprocess.Popen[str]") -> None:
    """Show what it says until it ends."""
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            tqdm.write(line.rstrip("\n"))
    process.wait()


# ---- figures -----------------------------------------------------------------------------------------------


def figures(folder: Path, saved: Saved, rate: float, now: float) -> dict[str, float]:
    """What is known at a moment (seconds since 1970) of a marathon; `rate` = frames a second."""
    frames, at = saved.route.frames, 0
    numbers: dict[str, float] = {"frames": frames, "run_time_s": frames / rate, **saved.counts}
    numbers |= {"emulated_frames": saved.tally.emulated, "starts": saved.tally.starts}
    for piece in saved.route.pieces:
        at += piece.frames
        numbers[f"split/{piece.entered}"] = at
    if (since := last_progress(folder / JOURNAL)) is not None:
        numbers["hours_since_progress"] = max(0.0, now - since) / 3600
    if saved.route.settings.guidance.get("policy"):
        with suppress(Problem):  # there is none yet, or the training begins anew and has removed it
            told = read_policy(folder / POLICY).figures
            numbers |= {f"policy/{name}": number for name, number in told.items()}
    return numbers


def last_progress(journal: Path) -> float | None:
    """When (seconds since 1970) the journal last tells of progress, or else begins; None = it has no line."""
    content = read_bytes(journal) if journal.exists() else b""
    line: dict[str, Any] | None = None
    for text in reversed(content[: content.rfind(b"\n") + 1].splitlines()):  # one may be written just now
        line = parse_json(text, journal, None)
        if line["event"] in PROGRESS:
            break
    return None if line is None else datetime.fromisoformat(line["utc"]).timestamp()


def follow(
    folder: Path, rate: float, sink: Sink, began: float, ended: threading.Event, every: float = EVERY
) -> None:
    """Send a row now and then, and the last one when `ended` is set. The step of a row is the seconds since
    `began`, so that steps go on after a restart."""
    while True:
        last = ended.wait(0)
        if (folder / MARATHON).exists() and (saved := read_saved(folder / MARATHON)).standing is not None:
            now = time.time()
            sink.step(int(now - began), now, figures(folder, saved, rate, now))
        if last:
            break
        ended.wait(every)
    sink.finish({})


# ---- the process -------------------------------------------------------------------------------------------


def main() -> None:
    os.nice(19)
    os.environ.setdefault("WANDB_INIT_TIMEOUT", ANSWER)
    sys.stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # W&B writes to standard output
    job = json.loads(sys.stdin.readline())
    ended = threading.Event()
    threading.Thread(target=_listen, args=[ended], daemon=True).start()
    try:
        _track(job, ended)
    except Exception as error:  # whatever W&B comes to
        _say(f"it has ended: {' '.join(str(error).split()) or type(error).__name__:.300}")
        raise


def _track(job: dict[str, Any], ended: threading.Event) -> None:
    folder = Path(job["folder"])
    known = _identity(folder / TRACKING)
    run = (job["project"], folder, str(known["run"]), job["name"], job["config"])
    try:
        sink, why = WeightsAndBiases(*run, goes_on=True), "WANDB_MODE says so"
    except Unavailable as problem:
        _say(f"off: {problem}")
        return
    except Problem as problem:  # there is no key, or it is refused, or nobody answers
        why = problem.reason.rstrip(".")
        sink = WeightsAndBiases(*run, goes_on=True, offline=True)
    if sink.files is not None:
        _say(f"W&B offline ({why}); files: {sink.files}; send them: wandb sync {sink.files.parent}/*run-*")
    else:
        _say(f"W&B online: {sink.address}" if sink.address else f"W&B disabled ({why})")
    follow(folder, job["rate"], sink, float(known["began"]), ended)


def _identity(path: Path) -> dict[str, Any]:
    """The id of the marathon's run in W&B, and when it was made (seconds since 1970)."""
    if not path.exists():
        write_atomic(path, canonical_json({"run": uuid.uuid4().hex, "began": time.time()}) + "\n")
    known = read_json(path)
    if not isinstance(known, dict) or set(known) != {"run", "began"}:
        raise Problem("names no run of W&B", file=path, remedy="remove the file: another run is begun")
    return known


def _say(text: str) -> None:
    with suppress(OSError):  # nobody listens any more
        print(f"Tracking: {text}", flush=True)


def _listen(ended: threading.Event) -> None:
    """Wait for the end of standard input, and end the process if W&B takes too long then."""
    sys.stdin.read()
    ended.set()
    time.sleep(LAST)
    os._exit(1)


if __name__ == "__main__":
    main()
