"""Send what a run logs to TensorBoard or Weights & Biases, from a process of its own.

    python -m harness.export outputs/<run> --tensorboard
    python -m harness.export outputs/<run> --wandb learning-speedruns --follow

No run does this by itself, and no number in a record comes from it. With --follow it goes on until the log
says that the run stopped, or until Ctrl-C; where a run has all cores of a machine, send its log afterwards.
W&B sends to its servers unless WANDB_MODE=offline is set.
"""

import argparse
import importlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from harness.errors import Problem, Unavailable, run_command
from harness.files import unwritable
from harness.manifest import Manifest, read_manifest
from harness.record import LOG, MANIFEST

WAIT_S = 2.0  # between two looks at a log
EVENTS = "events.out.tfevents.*"


class Line(NamedTuple):
    """One line of a log."""

    event: str
    monotonic: float
    moment: float
    """Seconds since 1970."""
    numbers: dict[str, float]
    """All of its other fields that are numbers."""


class Sink(Protocol):
    """Takes the numbers of a run, in order."""

    def step(self, step: int, moment: float, numbers: Mapping[str, float]) -> None:
        """The numbers of step 1, 2, 3, ..., logged at `moment` (seconds since 1970)."""

    def finish(self, results: Mapping[str, float]) -> None:
        """What came out, as far as it is known; nothing follows."""


class TensorBoard:
    """Writes an event file into a folder, with the library that shows it."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._event = _library("tensorboard", "compat.proto.event_pb2").Event
        self._summary = _library("tensorboard", "compat.proto.summary_pb2").Summary
        if any(folder.glob(EVENTS)):
            raise Problem("holds events already", file=folder, remedy="delete it, or name another folder")
        writers = _library("tensorboard", "summary.writer.event_file_writer")
        try:
            self._writer = writers.EventFileWriter(str(folder), flush_secs=5)
        except OSError as error:
            raise unwritable(folder, error) from error
        self._last = (0, manifest.started_utc.timestamp())
        lines = json.dumps(settings(manifest), indent=2).splitlines()
        markdown = "\n".join(f"    {line}" for line in lines)
        self._add(_library("tensorboard", "plugins.text.summary_v2").text_pb("run", markdown))

    def step(self, step: int, moment: float, numbers: Mapping[str, float]) -> None:
        """A point of each curve, by step and by wall clock."""
        self._last = (step, moment)
        self._add_scalars("train", numbers)

    def finish(self, results: Mapping[str, float]) -> None:
        """Points at the last step."""
        self._add_scalars("result", results)
        self._writer.close()

    def _add_scalars(self, group: str, numbers: Mapping[str, float]) -> None:
        values = [
            self._summary.Value(tag=f"{group}/{name}", simple_value=value) for name, value in numbers.items()
        ]
        self._add(self._summary(value=values))

    def _add(self, summary: Any) -> None:
        step, moment = self._last
        self._writer.add_event(self._event(step=step, wall_time=moment, summary=summary))


class WeightsAndBiases:
    """A run of a W&B project. What is sent again takes the place of the run before it that has its id, or
    goes on with it."""

    def __init__(
        self,
        project: str,
        folder: Path,
        run_id: str,
        name: str,
        config: Mapping[str, Any],
        *,
        goes_on: bool = False,
        offline: bool = False,
    ) -> None:
        """`folder` gets a folder wandb; `offline` = into files there, whatever WANDB_MODE says."""
        library = _library("wandb")
        try:
            self._run = library.init(
                project=project,
                id=run_id,
                name=name,
                dir=str(folder),
                config=dict(config),
                resume="allow" if goes_on else None,
                mode="offline" if offline else None,
                # What this process prints and its machine does is not the run's.
                settings={"console": "off", "x_disable_stats": True, "x_disable_meta": True},
            )
        except library.Error as error:
            library.teardown()  # so that the id is free again
            remedy = "wandb login, or set WANDB_MODE=offline"
            raise Problem(f"W&B says: {error}", remedy=remedy) from error

    @property
    def address(self) -> str:
        """Where it can be looked at; "" = it is offline, or disabled by WANDB_MODE."""
        return self._run.url or ""

    @property
    def files(self) -> Path | None:
        """The folder of a run that is kept offline; None = it is not."""
        return Path(self._run.dir).parent if self._run.offline else None

    def step(self, step: int, moment: float, numbers: Mapping[str, float]) -> None:
        """A row of the history."""
        self._run.log({**numbers, "_timestamp": moment}, step=step)

    def finish(self, results: Mapping[str, float]) -> None:
        """The run's summary."""
        self._run.summary.update(dict(results))
        self._run.finish()


def settings(manifest: Manifest) -> dict[str, Any]:
    """What a run was made with."""
    return {
        "track": manifest.track,
        "ruleset": manifest.ruleset,
        "hardware_class": manifest.hardware_class,
        "recipe_name": manifest.recipe_name,
        "seed": manifest.seed,
        "run_id": manifest.run_id,
        "recipe": manifest.recipe,
    }


def export(run: Path, sinks: Sequence[Sink], *, follow: bool = False, wait_s: float = WAIT_S) -> int:
    """Send a run's steps, and what came out, to every sink; returns the number of steps.

    A step has the numbers that it logged and `time_s`, the seconds since train_start.
    """
    steps, start, results = 0, 0.0, dict[str, float]()
    try:
        for line in read_lines(run / LOG, follow=follow, wait_s=wait_s):
            if line.event == "train_start":
                start = line.monotonic
            elif line.event == "step" and (step := int(line.numbers["step"])) > steps:
                numbers = {name: number for name, number in line.numbers.items() if name != "step"}
                for sink in sinks:
                    sink.step(step, line.moment, {**numbers, "time_s": line.monotonic - start})
                steps = step
            elif line.event == "train_stop":
                results["time_s"] = line.monotonic - start
            elif line.event == "eval_stop":
                score = {"score": "value", "score_low": "low", "score_high": "high"}
                results |= {
                    name: line.numbers[field] for name, field in score.items() if field in line.numbers
                }
    except KeyboardInterrupt:
        print("Stopped by Ctrl-C; what was read is sent.")
    finally:
        for sink in sinks:
            sink.finish(results)
    return steps


def read_lines(path: Path, *, follow: bool = False, wait_s: float = WAIT_S) -> Iterator[Line]:
    """The whole lines of a log; with `follow` also those still to come, up to run_stop.

    A log may be written anew while it is followed, for an evaluation that is repeated; it is then read from
    the start. A line without its end is not read yet.
    """
    file, position, number = None, 0, 0
    while True:
        try:
            with path.open("rb") as handle:
                status = os.fstat(handle.fileno())
                if file not in (None, (status.st_dev, status.st_ino)):
                    position = number = 0
                file = (status.st_dev, status.st_ino)
                handle.seek(position)
                data = handle.read()
        except OSError as error:
            raise Problem(f"cannot be read: {error.strerror or error}", file=path) from error
        whole = data[: data.rfind(b"\n") + 1]
        position += len(whole)
        for text in whole.splitlines():
            number += 1
            line = _parse(text, path, number)
            yield line
            if line.event == "run_stop":
                return
        if not follow:
            return
        time.sleep(wait_s)


def _parse(text: bytes, path: Path, number: int) -> Line:
    try:
        fields = json.loads(text)
        event, monotonic, utc = fields.pop("event"), float(fields.pop("monotonic")), fields.pop("utc")
        numbers = {name: float(value) for name, value in fields.items() if type(value) in (int, float)}
        if event == "step" and type(fields.get("step")) is not int:
            raise ValueError("a step without its number")
        return Line(event, monotonic, datetime.fromisoformat(utc).timestamp(), numbers)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Problem(f"not a line of a log: {error}", file=path, line=number) from error


def _library(name: str, module: str = "") -> Any:
    """A library, or a module in it; Unavailable where it is not installed."""
    try:
        return importlib.import_module(f"{name}.{module}" if module else name)
    except ModuleNotFoundError as error:
        remedy = "pip install '.[export]'"
        raise Unavailable(f"this needs the {name} library: {error}", remedy=remedy) from error


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.export", description="Send a run's log to TensorBoard or Weights & Biases."
    )
    parser.add_argument("run", type=Path, help="folder of a run or of a record")
    parser.add_argument(
        "--tensorboard",
        nargs="?",
        const="",
        metavar="FOLDER",
        help="write event files into FOLDER, or into <run>/tensorboard",
    )
    parser.add_argument("--wandb", metavar="PROJECT", help="send to this project of Weights & Biases")
    parser.add_argument("--follow", action="store_true", help="go on until the run stops, or until Ctrl-C")
    options = parser.parse_args(arguments)
    if options.tensorboard is None and options.wandb is None:
        raise Problem("nothing to send to", remedy="give --tensorboard, --wandb PROJECT or both")
    run = options.run
    manifest = read_manifest(run / MANIFEST)
    sinks: list[Sink] = []
    if options.wandb is not None:
        name, config = run.resolve().name, settings(manifest)
        sinks.append(WeightsAndBiases(options.wandb, run, manifest.run_id, name, config))
    if options.tensorboard is not None:
        folder = Path(options.tensorboard) if options.tensorboard else run / "tensorboard"
        sinks.append(TensorBoard(folder, manifest))
        print(f"Look at it with: tensorboard --logdir {folder}", flush=True)
    print(f"Sent {export(run, sinks, follow=options.follow)} steps")
    return 0


if __name__ == "__main__":
    run_command(main)
