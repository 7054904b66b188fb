"""A run's folder: begun once, held by one, resumed only as what it was."""

import json
from pathlib import Path

import pytest
from forked_experiments import write_config

from agents.config import Config, read_config
from agents.core import checkpoint
from harness.errors import Problem

MANIFEST = {
    "config": "c",
    "prompts": {"wake": "a", "system": "b"},
    "environments": {"minigrid": "3.2.0"},
    "replays": None,
}


def config(folder: Path, **changes: object) -> Config:
    return read_config(write_config(folder / "given.yaml", "http://127.0.0.1:9/v1", **changes))


def test_a_config_is_written_and_read_back(tmp_path: Path) -> None:
    given = config(tmp_path, budget={"dollars": 0.5, "tokens": 1000}, evaluate=None)
    folder = tmp_path / "deep" / "run"
    checkpoint.begin(folder, given)
    assert checkpoint.config_of(folder, None) == given
    assert checkpoint.config_of(folder, given) == given


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    checkpoint.begin(tmp_path / "run", config(tmp_path))
    with pytest.raises(
        Problem, match=r"run in this folder already.*--resume .*run, or choose another --name"
    ):
        checkpoint.begin(tmp_path / "run", config(tmp_path))


def test_changed_keys_are_named_and_the_budget_is_free(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    checkpoint.begin(folder, config(tmp_path))
    changes = {
        "seed": 6,
        "method": "react",
        "model": {"name": "other", "provider": "local", "base_url": "http://127.0.0.1:9/v1", "retries": 1},
        "method_settings": {"functions": 7},
        "evaluate": None,
    }
    with pytest.raises(Problem) as caught:
        checkpoint.config_of(folder, config(tmp_path, **changes))
    assert "evaluate, method, method_settings.functions, model.name, seed differ" in caught.value.reason
    assert caught.value.file == str(folder / "config.yaml")
    richer = config(tmp_path, budget={"dollars": 9.0})
    assert checkpoint.config_of(folder, richer).budget.dollars == 9.0
    assert checkpoint.config_of(folder, None).budget.dollars is None


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="no run in this folder"):
        checkpoint.config_of(tmp_path, None)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"prompts": {"wake": "a", "system": "c"}}, "system changed"),
        ({"prompts": {"wake": "a"}}, "system changed"),
        ({"prompts": {**MANIFEST["prompts"], "new": "d"}}, "new changed"),  # type: ignore[dict-item]
        ({"environments": {"minigrid": "3.3.0"}}, "minigrid changed"),
        ({"prompts": {"wake": "x", "system": "b"}, "environments": {}}, "wake, minigrid changed"),
    ],
)
def test_other_prompts_and_environments_are_refused(
    tmp_path: Path, changes: dict[str, object], named: str
) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    checkpoint.check_same(tmp_path, MANIFEST)
    with pytest.raises(Problem, match=named):
        checkpoint.check_same(tmp_path, {**MANIFEST, **changes})


def test_a_config_that_was_edited_is_refused_but_for_its_budget(tmp_path: Path) -> None:
    began = config(tmp_path)
    for changes, same in (({"history": 5}, False), ({"budget": {"calls": 9}}, True)):
        assert (checkpoint.config_hash(config(tmp_path, **changes)) == checkpoint.config_hash(began)) is same
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    with pytest.raises(Problem, match="not the config that the run began with") as caught:
        checkpoint.check_same(tmp_path, {**MANIFEST, "config": "d"})
    assert caught.value.file == str(tmp_path / "config.yaml")


def test_a_replay_is_not_resumed(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({**MANIFEST, "replays": "elsewhere"}))
    with pytest.raises(Problem, match="a replay"):
        checkpoint.check_same(tmp_path, MANIFEST)


def test_a_cut_off_line_is_no_line(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    assert checkpoint.whole_lines(path) == []
    path.write_text('{"a":1}\n{"b":2}\n{"c":')
    assert checkpoint.whole_lines(path) == [{"a": 1}, {"b": 2}]
    path.write_text('{"a":1}\n[2]\n')
    with pytest.raises(Problem, match="not a JSON object") as caught:
        checkpoint.whole_lines(path)
    assert caught.value.line == 2
