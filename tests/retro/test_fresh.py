"""Calls in fresh processes: values, problems and ends of every kind come back."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness.errors import Problem
from harness.track import ROOT
from retro.fresh import run_fresh


def test_values_come_back_from_another_process() -> None:
    job = {"inputs": [0, 8], "text": "é\n", "none": None}
    assert run_fresh("copy:copy", job) == job
    assert run_fresh("posixpath:getsize", "/proc/self/comm") == 0
    assert run_fresh("os:getpgid", 0) == os.getpgid(0)


def test_what_is_printed_does_not_mix_with_the_answer(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_fresh("builtins:print", {"noise": 1}) is None
    assert capfd.readouterr() == ("", "")
    assert run_fresh("builtins:print", {"noise": 1}, show=True) is None
    assert capfd.readouterr() == ("", "{'noise': 1}\n")


def test_a_problem_comes_back_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raising.py").write_text(
        "from harness.errors import Problem\n\n\n"
        "def fail(job):\n    raise Problem('is wrong', file=job, line=3, remedy='do better')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Problem) as caught:
        run_fresh("raising:fail", "file.txt")
    assert str(caught.value) == "file.txt:3: is wrong. Remedy: do better"


@pytest.mark.parametrize(
    ("call", "job", "said"),
    [
        ("os:_exit", 3, "os:_exit ended with status 3"),
        ("faulthandler:_sigsegv", True, "ended with status -11"),
        ("math:sqrt", -1, "ended with status 1 ValueError: math domain error"),
        ("no_such_module:f", 0, "ended with status 1 ModuleNotFoundError"),
    ],
)
def test_an_end_without_an_answer_is_a_problem(call: str, job: object, said: str) -> None:
    with pytest.raises(Problem, match=said):
        run_fresh(call, job)


def test_it_ends_with_its_caller() -> None:
    script = "from retro.fresh import run_fresh; run_fresh('time:sleep', 600)"
    caller = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    deadline = time.monotonic() + 60
    while not (callees := psutil.Process(caller.pid).children()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.5)
    caller.kill()
    caller.wait()
    for callee in callees:
        callee.wait(60)
