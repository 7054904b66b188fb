"""From a recipe to evidence against a real server: what was played and counted is what evidence holds."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from chat_servers import ChatServer, completion, serving
from starlette.responses import JSONResponse, Response

from agents import eval_speedrun
from agents.eval_speedrun import EVALUATION, TRAINING, config_of, evaluate, read_calls
from agents.evidence import CallRow, read_checkpoint, read_evidence
from agents.speedrun import RECIPES, Recipe, train
from agents.task import CHECKPOINT, EVIDENCE, TASKS, episodes
from agents.track import TRACK
from agents_evidence import few_episodes
from harness.errors import Problem
from harness.files import sha256_file
from harness.log import read_log
from harness.run import Run

SMALL = Recipe(
    method="react", model="served-model", temperature=0.7, episodes=3, turn_limit=3, history=2, parallel=2
)


def forward(body: dict[str, Any], count: int) -> Response:
    """Walks on; a request takes 12 + 3 tokens."""
    return JSONResponse(completion("Thought: on.\nAction: go forward"))


@pytest.fixture(autouse=True)
def few(plain: None) -> Iterator[None]:
    with few_episodes():
        yield


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("harness.manifest.launch_environment", dict)
    monkeypatch.setattr("harness.manifest.read_git", lambda root: None)
    monkeypatch.setattr("harness.manifest.imported_files", lambda root: set[str]())
    monkeypatch.setattr("agents.track.calibrate", lambda: 1.0)
    monkeypatch.chdir(tmp_path)


@contextmanager
def served(script: Any = forward) -> Iterator[tuple[ChatServer, Recipe]]:
    with serving(script) as server:
        yield server, replace(SMALL, base_url=server.url)


def trained(recipe: Recipe) -> Path:
    """A run of BabyAI that has learned by the recipe."""
    source = Path("speedrun.py")
    source.write_text("# a source\n")
    hardware = TRACK.classes[0]
    with Run.create(
        replace(TRACK, calibrate=lambda: 1.0), recipe_name=hardware.name, recipe=asdict(recipe),
        hardware_class=hardware, seed=recipe.seed, seed_source="recipe", flags=[], smoke=False, source=source,
    ) as run:  # fmt: skip
        train(run, recipe)
    return run.path


def evaluated(path: Path) -> Any:
    with Run.open(path) as run:
        return evaluate(run)


def test_a_run_becomes_evidence_that_a_replay_confirms(capsys: pytest.CaptureFixture[str]) -> None:
    with served() as (server, recipe):
        path = trained(recipe)
        score = evaluated(path)
    found = read_evidence(path / EVIDENCE)
    assert [one.episode for one in found.episodes] == episodes("babyai")
    assert all(one.actions == ("go forward",) * 3 for one in found.episodes)
    labels = [call.label for call in found.calls]
    assert len(server.bodies) == len(labels) == len(set(labels)) == 3 * 3 + 5 * 3
    assert [label.split("/")[0] for label in labels] == ["wake"] * 9 + ["eval"] * 15
    assert score.cost == found.tokens() == 15 * 24 and score.count == 5
    assert found.calls[0].reply == "Thought: on.\nAction: go forward"
    assert found.header["recipe"] == {
        "method": "react", "model": "served-model", "temperature": 0.7, "max_tokens": 2048, "turn_limit": 3,
        "history": 2,
    }  # fmt: skip
    assert found.header["checkpoint_sha256"] == sha256_file(path / CHECKPOINT)
    log = read_log(path / "log.jsonl")
    assert log.status == "complete" and [step.fields["tokens"] for step in log.steps][-1] == 15 * 9
    shown = capsys.readouterr().out
    assert "tokens: 360" in shown and "  putnext: 0.000 of 1" in shown
    assert (path / TRAINING / "report.md").is_file()


def test_an_evaluation_that_broke_off_goes_on_and_asks_nothing_twice() -> None:
    asked = 0

    def fails_once(body: dict[str, Any], count: int) -> Response:
        nonlocal asked
        asked += 1
        if asked == 9 + 7:
            return JSONResponse({"error": {"message": "no such thing"}}, status_code=404)
        return forward(body, count)

    with served(fails_once) as (server, recipe):
        path = trained(replace(recipe, parallel=1))
        with pytest.raises(
            Problem, match=rf"no such thing.*go on with python -m agents\.eval_speedrun {path}"
        ):
            evaluated(path)
        assert read_log(path / "log.jsonl").status == "interrupted"
    with served() as (server, recipe):
        with pytest.raises(Problem, match="no model answers at"):
            evaluated(path)  # the run asks the server that it began with
        manifest = json.loads((path / "manifest.json").read_text())
        manifest["recipe"]["base_url"] = server.url
        (path / "manifest.json").write_text(json.dumps(manifest))
        score = evaluated(path)
        assert len(server.bodies) == 15 - 6
    calls = read_evidence(path / EVIDENCE).calls
    assert sum(call.reply is not None for call in calls) == 24 and score.cost == 360
    assert evaluated(path).cost == 360  # with the server gone: all is there


def test_other_settings_than_it_began_with_are_refused() -> None:
    with served() as (_, recipe):
        path = trained(recipe)
        evaluated(path)
        manifest = json.loads((path / "manifest.json").read_text())
        manifest["recipe"]["temperature"] = 0.1
        (path / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(Problem, match=r"begun with other values of model\.temperature"):
            evaluated(path)


def test_a_server_that_counts_no_tokens_leaves_the_cost_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    def uncounted(body: dict[str, Any], count: int) -> Response:
        return JSONResponse(completion("Action: go forward", usage=None))

    with served(uncounted) as (_, recipe):
        score = evaluated(trained(recipe))
    assert score.cost is None
    assert "tokens: not known" in capsys.readouterr().out


def test_the_evaluation_gets_what_training_left_of_the_budget() -> None:
    with served() as (_, recipe):
        path = trained(replace(recipe, budget_calls=10, parallel=1))
        with pytest.raises(Problem, match="the budget of 1 calls does not cover"):
            evaluated(path)
        path = trained(replace(recipe, budget_calls=9, parallel=1))
        with pytest.raises(Problem, match="training left nothing of the budget of 9 calls"):
            evaluated(path)


def test_a_checkpoint_is_of_its_method_and_seed(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    path.write_bytes(eval_speedrun.checkpoint_bytes("opo", 3, {"guide": "Go."}))
    assert read_checkpoint(path, "opo", 3) == {"guide": "Go."}
    for method, seed in (("react", 3), ("opo", 4)):
        with pytest.raises(Problem, match=f"is not what {method} of seed {seed} has learned"):
            read_checkpoint(path, method, seed)
    for content in ("[]", "{}", '{"memory":{},"method":"opo","seed":3,"x":1}'):
        path.write_text(content)
        with pytest.raises(Problem, match="should hold method, seed and memory"):
            read_checkpoint(path, "opo", 3)


def test_what_failed_attempts_may_have_taken_counts(tmp_path: Path) -> None:
    usage = {"prompt": 10, "completion": 5, "reasoning": None, "cached": None}
    reply = {"text": "a", "finish": "stop", "usage": usage}
    line = {"label": "wake/0/0", "hash": "0" * 64, "reply": reply, "charged": {"tokens": 40}}
    lost = {"label": "wake/0/1", "hash": "0" * 64, "reply": None, "charged": {"tokens": 30}}
    path = tmp_path / "calls.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in (line, lost)) + '{"label": "cut sho')
    assert read_calls(path) == [
        CallRow("wake/0/0", "0" * 64, "a", "stop", 10, 5, 25),
        CallRow("wake/0/1", "0" * 64, None, None, None, None, 30),
    ]
    assert read_calls(tmp_path / "none") == []


@pytest.mark.parametrize("name", RECIPES)
def test_the_pinned_recipes_can_be(name: str) -> None:
    config = config_of(name, asdict(RECIPES[name]), 1)
    assert config.benchmark == name and config.method == "speedrunner" and config.split == "train"
    wanted = TASKS[name].tasks
    assert wanted is None or config.phases[0].tasks == wanted


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"method": "guess"}, "the method 'guess'. Remedy: choose from: react"),
        ({"tasks": ("fly",)}, "the task 'fly'"),
        ({"temperature": 5.0}, "model.temperature: Input should be less than or equal to 2"),
        ({"base_url": "file:///etc/passwd"}, "base_url: Value error, no http"),
        ({"turn_limit": 0}, "turn_limit: "),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(Problem) as caught:
        config_of("babyai", asdict(replace(SMALL, **changes)), 1)
    assert says in str(caught.value)
    with pytest.raises(Problem, match="the recipe has no history"):
        config_of("babyai", {k: v for k, v in asdict(SMALL).items() if k != "history"}, 1)


def test_the_folders_are_those_of_experiments() -> None:
    with served() as (_, recipe):
        path = trained(recipe)
        evaluated(path)
    for part, rows in ((TRAINING, 3), (EVALUATION, 5)):
        assert len((path / part / "episodes.jsonl").read_text().splitlines()) == rows
