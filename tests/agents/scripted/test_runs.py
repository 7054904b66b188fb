"""Every method, run against the script over HTTP: it learns from the demonstration and survives the chaos."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents.config import Config
from agents.core.loop import Experiment
from agents.llm.chat_app import background
from agents.scripted.server import Script, scripted_app

METHODS = ["react", "opo", "speedrunner", "speedrunner_no_cl", "asi", "voyager"]
TASKS = ("goto", "pickup", "open")


def run(folder: Path, script: Script, method: str, **changes: Any) -> Experiment:
    """A short experiment, run to its end."""
    folder.mkdir()
    with background(scripted_app(script)) as url:
        settings = {"name": "scripted", "provider": "local", "base_url": url, "seed": 1}
        value = {
            "benchmark": "babyai",
            "method": method,
            "model": settings,
            "phases": ({"tasks": TASKS, "episodes": 10},),
            "turn_limit": 10,
            "sleep_every": 5,
            "parallel": 2,
            **changes,
        }
        experiment = Experiment(folder, Config.model_validate(value))
        end = experiment.run()
        experiment.close()
    assert end.status == "complete", end
    return experiment


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_from_the_demonstration(method: str, tmp_path: Path) -> None:
    experiment = run(tmp_path / "run", "demo", method)
    sleeps = lines(tmp_path / "run", "sleeps.jsonl")
    assert [sleep["errors"] for sleep in sleeps] == [[]] * len(sleeps)
    assert any(sleep["changed"] for sleep in sleeps) == (method != "react")
    assert experiment.ledger.totals().retries == 0
    functions = experiment.method.skills_source()
    assert ("def " in functions) == (method not in ("react", "opo"))
    if method == "speedrunner":
        assert all("```python" in sleep["exchanges"][0]["reply"] for sleep in sleeps)
        assert all("Printed:" in sleep["exchanges"][1]["asked"][0]["content"] for sleep in sleeps)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_survives_the_chaos(method: str, tmp_path: Path) -> None:
    phases = ({"tasks": TASKS, "episodes": 6},)
    experiment = run(tmp_path / "run", "chaos", method, phases=phases, sleep_every=2, turn_limit=14)
    totals = experiment.ledger.totals()
    assert totals.calls > 20 and totals.failed == 0
    assert totals.retries > 0
    finishes = {line["reply"]["finish"] for line in lines(tmp_path / "run", "calls.jsonl")}
    assert len(finishes) >= 2
    endings = {line["ending"] for line in lines(tmp_path / "run", "episodes.jsonl")}
    assert endings <= {"success", "turn limit", "gave up", "step limit", "failure"}


def test_a_run_is_the_same_each_time(tmp_path: Path) -> None:
    rows = []
    for name in ("first", "second"):
        run(tmp_path / name, "demo", "speedrunner", phases=({"tasks": TASKS, "episodes": 6},), sleep_every=3)
        episodes = lines(tmp_path / name, "trajectories.jsonl")
        rows.append(sorted(json.dumps(episode["trajectory"], sort_keys=True) for episode in episodes))
    assert rows[0] == rows[1]
