"""What users see when something is wrong."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import Problem, run_command
from harness.track import ROOT


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("it is broken"), "it is broken"),
        (Problem("it is broken", file="a/b.json"), "a/b.json: it is broken"),
        (Problem("it is broken", file=Path("a/b.json"), line=3), "a/b.json:3: it is broken"),
        (Problem("it is broken", remedy="mend it"), "it is broken. Remedy: mend it"),
        (Problem("It is.", file="f", line=1, remedy="mend it"), "f:1: It is. Remedy: mend it"),
    ],
)
def test_a_problem_reads_place_reason_remedy(problem: Problem, text: str) -> None:
    assert str(problem) == text


def fail(error: BaseException) -> Callable[[], int]:
    def main() -> int:
        raise error

    return main


@pytest.mark.parametrize(
    ("main", "status"),
    [
        (lambda: None, None),
        (lambda: 1, 1),
        (fail(Problem("bad input", file="x")), 2),
        (fail(LookupError("expected")), 2),
        (fail(KeyboardInterrupt()), 130),
    ],
)
def test_a_command_exits_without_traceback(
    capsys: pytest.CaptureFixture[str], main: Callable[[], int | None], status: int | None
) -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as caught:
            run_command(main, LookupError)
    finally:
        signal.signal(signal.SIGINT, before)
    assert caught.value.code == status
    shown = capsys.readouterr().err
    assert "Traceback" not in shown
    assert (status == 2) == (shown in ("x: bad input\n", "expected\n"))


def test_a_message_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_command(fail(Problem("holds '\x1b[2J\u202e\r'\n  and more")))
    assert capsys.readouterr().err == "holds '\\x1b[2J\\u202e\\r'\n  and more\n"


PRINTS = "from harness.errors import run_command; run_command(lambda: print('x' * {count}))"


@pytest.mark.parametrize("count", [1, 100_000])
def test_output_that_cannot_be_written_is_told_without_traceback(count: int) -> None:
    command = [sys.executable, "-c", PRINTS.format(count=count)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "standard output cannot be written: No space left on device\n",
    )
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_an_error_of_the_system_elsewhere_is_raised() -> None:
    with pytest.raises(BrokenPipeError):
        run_command(fail(BrokenPipeError(32, "of a worker")))


def test_a_mistake_in_the_code_is_no_problem_of_the_user() -> None:
    with pytest.raises(ZeroDivisionError):
        run_command(fail(ZeroDivisionError()))


def test_ctrl_c_while_a_command_imports_its_libraries_is_quiet() -> None:
    code = "import {0}, signal\n{1}"
    for package in ("llm", "non_llm", "retro", "agents.speedrun"):
        for line, shown in (
            ("signal.raise_signal(signal.SIGINT)", "Stopped by Ctrl-C.\n"),
            ("1 / 0", "Traceback"),
        ):
            command = [sys.executable, "-c", code.format(package, line)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            assert done.returncode != 0 and done.stderr.startswith(shown)


@pytest.mark.parametrize("command", [["-m", "harness.doctor"], ["verify_record.py", "records"]])
def test_a_python_in_which_nothing_is_installed_is_told_what_to_do(command: list[str]) -> None:
    done = subprocess.run([sys.executable, "-S", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    told = r"\w+ is not installed in this Python. Remedy: make venv, then source .venv/bin/activate\n"
    assert re.fullmatch(told, done.stderr)


def test_a_library_that_only_some_commands_take_is_told_by_traceback() -> None:
    code = "import harness, no_such_library"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.startswith("Traceback")
