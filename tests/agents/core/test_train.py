"""The command line: what it leaves of a folder where a run cannot start, and what it tells its user."""

import shutil
from pathlib import Path

from agent_runs import Runs, write_config
from chat_servers import ChatServer

from agents.config import config_text, read_config


def folder_of(path: Path, url: str, **changes: object) -> Path:
    """A folder that holds a config and work of its owner's, but no manifest."""
    path.mkdir()
    given = read_config(write_config(path.parent / "given.yaml", url, **changes))
    (path / "config.yaml").write_text(config_text(given))
    (path / "thesis.tex").write_text("years of work")
    return path


def test_a_folder_that_cannot_be_resumed_is_kept(runs: Runs, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "own", "http://127.0.0.1:9/v1", budget={"dollars": 1.0})
    status, text = runs.run("--resume", folder)
    assert status == 2 and "the price of served-model is unknown" in text
    assert (folder / "thesis.tex").read_text() == "years of work"
    assert (folder / "config.yaml").is_file()


def test_a_run_whose_recording_is_lost_asks_nothing_again(
    runs: Runs, whole: Path, server: ChatServer, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    (folder / "cache.sqlite").unlink()
    asked = len(server.bodies)
    status, text = runs.run("--resume", folder)
    assert status == 2 and "calls.jsonl tells of. Remedy: restore this file" in text
    assert "Traceback" not in text and len(server.bodies) == asked
