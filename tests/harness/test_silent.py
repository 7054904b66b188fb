"""A helper does not outlive its run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from harness.track import ROOT

PARENT = """
import multiprocessing, time
from harness.silent import end_with_parent

def help(path):
    end_with_parent()
    path.touch()
    time.sleep(300)

if __name__ == "__main__":
    import pathlib, sys
    helper = multiprocessing.get_context("spawn").Process(target=help, args=(pathlib.Path(sys.argv[1]),))
    helper.start()
    print(helper.pid, flush=True)
    helper.join()
"""


def test_a_helper_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    command = [sys.executable, str(tmp_path / "parent.py"), str(tmp_path / "ready")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        helper = psutil.Process(int(parent.stdout.readline()))
        while not (tmp_path / "ready").exists():
            assert parent.poll() is None
            time.sleep(0.02)
        parent.send_signal(signal.SIGKILL)
    psutil.wait_procs([helper], timeout=30)
    assert not helper.is_running() or helper.status() == psutil.STATUS_ZOMBIE
