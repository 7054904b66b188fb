"""No attempt succeeds in a locked worker, by what is seen from outside; each succeeds in an unlocked one."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import sandbox_attempts  # noqa: F401 (fills ATTEMPTS)
from sandbox_world import ATTEMPTS, BREAK_IN, NUMBERS, PATH, Attempt, World

from agents.sandbox.gate import check
from agents.sandbox.host import Limits, Sandbox, SkillError

LIMITS = Limits(memory_mb=64, seconds=10)
VIEW = {"goal": "", "observation": "", "state": {}, "actions": [], "done": False, "steps": 0, "reward": 0.0}
VICTIM = """
import ctypes, sys, time
text = ctypes.create_string_buffer(sys.argv[1].encode())
print(ctypes.addressof(text), flush=True)
time.sleep(600)
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A file, servers and another process of this user, all of which a worker must leave alone."""
    secret = secrets.token_hex(8)
    (tmp_path / "secret.txt").write_text(secret)
    (tmp_path / "victim.txt").write_text("here to stay")
    (tmp_path / "victim.txt").chmod(0o644)
    (tmp_path / "link").symlink_to(secret)
    (tmp_path / "bait.py").write_text(f"SECRET = {secret!r}\n")
    signals: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: signals.append(number))
    command = [sys.executable, "-S", "-c", VICTIM, secret]
    with (
        subprocess.Popen(command, env={"SECRET": secret}, stdout=subprocess.PIPE) as victim,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        udp.bind(("127.0.0.1", 0))
        unix.bind(f"\0{secret}")
        unix.listen()
        for server in (tcp, udp, unix):
            server.setblocking(False)
        assert victim.stdout is not None
        place = {
            "address": int(victim.stdout.readline()),
            "folder": str(tmp_path),
            "host": os.getpid(),
            "numbers": NUMBERS,
            "processors": os.cpu_count(),
            "secret_file": str(tmp_path / "secret.txt"),
            "SIGUSR1": int(signal.SIGUSR1),
            "spell": secrets.token_hex(8),
            "stranger": 65_533 if os.getuid() == 65_534 else 65_534,
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "unix": secret,
            "victim": victim.pid,
        }
        yield World(tmp_path, secret, psutil.Process(victim.pid), place, signals, tcp, udp, unix)
        victim.kill()
    signal.signal(signal.SIGUSR1, before)


def make(attempt: Attempt, world: World, sandbox: Sandbox) -> None:
    """Run an attempt past the gate and past what skills are not given."""
    sandbox.load(BREAK_IN.format(path=PATH) + attempt.source)
    assert sandbox.pid is not None
    world.pid = sandbox.pid
    world.look()
    world.first_links = world.links

    def serve(action: str) -> dict[str, object]:
        deed, _, port = action.partition(" ")
        if deed == "look":
            world.look()
        elif deed == "connect":
            world.connect(int(port))
        else:
            time.sleep(0.1)
        return VIEW

    try:
        world.value = sandbox.call(attempt.name, [], {"place": world.place}, serve, VIEW).value
    except SkillError as error:
        world.fate = error.kind


def test_there_are_many() -> None:
    assert len(ATTEMPTS) >= 40
    assert len({attempt.name for attempt in ATTEMPTS}) == len(ATTEMPTS)


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_refused_by_the_lock(attempt: Attempt, world: World) -> None:
    with Sandbox(LIMITS) as sandbox:
        make(attempt, world, sandbox)
        assert not attempt.seen(world)
        assert world.fate in ("", "crash")
        assert sandbox.run("6 * 7", {}).value == 42


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_succeeds_without_the_lock(attempt: Attempt, world: World) -> None:
    with Sandbox(LIMITS, unsafe=True) as sandbox:
        make(attempt, world, sandbox)
        succeeded = attempt.seen(world)
        for child in world.children:
            child.kill()
    if attempt.privileged and not succeeded:
        pytest.skip("this machine refuses it to everyone here")
    assert succeeded


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_refused_by_the_gate(attempt: Attempt) -> None:
    assert check(attempt.source, LIMITS)
