"""Machines that cannot lock a worker down refuse to start one, and say why."""

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.sandbox import lock
from agents.sandbox.host import Sandbox, check_lockable
from harness.errors import Problem

ROOT = Path(__file__).parents[3]

# A process whose kernel lacks a system call, or an option of prctl: a filter of its own sees to it, which the
# processes that it starts inherit.
POORER = """
import ctypes, json, platform, struct, sys
from agents.sandbox.seccomp import ALLOW, ARCHITECTURES, Instruction, pack
number, first, error = map(int, sys.argv[1:])
program = pack([
    Instruction(0x20, 0, 0, 0), Instruction(0x15, 0, 3, number),
    Instruction(0x20, 0, 0, 16), Instruction(0x15, 0, 1, first),
    Instruction(0x06, 0, 0, 0x00050000 | error), Instruction(0x06, 0, 0, ALLOW),
])
held = ctypes.create_string_buffer(program)
libc = ctypes.CDLL(None)
assert libc.prctl(38, ctypes.c_ulong(1), 0, 0, 0) == 0
header = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(held)))
assert libc.prctl(22, ctypes.c_ulong(2), header, 0, 0) == 0

from agents.sandbox.host import Sandbox, check_lockable
from harness.errors import Problem
try:
    Sandbox().close()
    problem = None
except Problem as error:
    problem = str(error)
with Sandbox(unsafe=True) as sandbox:
    print(json.dumps([check_lockable(), problem, sandbox.confinement, sandbox.run("6 * 7", {}).value]))
"""
LANDLOCK_CREATE_RULESET = 444
PRCTL = {"x86_64": 157, "aarch64": 167}.get(platform.machine(), 0)
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
EINVAL, ENOSYS = 22, 38


def poorer(number: int, first: int, error: int) -> list[Any]:
    """What becomes of sandboxes where a call with a first argument fails with an error."""
    command = [sys.executable, "-c", POORER, *map(str, (number, first, error))]
    done = subprocess.run(command, cwd=ROOT, env={"PATH": ""}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert isinstance(answer, list)
    return answer


@pytest.mark.parametrize(
    ("number", "first", "error", "reason"),
    [
        (
            LANDLOCK_CREATE_RULESET,
            0,
            ENOSYS,
            "this kernel has no Landlock, and bubblewrap does not work here",
        ),
        (PRCTL, PR_SET_SECCOMP, EINVAL, "seccomp takes no filter (errno 22)"),
        (PRCTL, PR_SET_NO_NEW_PRIVS, EINVAL, "prctl 38 is refused (errno 22)"),
    ],
)
def test_without_a_wall_there_is_no_sandbox_but_an_unsafe_one(
    number: int, first: int, error: int, reason: str
) -> None:
    lockable, problem, confinement, value = poorer(number, first, error)
    assert lockable == f"model-written code cannot be confined here: {reason}"
    assert problem.startswith(f"{lockable}. Remedy: ") and "`sandbox: unsafe`" in problem
    assert (confinement, value) == ("unsafe", 42)


def test_a_processor_without_a_filter_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock.platform, "machine", lambda: "sparc64")
    with pytest.raises(lock.LockError, match="no system call filter is written for the processor sparc64"):
        lock.lock(0, 1)


def test_a_python_that_cannot_be_started_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_base_executable", "/nowhere/python")
    monkeypatch.setattr("agents.sandbox.bubblewrap.find", lambda: None)
    reason = check_lockable()
    assert reason is not None and "the worker did not start" in reason
    with pytest.raises(Problem, match="nowhere"):
        Sandbox()
    monkeypatch.setattr(sys, "_base_executable", "/bin/false")
    with pytest.raises(Problem, match=r"the worker did not start: .* \(status 1\)"):
        Sandbox()
