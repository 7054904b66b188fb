"""A run that is killed anywhere and resumed ends as one that went through; so do replays, and any threads."""

import json
import os
import random
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from agent_answers import answers
from chat_servers import ChatServer
from forked_experiments import Runs, write_config
from starlette.responses import Response

from agents.core.replay import unequal
from harness.lock import locked


def labels(folder: Path) -> list[str]:
    """Of all answered calls, sorted."""
    lines = (folder / "calls.jsonl").read_text().splitlines()
    return sorted(call["label"] for call in map(json.loads, lines) if call["reply"])


class Signalling:
    """Answers as ever, but sends a signal to a run at the n-th of its requests, some moments later."""

    def __init__(self, server: ChatServer, number: int, kind: signal.Signals, delay: float) -> None:
        self.server, self.number, self.kind, self.delay = server, number, kind, delay
        self.pid = 0
        self.seen = 0

    def __call__(self, body: dict[str, Any], count: int) -> Response:
        self.seen += 1
        if self.seen == self.number:
            if not self.delay:
                os.kill(self.pid, self.kind)
            else:
                threading.Timer(self.delay, os.kill, (self.pid, self.kind)).start()
        return answers(body, count)

    def run(self, runs: Runs, *arguments: object) -> tuple[int, str]:
        """Run with signals; exit status and output."""
        self.server.script = self
        try:
            self.pid = runs.start(*arguments)
            return runs.end()
        finally:
            self.server.script = answers


def test_a_run_that_is_killed_again_and_again_ends_as_one_that_went_through(
    runs: Runs, config: Path, whole: Path, server: ChatServer
) -> None:
    requests = len(labels(whole))
    assert any(label.startswith("sleep/") for label in labels(whole))
    chance = random.Random(3)
    folder = runs.outputs / "killed"
    arguments: tuple[object, ...] = ("--config_file", config, "--name", "killed")
    before = len(server.bodies)
    kills = 0
    while True:
        number = chance.randint(1, max(2, requests // 5))
        signals = Signalling(server, number, signal.SIGKILL, chance.choice([0, 0.002, 0.01, 0.03]))
        status, text = signals.run(runs, *arguments)
        if status == 0:
            break
        assert status == -signal.SIGKILL, text
        kills += 1
        arguments = ("--resume", folder)
    assert kills >= 4
    assert unequal(whole, folder) == []
    assert labels(folder) == labels(whole)
    assert len(server.bodies) - before <= requests + 2 * kills


def test_files_that_a_crash_cut_anywhere_are_repaired(
    runs: Runs, whole: Path, server: ChatServer, tmp_path: Path
) -> None:
    asked = len(server.bodies)
    for name, part in (("trajectories.jsonl", 0.5), ("sleeps.jsonl", 0.4), ("episodes.jsonl", 0.7)):
        folder = tmp_path / name
        shutil.copytree(whole, folder)
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(len(content) * part)])
        status, text = runs.run("--resume", folder)
        assert status == 0, text
        assert unequal(whole, folder) == []
        assert labels(folder) == labels(whole)
    assert len(server.bodies) == asked


@pytest.mark.parametrize(("number", "kind"), [(5, signal.SIGINT), (40, signal.SIGTERM)])
def test_ctrl_c_leaves_a_report_and_a_run_to_go_on_with(
    runs: Runs, config: Path, whole: Path, server: ChatServer, number: int, kind: signal.Signals
) -> None:
    name = f"stopped-{number}"
    signals = Signalling(server, number, kind, 0)
    status, text = signals.run(runs, "--config_file", config, "--name", name)
    folder = runs.outputs / name
    assert status == 130, text
    assert "--resume" in text
    assert "Traceback" not in text
    assert "**The run was interrupted: stopped by Ctrl-C.**" in (folder / "report.md").read_text()
    assert json.loads((folder / "report.json").read_text())["status"] == "interrupted"
    status, text = runs.run("--resume", folder)
    assert status == 0, text
    assert unequal(whole, folder) == []
    assert labels(folder) == labels(whole)


def test_ctrl_c_twice_does_not_wait(runs: Runs, config: Path, server: ChatServer) -> None:
    free = threading.Event()

    def script(body: dict[str, Any], count: int) -> Response:
        free.wait(20)
        return answers(body, count)

    server.script = script
    try:
        asked = len(server.bodies)
        pid = runs.start("--config_file", config, "--name", "twice")
        while len(server.bodies) == asked:
            time.sleep(0.01)
        os.kill(pid, signal.SIGINT)
        time.sleep(0.2)
        os.kill(pid, signal.SIGINT)
        status, text = runs.end()
    finally:
        free.set()
        server.script = answers
    assert status == 130, text
    assert (runs.outputs / "twice" / "report.md").exists()


def test_a_spent_budget_ends_the_run_and_more_of_it_continues(
    runs: Runs, whole: Path, server: ChatServer, tmp_path: Path
) -> None:
    little = write_config(tmp_path / "little.yaml", server.url, budget={"calls": 20})
    status, text = runs.run("--config_file", little, "--name", "budget")
    folder = runs.outputs / "budget"
    assert status == 0, text
    assert "Ended early (budget)" in text
    assert "within its budget: the budget of 20 calls" in (folder / "report.md").read_text()
    assert len(labels(folder)) == 20
    status, text = runs.run("--replay", folder, "--name", "budget-replay")
    assert status == 0, text
    more = write_config(tmp_path / "more.yaml", server.url, budget={"calls": 2000})
    status, text = runs.run("--resume", folder, "--config_file", more)
    assert status == 0, text
    assert unequal(whole, folder) == []


@pytest.mark.parametrize("parallel", [1, 3])
def test_any_number_of_threads_gives_the_same(
    runs: Runs, whole: Path, server: ChatServer, tmp_path: Path, parallel: int
) -> None:
    path = write_config(tmp_path / f"threads-{parallel}.yaml", server.url, parallel=parallel)
    status, text = runs.run("--config_file", path)
    assert status == 0, text
    assert unequal(whole, runs.outputs / path.stem) == []


def test_another_config_is_refused_with_its_keys(
    runs: Runs, whole: Path, server: ChatServer, tmp_path: Path
) -> None:
    path = write_config(tmp_path / "other.yaml", server.url, seed=6, history=5)
    status, text = runs.run("--resume", whole, "--config_file", path)
    assert status == 2
    assert "history, seed differ" in text
    assert text.count("\n") == 1


def test_a_folder_that_another_process_works_in_is_refused(runs: Runs, whole: Path) -> None:
    with locked(whole):
        status, text = runs.run("--resume", whole)
    assert (status, text.count("\n")) == (2, 1)
    assert "another process works in it" in text
