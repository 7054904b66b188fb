"""The machine a run is on, and the class of hardware it belongs to."""

import os
import platform
import subprocess
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from harness.errors import Problem
from harness.files import STRICT
from harness.track import HardwareClass, Track

_NVIDIA_SMI = ("nvidia-smi", "--query-gpu=index,uuid,driver_version,name", "--format=csv,noheader")
_NVIDIA_SMI_TIMEOUT_S = 20.0


Cores = Annotated[int, Field(ge=1, le=2**20)]


class Machine(BaseModel):
    """What of a machine matters to speed."""

    model_config = STRICT

    cpu: str
    logical_cores: Cores
    """Cores present."""
    available_cores: Cores | None
    """Cores this process may use; None where the system cannot say or restrict them."""
    memory_gib: float
    gpus: tuple[str, ...]
    """Names of the visible GPUs."""
    driver: str | None
    """Version of the GPU driver."""
    python: str
    platform: str


def inspect() -> Machine:
    """Look at this machine; a Problem where nvidia-smi is there but gives no answer."""
    gpus, driver = _visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"))
    return Machine(
        cpu=_cpu_model(),
        logical_cores=os.cpu_count() or 1,
        available_cores=available_cores(),
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        gpus=gpus,
        driver=driver,
        python=platform.python_version(),
        platform=platform.platform(),
    )


def available_cores() -> int | None:
    """Cores this process may use; None where the system has no affinity (macOS)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def launcher() -> int:
    """The process that the command line started: torchrun where it started this one, else this one."""
    return os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else os.getpid()


def pin(cores: int) -> None:
    """Restrict this process, and those it starts, to the first `cores` available cores.

    Does nothing where there are fewer, or where the system has no affinity: the machine then fits no class.
    Call it before libraries that count cores, such as torch, are imported.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def misfits(hardware: HardwareClass, machine: Machine) -> list[str]:
    """Why the machine is not of this class; empty = it is."""
    reasons = []
    if hardware.cores is not None and machine.available_cores is None:
        reasons.append(f"this system cannot pin a process to {hardware.cores} cores")
    elif hardware.cores is not None and machine.available_cores != hardware.cores:
        reasons.append(f"cores available: {machine.available_cores}, wanted: exactly {hardware.cores}")
    if hardware.gpus is not None and len(machine.gpus) != hardware.gpus:
        reasons.append(f"GPUs visible: {len(machine.gpus)}, wanted: {hardware.gpus or 'none'}")
    others = sorted({name for name in machine.gpus if hardware.gpu_name not in name})
    if hardware.gpus and others:
        reasons.append(f"the GPUs must be {hardware.gpu_name}, not {', '.join(others)}")
    return reasons


def find_class(track: Track, machine: Machine, chosen: str | None = None) -> HardwareClass | None:
    """The class of the track that the machine is of; where classes are chosen, `chosen` if it is of that."""
    classes = [c for c in track.classes if not track.class_is_chosen or c.name == chosen]
    return next((hardware for hardware in classes if not misfits(hardware, machine)), None)


def nearest_class(track: Track, machine: Machine) -> HardwareClass:
    """The class whose recipe to run here: its own, else the first with GPUs or without, as the machine is."""
    alike = [hardware for hardware in track.classes if bool(hardware.gpus) == bool(machine.gpus)]
    return find_class(track, machine) or (alike or list(track.classes))[0]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _visible_gpus(visible: str | None) -> tuple[tuple[str, ...], str | None]:
    """Names of the GPUs that CUDA_VISIBLE_DEVICES = `visible` leaves, and the driver's version."""
    if visible is not None and visible.strip() in ("", "-1"):
        return (), None
    try:
        done = subprocess.run(_NVIDIA_SMI, capture_output=True, text=True, timeout=_NVIDIA_SMI_TIMEOUT_S)
    except OSError:
        return (), None
    except subprocess.TimeoutExpired as error:
        raise Problem(
            f"nvidia-smi did not answer within {_NVIDIA_SMI_TIMEOUT_S:.0f} s, so the GPUs are unknown",
            remedy="repair the driver, or set CUDA_VISIBLE_DEVICES= (empty) to use the CPU alone",
        ) from error
    rows = [line.split(", ", 3) for line in done.stdout.splitlines()] if done.returncode == 0 else []
    rows = [row for row in rows if len(row) == 4]
    driver = rows[0][2] if rows else None
    if visible is None:
        return tuple(row[3] for row in rows), driver
    names = []
    for wanted in (part.strip() for part in visible.split(",")):
        if wanted.startswith("MIG-"):
            names.append("MIG slice")
            continue
        by_uuid = wanted.startswith("GPU-")
        found = [row for row in rows if row[0] == wanted or (by_uuid and row[1].startswith(wanted))]
        if not found:
            break  # CUDA, too, ignores everything from the first unknown device on
        names.append(found[0][3])
    return tuple(names), driver
