"""The script that starts vLLM: the command it gives, and the mistakes it names."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from harness.track import ROOT

SCRIPT = ROOT / "agents" / "scripts" / "run_server.sh"


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    """A folder with a `vllm` that prints what it is told."""
    command = tmp_path / "vllm"
    command.write_text('#!/bin/sh\necho "vllm $*"\n')
    command.chmod(0o755)
    return tmp_path


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{folder}:/usr/bin:/bin", **variables}
    return subprocess.run([SCRIPT, *arguments], env=environment, capture_output=True, text=True, timeout=30)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_the_default_model(vllm: Path) -> None:
    done = run(vllm, PORT=str(free_port()))
    assert done.returncode == 0
    assert "vllm serve Qwen/Qwen3.5-35B-A3B --host 127.0.0.1 --port" in done.stdout
    assert "--reasoning-parser qwen3" in done.stdout
    assert "5012" in SCRIPT.read_text()


def test_another_model_and_further_arguments(vllm: Path) -> None:
    port = free_port()
    done = run(vllm, "--tensor-parallel-size", "2", MODEL="some/model", PORT=str(port), CONTEXT="4096")
    expected = f"vllm serve some/model --host 127.0.0.1 --port {port} --max-model-len 4096"
    assert done.stdout.splitlines()[-1] == f"{expected} --enable-prefix-caching --tensor-parallel-size 2"
    assert f"Serving some/model at http://127.0.0.1:{port}/v1" in done.stdout


def test_without_vllm_it_says_how_to_get_it(tmp_path: Path) -> None:
    done = run(tmp_path, PORT=str(free_port()))
    assert done.returncode == 2 and "vllm is not installed. Remedy: " in done.stderr


@pytest.mark.parametrize("variables", [{"PORT": "fifty"}, {"PORT": "-1"}, {"CONTEXT": "32k"}])
def test_what_is_no_number_is_named(variables: dict[str, str], vllm: Path) -> None:
    done = run(vllm, **variables)
    assert done.returncode == 2 and f"{next(iter(variables))} is '" in done.stderr


def test_a_port_in_use_is_named(vllm: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        done = run(vllm, PORT=port)
    assert done.returncode == 2 and f"listens on 127.0.0.1:{port} already" in done.stderr


def test_it_may_be_executed() -> None:
    assert os.access(SCRIPT, os.X_OK)
