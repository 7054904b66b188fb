"""bubblewrap around a worker, where this machine has it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.sandbox import bubblewrap
from agents.sandbox.host import Limits, Sandbox

LIMITS = Limits(memory_mb=64)


@pytest.fixture(autouse=True)
def looked_for_anew() -> Iterator[None]:
    bubblewrap.find.cache_clear()
    yield
    bubblewrap.find.cache_clear()


def test_without_bubblewrap_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bubblewrap.find() is None
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    bubblewrap.find.cache_clear()
    assert bubblewrap.find() is None
    with Sandbox(LIMITS) as sandbox:
        assert "bubblewrap" not in sandbox.confinement


def test_inside_it_a_worker_has_namespaces_of_its_own() -> None:
    if bubblewrap.find() is None:
        pytest.skip("no bubblewrap that works")
    with Sandbox(LIMITS) as sandbox:
        assert sandbox.confinement.endswith("+bubblewrap")
        proc = Path(f"/proc/{sandbox.pid}")
        for kind in ("mnt", "net", "pid", "ipc", "uts"):
            assert (proc / "ns" / kind).readlink() != Path(f"/proc/self/ns/{kind}").readlink()
        assert sandbox.run("6 * 7", {}).value == 42
        assert "seccomp" in sandbox.confinement and "Seccomp:\t2\n" in (proc / "status").read_text()


def test_inside_it_there_is_nothing_but_python() -> None:
    wrap = bubblewrap.find()
    if wrap is None:
        pytest.skip("no bubblewrap that works")
    reading, writing = os.pipe()
    show = "import os, sys; os.write(int(sys.argv[1]), repr([os.listdir('/'), dict(os.environ)]).encode())"
    try:
        popen, _ = wrap.start([*bubblewrap.interpreter(), "-c", show, str(writing)], {}, (writing,))
        popen.wait(60)
        told = os.read(reading, 10_000).decode()
    finally:
        os.close(reading)
        os.close(writing)
    assert "'home'" not in told and "'proc'" not in told and "'tmp'" not in told
