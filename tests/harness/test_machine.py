"""The machine is seen as it is, and belongs to a class only if all of it fits."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness import machine as machines
from harness.errors import Problem
from harness.machine import Machine, find_class, inspect, launcher, misfits, nearest_class, pin
from harness.track import HardwareClass, Track
from toy_track.track import TRACK as TOY

CPU = HardwareClass("cpu", "two CPU cores", 2, 0, "", 60.0)
ONE = HardwareClass("1xH100", "one H100", None, 1, "H100", 600.0)
EIGHT = HardwareClass("8xH100", "eight H100", None, 8, "H100", 600.0)
TRACK: Track = replace(TOY, classes=(ONE, CPU))
H100 = "NVIDIA H100 80GB HBM3"


def machine(cores: int | None = 2, gpus: tuple[str, ...] = ()) -> Machine:
    return Machine(
        cpu="CPU",
        logical_cores=16,
        available_cores=cores,
        memory_gib=24.0,
        gpus=gpus,
        driver="580.1" if gpus else None,
        python="3.11.7",
        platform="Linux",
    )


@pytest.mark.parametrize(
    ("found", "fits", "nearest"),
    [
        (machine(2), CPU, CPU),
        (machine(1), None, CPU),
        (machine(16), None, CPU),
        (machine(None), None, CPU),
        (machine(16, (H100,)), ONE, ONE),
        (machine(2, (H100,)), ONE, ONE),
        (machine(None, (H100,)), ONE, ONE),
        (machine(2, ("NVIDIA H200",)), None, ONE),
        (machine(2, (H100, H100)), None, ONE),
    ],
)
def test_the_class_is_found_from_the_machine(
    found: Machine, fits: HardwareClass | None, nearest: HardwareClass
) -> None:
    assert find_class(TRACK, found) == fits
    assert nearest_class(TRACK, found) == nearest


def test_a_track_without_a_class_for_the_cpu_offers_its_first() -> None:
    assert nearest_class(replace(TRACK, classes=(EIGHT, ONE)), machine(2)) == EIGHT
    assert nearest_class(replace(TRACK, classes=(EIGHT, ONE)), machine(2, (H100,))) == ONE


def test_every_misfit_is_named() -> None:
    assert misfits(CPU, machine(2)) == []
    assert misfits(CPU, machine(3, (H100,))) == [
        "cores available: 3, wanted: exactly 2",
        "GPUs visible: 1, wanted: none",
    ]
    assert misfits(CPU, machine(None)) == ["this system cannot pin a process to 2 cores"]
    assert misfits(EIGHT, machine(2, ("B200", H100))) == [
        "GPUs visible: 2, wanted: 8",
        "the GPUs must be H100, not B200",
    ]


def test_this_machine_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    found = inspect()
    assert found.logical_cores >= (found.available_cores or 1) >= 1
    assert found.memory_gib > 0.5
    assert found.cpu and found.platform and found.python.startswith("3.")
    assert (found.gpus, found.driver) == ((), None)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_the_launcher_is_torchrun_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert launcher() == os.getpid()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert launcher() == os.getppid()


def test_pinning_leaves_the_first_available_cores_and_only_them() -> None:
    before = os.sched_getaffinity(0)
    try:
        pin(len(before) + 1)
        assert os.sched_getaffinity(0) == before
        pin(1)
        assert os.sched_getaffinity(0) == {min(before)}
        assert machines.available_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


def test_a_system_without_affinity_is_left_alone_and_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    pin(1)
    assert machines.available_cores() is None


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in front of PATH for a program called nvidia-smi, and no choice of devices."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path


def install(folder: Path, script: str) -> None:
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "nvidia-smi").chmod(0o755)


TWO = """cat <<'END'
0, GPU-aaaa-1111, 580.65.06, NVIDIA H100 80GB HBM3
1, GPU-bbbb-2222, 580.65.06, NVIDIA B200, special
END"""
SECOND = "NVIDIA B200, special"


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        (None, (H100, SECOND)),
        ("0", (H100,)),
        ("1,0", (SECOND, H100)),
        (" 1 ", (SECOND,)),
        ("GPU-bbbb", (SECOND,)),
        ("GPU-aaaa-1111,1", (H100, SECOND)),
        ("0,7,1", (H100,)),
        ("none", ()),
        ("-1", ()),
        ("", ()),
        ("MIG-cccc", ("MIG slice",)),
    ],
)
def test_gpus_are_those_that_cuda_will_see(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch, visible: str | None, names: tuple[str, ...]
) -> None:
    install(bin_folder, TWO)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = inspect()
    assert found.gpus == names
    assert found.driver == (None if visible in ("", "-1") else "580.65.06")


@pytest.mark.parametrize("script", ["exit 9", "echo No devices were found", "echo '0, GPU-a'; exit 6", ":"])
def test_without_a_working_driver_there_are_no_gpus(bin_folder: Path, script: str) -> None:
    install(bin_folder, script)
    assert (inspect().gpus, inspect().driver) == ((), None)


def test_without_nvidia_smi_there_are_no_gpus(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(bin_folder))
    assert inspect().gpus == ()


def test_a_hanging_driver_is_a_problem_and_can_be_passed_by(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(bin_folder, "exec sleep 60")
    monkeypatch.setattr(machines, "_NVIDIA_SMI_TIMEOUT_S", 0.2)
    start = time.monotonic()
    with pytest.raises(Problem, match="nvidia-smi did not answer"):
        inspect()
    assert time.monotonic() - start < 10
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert inspect().gpus == ()
