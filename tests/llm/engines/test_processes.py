"""Servers as processes, with a small server in place of vLLM: what they are started with, and their end."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import psutil
import pytest
import vllm_stand_in
from vllm_stand_in import gone

from harness.errors import Problem
from harness.track import ROOT
from llm.engines.processes import (
    Processes,
    Server,
    free_ports,
    healthy,
    server_arguments,
    server_environment,
    servers,
)


def test_arguments() -> None:
    found = server_arguments(
        Path("models/a"), 8001, max_model_len=6144, in_flight=64, dtype="bfloat16", nccl=False
    )
    assert found == [
        "--model=models/a",
        "--served-model-name=model",
        "--host=127.0.0.1",
        "--port=8001",
        "--max-model-len=6144",
        "--max-num-seqs=64",
        "--dtype=bfloat16",
        "--seed=0",
        "--skip-tokenizer-init",
        "--generation-config=vllm",
        "--logprobs-mode=processed_logprobs",
        "--worker-extension-cls=llm.engines.vllm_process.WeightLoading",
        "--disable-uvicorn-access-log",
    ]
    nccl = server_arguments(
        Path("models/a"), 8001, max_model_len=6144, in_flight=64, dtype="bfloat16", nccl=True
    )
    assert nccl == [*found, '--weight-transfer-config={"backend":"nccl"}']


def test_a_server_sees_its_own_gpu_and_nothing_of_torchrun() -> None:
    launched = {
        "HOME": "/root",
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "3",
        "MASTER_PORT": "29500",
        "OMP_NUM_THREADS": "1",
        "TORCHELASTIC_RUN_ID": "none",
        "NCCL_DEBUG": "INFO",
        "PYTHONPATH": "/elsewhere",
    }
    assert server_environment(launched, 3) == {
        "HOME": "/root",
        "NCCL_DEBUG": "INFO",
        "PYTHONPATH": f"{ROOT}:/elsewhere",
        "CUDA_VISIBLE_DEVICES": "3",
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }


def test_servers_on_cpus_are_not_bound_to_the_same_cores() -> None:
    assert server_environment({}, None)["VLLM_CPU_OMP_THREADS_BIND"] == "nobind"


@pytest.mark.parametrize(
    ("visible", "gpu", "expected"),
    [
        (None, 4, "4"),
        ("2,3, 5", 2, "5"),
        ("GPU-8f3a,GPU-77bc", 1, "GPU-77bc"),
        ("0,1", None, ""),
        (None, None, ""),
    ],
)
def test_gpus_are_counted_among_the_visible_ones(visible: str | None, gpu: int | None, expected: str) -> None:
    base = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert server_environment(base, gpu)["CUDA_VISIBLE_DEVICES"] == expected


def test_a_gpu_that_is_not_visible_is_a_problem() -> None:
    with pytest.raises(Problem, match="no GPU 2 among CUDA_VISIBLE_DEVICES=0,1"):
        server_environment({"CUDA_VISIBLE_DEVICES": "0,1"}, 2)


def test_ports_are_different_and_free() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    for port in ports:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))


def test_one_server_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = servers(
        Path("a"), [3, 4], max_model_len=512, in_flight=8, dtype="float32", options=["--enforce-eager"]
    )
    assert [server.environment["CUDA_VISIBLE_DEVICES"] for server in found] == ["3", "4"]
    assert len({server.port for server in found}) == 2
    for server in found:
        assert server.command[:3] == [sys.executable, "-m", "llm.engines.vllm_process"]
        assert f"--port={server.port}" in server.command and server.command[-1] == "--enforce-eager"


# ---- processes ----------------------------------------------------------------------------------------


@pytest.fixture
def own_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs, which stay after a failure, go where tests clear up."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def stand_ins(*behaviours: str) -> Processes:
    return Processes(
        [
            Server(
                port, [sys.executable, str(vllm_stand_in.__file__), str(port), behaviour], dict(os.environ)
            )
            for port, behaviour in zip(free_ports(len(behaviours)), behaviours, strict=True)
        ]
    )


BYSTANDERS: set[psutil.Process] = set()


@pytest.fixture(autouse=True)
def bystanders() -> None:
    """What earlier tests of this process leave running: the tracker of spawned processes' resources."""
    BYSTANDERS.clear()
    BYSTANDERS.update(psutil.Process().children(recursive=True))


def descendants() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if child not in BYSTANDERS]


def test_servers_start_answer_and_end_with_all_that_they_started() -> None:
    processes = stand_ins("", "stubborn")
    processes.STOP_S = 1
    processes.start()
    ports = [server.port for server in processes.servers]
    assert all(map(healthy, ports))
    processes.check(patience_s=0)
    pids = [process.pid for process in descendants()]
    assert len(pids) == 4  # each has a child
    processes.stop()
    assert gone(pids) and not any(map(healthy, ports)) and not processes.logs.exists()


@pytest.mark.usefixtures("own_logs")
def test_a_server_that_ends_at_its_start_shows_the_end_of_its_log() -> None:
    processes = stand_ins("", "quit")
    with pytest.raises(Problem) as caught:
        processes.start()
    first, *lines = str(caught.value).splitlines()
    port = processes.servers[1].port
    assert first.endswith(f"server_{port}.log: the server on port {port} ended with status 1; its log ends:")
    assert lines[-1] == "no such model" and lines[0] == "line 61" and len(lines) == 40
    assert descendants() == [] and Path(str(caught.value.file)).exists()


@pytest.mark.usefixtures("own_logs")
def test_a_server_that_never_answers_is_a_problem() -> None:
    processes = stand_ins("deaf")
    processes.START_S = 1
    with pytest.raises(Problem, match="no answer from all servers in 1 s"):
        processes.start()
    assert descendants() == []


@pytest.mark.usefixtures("own_logs")
def test_a_death_while_serving_is_found() -> None:
    processes = stand_ins("", "")
    processes.start()
    try:
        processes.running[1].kill()
        with pytest.raises(Problem, match=f"port {processes.servers[1].port} ended with status -9"):
            processes.check()
    finally:
        processes.stop()
    assert descendants() == []


def run_script(body: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(body)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )


@pytest.mark.parametrize("while_starting", [True, False])
def test_after_ctrl_c_no_server_is_left(while_starting: bool) -> None:
    script = run_script(
        f"""
        import sys, time
        sys.path += ["tests", "tests/llm/engines"]
        from test_processes import stand_ins
        processes = stand_ins({"deaf" if while_starting else ""!r}, "")
        print("ready", flush=True)
        processes.start()
        try:
            time.sleep(1000)
        finally:
            processes.stop()
        """
    )
    assert script.stdout is not None and script.stdout.readline() == "ready\n"
    parent = psutil.Process(script.pid)
    deadline = time.monotonic() + 20
    while len(parent.children(recursive=True)) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    pids = [process.pid for process in parent.children(recursive=True)]
    assert len(pids) == 4
    if not while_starting:
        time.sleep(1)
    script.send_signal(signal.SIGINT)
    script.wait(30)
    script.stdout.close()
    assert gone(pids)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's death")
def test_a_server_ends_when_its_parent_is_killed() -> None:
    script = run_script(
        """
        import subprocess, sys, time
        child = '''
        import time
        from llm.engines.vllm_process import end_with_parent
        end_with_parent()
        print("ready", flush=True)
        time.sleep(1000)
        '''
        child = "\\n".join(line.strip() for line in child.splitlines())
        subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
        time.sleep(1000)
        """
    )
    assert script.stdout is not None and script.stdout.readline() == "ready\n"
    pids = [process.pid for process in psutil.Process(script.pid).children()]
    script.kill()
    script.wait(10)
    script.stdout.close()
    assert len(pids) == 1 and gone(pids)
