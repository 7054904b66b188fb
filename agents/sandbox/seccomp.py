"""FIXED: the filter of system calls: ten that a computation needs, and no others.

Classic BPF over `struct seccomp_data` (number at byte 0, architecture at 4, arguments of 8 bytes from 16),
for x86-64 and aarch64. A call that is not on the list fails with EPERM; one by another architecture's numbers
ends the process.
"""

import struct
from typing import NamedTuple

ALLOW = 0x7FFF0000
KILL = 0x80000000
REFUSE = 0x00050001
"""SECCOMP_RET_ERRNO with EPERM."""

_LOAD, _AND, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_PROT_EXEC, _MAP_ANONYMOUS = 0x4, 0x20
_MADV_DONTNEED, _MADV_FREE = 4, 8


class Architecture(NamedTuple):
    """What numbers mean on a kind of processor."""

    audit: int
    """AUDIT_ARCH_..., as the kernel names it to the filter."""
    calls: dict[str, int]


class Instruction(NamedTuple):
    code: int
    if_true: int
    if_false: int
    value: int


ARCHITECTURES = {
    "x86_64": Architecture(
        0xC000003E,
        {
            "read": 0,
            "write": 1,
            "mmap": 9,
            "mprotect": 10,
            "munmap": 11,
            "brk": 12,
            "mremap": 25,
            "madvise": 28,
            "exit": 60,
            "exit_group": 231,
        },
    ),
    "aarch64": Architecture(
        0xC00000B7,
        {
            "read": 63,
            "write": 64,
            "mmap": 222,
            "mprotect": 226,
            "munmap": 215,
            "brk": 214,
            "mremap": 216,
            "madvise": 233,
            "exit": 93,
            "exit_group": 94,
        },
    ),
}


def build_filter(architecture: Architecture, reading: int, writing: int) -> list[Instruction]:
    """The program for a process that may read one descriptor and write another.

    Memory may be asked for if it is anonymous and not executable, and given back.
    """
    program = [
        Instruction(_LOAD, 0, 0, 4),
        Instruction(_JUMP_EQUAL, 1, 0, architecture.audit),
        Instruction(_RETURN, 0, 0, KILL),
        Instruction(_LOAD, 0, 0, 0),
    ]
    calls = architecture.calls
    # The argument that is looked at, the bits of it, and the values they may have; descriptors, flags and
    # advice are 32 bits wide in the kernel too, so the upper half of an argument means nothing.
    conditions: dict[str, list[tuple[int, int, tuple[int, ...]]]] = {
        "read": [(0, 0xFFFFFFFF, (reading,))],
        "write": [(0, 0xFFFFFFFF, (writing,))],
        "mmap": [(2, _PROT_EXEC, (0,)), (3, _MAP_ANONYMOUS, (_MAP_ANONYMOUS,))],
        "mprotect": [(2, _PROT_EXEC, (0,))],
        "madvise": [(2, 0xFFFFFFFF, (_MADV_DONTNEED, _MADV_FREE))],
    }
    for name, number in calls.items():
        body: list[Instruction] = []
        for argument, mask, values in conditions.get(name, []):
            body += [Instruction(_LOAD, 0, 0, 16 + 8 * argument), Instruction(_AND, 0, 0, mask)]
            # A value that fits jumps over the other comparisons and the refusal.
            body += [
                Instruction(_JUMP_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)
            ]
            body.append(Instruction(_RETURN, 0, 0, REFUSE))
        body.append(Instruction(_RETURN, 0, 0, ALLOW))
        program += [Instruction(_JUMP_EQUAL, 0, len(body), number), *body]
    return [*program, Instruction(_RETURN, 0, 0, REFUSE)]


def pack(program: list[Instruction]) -> bytes:
    """The program as the kernel reads it: `struct sock_filter` each, little-endian."""
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)
