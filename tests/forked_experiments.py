"""Experiments in processes that a test can kill, forked from one that has imported everything.

As a program it is that process: it reads a JSON list of arguments a line, and for each forks a child that
runs BabyAI's command line with them; it writes the child's process number, and later its exit status.
"""

import json
import os
import sys
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent


class Runs:
    """Runs `python -m agents.benchmarks.babyai.train` with OUTPUTS in a folder of the test's."""

    def __init__(self, outputs: Path) -> None:
        self.outputs = outputs
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "AGENTS_TEST_KEY": "sk-canary-0123456789"}
        self._log = (outputs / "log").open("w+")
        self._parent = Popen(
            [sys.executable, __file__, str(outputs)],
            stdin=PIPE,
            stdout=PIPE,
            stderr=self._log,
            env=environment,
            text=True,
            cwd=ROOT,
        )

    def start(self, *arguments: object) -> int:
        """Start a run; its process number."""
        self._log.seek(0)
        self._log.truncate()
        assert self._parent.stdin is not None
        self._parent.stdin.write(json.dumps([str(argument) for argument in arguments]) + "\n")
        self._parent.stdin.flush()
        return self._read()

    def end(self) -> tuple[int, str]:
        """Exit status of the run that was started last, negative for a signal, and all that it printed."""
        status = self._read()
        return status, Path(self._log.name).read_text()

    def run(self, *arguments: object) -> tuple[int, str]:
        """Start a run and wait for its end."""
        self.start(*arguments)
        return self.end()

    def close(self) -> None:
        assert self._parent.stdin is not None
        self._parent.stdin.close()
        self._parent.wait(10)
        assert self._parent.stdout is not None
        self._parent.stdout.close()
        self._log.close()

    def _read(self) -> int:
        assert self._parent.stdout is not None
        return int(self._parent.stdout.readline())


def write_config(path: Path, url: str, **changes: Any) -> Path:
    """A config of a few short episodes, with changes of its keys."""
    config = {
        "benchmark": "babyai",
        "method": "speedrunner",
        "model": {"name": "served-model", "provider": "local", "base_url": url, "retries": 1},
        "phases": [{"tasks": ["goto"], "episodes": 4}, {"tasks": ["pickup", "open"], "episodes": 3}],
        "seed": 5,
        "sleep_every": 3,
        "turn_limit": 6,
        "history": 4,
        "parallel": 2,
        "evaluate": {"split": "valid", "tasks": ["goto"], "episodes": 2},
        **changes,
    }
    path.write_text(yaml.safe_dump(config))
    return path


def _serve(outputs: Path) -> None:
    import agents.benchmarks.babyai.environment  # noqa: F401 (so that children need not)
    from agents.core import train
    from harness.errors import run_command

    train.OUTPUTS = outputs
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            os.dup2(2, 1)
            sys.argv = ["train", *json.loads(line)]
            run_command(lambda: train.main("babyai"))
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
