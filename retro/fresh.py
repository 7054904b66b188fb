"""FIXED: functions called in a process of their own.

    python -m retro.fresh     # reads {"call": "module:function", "job": {...}}, writes the answer

A core keeps its state in globals, and a process holds one emulator. A plain subprocess may be started from
any process: from a worker that is a daemon, from a test, from one that holds an emulator itself.
"""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from typing import Any

from harness.errors import Problem
from harness.track import ROOT

_FIELDS = ("reason", "file", "line", "remedy")


def run_fresh(call: str, job: Any, *, show: bool = False) -> Any:
    """What the function `call`, "module:function", returns for a job; both are values of JSON.

    show: its standard error goes to this process's, for a progress bar.

    Raises:
        Problem: the function raised it, or the process ended without an answer.
    """
    sent = json.dumps({"call": call, "job": job, "path": sys.path}).encode() + b"\n"
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            [sys.executable, "-m", "retro.fresh"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if show else errors,
            cwd=ROOT,
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError):  # it has ended, and its status says how
                process.stdin.write(sent)
                process.stdin.flush()
            answered = process.stdout.read()  # standard input stays open: its end would end the process
        except BaseException:
            process.kill()
            raise
        finally:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        status = process.wait()
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()[-1:]
    try:
        answer = json.loads(answered)
    except ValueError:
        raise Problem(f"the process for {call} ended with status {status} {' '.join(said)}") from None
    if "problem" in answer:
        problem = answer["problem"]
        raise Problem(problem["reason"], file=problem["file"], line=problem["line"], remedy=problem["remedy"])
    return answer["value"]


def _main() -> int:
    answer_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a core may write to standard output
    sent = json.loads(sys.stdin.readline())
    # Not SIGINT, which processes that a script runs in the background ignore.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    done = threading.Event()
    threading.Thread(target=_end_with_caller, args=[done], daemon=True).start()
    sys.path.extend(entry for entry in sent["path"] if entry not in sys.path)
    module, _, name = sent["call"].partition(":")
    answer: dict[str, Any]
    try:
        answer = {"value": getattr(importlib.import_module(module), name)(sent["job"])}
    except Problem as problem:
        answer = {"problem": {field: getattr(problem, field) for field in _FIELDS}}
    except KeyboardInterrupt:
        return 130
    done.set()
    with answer_to:
        json.dump(answer, answer_to)
    return 0


def _end_with_caller(done: threading.Event) -> None:
    """Interrupt this process once whoever called it is gone."""
    os.read(0, 1)
    if not done.is_set():
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(_main())
