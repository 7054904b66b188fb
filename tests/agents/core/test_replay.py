"""A replay answers from a run's cache alone, ends equal, and says where it does not."""

import json
import shutil
import sqlite3
from pathlib import Path

from chat_servers import ChatServer
from forked_experiments import Runs

from agents.core.replay import unequal


def test_a_replay_asks_no_model(runs: Runs, whole: Path, server: ChatServer) -> None:
    asked = len(server.bodies)
    status, text = runs.run("--replay", whole)
    assert status == 0, text
    assert "equal to" in text
    assert len(server.bodies) == asked
    assert unequal(whole, runs.outputs / "whole-replay") == []


def test_a_replay_of_what_was_changed_differs(runs: Runs, whole: Path, tmp_path: Path) -> None:
    forged = tmp_path / "forged"
    shutil.copytree(whole, forged)
    path = forged / "episodes.jsonl"
    path.write_text(path.read_text().replace('"score":0.0', '"score":1.0', 1))
    status, text = runs.run("--replay", forged)
    assert (status, text.strip().splitlines()[-1].split(" in: ")[1]) == (1, "episodes.jsonl")


def test_a_replay_of_a_run_that_did_not_end_is_refused(runs: Runs, whole: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(whole, broken)
    (broken / "report.json").unlink()
    status, text = runs.run("--replay", broken)
    assert status == 2
    assert "no run has ended" in text


def test_a_replay_names_the_call_that_was_not_recorded(runs: Runs, whole: Path, tmp_path: Path) -> None:
    lost = tmp_path / "lost"
    shutil.copytree(whole, lost)
    with sqlite3.connect(lost / "cache.sqlite") as database:
        database.execute("DELETE FROM replies WHERE label = 'wake/000002/001'")
    database.close()
    status, text = runs.run("--replay", lost)
    assert status == 2
    assert "'wake/000002/001'" in text
    report = json.loads((runs.outputs / "lost-replay" / "report.json").read_text())
    assert (report["status"], report["learning"]["episodes"]) == ("failed", 2)
