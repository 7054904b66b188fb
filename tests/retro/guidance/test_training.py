"""Training: it learns, keeps to its start, writes ways out, and ends with the search."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from harness.errors import Problem
from harness.track import ROOT
from retro.guidance.environment import frames_of
from retro.guidance.policy import POLICY, read_policy
from retro.guidance.trainer import Trainer
from retro.guidance.training import Learner
from retro.packages import load_package
from retro.search.pool import Worker, open_pool
from retro.search.world import Beginning
from scripted_game import Hopper
from scripted_game.searching import HOPPER
from scripted_game.small import RIGHT

CLIFF = "scripted_game.guiding:Cliff"
POOL = Worker(Hopper())


def beginning(spec: str, *inputs: tuple[int, int]) -> Beginning:
    return Worker(load_package(spec)).arrive(inputs)[0]


def wait_for(done: Callable[[], object], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_policy_learns_to_walk_away_from_a_cliff() -> None:
    learner = Learner(CLIFF, 0, 1)
    with closing(learner):
        first = beginning(CLIFF, (0, 1))
        learner.turn(first)
        rounds = [learner.round() for _ in range(25)]
        rates = [export.figures["exit_rate"] for export in rounds]
        assert max(rates[:2]) < 0.5
        assert min(rates[-3:]) > 0.9
        assert rounds[-1].exit == ((RIGHT, 24),) or frames_of(rounds[-1].exit) <= 28
        assert rounds[-1].figures["exit_frames"] == frames_of(rounds[-1].exit)
        assert rounds[-1].figures["decisions"] == 25 * 128
        assert rounds[-1].figures["entropy"] < rounds[0].figures["entropy"]
        second = beginning(CLIFF, (0, 1), (RIGHT, 24))
        learner.turn(second)
        export = learner.round()
        assert (export.start, export.figures["rounds"]) == ((1, second.ram_hash), 1)
        # What was learned in the first room holds in the second.
        assert export.figures["exit_rate"] > 0.5


def test_the_process_follows_the_start_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    trainer = Trainer(HOPPER, 0.2, 1, tmp_path)
    with closing(trainer):
        first = beginning(HOPPER, (0, 1))
        assert trainer.begin(POOL, first, []) is None
        wait_for(lambda: trainer.news() is not None)
        policy = trainer._policy()
        assert policy is not None
        assert (policy.share, policy.masks) == (0.2, (0, 2, 4, 1, 5, 8))
        wait_for(lambda: trainer.news() is not None and trainer.exits())
        assert read_policy(tmp_path / POLICY).exit[-1][0] in (0, 8)
        second = beginning(HOPPER, (0, 1), (8, 1))
        assert trainer.begin(POOL, second, []) is None
        assert trainer.exits() == []
        wait_for(lambda: trainer.news() is not None)
        assert read_policy(tmp_path / POLICY).start == (1, second.ram_hash)
        assert trainer.pid is not None
        process = psutil.Process(trainer.pid)
        environments = process.children()
        assert len(environments) >= 2
        assert {one.nice() for one in (process, *environments)} == {19}
    wait_for(lambda: not any(one.is_running() for one in (process, *environments)), 10)


PARENT = """
import sys, time
from pathlib import Path
from retro.guidance.trainer import Trainer
from retro.packages import load_package
from retro.search.pool import Worker
worker = Worker(load_package("{spec}"))
trainer = Trainer("{spec}", 0.2, 1, Path("{folder}"))
trainer.begin(worker, worker.arrive(((0, 1),))[0], [])
print(trainer.pid, flush=True)
time.sleep(600)
"""


def test_the_process_ends_with_its_parent_and_takes_its_environments_along(tmp_path: Path) -> None:
    code = PARENT.format(spec=HOPPER, folder=tmp_path)
    path = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env=path, text=True
    ) as parent:
        assert parent.stdout is not None
        training = psutil.Process(int(parent.stdout.readline()))
        wait_for((tmp_path / POLICY).exists)
        family = [training, *training.children(recursive=True)]
        assert len(family) >= 3
        parent.send_signal(signal.SIGKILL)
    wait_for(lambda: not any(_lives(one) for one in family), 20)


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_with_a_number_of_rounds_the_search_waits_for_them(tmp_path: Path) -> None:
    found = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        trainer = Trainer(CLIFF, 0.2, 7, tmp_path / name, environments=0, rounds=2)
        with closing(trainer), open_pool(HOPPER, 0) as pool:
            policy = trainer.begin(pool, beginning(CLIFF, (0, 1)), [])
            assert policy is not None
            assert read_policy(tmp_path / name / POLICY).figures["rounds"] == 2
            found.append(policy.chances((0, 3, 0, 0)).tolist())
            assert trainer.news() is None
    assert found[0] == found[1]


def test_a_training_that_dies_is_told_and_begun_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = Trainer(CLIFF, 0.2, 1, tmp_path, environments=0)
    with closing(trainer):
        first = beginning(CLIFF, (0, 1))
        trainer.begin(POOL, first, [])
        pid = trainer.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: trainer.news() is None and trainer.pid is None)
        assert "The training of the policy has ended with status -9" in "".join(capsys.readouterr())
        trainer.begin(POOL, first, [])
        assert trainer.pid not in (None, pid)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retro.guidance.trainer.find_spec", lambda name: None)
    with pytest.raises(Problem, match="a policy takes Stable-Baselines3"):
        Trainer(CLIFF, 0.2, 1, tmp_path)
