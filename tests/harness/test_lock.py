import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import Problem
from harness.lock import locked

HOLD = """
import sys, pathlib
from harness.lock import locked
with locked(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_is_held_once_and_can_be_held_again_afterwards(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(Problem, match="another process works in it"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_a_killed_process_lets_its_folder_go(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(Problem, match="wait for it to end"), locked(tmp_path):
            pass
        holder.kill()
    with locked(tmp_path):
        pass


def test_a_folder_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(Problem), locked(tmp_path / "none"):
        pass
