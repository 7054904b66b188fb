"""FIXED: functions called in a process of their own.

    python -m retro.fresh     # reads {"call": "module:function", "job": {...}}, writes the answer

A core keeps its state in globals, and a process holds one emulator. A plain subprocess may be started from
any process: from a worker that is a daemon, from a test, from one that holds an emulator itself.
"""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from harness.errors import Problem
from harness.track import ROOT

_FIELDS = ("reason", "file", "line", "remedy")


def run_fresh(call: str, job: Mapping[str, Any], *, show: bool = False) -> Any:
    """What the function `call`, "module:function", returns for a job; both are values of JSON.

    show: its standard error goes to this process's, for a progress bar.

    Raises:
        Problem: the function raised it, or the process ended without an answer.
    """
    sent = json.dumps({"call": call, "job": job, "path": sys.path}).encode()
    done = subprocess.run(
        [sys.executable, "-m", "retro.fresh"],
        input=sent,
        stdout=subprocess.PIPE,
        stderr=None if show else subprocess.PIPE,
        cwd=ROOT,
        check=False,
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        said = (done.stderr or b"").decode(errors="replace").strip().splitlines()[-1:]
        raise Problem(
            f"the process for {call} ended with status {done.returncode} {' '.join(said)}"
        ) from None
    if "problem" in answer:
        problem = answer["problem"]
        raise Problem(problem["reason"], file=problem["file"], line=problem["line"], remedy=problem["remedy"])
    return answer["value"]


def _main() -> None:
    answer_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a core may write to standard output
    sent = json.load(sys.stdin)
    sys.path.extend(entry for entry in sent["path"] if entry not in sys.path)
    module, _, name = sent["call"].partition(":")
    answer: dict[str, Any]
    try:
        answer = {"value": getattr(importlib.import_module(module), name)(sent["job"])}
    except Problem as problem:
        answer = {"problem": {field: getattr(problem, field) for field in _FIELDS}}
    with answer_to:
        json.dump(answer, answer_to)


if __name__ == "__main__":
    _main()
