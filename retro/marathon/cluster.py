"""The workers of a search on the nodes of a Ray cluster, as actors.

What they are dealt, and what happens when one is lost, is as with processes of this machine; here is only on
which node each is started, and how messages get there.
"""

import logging
import os
import platform
import signal
import socket
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from harness.errors import Problem
from harness.files import read_bytes, sha256_bytes, sha256_file
from harness.track import ROOT
from retro.emulator import versions
from retro.packages import GamePackage, load_package
from retro.search.pool import Crew, Pool
from retro.search.worker import Worker, failure, is_told, respond

_PATIENCE = 5.0  # seconds for a node to take a connection
_LOOK = 2.0  # seconds after which it is seen again whether the cluster is still there


@contextmanager
def open_cluster(spec: str, workers: int, address: str) -> Iterator[Pool]:
    """`workers` actors on the nodes of the cluster at an address, host:port.

    Raises:
        Problem: Ray is not installed, or no cluster that this machine is a node of answers there.
    """
    if find_spec("ray") is None:
        raise Problem("workers on a cluster take Ray", remedy="pip install '.[ray]', or let cluster be empty")
    known = passport(load_package(spec))
    _connect(address)
    import ray

    try:
        yield Actors(spec, workers, known)
    finally:
        ray.shutdown()  # ends the actors


def passport(package: GamePackage) -> dict[str, str]:
    """What must be the same on every node for the same results, by the name that a Problem gives it."""
    sources = sorted((ROOT / "retro").rglob("*.py"))
    return {
        "the ROM": sha256_file(package.rom),
        "the game package": package.source_sha256,
        "the code of retro/": sha256_bytes(b"".join(read_bytes(path) for path in sources)),
        "NumPy": version("numpy"),
        "the C library": "-".join((*platform.libc_ver(), platform.machine())),
        **versions(),
    }


class Servant:
    """What runs on a node: a worker that answers. Once it has failed it answers no more than that."""

    def __init__(self, spec: str, known: Mapping[str, str], node: str) -> None:
        """`known` is the passport of the machine that searches."""
        self._node = node
        self._failure: Problem | str | None = None
        try:
            package = load_package(spec)
            here = passport(package)
            for name, there in known.items():
                if here.get(name) != there:
                    reason = f"{name} is {here.get(name)!s:.16}, and {there:.16} where the search runs"
                    raise Problem(reason, remedy="install the same on every node")
            self._worker = Worker(package)
        except Exception as error:
            self._fail(error)

    def answer(self, message: object) -> Any:
        if self._failure is None:
            try:
                return respond(self._worker, message)
            except Exception as error:
                self._fail(error)
        return self._failure

    def _fail(self, error: Exception) -> None:
        said = failure(error)
        if isinstance(said, Problem):
            reason = f"{said.reason} (on node {self._node})"
            said = Problem(reason, file=said.file, line=said.line, remedy=said.remedy)
        self._failure = said


class Remote:
    """The way to an actor."""

    def __init__(self, actor: Any, node: Mapping[str, Any]) -> None:
        self.node_id: str | None = node["NodeID"]
        """None once it has ended."""
        self._actor, self._node = actor, node
        self._answers: deque[Any] = deque()  # references to them, in order

    @property
    def next(self) -> Any:
        """The reference of the next answer."""
        return self._answers[0]

    def send(self, message: object) -> None:
        answer = self._actor.answer.remote(message)
        if not is_told(message):
            self._answers.append(answer)

    def recv(self) -> Any:
        from ray import exceptions, get

        try:
            return get(self._answers.popleft())
        except exceptions.RayActorError as error:
            if error.actor_init_failed:  # a Servant catches all, so it cannot have been imported
                remedy = "install it there, at the same path or on PYTHONPATH when `ray start` is called"
                reason = f"node {_name(self._node)} cannot import what is needed: {_last_line(error)}"
                return Problem(reason, remedy=remedy)
            raise ConnectionError(str(error)) from error
        except exceptions.RayError as error:  # the node was lost before the answer was fetched from it
            raise ConnectionError(str(error)) from error

    def end(self) -> str:
        import ray

        _check_cluster()
        self.node_id = None
        ray.kill(self._actor)
        name = _name(self._node)
        return f"on node {name}" if _is_up(self._node) else f"node {name} is lost"


class Actors(Crew[Remote]):
    """Workers on a cluster that this process is connected to."""

    def __init__(self, spec: str, count: int, known: Mapping[str, str]) -> None:
        import ray

        self._known, self._looked = known, time.monotonic()
        # They take no share of a node's CPUs, so that those of a lost node find a place on any other.
        self._kind = ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0)(Servant)
        super().__init__(spec, count)

    def _start(self, spec: str) -> Remote:
        """On the node with the fewest workers for its CPUs."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        nodes = [node for node in ray.nodes() if node["Resources"].get("CPU")]
        taken = Counter(line.node_id for line in self._lines)

        def load(node: Mapping[str, Any]) -> tuple[float, str]:
            return (taken[node["NodeID"]] + 1) / node["Resources"]["CPU"], node["NodeID"]

        node = next((node for node in sorted(nodes, key=load) if _is_up(node)), None)
        if node is None:
            raise Problem("no node of the cluster has a CPU", remedy="ray start, on a machine that has")
        there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        actor = self._kind.options(scheduling_strategy=there).remote(spec, self._known, _name(node))
        return Remote(actor, node)

    def _wait(self, lines: Sequence[Remote], seconds: float) -> list[Remote]:
        import ray

        by_reference = {line.next: line for line in lines}
        ready: list[Any] = []
        while not ready and seconds > 0:
            if time.monotonic() - self._looked > _LOOK:  # workers go on for a while without their cluster
                _check_cluster()
                self._looked = time.monotonic()
            ready, _ = ray.wait(list(by_reference), num_returns=1, timeout=min(_LOOK, seconds))
            seconds -= _LOOK
        return [by_reference[reference] for reference in ready]


def _connect(address: str) -> None:
    """Join a cluster, and say nothing of it."""
    host, _, port = address.rpartition(":")
    remedy = "ray start --head on one machine, and search there or on another node of its cluster"
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()  # Ray itself would try for minutes
    except (OSError, OverflowError) as error:
        raise Problem(f"no Ray cluster answers at {address}: {error}", remedy=remedy) from error
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    import ray._private.worker as driver

    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = f"the Ray cluster at {address} cannot be used from here: {_last_line(error)}"
        raise Problem(reason, remedy=remedy) from error
    finally:
        signal.signal(signal.SIGTERM, before)  # Ray puts its own in place
    driver._worker_logs_enabled = False  # lost nodes would be told with pages of their logs


def _check_cluster() -> None:
    """A Problem where its head is gone: Ray itself would wait a minute and then end this process."""
    import ray

    host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()
    except OSError as error:
        remedy = "start it again, then the same command: the marathon goes on"
        raise Problem(f"the Ray cluster at {host}:{port} is gone: {error}", remedy=remedy) from error


def _is_up(node: Mapping[str, Any]) -> bool:
    """Whether a node is alive. Ray needs half a minute to know, so its process there is tried too."""
    import ray

    if not any(known["Alive"] for known in ray.nodes() if known["NodeID"] == node["NodeID"]):
        return False
    try:
        socket.create_connection((node["NodeManagerAddress"], node["NodeManagerPort"]), _PATIENCE).close()
    except OSError:
        return False
    return True


def _name(node: Mapping[str, Any]) -> str:
    return f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"


def _last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1].strip()
