"""Workers on a Ray cluster of two nodes, both of this machine: the same results, whatever dies."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.errors import Problem
from harness.track import ROOT
from retro.config import CONFIGS
from retro.marathon import cluster
from retro.marathon.cluster import Actors, Servant, open_cluster, passport
from retro.packages import load_package
from retro.search.pool import Pool, open_pool
from retro.search.segment import SegmentSearch
from retro.search.worker import Ask
from scripted_game import Hopper
from scripted_game.searching import HOPPER, knowledge, settings

KILLED = settings(frames=8_000, patience=8_000, shave=2_000, modes={"scripted_game.modes:Killed": 1})


class Nodes:
    """A cluster, whose first node is where the tests run."""

    def __init__(self, folder: Path) -> None:
        from ray.cluster_utils import Cluster

        self.accident = folder / "accident"
        quick = {"initial_delay_ms": 0, "period_ms": 300, "failure_threshold": 3}  # that a node is lost
        head = {
            "temp_dir": str(folder),
            "include_dashboard": False,
            "_system_config": {f"health_check_{name}": value for name, value in quick.items()},
        }
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address: str = self._cluster.address

    def add(self) -> Any:
        return self._cluster.add_node()

    def kill(self, node: Any) -> None:
        """And see its processes end: some notice the death of their parent a while later."""
        (raylet,) = node.all_processes["raylet"]
        processes = psutil.Process(raylet.process.pid).children(recursive=True)
        self._cluster.remove_node(node, allow_graceful=False)
        _, alive = psutil.wait_procs(processes, timeout=30)
        assert not alive

    def close(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    folder = Path(tempfile.mkdtemp(prefix="nodes", dir="/tmp"))  # names of sockets must be short
    before = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(ROOT / "tests"))))
        patch.setenv("ACCIDENT", str(folder / "accident"))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        running = Nodes(folder)
        try:
            yield running
        finally:
            running.close()
            signal.signal(signal.SIGTERM, before)
            shutil.rmtree(folder, ignore_errors=True)


def course(search: SegmentSearch) -> tuple[object, ...]:
    archive = search.archive
    return (
        *(search.frames, search.rounds, search.deaths, search.first, search.ending, search.solutions),
        *(list(archive.nodes.values()), list(archive.cells), search.seen, search.mode_frames),
    )


def begun(pool: Pool) -> SegmentSearch:
    beginning, _ = pool.arrive(((0, 1), (8, 1)))
    search = SegmentSearch(beginning, KILLED, "1")
    search.open(pool)
    return search


def finish(search: SegmentSearch, pool: Pool) -> tuple[object, ...]:
    while search.ending == "searching":
        search.round(pool)
    while search.shave(pool):
        pass
    return course(search)


def test_a_worker_and_a_node_killed_at_work_change_nothing(
    nodes: Nodes, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCIDENT", str(nodes.accident))
    with open_pool(HOPPER, 0) as pool:
        calm = finish(begun(pool), pool)
    second = nodes.add()
    capfd.readouterr()
    with open_cluster(HOPPER, 4, nodes.address) as pool:
        assert isinstance(pool, Actors)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        search = begun(pool)
        assert pool.screens(9) == []
        search.round(pool)
        assert [screen.shape for screen in pool.screens(9)] == [(1, 128, 3)] * 4
        nodes.accident.touch()
        search.round(pool)
        assert pool.lost == 1
        said = capfd.readouterr().out
        assert said.count("\n") == said.count("A worker died (on node ") == 1
        killing = threading.Thread(target=nodes.kill, args=(second,))
        killing.start()
        search.round(pool)
        killing.join()
        assert finish(search, pool) == calm
        assert pool.lost == 3
    out, err = capfd.readouterr()
    assert out.count("\n") == out.count("is lost); another takes its place and its work") == 2
    assert err == ""


def test_a_node_that_lacks_the_package_is_named(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    lacking = nodes.add()
    with (
        pytest.raises(Problem, match=r"there is no module 'scripted_game' \(on node .*\)"),
        open_cluster(HOPPER, 2, nodes.address) as pool,
    ):
        begun(pool).round(pool)
    nodes.kill(lacking)


def test_a_node_with_something_else_is_named() -> None:
    known = passport(load_package(HOPPER))
    assert Servant(HOPPER, known, "here").answer(knowledge(0)) is None
    for name in known:
        problem = Servant(HOPPER, {**known, name: "0123456789abcdef0123"}, "vm (10.0.0.2)").answer(None)
        assert isinstance(problem, Problem)
        assert re.match(rf"{name} is .*, and 0123456789abcdef where the search runs", problem.reason)
        assert problem.reason.endswith(" (on node vm (10.0.0.2))")
    assert set(passport(Hopper())) >= {"the ROM", "stable-retro", "fceumm"}


def test_a_worker_that_has_failed_answers_nothing_else() -> None:
    servant = Servant(HOPPER, passport(load_package(HOPPER)), "here")
    failed = servant.answer(Ask("scripted_game.no_such:call", None))
    assert "No module named 'scripted_game.no_such'" in failed
    assert servant.answer(((0, 1),)) == failed


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1: .*refused.*ray start --head"),
        ("127.0.0.1:99999", "no Ray cluster answers at 127.0.0.1:99999: "),
    ],
)
def test_a_cluster_that_is_not_there_is_a_problem(address: str, said: str) -> None:
    with pytest.raises(Problem, match=said), open_cluster(HOPPER, 1, address):
        pass


def test_without_ray_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(Problem, match=r"take Ray. Remedy: pip install '.\[ray\]'"):
        open_cluster(HOPPER, 1, "127.0.0.1:1").__enter__()


def test_marathons_of_processes_load_nothing_of_ray() -> None:
    said = "import sys, retro.run, retro.marathon.command; print([n for n in sys.modules if n[:3] == 'ray'])"
    shown = subprocess.run([sys.executable, "-c", said], cwd=ROOT, capture_output=True, text=True)
    assert (shown.stdout, shown.stderr) == ("[]\n", "")


HEADLESS = """
import sys
from contextlib import suppress
import psutil
from harness.errors import Problem
from ray.cluster_utils import Cluster
from retro.marathon.cluster import open_cluster
nodes = Cluster(initialize_head=True, head_node_args={"temp_dir": sys.argv[1], "include_dashboard": False})
try:
    with open_cluster(sys.argv[2], 1, nodes.address) as pool:
        pool.arrive(((0, 1),))
        started = [told.process.pid for known in nodes.head_node.all_processes.values() for told in known]
        servants = [one for pid in started for one in psutil.Process(pid).children(recursive=True)]
        for pid in started:
            psutil.Process(pid).kill()
        while True:  # the worker notices a while later
            pool.arrive(((0, 1),))
except Problem as problem:
    print(problem)
for servant in servants:
    with suppress(psutil.NoSuchProcess):
        servant.kill()
"""


def test_a_cluster_that_goes_away_is_a_problem() -> None:
    folder = tempfile.mkdtemp(prefix="gone", dir="/tmp")
    paths = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests"))), "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-c", HEADLESS, folder, HOPPER]
    try:
        env = os.environ | paths
        shown = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert re.search(r"the Ray cluster at .* is gone: .*the same command", shown.stdout), shown


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_marathon_that_is_stopped_or_killed_leaves_no_worker(
    nodes: Nodes, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    text = (CONFIGS / "marathon.toml").read_text()
    config, folder = tmp_path / "own.toml", tmp_path / "run"
    config.write_text(text.replace('cluster = ""', f'cluster = "{nodes.address}"'))
    told = ("marathon", "quarterstep", str(config), "--out", str(folder))
    command = [sys.executable, "-m", "retro.run", *told]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        journal = folder / "journal.jsonl"
        for _ in range(600):
            if journal.exists() and len(workers()) == 2:
                break
            time.sleep(0.1)
        process.send_signal(number)
        said = process.communicate(timeout=60)[0]
    assert process.returncode == status, said
    lines = [line for line in re.split("[\r\n]+", said) if line.strip()]
    mine = "begun: ", "stopped: ", "title: ", "A new marathon: ", "Movie: ", "The same command goes on: "
    assert [line for line in lines if not line.startswith((*mine, "Stopped by Ctrl-C."))] == []
    for _ in range(300):
        if not workers():
            return
        time.sleep(0.1)
    raise AssertionError(f"left: {workers()}")


def workers() -> list[int]:
    """Processes of a marathon's workers on the cluster."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "".join(process.cmdline()).startswith("ray::Servant"):  # one that is ending has no words
                found.append(process.pid)
    return found
