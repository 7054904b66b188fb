"""The command line: what it leaves of a folder where a run cannot start, and what it tells its user."""

import contextlib
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from chat_servers import ChatServer
from forked_experiments import Runs, write_config

from agents.config import config_text, read_config
from agents.core import train
from agents.core.watch import known_dollars
from agents.llm.ledger import Totals
from harness.track import ROOT


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


@pytest.mark.parametrize(
    ("name", "content", "how"),
    [
        ("manifest.json", "{}", "--resume"),
        ("manifest.json", '{"prompts": 3, "environments": {}, "replays": null}', "--resume"),
        ("manifest.json", "[]", "--resume"),
        ("memory/003.json", "{}", "--resume"),
        ("memory/003.json", '{"codebook": 3, "experience": []}', "--resume"),
        ("memory/003.json", "[]", "--resume"),
        ("report.json", "{}", "--replay"),
        ("report.json", '{"status": "well", "reason": ""}', "--replay"),
    ],
)
def test_an_edited_file_is_named(
    runs: Runs, whole: Path, tmp_path: Path, name: str, content: str, how: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    assert (folder / name).is_file()
    (folder / name).write_text(content)
    status, text = runs.run(how, folder, *(["--name", "edited"] if how == "--replay" else []))
    assert status == 2 and f"{folder / name}: not a" in text
    assert "Traceback" not in text
    assert not (runs.outputs / "edited").exists()


def swap(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def swap_reply(folder: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / "cache.sqlite")) as database, database:
        database.execute("UPDATE replies SET reply = replace(reply, '\"dollars\":null', '\"dollars\":0.5')")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            lambda run: swap(run / "trajectories.jsonl", '"score":0.0', '"score":1.0'),
            "is not what was written",
        ),
        (lambda run: swap(run / "memory" / "002.json", "{", "{ "), "sleeps.jsonl tells of other content"),
        (
            lambda run: swap(run / "config.yaml", "history: 4", "history: 5"),
            "not the config that the run began",
        ),
        (
            lambda run: swap(run / "calls.jsonl", '"prompt": 1', '"prompt": 2'),
            "not those that calls.jsonl tells",
        ),
        (swap_reply, "of its replies are not those that calls.jsonl tells of"),
    ],
)
def test_what_was_edited_is_not_gone_on_from(
    runs: Runs, whole: Path, tmp_path: Path, edit: Callable[[Path], None], said: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    edit(folder)
    status, text = runs.run("--resume", folder)
    assert status == 2 and said in text and text.count("\n") == 1, text
    assert "Remedy: restore" in text


def test_a_first_memory_that_was_edited_is_named(runs: Runs, server: ChatServer, tmp_path: Path) -> None:
    little = write_config(tmp_path / "little.yaml", server.url, budget={"calls": 2})
    status, text = runs.run("--config_file", little, "--name", "unslept")
    folder = runs.outputs / "unslept"
    assert status == 0 and not (folder / "memory" / "001.json").exists(), text
    swap(folder / "memory" / "000.json", "[]", '["an episode"]')
    status, text = runs.run("--resume", folder)
    assert status == 2 and f"{folder / 'memory' / '000.json'}: not as a run writes it" in text
    assert "Traceback" not in text


def test_a_server_that_does_not_answer_is_told_before_a_folder_is_made(runs: Runs, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        config = write_config(tmp_path / "own.yaml", f"http://127.0.0.1:{closed.getsockname()[1]}/v1")
        status, text = runs.run("--config_file", config, "--name", "unanswered")
    assert status == 2 and "no model answers at http://127.0.0.1" in text
    assert "agents.scripted.server" in text and "--recipe" not in text
    assert not (runs.outputs / "unanswered").exists()


@pytest.mark.parametrize(
    ("benchmark", "lacks", "said"),
    [
        ("babyai", {"PYTHONPATH": "{blocked}"}, "the benchmark babyai needs the module 'minigrid'"),
        (
            "scienceworld",
            {"JAVA_HOME": "/nonexistent"},
            "JAVA_HOME is /nonexistent, where there is no bin/java",
        ),
    ],
)
def test_what_a_benchmark_lacks_is_told_and_no_folder_left(
    benchmark: str, lacks: dict[str, str], said: str, server: ChatServer, tmp_path: Path
) -> None:
    (tmp_path / "minigrid.py").write_text("raise ModuleNotFoundError('gone', name='minigrid')")
    task = {"babyai": "goto", "scienceworld": "find-plant"}[benchmark]
    path = write_config(
        tmp_path / "config.yaml",
        server.url,
        benchmark=benchmark,
        method="react",
        phases=[{"tasks": [task], "episodes": 1}],
        evaluate=None,
    )
    name = f"lacks-{tmp_path.name}"
    done = subprocess.run(
        [sys.executable, "-m", f"agents.benchmarks.{benchmark}.train", "--config_file", path, "--name", name],
        cwd=ROOT,
        env={**os.environ, **{key: value.format(blocked=tmp_path) for key, value in lacks.items()}},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert said in done.stderr
    assert not (ROOT / "outputs" / "agents" / name).exists()


@pytest.mark.parametrize(
    ("stem", "model", "name"),
    [
        ("react-gpt5_mini-first", None, "react-gpt5_mini-first"),
        ("react-gpt5_mini-first", "gemini-2.5-flash", "react-gemini_2.5_flash-first"),
        ("react-gpt5_mini-first", "Qwen/Qwen3.5-35B-A3B", "react-Qwen3.5_35B_A3B-first"),
        ("mine", "org/../x y", "mine-x_y"),
    ],
)
def test_a_run_is_named_for_the_model_that_it_asks(
    stem: str, model: str | None, name: str, tmp_path: Path
) -> None:
    config = read_config(write_config(tmp_path / "given.yaml", "http://127.0.0.1:9/v1", method="react"))
    assert train._name(stem, config, model) == name


def test_a_run_that_ended_early_says_how_to_go_on(runs: Runs, server: ChatServer, tmp_path: Path) -> None:
    config = write_config(tmp_path / "own.yaml", server.url, budget={"calls": 1})
    status, text = runs.run("--config_file", config, "--name", "spent out")
    assert status == 0
    command = f"python -m agents.benchmarks.babyai.train --resume '{runs.outputs / 'spent out'}'"
    assert f"Go on with: {command}\n" in text


@pytest.mark.parametrize(
    "module",
    ["agents.benchmarks.crafter.train_voyager", "agents.scripted.server", "agents.benchmarks.babyai.server"],
)
def test_help_names_the_command_as_it_is_called(module: str) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith(f"usage: python -m {module} ")
    assert "FIXED" not in shown.stdout


def test_the_cost_of_a_model_without_a_price_is_unknown_from_the_start() -> None:
    assert known_dollars(Totals(), priced=False) is None
    assert known_dollars(Totals(calls=2, unpriced=2), priced=False) is None
    assert known_dollars(Totals(), priced=True) == 0.0
    assert known_dollars(Totals(calls=3, unpriced=2, dollars=0.5), priced=True) == 0.5
