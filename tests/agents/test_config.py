"""Configs of experiments: those that are shipped load; what is wrong with one is named with its line."""

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from forked_experiments import write_config

from agents.benchmarks.scienceworld.tasks import TASK_SETS
from agents.config import CONFIGS, Config, config_text, differences, read_config
from agents.llm.prices import price_of
from agents.llm.providers import rules_for
from agents.methods import METHODS
from harness.errors import Problem

SHIPPED = sorted(CONFIGS.glob("*/*.yaml"))
URL = "http://127.0.0.1:9/v1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_config(tmp_path / "own.yaml", URL)


def with_model(path: Path, budget: dict[str, Any] | None = None, **model: Any) -> Path:
    return write_config(path, URL, model=model, budget=budget or {})


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_shipped_configs_load_and_are_named_for_what_they_say(path: Path) -> None:
    config = read_config(path)
    method, model, task_set = path.stem.split("-", 2)
    assert config.benchmark == path.parent.name
    assert config.method == method
    assert task_set
    name = config.model.name.rsplit("/", 1)[-1].lower().replace("-", "")
    assert all(part in name for part in model.split("_"))
    rules_for(config.model)
    assert path.read_text().startswith("# ")


@pytest.mark.parametrize("benchmark", ["babyai", "crafter", "scienceworld"])
def test_every_method_has_a_config(benchmark: str) -> None:
    methods = {path.stem.split("-")[0] for path in SHIPPED if path.parent.name == benchmark}
    assert methods >= METHODS.keys() - ({"voyager"} if benchmark != "crafter" else set())


def test_configs_that_cost_money_are_capped() -> None:
    for path in SHIPPED:
        config = read_config(path)
        if config.model.provider in ("openai", "gemini"):
            assert config.budget.dollars is not None, path
            assert price_of(config.model.name, date.today()), path


def test_scienceworlds_task_sets_are_what_they_are_called() -> None:
    for path in CONFIGS.glob("scienceworld/*.yaml"):
        topics = re.findall(r"t\d", path.stem.split("-")[-1])
        assert [set(phase.tasks) for phase in read_config(path).phases] == [
            set(TASK_SETS[one]) for one in topics
        ]


def test_a_config_is_written_with_every_key_and_read_back(path: Path, tmp_path: Path) -> None:
    config = read_config(path)
    text = config_text(config)
    assert yaml.safe_load(text).keys() == Config.model_fields.keys()
    copy = tmp_path / "copy.yaml"
    copy.write_text(text)
    assert read_config(copy) == config
    assert differences(config, read_config(copy)) == []


def test_defaults(tmp_path: Path) -> None:
    path = tmp_path / "least.yaml"
    path.write_text(
        "benchmark: babyai\nmethod: react\nmodel: {name: m, provider: local}\n"
        "phases: [{tasks: [goto], episodes: 2}]\n"
    )
    config = read_config(path)
    assert (config.split, config.seed, config.sandbox, config.evaluate) == ("train", 0, "locked", None)
    assert config.budget.budget().dollars is None
    assert config.episodes == 2


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        ({"benchmark": "babyia"}, "benchmark", "no benchmark 'babyia'. Remedy: did you mean 'babyai'?"),
        ({"method": "speedruner"}, "method", "no method 'speedruner'. Remedy: did you mean 'speedrunner'?"),
        ({"phases": [{"tasks": ["goto", "pikup"], "episodes": 2}]}, "pikup", "did you mean 'pickup'?"),
        ({"evaluate": {"split": "test", "tasks": ["opne"], "episodes": 2}}, "opne", "did you mean 'open'?"),
        ({"evaluate": {"split": "tset", "tasks": ["open"], "episodes": 2}}, "split: tset", "evaluate.split"),
        ({"split": "test"}, "split: test", "split: expected 'train' or 'valid'"),
        ({"phases": []}, "phases", "phases"),
        ({"phases": [{"tasks": [], "episodes": 2}]}, "tasks", "phases.0.tasks"),
        ({"phases": [{"tasks": ["open"], "episodes": 10**11}]}, "episodes", "less than or equal to 1000000"),
        ({"turn_limt": 3}, "turn_limt", "did you mean 'turn_limit'?"),
        ({"budget": {"dolars": 3}}, "dolars", "did you mean 'dollars'?"),
        ({"budget": {"dollars": 0}}, "dollars", "budget.dollars: expected greater than 0"),
        ({"method_settings": {"sleep_token": 3000}}, "sleep_token", "did you mean 'sleep_tokens'?"),
        ({"sandbox": "none"}, "sandbox", "sandbox: expected 'locked' or 'unsafe'"),
        ({"server": 8080}, "server", "server: expected a valid string"),
        (
            {"benchmark": "crafter", "phases": [{"tasks": ["survive"], "episodes": 2}], "server": "http://a"},
            "server",
            "crafter has no server. Remedy: take the key `server` out",
        ),
        ({"seed": True}, "seed", "seed: expected a valid integer"),
        ({"parallel": 0}, "parallel", "parallel: expected greater"),
        ({"model": {"name": "m", "provider": "lokal"}}, "provider", "model.provider"),
        ({"model": {"name": "m", "provider": "compatible"}}, "model:", "needs a base_url"),
        ({"model": {"name": "m", "provider": "local", "temperture": 1}}, "temperture", "'temperature'?"),
    ],
)
def test_every_fault_is_named_with_its_line(path: Path, change: dict[str, Any], key: str, words: str) -> None:
    write_config(path, URL, **change)
    with pytest.raises(Problem) as caught:
        read_config(path)
    assert words in str(caught.value)
    assert caught.value.file == str(path)
    assert caught.value.line is not None
    assert key in path.read_text().splitlines()[caught.value.line - 1]


def test_a_key_pasted_into_a_config_is_not_repeated(path: Path) -> None:
    with_model(path, name="m", provider="openai", api_key_env="sk-canary-0123456789")
    with pytest.raises(Problem, match="api_key_env") as caught:
        read_config(path)
    assert "canary" not in str(caught.value)


def test_a_config_that_is_not_there_has_a_hint() -> None:
    with pytest.raises(Problem, match=r"did you mean 'agents/configs/babyai/react-scripted-goto.yaml'"):
        read_config(Path("agents/configs/babyai/react-scripted-gotoo.yaml"))


def test_differences_are_named(path: Path) -> None:
    before = read_config(path)
    after = read_config(
        write_config(
            path, URL, seed=9, evaluate=None, phases=[{"tasks": ["open"], "episodes": 2}], budget={"calls": 3}
        )
    )
    assert differences(before, after) == ["budget.calls", "evaluate", "phases", "seed"]


# ---- another model or server -------------------------------------------------------------------------------


def test_another_model_of_the_same_provider(path: Path) -> None:
    with_model(path, name="gpt-5-mini", provider="openai", extra_body={"reasoning_effort": "low"})
    model = read_config(path, model="gpt-5-nano").model
    assert (model.name, model.provider, model.extra_body) == (
        "gpt-5-nano",
        "openai",
        {"reasoning_effort": "low"},
    )


def test_another_providers_model_brings_its_provider(path: Path) -> None:
    with_model(path, name="gpt-5-mini", provider="openai", seed=4, extra_body={"reasoning_effort": "low"})
    model = read_config(path, model="gemini-2.5-flash").model
    assert (model.name, model.provider, model.extra_body, model.seed) == (
        "gemini-2.5-flash",
        "gemini",
        {},
        None,
    )
    with_model(path, name="gemini-2.5-flash", provider="gemini")
    assert read_config(path, model="gpt-5-mini").model.provider == "openai"


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        ("http://127.0.0.1:5012/v1", "local"),
        ("http://localhost:8000/v1", "local"),
        ("http://192.168.1.7:8000/v1", "local"),
        ("http://gpu-box:8000/v1", "local"),
        ("https://openrouter.ai/api/v1", "compatible"),
    ],
)
def test_a_server_of_ones_own_has_no_limit_in_dollars(path: Path, url: str, provider: str) -> None:
    with_model(path, {"dollars": 1.0, "tokens": 5000}, name="gpt-5-mini", provider="openai", max_tokens=700)
    config = read_config(path, model="Qwen/Qwen3", base_url=url)
    assert (config.model.name, config.model.provider, config.model.base_url) == ("Qwen/Qwen3", provider, url)
    assert config.model.max_tokens == 700
    assert config.budget.tokens == 5000
    assert config.budget.dollars == (None if provider == "local" else 1.0)


def test_episodes_are_played_in_this_process_unless_a_server_is_named(path: Path) -> None:
    assert read_config(path).server is None
    config = read_config(path, server="http://127.0.0.1:8080")
    assert config.server == "http://127.0.0.1:8080"
    assert differences(read_config(path), config) == ["server"]


@pytest.mark.parametrize("address", ["localhost:5012", "http://[::1/v1", "http://127.0.0.1:abc/v1"])
def test_a_wrong_address_is_refused(path: Path, address: str) -> None:
    with pytest.raises(Problem, match=r"model\.base_url: no http:// or https:// address"):
        read_config(path, base_url=address)
