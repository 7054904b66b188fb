"""The folder of a run: made whole, known by its manifest, mended after a crash."""

import contextlib
import errno
import secrets
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Self

from harness.errors import Problem
from harness.files import parse_json, read_bytes, unwritable
from harness.log import LOG_NAME, mend_log
from harness.manifest import MANIFEST_NAME, Manifest, read_manifest


class NewFolder:
    """A folder that is filled as a `draft` and then moved to its `path`, with the second in its name."""

    def __init__(self, outputs: Path, name: str) -> None:
        self._outputs, self._name = outputs, name
        self.draft = outputs / f".{name}.{secrets.token_hex(4)}.partial"
        self.path = self.draft
        try:
            self.draft.mkdir(parents=True)
        except OSError as error:
            raise unwritable(outputs, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Move it; where the second is taken, wait for the next."""
        try:
            while error is None and self.path == self.draft:
                path = self._outputs / f"{datetime.now(UTC):%Y%m%d-%H%M%S}_{self._name}"
                try:
                    self.draft.rename(path)
                except OSError as failed:
                    if failed.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        raise unwritable(path, failed) from failed
                    time.sleep(0.05)
                else:
                    self.path = path
        finally:
            shutil.rmtree(self.draft, ignore_errors=True)


def run_manifest(path: Path, track_name: str | None = None) -> Manifest:
    """The manifest of a run folder.

    Raises:
        Problem: there is no run folder, or it is of another track than that named.
    """
    if not (path / MANIFEST_NAME).is_file():
        remedy = "name the folder that a speedrun printed as its run folder: outputs/<run>"
        raise Problem("is not a run folder: it has no manifest.json", file=path, remedy=remedy)
    manifest = read_manifest(path / MANIFEST_NAME)
    if track_name not in (None, manifest.track):
        command = f"python -m {manifest.track}.eval_speedrun"
        raise Problem(f"is a run of the track {manifest.track}", file=path, remedy=f"see {command} --help")
    return manifest


def stage(path: Path) -> Literal["training", "evaluation", "complete"]:
    """What is left to do of a run; a last line of its log that was cut short does not count.

    Raises:
        Problem: a line of the log is no JSON object.
    """
    content = read_bytes(path / LOG_NAME)
    lines = content[: content.rfind(b"\n") + 1].splitlines()
    events = [parse_json(line, path / LOG_NAME, number) for number, line in enumerate(lines, start=1)]
    for number, event in enumerate(events, start=1):
        if not isinstance(event, dict):
            raise Problem("not a JSON object", file=path / LOG_NAME, line=number)
    if events and events[-1].get("status") == "complete":
        return "complete"
    return "evaluation" if any(event.get("event") == "checkpoint" for event in events) else "training"


def mend(path: Path) -> None:
    """Remove what a crash left half written in a run folder; the caller holds its lock."""
    for partial in path.glob(".*.partial"):
        with contextlib.suppress(FileNotFoundError):
            try:
                partial.unlink()
            except IsADirectoryError:
                continue
            except OSError as error:
                raise unwritable(partial, error) from error
    if mend_log(path / LOG_NAME):
        print(f"{path / LOG_NAME}: the last line was cut short and is dropped", file=sys.stderr)
