"""A run that plays on BabyAI's server ends as one that plays in its own process."""

import json
from pathlib import Path
from typing import Any

from babyai_servers import Running
from forked_experiments import Runs

from agents.benchmarks.babyai.sessions import Sessions
from agents.benchmarks.base import Episode
from agents.core.replay import unequal


class Counted(Sessions):
    """Knows how many episodes were begun."""

    begun = 0

    def create(self, episode: Episode) -> dict[str, Any]:
        self.begun += 1
        return super().create(episode)


def test_a_run_on_a_server_is_the_run_without_one(runs: Runs, whole: Path, config: Path) -> None:
    sessions = Counted(8, 60.0)
    with Running(sessions) as server:
        arguments = ("--config_file", config, "--server", server.address)
        status, text = runs.run(*arguments, "--name", "served")
        assert status == 0, text
        assert len(sessions) == 0
    served = runs.outputs / "served"
    assert unequal(whole, served) == []
    assert sessions.begun == len((served / "episodes.jsonl").read_text().splitlines())
    before, after = (json.loads((folder / "manifest.json").read_text()) for folder in (whole, served))
    assert before["environments"] == after["environments"]


def test_a_run_may_go_on_without_its_server(runs: Runs, whole: Path, config: Path) -> None:
    with Running(Sessions(8, 60.0)) as server:
        arguments = ("--config_file", config, "--server", server.address)
        runs.run(*arguments, "--name", "moved")
    moved = runs.outputs / "moved"
    for name in ("trajectories.jsonl", "episodes.jsonl"):
        lines = (moved / name).read_bytes().splitlines(keepends=True)
        (moved / name).write_bytes(b"".join(lines[:-1]))
    status, text = runs.run("--resume", moved)
    assert (status, "no answer from" in text) == (2, True)
    status, text = runs.run("--resume", moved, "--config_file", config)
    assert status == 0, text
    assert unequal(whole, moved) == []


def test_where_no_server_answers_nothing_is_begun(runs: Runs, config: Path) -> None:
    with Running(Sessions(8, 60.0)) as server:
        address = server.address
    status, text = runs.run("--config_file", config, "--name", "deserted", "--server", address)
    assert status == 2
    assert "no answer from" in text and "start it with: python -m agents.benchmarks.babyai.server" in text
    assert not (runs.outputs / "deserted").exists()
