"""The agents track: evidence is replayed, tokens are added up, and each class has a target and boards."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.references import perform
from agents.speedrun import RECIPES
from agents.task import TASKS
from agents.track import TRACK, score
from agents_evidence import few_episodes, rows, write_rows
from harness.errors import Problem
from harness.intervals import bootstrap
from harness.track import ROOT, fixed_file_hashes, load_track, open_file_hashes


@pytest.fixture(autouse=True, scope="module")
def few() -> Iterator[None]:
    with few_episodes():
        yield


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    """Evidence in which the oracle plays the first three episodes."""
    made = rows()
    best = [one.line() for one in perform("babyai", "oracle")]
    return [*made[:8], *best[:3], *made[11:]]


def test_the_score_is_the_mean_of_what_a_replay_shows(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    found = score(write_rows(tmp_path / "evidence", lines))
    assert found.outcomes == (1.0, 1.0, 1.0, 0.0, 0.0)
    assert (found.value, found.count, found.unit) == (0.6, 5, "episodes")
    assert (found.low, found.high) == tuple(bootstrap([1, 1, 1, 0, 0]))
    assert (found.hardware_class, found.seed, found.recipe["method"]) == ("babyai", 3, "react")
    assert found.cost == 107 + 1100 + 5 * 107


def test_tokens_that_a_server_did_not_tell_leave_the_cost_unknown(
    tmp_path: Path, lines: list[dict[str, Any]]
) -> None:
    found = score(write_rows(tmp_path / "evidence", [lines[0], lines[1] | {"prompt": None}, *lines[2:]]))
    assert found.cost is None and found.value == 0.6
    assert "its tokens are not known" in TRACK.of_class("babyai").shortcomings(found)


@pytest.mark.parametrize(
    ("place", "changes", "says"),
    [
        (8, {"score": 0.0}, ":9: score is 0.0, expected 1.0 by the replay"),
        (12, {"score": 1.0}, ":13: score is 1.0, expected 0.0 by the replay"),
        (11, {"digest": "0" * 64}, ":12: digest is"),
    ],
)
def test_what_a_replay_does_not_show_is_refused(
    tmp_path: Path, lines: list[dict[str, Any]], place: int, changes: dict[str, Any], says: str
) -> None:
    forged = [row | changes if index == place else row for index, row in enumerate(lines)]
    with pytest.raises(Problem) as caught:
        score(write_rows(tmp_path / "evidence", forged))
    assert says in str(caught.value)


def test_actions_beyond_the_end_are_refused(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    actions = [*lines[8]["actions"], "go forward"]
    longer = lines[8] | {"actions": actions, "steps": len(actions)}
    with pytest.raises(Problem, match=rf":9: action {len(actions) - 1} comes after the episode's end"):
        score(write_rows(tmp_path / "evidence", [*lines[:8], longer, *lines[9:]]))


def test_each_class_has_its_target_and_its_boards() -> None:
    assert [hardware.name for hardware in TRACK.classes] == list(TASKS)
    assert [TRACK.of_class(name).target for name in TASKS] == [0.8, 0.5, 0.6]
    assert [board.name for board in TRACK.boards] == [f"{name}-players" for name in TASKS]
    readme = (ROOT / "README.md").read_text()
    for name in (*TASKS, *(board.name for board in TRACK.boards)):
        assert f"<!-- board:agents:{name}:start -->" in readme


def test_fixed_files_are_those_that_say_so() -> None:
    said = {
        path.relative_to(ROOT).as_posix(): path.read_text().partition(":")[0].removeprefix('"""')
        for path in sorted((ROOT / "agents").rglob("*.py"))
    }
    assert set(said.values()) == {"FIXED", "OPEN"}
    fixed = {name for name in fixed_file_hashes(TRACK) if name.endswith(".py") and name.startswith("agents/")}
    assert fixed == {name for name, word in said.items() if word == "FIXED"}
    opened = {name for name, word in said.items() if word == "OPEN"}
    assert opened - set(open_file_hashes(TRACK)) == {"agents/speedrun.py"}


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_track("agents") is TRACK
    monkeypatch.setattr("agents.track.find_spec", lambda name: None if name == "crafter" else object())
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert TRACK.ready() == ["the crafter library", "Java (for ScienceWorld)"]


def test_a_model_that_does_not_answer_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        recipes = {name: replace(recipe, base_url=address) for name, recipe in RECIPES.items()}
        monkeypatch.setattr("agents.speedrun.RECIPES", recipes)
        (said,) = TRACK.ready()
    assert said.startswith(f"a model for {', '.join(TASKS)}: no model answers at {address}: ")
    assert "Remedy: start a server with agents/scripts/run_server.sh" in said
    monkeypatch.setattr("agents.speedrun.RECIPES", {n: recipe.smoke() for n, recipe in recipes.items()})
    assert TRACK.ready() == []


def test_the_track_loads_without_its_libraries() -> None:
    """So that boards and records of other tracks need none of them."""
    heavy = ("openai", "minigrid", "crafter", "scienceworld", "jinja2", "yaml", "httpx", "torch")
    code = f"import sys, agents.track; sys.exit(str([m for m in {heavy} if m in sys.modules] or ''))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.strip() == ""
