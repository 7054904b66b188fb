"""Attempts to get out of a sandbox, each with what would be seen from outside if it succeeded.

An attempt is a function of `env` and `place`, facts of the outside, and is sent to a worker as source. It
calls `env.step("look")` when it has done its deed, and the test looks at the worker then.
"""

# The attempts are written as a skill would be.
# ruff: noqa: PTH101, PTH102, PTH104, PTH108, PTH115, PTH116, PTH123, PTH208, PTH211, SIM105

import os
import platform
import re

import psutil
from sandbox_world import World, attempt

# ---------------------------------------------------------------------------------------------- files


@attempt(World.said_secret)
def read_file(env, place):
    with open(place["secret_file"]) as stream:
        return stream.read()


@attempt(World.said_secret)
def read_file_by_descriptor(env, place):
    import os

    return os.read(os.open(place["secret_file"], os.O_RDONLY), 100).decode()


@attempt(World.said_secret)
def read_file_by_libc(env, place):
    import ctypes

    libc = ctypes.CDLL(None)
    text = ctypes.create_string_buffer(100)
    libc.read(libc.open(place["secret_file"].encode(), 0), text, 100)
    return text.value.decode()


@attempt(World.said_secret)
def read_file_by_openat2(env, place):
    import ctypes
    import struct

    libc = ctypes.CDLL(None)
    how = struct.pack("QQQ", 0, 0, 0)
    text = ctypes.create_string_buffer(100)
    libc.read(libc.syscall(437, -100, place["secret_file"].encode(), how, len(how)), text, 100)
    return text.value.decode()


@attempt(World.said_secret)
def read_link(env, place):
    import os

    return os.readlink(place["folder"] + "/link")


@attempt(lambda world: world.value is not None and "secret.txt" in world.value)
def list_folder(env, place):
    import os

    return os.listdir(place["folder"])


@attempt(lambda world: world.value == len(world.secret))
def stat_file(env, place):
    import os

    return os.stat(place["secret_file"]).st_size


@attempt(lambda world: world.exists("made"))
def write_file(env, place):
    with open(place["folder"] + "/made", "w") as stream:
        stream.write("x")


@attempt(lambda world: world.exists("made"))
def write_file_by_libc(env, place):
    import ctypes

    ctypes.CDLL(None).creat((place["folder"] + "/made").encode(), 0o600)


@attempt(lambda world: world.exists("made"))
def make_folder(env, place):
    import os

    os.mkdir(place["folder"] + "/made")


@attempt(lambda world: world.exists("made"))
def make_pipe_file(env, place):
    import os

    os.mkfifo(place["folder"] + "/made")


@attempt(lambda world: world.exists("made"))
def symbolic_link(env, place):
    import os

    os.symlink(place["secret_file"], place["folder"] + "/made")


@attempt(lambda world: world.exists("made"))
def hard_link(env, place):
    import os

    os.link(place["secret_file"], place["folder"] + "/made")


@attempt(lambda world: not world.exists("victim.txt"))
def remove_file(env, place):
    import os

    os.unlink(place["folder"] + "/victim.txt")


@attempt(lambda world: world.exists("made"))
def rename_file(env, place):
    import os

    os.rename(place["folder"] + "/victim.txt", place["folder"] + "/made")


@attempt(lambda world: (world.folder / "victim.txt").stat().st_size == 0)
def truncate_file(env, place):
    import os

    os.truncate(place["folder"] + "/victim.txt", 0)


@attempt(lambda world: (world.folder / "victim.txt").stat().st_mode & 0o777 == 0o604)
def change_mode(env, place):
    import os

    os.chmod(place["folder"] + "/victim.txt", 0o604)


@attempt(lambda world: (world.folder / "victim.txt").stat().st_mtime == 12345)
def change_times(env, place):
    import os

    os.utime(place["folder"] + "/victim.txt", (12345, 12345))


@attempt(lambda world: world.links.get("cwd") == str(world.folder))
def change_folder(env, place):
    import os

    os.chdir(place["folder"])
    env.step("look")


@attempt(lambda world: "user.mark" in os.listxattr(world.folder / "victim.txt"), privileged=True)
def set_extended_attribute(env, place):
    import os

    os.setxattr(place["folder"] + "/victim.txt", "user.mark", b"x")


@attempt(lambda world: world.holds("memfd:"))
def memory_file(env, place):
    import os

    os.memfd_create("made")
    env.step("look")


@attempt(lambda world: world.holds("inotify"))
def watch_files(env, place):
    import ctypes

    ctypes.CDLL(None).inotify_init1(0)
    env.step("look")


@attempt(World.said_secret)
def execute_file_with_import(env, place):
    import sys

    sys.path.insert(0, place["folder"])
    import bait

    return bait.SECRET


# ---------------------------------------------------------------------------------------------- /proc


@attempt(World.said_secret)
def read_environment_of_another(env, place):
    with open(f"/proc/{place['victim']}/environ") as stream:
        return stream.read()


@attempt(World.said_secret)
def read_command_line_of_another(env, place):
    with open(f"/proc/{place['victim']}/cmdline") as stream:
        return stream.read()


@attempt(World.said_secret, privileged=True)
def read_memory_of_another(env, place):
    with open(f"/proc/{place['victim']}/mem", "rb", 0) as stream:
        stream.seek(place["address"])
        return stream.read(100).decode("latin-1")


@attempt(lambda world: world.value == world.place["spell"])
def write_own_memory(env, place):
    import ctypes

    text = ctypes.create_string_buffer(100)
    with open("/proc/self/mem", "r+b", 0) as stream:
        stream.seek(ctypes.addressof(text))
        stream.write(place["spell"].encode())
    return text.value.decode()


@attempt(lambda world: isinstance(world.value, list) and str(world.victim.pid) in world.value)
def list_processes(env, place):
    import os

    return [name for name in os.listdir("/proc") if name.isdigit()]


# ------------------------------------------------------------------------------------------- processes


@attempt(lambda world: bool(world.children))
def fork(env, place):
    import os
    import time

    if os.fork() == 0:
        time.sleep(5)
        os._exit(0)
    env.step("look")


@attempt(lambda world: bool(world.children))
def fork_by_clone3(env, place):
    import ctypes
    import struct
    import time

    arguments = struct.pack("8Q", 0, 0, 0, 0, 17, 0, 0, 0)
    libc = ctypes.CDLL(None)
    if libc.syscall(435, arguments, len(arguments)) == 0:
        time.sleep(5)
        libc._exit(0)
    env.step("look")


@attempt(lambda world: world.exists("made"))
def exec_program(env, place):
    import os

    os.execv("/bin/sh", ["sh", "-c", f"echo > {place['folder']}/made"])


@attempt(lambda world: world.exists("made"))
def spawn_program(env, place):
    import os

    command = ["sh", "-c", f"echo > {place['folder']}/made"]
    os.waitpid(os.posix_spawn("/bin/sh", command, {}), 0)


@attempt(lambda world: world.exists("made"))
def system_command(env, place):
    import os

    os.system(f"echo > {place['folder']}/made")


@attempt(lambda world: world.exists("made"))
def subprocess_command(env, place):
    import subprocess

    subprocess.run(["/bin/sh", "-c", f"echo > {place['folder']}/made"])


@attempt(lambda world: world.tasks > 1)
def thread(env, place):
    import _thread
    import time

    _thread.start_new_thread(time.sleep, (5,))
    env.step("look")


@attempt(lambda world: bool(world.signals))
def signal_to_parent(env, place):
    import os
    import signal

    os.kill(place["host"], signal.SIGUSR1)
    env.step("look")


@attempt(lambda world: bool(world.signals))
def signal_to_thread_of_parent(env, place):
    import ctypes

    ctypes.CDLL(None).tgkill(place["host"], place["host"], place["SIGUSR1"])
    env.step("look")


@attempt(lambda world: bool(world.signals))
def signal_by_pidfd(env, place):
    import ctypes

    libc = ctypes.CDLL(None)
    libc.syscall(424, libc.syscall(434, place["host"], 0), place["SIGUSR1"], None, 0)
    env.step("look")


@attempt(lambda world: bool(int(world.status.get("SigIgn", "0"), 16) & 0x4000))
def ignore_signals(env, place):
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    env.step("look")


@attempt(lambda world: world.fate == "crash" and not psutil.pid_exists(world.pid))
def alarm_clock(env, place):
    import signal

    signal.setitimer(signal.ITIMER_REAL, 0.01)
    env.step("wait")


@attempt(lambda world: world.victim_status("TracerPid") == str(world.pid), privileged=True)
def trace_another(env, place):
    import ctypes

    libc = ctypes.CDLL(None)
    libc.ptrace(0x4206, place["victim"], None, None)  # PTRACE_SEIZE, which does not stop it
    env.step("look")


@attempt(World.said_secret, privileged=True)
def read_memory_by_call(env, place):
    import ctypes
    import struct

    text = ctypes.create_string_buffer(100)
    here = struct.pack("PN", ctypes.addressof(text), 32)
    there = struct.pack("PN", place["address"], 32)
    ctypes.CDLL(None).process_vm_readv(place["victim"], here, 1, there, 1, 0)
    return text.value.decode("latin-1")


@attempt(lambda world: world.schedule == os.SCHED_BATCH)
def change_schedule(env, place):
    import os

    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    env.step("look")


@attempt(lambda world: world.processors > 1)
def leave_the_processor(env, place):
    import os

    os.sched_setaffinity(0, range(place["processors"]))
    env.step("look")


@attempt(lambda world: world.limit("Max open files") == "64")
def raise_own_limit(env, place):
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    env.step("look")


@attempt(lambda world: world.limit("Max address space") == "unlimited", privileged=True)
def raise_memory_limit(env, place):
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    env.step("look")


@attempt(lambda world: world.victim.rlimit(psutil.RLIMIT_NOFILE)[0] == 77)
def limit_another(env, place):
    import resource

    resource.prlimit(place["victim"], resource.RLIMIT_NOFILE, (77, 77))


@attempt(lambda world: world.links["ns/user"] != world.first_links["ns/user"], privileged=True)
def unshare(env, place):
    import ctypes

    ctypes.CDLL(None).unshare(0x10000000)
    env.step("look")


@attempt(lambda world: world.personality == "00040000")
def change_personality(env, place):
    import ctypes

    ctypes.CDLL(None).personality(0x40000)
    env.step("look")


@attempt(lambda world: world.status.get("Name") == "made")
def rename_process(env, place):
    import ctypes

    ctypes.CDLL(None).prctl(15, b"made", 0, 0, 0)
    env.step("look")


@attempt(lambda world: world.status.get("Umask") == "0123")
def change_umask(env, place):
    import os

    os.umask(0o123)
    env.step("look")


@attempt(lambda world: world.status.get("Uid", "").startswith(str(world.place["stranger"])), privileged=True)
def change_user(env, place):
    import os

    os.setuid(place["stranger"])
    env.step("look")


@attempt(lambda world: world.value == world.pid)
def ask_process_number(env, place):
    import os

    return os.getpid()


@attempt(lambda world: world.value == platform.node())
def ask_machine_name(env, place):
    import os

    return os.uname().nodename


# --------------------------------------------------------------------------------------------- network


@attempt(lambda world: world.accepted(world.tcp))
def connect_tcp(env, place):
    import ctypes
    import struct

    libc = ctypes.CDLL(None)
    address = struct.pack("=H", 2) + struct.pack("!H4s8x", place["tcp"], bytes([127, 0, 0, 1]))
    libc.connect(libc.socket(2, 1, 0), address, len(address))


@attempt(lambda world: world.accepted(world.tcp))
def connect_tcp_by_module(env, place):
    import socket

    socket.create_connection(("127.0.0.1", place["tcp"]), 5)


@attempt(World.received)
def send_udp(env, place):
    import ctypes
    import struct

    libc = ctypes.CDLL(None)
    address = struct.pack("=H", 2) + struct.pack("!H4s8x", place["udp"], bytes([127, 0, 0, 1]))
    libc.sendto(libc.socket(2, 2, 0), b"x", 1, 0, address, len(address))


@attempt(lambda world: world.accepted(world.unix))
def connect_unix(env, place):
    import ctypes
    import struct

    libc = ctypes.CDLL(None)
    address = struct.pack("=H", 1) + b"\0" + place["unix"].encode()
    libc.connect(libc.socket(1, 1, 0), address, len(address))


@attempt(lambda world: world.connected)
def listen_tcp(env, place):
    import ctypes
    import struct

    libc = ctypes.CDLL(None)
    address = struct.pack("=H", 2) + struct.pack("!H4s8x", 0, bytes([127, 0, 0, 1]))
    server = libc.socket(2, 1, 0)
    libc.bind(server, address, len(address))
    libc.listen(server, 1)
    bound = ctypes.create_string_buffer(16)
    libc.getsockname(server, bound, ctypes.byref(ctypes.c_int(16)))
    env.step(f"connect {struct.unpack('!H', bound[2:4])[0]}")


@attempt(lambda world: world.holds("socket:"))
def netlink(env, place):
    import ctypes

    ctypes.CDLL(None).socket(16, 3, 0)
    env.step("look")


@attempt(lambda world: world.holds("socket:"))
def pair_of_sockets(env, place):
    import ctypes

    ctypes.CDLL(None).socketpair(1, 1, 0, (ctypes.c_int * 2)())
    env.step("look")


# ----------------------------------------------------------------------------------- corners of the kernel


@attempt(lambda world: world.holds("io_uring"), privileged=True)
def io_uring(env, place):
    import ctypes

    ctypes.CDLL(None).syscall(425, 4, ctypes.create_string_buffer(120))
    env.step("look")


@attempt(lambda world: world.holds("bpf"), privileged=True)
def bpf_map(env, place):
    import ctypes
    import struct

    attribute = struct.pack("IIII", 2, 4, 4, 1).ljust(72, b"\0")
    ctypes.CDLL(None).syscall(place["numbers"]["bpf"], 0, attribute, 72)
    env.step("look")


@attempt(lambda world: world.holds("userfaultfd"), privileged=True)
def user_faults(env, place):
    import ctypes

    ctypes.CDLL(None).syscall(place["numbers"]["userfaultfd"], 0)
    env.step("look")


@attempt(lambda world: world.holds("perf_event"), privileged=True)
def performance_counter(env, place):
    import ctypes
    import struct

    attribute = struct.pack("IIQ", 1, 112, 1).ljust(112, b"\0")  # a clock of this process
    ctypes.CDLL(None).syscall(place["numbers"]["perf_event_open"], attribute, 0, -1, -1, 0)
    env.step("look")


@attempt(lambda world: world.place["spell"] in world.keys, privileged=True)
def keyring(env, place):
    import ctypes

    libc = ctypes.CDLL(None)
    libc.syscall(place["numbers"]["add_key"], b"user", place["spell"].encode(), b"x", 1, -2)
    env.step("look")


@attempt(lambda world: bool(re.search(rf"\b{world.pid}\b", world.shared)))
def shared_memory(env, place):
    import ctypes

    libc = ctypes.CDLL(None)
    number = libc.shmget(0, 4096, 0o1600)
    env.step("look")
    libc.shmctl(number, 0, None)


@attempt(lambda world: world.holds("eventpoll"))
def event_poll(env, place):
    import ctypes

    ctypes.CDLL(None).epoll_create1(0)
    env.step("look")


@attempt(lambda world: world.holds("timerfd"))
def timer(env, place):
    import ctypes

    ctypes.CDLL(None).timerfd_create(1, 0)
    env.step("look")


@attempt(lambda world: "rwxp" in world.maps)
def map_executable(env, place):
    import ctypes

    libc = ctypes.CDLL(None)
    libc.mmap(None, ctypes.c_size_t(4096), 7, 0x22, -1, 0)
    env.step("look")


@attempt(lambda world: "rwxp" in world.maps)
def make_executable(env, place):
    import ctypes

    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    memory = libc.mmap(None, ctypes.c_size_t(4096), 3, 0x22, -1, 0)
    libc.mprotect(ctypes.c_void_p(memory), ctypes.c_size_t(4096), 7)
    env.step("look")


@attempt(lambda world: world.status.get("VmLck", "0 kB") != "0 kB", privileged=True)
def lock_memory(env, place):
    import ctypes

    libc = ctypes.CDLL(None)
    text = ctypes.create_string_buffer(8192)
    libc.mlock(text, ctypes.c_size_t(8192))
    env.step("look")


@attempt(lambda world: world.status.get("Seccomp_filters") == "9")
def add_filters(env, place):
    import ctypes
    import struct

    libc = ctypes.CDLL(None)
    allow = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000))
    program = ctypes.create_string_buffer(struct.pack("@HP", 1, ctypes.addressof(allow)))
    libc.prctl(38, ctypes.c_ulong(1), 0, 0, 0)
    for _ in range(9):
        libc.prctl(22, ctypes.c_ulong(2), program, 0, 0)
    env.step("look")


# ------------------------------------------------------------------------------------------ descriptors


@attempt(lambda world: world.pipes() > 2)
def duplicate_descriptor(env, place):
    import os

    for descriptor in range(40):
        try:
            os.dup(descriptor)
        except OSError:
            pass
    env.step("look")


@attempt(lambda world: bool(world.descriptors) and not world.holds("/dev/null"))
def close_descriptors(env, place):
    import os

    for descriptor in range(3):
        os.close(descriptor)
    env.step("look")


@attempt(lambda world: world.value == 3)
def write_to_standard_streams(env, place):
    import os

    return sum(os.write(descriptor, b"x") for descriptor in range(3))


@attempt(lambda world: world.pipes() > 2)
def make_pipe(env, place):
    import os

    os.pipe()
    env.step("look")
