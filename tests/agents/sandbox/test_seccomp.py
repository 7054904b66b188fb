"""The filter, run by an interpreter of classic BPF that knows nothing of how it was written."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.sandbox.seccomp import ALLOW, ARCHITECTURES, KILL, REFUSE, build_filter, pack

READING, WRITING = 7, 9
PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4
MAP_SHARED, MAP_PRIVATE, MAP_ANONYMOUS = 1, 2, 32

# Numbers of the kernel's tables (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h).
TABLES = {
    "x86_64": {
        "read": 0,
        "write": 1,
        "open": 2,
        "mmap": 9,
        "mprotect": 10,
        "munmap": 11,
        "brk": 12,
        "ioctl": 16,
    }
    | {
        "mremap": 25,
        "madvise": 28,
        "socket": 41,
        "clone": 56,
        "fork": 57,
        "execve": 59,
        "exit": 60,
        "kill": 62,
    }
    | {"ptrace": 101, "exit_group": 231, "openat": 257, "io_uring_setup": 425},
    "aarch64": {
        "ioctl": 29,
        "openat": 56,
        "read": 63,
        "write": 64,
        "exit": 93,
        "exit_group": 94,
        "ptrace": 117,
    }
    | {"kill": 129, "socket": 198, "brk": 214, "munmap": 215, "mremap": 216, "clone": 220, "execve": 221}
    | {"mmap": 222, "mprotect": 226, "madvise": 233, "io_uring_setup": 425},
}
AUDIT = {
    "x86_64": 62 | 0xC0000000,
    "aarch64": 183 | 0xC0000000,
}  # EM_X86_64, EM_AARCH64; 64 bits, little-endian
machines = st.sampled_from(sorted(TABLES))
words = st.integers(0, 2**64 - 1)


def decide(program: bytes, number: int, audit: int, arguments: list[int]) -> int:
    """What the kernel would do with a call."""
    data = struct.pack("<iIQ6Q", number, audit, 0, *arguments)
    accumulator = place = 0
    while True:
        code, if_true, if_false, value = struct.unpack_from("<HBBI", program, 8 * place)
        place += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, value)
            case 0x54:
                accumulator &= value
            case 0x15:
                place += if_true if accumulator == value else if_false
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


def verdict(machine: str, name: str, *arguments: int) -> int:
    program = pack(build_filter(ARCHITECTURES[machine], READING, WRITING))
    padded = [*arguments, *[0] * (6 - len(arguments))]
    return decide(program, TABLES[machine][name], AUDIT[machine], padded)


@pytest.mark.parametrize("machine", TABLES)
def test_reading_and_writing_is_for_two_descriptors(machine: str) -> None:
    assert [fd for fd in range(20) if verdict(machine, "read", fd) == ALLOW] == [READING]
    assert [fd for fd in range(20) if verdict(machine, "write", fd) == ALLOW] == [WRITING]
    assert verdict(machine, "read", 2**32 - 1) == REFUSE


@pytest.mark.parametrize("machine", TABLES)
def test_memory_is_anonymous_and_not_executable(machine: str) -> None:
    flags = MAP_PRIVATE | MAP_ANONYMOUS
    assert verdict(machine, "mmap", 0, 4096, PROT_READ | PROT_WRITE, flags) == ALLOW
    assert verdict(machine, "mmap", 0, 4096, PROT_READ | PROT_EXEC, flags) == REFUSE
    assert verdict(machine, "mmap", 0, 4096, PROT_READ, MAP_PRIVATE, READING) == REFUSE
    assert verdict(machine, "mmap", 0, 4096, PROT_READ, MAP_SHARED, READING) == REFUSE
    assert verdict(machine, "mprotect", 0, 4096, PROT_READ | PROT_WRITE) == ALLOW
    assert verdict(machine, "mprotect", 0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) == REFUSE
    assert [advice for advice in range(200) if verdict(machine, "madvise", 0, 0, advice) == ALLOW] == [4, 8]


@pytest.mark.parametrize("machine", TABLES)
def test_nothing_else_is_allowed(machine: str) -> None:
    program = pack(build_filter(ARCHITECTURES[machine], READING, WRITING))
    names = {number: name for name, number in TABLES[machine].items()}
    # Arguments that would pass every condition at once do not exist, so each call gets those that fit it.
    fitting = {"read": [READING], "write": [WRITING], "mmap": [0, 0, 3, MAP_ANONYMOUS], "madvise": [0, 0, 4]}
    allowed = set()
    for number in range(1_000):
        given_ = fitting.get(names.get(number, ""), [])
        if decide(program, number, AUDIT[machine], [*given_, *[0] * (6 - len(given_))]) == ALLOW:
            allowed.add(names[number])
    ten = {"read", "write", "mmap", "mprotect", "munmap", "brk", "mremap", "madvise", "exit", "exit_group"}
    assert allowed == ten


@given(
    machines, st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 1), st.lists(words, min_size=6, max_size=6)
)
def test_another_architecture_ends_the_process(
    machine: str, number: int, audit: int, arguments: list[int]
) -> None:
    program = pack(build_filter(ARCHITECTURES[machine], READING, WRITING))
    if audit != AUDIT[machine]:
        assert decide(program, number, audit, arguments) == KILL


@given(machines, st.integers(1_000, 2**31 - 1), st.lists(words, min_size=6, max_size=6))
def test_numbers_of_no_call_and_of_x32_are_refused(machine: str, number: int, arguments: list[int]) -> None:
    program = pack(build_filter(ARCHITECTURES[machine], READING, WRITING))
    assert decide(program, number, AUDIT[machine], arguments) == REFUSE


@given(machines, st.lists(words, min_size=6, max_size=6))
def test_no_arguments_make_memory_executable(machine: str, arguments: list[int]) -> None:
    arguments[2] |= PROT_EXEC
    assert verdict(machine, "mmap", *arguments) == REFUSE
    assert verdict(machine, "mprotect", *arguments) == REFUSE
