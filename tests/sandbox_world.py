"""The outside of a sandbox, as attempts to get there would change it."""

import inspect
import os
import platform
import re
import socket
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

BREAK_IN = """
_classes = ().__class__.__base__.__subclasses__()
_inside = next(c for c in _classes if c.__name__ == "_wrap_close").__init__.__globals__
__builtins__.update(_inside["__builtins__"])
_inside["sys"].path[:] = {path!r}
"""
"""Brings back what skills are not given: real builtins, a path to import from. Only the lock is left then."""
PATH = [folder for folder in sys.path if folder.startswith(sys.base_prefix)]

NUMBERS = {
    "x86_64": {"add_key": 248, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323},
    "aarch64": {"add_key": 217, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282},
}.get(platform.machine(), {})


@dataclass
class World:
    """The outside of one attempt."""

    folder: Path
    secret: str
    """Stands in a file, and in the environment and the memory of `victim`."""
    victim: psutil.Process
    place: dict[str, Any]
    signals: list[int]
    tcp: socket.socket
    udp: socket.socket
    unix: socket.socket
    pid: int = 0
    value: Any = None
    fate: str = ""
    """The kind of SkillError, "" for none."""
    descriptors: list[str] = field(default_factory=list)
    status: dict[str, str] = field(default_factory=dict)
    maps: str = ""
    limits: str = ""
    personality: str = ""
    links: dict[str, str] = field(default_factory=dict)
    first_links: dict[str, str] = field(default_factory=dict)
    tasks: int = 1
    children: list[psutil.Process] = field(default_factory=list)
    schedule: int = 0
    processors: int = 0
    shared: str = ""
    keys: str = ""
    connected: bool = False

    def look(self) -> None:
        """See what has become of the worker."""
        proc = Path(f"/proc/{self.pid}")
        self.descriptors = [str(link.readlink()) for link in (proc / "fd").iterdir()]
        lines = (proc / "status").read_text().splitlines()
        self.status = {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
        self.maps, self.limits = (proc / "maps").read_text(), (proc / "limits").read_text()
        self.personality = (proc / "personality").read_text().strip()
        self.links = {name: str((proc / name).readlink()) for name in ("cwd", "exe", "ns/user")}
        self.tasks = len(list((proc / "task").iterdir()))
        self.children = psutil.Process(self.pid).children()
        self.schedule = os.sched_getscheduler(self.pid)
        self.processors = len(os.sched_getaffinity(self.pid))
        self.shared = Path("/proc/sysvipc/shm").read_text() if Path("/proc/sysvipc/shm").exists() else ""
        self.keys = Path("/proc/keys").read_text() if Path("/proc/keys").exists() else ""

    def connect(self, port: int) -> None:
        """See whether anything listens at a port."""
        with socket.socket() as probe:
            self.connected = port > 0 and probe.connect_ex(("127.0.0.1", port)) == 0

    def holds(self, kind: str) -> bool:
        """Whether the worker was seen to hold a descriptor of a kind."""
        return any(kind in target for target in self.descriptors)

    def said_secret(self) -> bool:
        return self.secret in repr(self.value)

    def exists(self, name: str) -> bool:
        return os.path.lexists(self.folder / name)

    def pipes(self) -> int:
        """Descriptors of pipes that the worker was seen to hold; it starts with two."""
        return sum(target.startswith("pipe:") for target in self.descriptors)

    def accepted(self, server: socket.socket) -> bool:
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def received(self) -> bool:
        try:
            return self.udp.recv(10) == b"x"
        except BlockingIOError:
            return False

    def victim_status(self, name: str) -> str:
        lines = Path(f"/proc/{self.victim.pid}/status").read_text().splitlines()
        return next(line.split()[1] for line in lines if line.startswith(name))

    def limit(self, name: str) -> str:
        found = re.search(rf"{name} +(\S+)", self.limits)
        return found[1] if found else ""


Seen = Callable[[World], bool]


@dataclass(frozen=True)
class Attempt:
    name: str
    source: str
    seen: Seen
    """Whether it succeeded, by what was observed from outside."""
    privileged: bool
    """A kernel may refuse it to everyone, or to all but root."""


ATTEMPTS: list[Attempt] = []


def attempt(seen: Seen, *, privileged: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        source = textwrap.dedent(inspect.getsource(function))
        source = source[source.index("def ") :]
        name = function.__name__
        ATTEMPTS.append(Attempt(name, source, seen, privileged))
        return function

    return add
