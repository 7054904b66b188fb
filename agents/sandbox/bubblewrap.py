"""FIXED: bubblewrap around a worker where the machine has it: a world of nothing but Python, read-only."""

import functools
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds `agents`."""
_PACKAGE = (ROOT / "agents" / "__init__.py", ROOT / "agents" / "sandbox")
_SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/nix/store", "/gnu/store")


def interpreter() -> list[str]:
    """The Python of this process without packages, user's folders or the current folder."""
    return [getattr(sys, "_base_executable", None) or sys.executable, "-s", "-S", "-P"]


@dataclass(frozen=True)
class Wrap:
    """A bubblewrap that works."""

    program: str

    def start(
        self, command: list[str], environment: dict[str, str], descriptors: tuple[int, ...]
    ) -> "tuple[subprocess.Popen[bytes], int]":
        """Run a command inside; returns bubblewrap's process and the command's number as seen from here."""
        status, theirs = os.pipe()
        try:
            try:
                popen = subprocess.Popen(
                    [self.program, *_arguments(theirs), "--", *command],
                    env=environment,
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(*descriptors, theirs),
                    start_new_session=True,
                )
            finally:
                os.close(theirs)
            with open(status, closefd=False) as stream:
                line = stream.readline()
            if not line:
                raise OSError(f"bubblewrap ended with status {popen.wait()}")
            return popen, int(json.loads(line)["child-pid"])
        finally:
            os.close(status)


@functools.cache
def find() -> Wrap | None:
    """The machine's bubblewrap, if it can start this Python."""
    program = shutil.which("bwrap")
    if program is None:
        return None
    command = [program, *_arguments(1), "--", *interpreter(), "-c", "import json"]
    try:
        tried = subprocess.run(
            command,
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Wrap(program) if tried.returncode == 0 and b"child-pid" in tried.stdout else None


def _arguments(status: int) -> list[str]:
    arguments = ["--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"]
    for path in _SYSTEM:
        arguments += ["--ro-bind-try", path, path]
    for path in dict.fromkeys((sys.base_prefix, sys.base_exec_prefix, *map(str, _PACKAGE))):
        arguments += ["--ro-bind", path, path]
    return [*arguments, "--dev", "/dev", "--chdir", "/", "--json-status-fd", str(status)]
