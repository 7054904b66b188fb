"""FIXED: locks this process down for good: rlimits, no capabilities, no new privileges, Landlock, seccomp."""

import ctypes
import platform
import resource
import signal
import struct
from pathlib import Path

from agents.sandbox.seccomp import ARCHITECTURES, build_filter, pack

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_SECCOMP_MODE_FILTER = 2
# The same numbers on every architecture.
_LANDLOCK_CREATE_RULESET, _LANDLOCK_RESTRICT_SELF = 444, 446
_LANDLOCK_CREATE_RULESET_VERSION = 1
_INTERPRETER_MB = 48
"""Address space that the interpreter has taken before it runs any code, rounded up."""
_CAPSET = {"x86_64": 126, "aarch64": 91}


class LockError(Exception):
    """This process cannot be locked down; says why."""


def limit(memory_mb: int) -> None:
    """Let code in this process have about that many MiB of address space, and no core dump."""
    room = (_INTERPRETER_MB + memory_mb) * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def lock(reading: int, writing: int) -> list[str]:
    """Leave this process nothing but its memory and two descriptors, one to read and one to write.

    Returns the walls that stand: "landlock" where the kernel has it, "seccomp", "rlimits".

    Raises:
        LockError: this machine cannot.
    """
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise LockError(f"no system call filter is written for the processor {machine or 'of this machine'}")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _drop_capabilities(machine)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    walls = ["landlock"] if _landlock() else []
    for kind in (
        resource.RLIMIT_NOFILE,  # descriptors that are open stay open
        resource.RLIMIT_NPROC,
        resource.RLIMIT_FSIZE,
        resource.RLIMIT_MEMLOCK,
        resource.RLIMIT_MSGQUEUE,
    ):
        resource.setrlimit(kind, (0, 0))
    _filter(machine, reading, writing)
    _check()
    return [*walls, "seccomp", "rlimits"]


_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise LockError(f"prctl {option} is refused (errno {ctypes.get_errno()})")


def _syscall(number: int, *arguments: object) -> int:
    return int(_libc.syscall(ctypes.c_long(number), *arguments))


def _drop_capabilities(machine: str) -> None:
    header = struct.pack("<Ii", 0x20080522, 0)
    if _syscall(_CAPSET[machine], header, bytes(24)) != 0:
        raise LockError(f"capabilities cannot be given up (errno {ctypes.get_errno()})")


def _landlock() -> bool:
    """Handle every right that this kernel's Landlock knows, and grant none; False where it has none."""
    nothing, size = ctypes.c_void_p(None), ctypes.c_size_t
    version = _syscall(_LANDLOCK_CREATE_RULESET, nothing, size(0), _LANDLOCK_CREATE_RULESET_VERSION)
    if version < 1:
        return False
    files = (1 << (13 + (version >= 2) + (version >= 3) + (version >= 5))) - 1
    network = 0b11 if version >= 4 else 0  # TCP bind and connect
    scoped = 0b11 if version >= 6 else 0  # abstract sockets and signals
    attribute = struct.pack("<QQQ", files, network, scoped)
    ruleset = _syscall(_LANDLOCK_CREATE_RULESET, attribute, size(len(attribute)), 0)
    if ruleset < 0:
        raise LockError(f"Landlock takes no ruleset (errno {ctypes.get_errno()})")
    if _syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0) != 0:
        raise LockError(f"Landlock does not restrict (errno {ctypes.get_errno()})")
    _libc.close(ruleset)
    return True


def _filter(machine: str, reading: int, writing: int) -> None:
    program = pack(build_filter(ARCHITECTURES[machine], reading, writing))
    instructions = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(
        struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions)), struct.calcsize("@HP")
    )
    if _libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), header, 0, 0) != 0:
        raise LockError(f"seccomp takes no filter (errno {ctypes.get_errno()})")


def _check() -> None:
    """See for ourselves that the walls stand."""
    try:
        Path("/").stat()
    except PermissionError:
        return
    except OSError as error:
        raise LockError(f"the filter does not work: {error}") from error
    raise LockError("the filter does not work: a file can still be seen")
