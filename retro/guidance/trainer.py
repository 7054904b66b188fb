"""A search's side of a policy's training: starts the process, tells it where segments start, reads its file.

How far the training is when a worker asks depends on timing, so a search that follows a policy does not come
out the same again, whatever its seed; its movies replay like all others. With a fixed number of `rounds` the
search waits for them at each start, and one seed gives one result.
"""

import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from harness.errors import Problem
from harness.track import ROOT
from retro.guidance.policy import POLICY, Export, Policy, Start, read_policy
from retro.search.archive import Runs

if TYPE_CHECKING:
    from retro.search.pool import Pool
    from retro.search.world import Beginning

ENVIRONMENTS = 2
LOG = "policy.log"


class Trainer:
    """Keeps a training process at the start that the search is working on."""

    def __init__(
        self,
        spec: str,
        share: float,
        seed: int,
        folder: Path,
        environments: int = ENVIRONMENTS,
        rounds: int | None = None,
    ) -> None:
        """`environments` = processes that play, 0 = the training's own; `rounds` = of training at each start.

        Raises:
            Problem: Stable-Baselines3 is not installed.
        """
        if find_spec("stable_baselines3") is None:
            raise Problem(
                "a policy takes Stable-Baselines3", remedy="pip install stable-baselines3, or leave it out"
            )
        self._spec, self._share, self._seed, self._folder = spec, share, seed, folder.resolve()
        self._environments, self._rounds = environments, rounds
        self._process: subprocess.Popen[str] | None = None
        self._start: Start | None = None
        self._export: Export | None = None
        self._read: tuple[int, int] | None = None
        self._told = 0  # frames of the shortest exit that was told; 0 = none was

    @property
    def pid(self) -> int | None:
        """Of the training process; None before it was started."""
        return None if self._process is None else self._process.pid

    def begin(self, pool: "Pool", beginning: "Beginning", pieces: Sequence[Runs]) -> Policy | None:
        start = beginning.segment, beginning.ram_hash
        alive = self._process is not None and self._process.poll() is None
        if start != self._start or not alive:
            self._start, self._export, self._told = start, None, 0
            if not alive:
                self._process = self._started()
            state = base64.b64encode(beginning.state).decode()
            self._send({**asdict(beginning), "state": state, "rounds": self._rounds})
            if self._rounds is not None and self._process is not None and self._process.stdout is not None:
                self._process.stdout.readline()
        return self.news() or self._policy()

    def news(self) -> Policy | None:
        path = self._folder / POLICY
        if self._process is not None and (status := self._process.poll()) is not None:
            tqdm.write(f"The training of the policy has ended with status {status}: {self._folder / LOG}")
            self.close()  # begun anew with the next segment
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        read = found.st_ino, found.st_mtime_ns
        if read == self._read:
            return None
        self._read = read
        export = read_policy(path)
        if export.start != self._start:
            return None
        self._export = export
        return self._policy()

    def exits(self) -> list[Runs]:
        if self._export is None or not self._export.exit:
            return []
        frames = sum(frames for _, frames in self._export.exit)
        if self._told and frames >= self._told:
            return []
        self._told = frames
        return [self._export.exit]

    def close(self) -> None:
        """End the training, which takes its environments along."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _policy(self) -> Policy | None:
        return None if self._export is None else replace(self._export.policy, share=self._share)

    def _started(self) -> "subprocess.Popen[str]":
        (self._folder / POLICY).unlink(missing_ok=True)  # it may be of another version of the package
        with (self._folder / LOG).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "retro.guidance.training"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                text=True,
            )
        self._process = process
        job = {"package": self._spec, "folder": str(self._folder), "environments": self._environments}
        self._send({**job, "seed": self._seed, "path": sys.path})
        return process

    def _send(self, message: dict[str, object]) -> None:
        assert self._process is not None and self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, which `news` says
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
