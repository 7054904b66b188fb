"""What is sent to which model, as each provider's documentation asks for it."""

from typing import Any

import pytest
from chat_servers import CANARY

from agents.llm.providers import parameters_for, read_key, rules_for
from agents.llm.settings import ModelSettings
from harness.errors import Problem


def sent(label: str = "wake/0/0", **given: Any) -> dict[str, Any]:
    settings = ModelSettings(**given)
    return parameters_for(settings, rules_for(settings), 500, label)


@pytest.mark.parametrize(
    "name",
    ["gpt-5", "gpt-5-mini", "gpt-5-mini-2025-08-07", "gpt-5.4-nano", "o3", "o4-mini", "openai/gpt-5-mini"],
)
def test_reasoning_models_take_neither_max_tokens_nor_temperature(name: str) -> None:
    provider = "compatible" if "/" in name else "openai"
    given = {"name": name, "provider": provider, "base_url": "https://host/v1"}
    assert sent(**given) == {"max_completion_tokens": 500}
    assert sent(**given, temperature=1.0) == {"max_completion_tokens": 500}
    for change in ({"temperature": 0.2}, {"top_p": 0.9}):
        with pytest.raises(Problem, match=f"takes no {next(iter(change))}"):
            sent(**given, **change)


@pytest.mark.parametrize("name", ["gpt-4.1-mini", "gpt-4o-mini", "gpt-5-chat-latest"])
def test_other_models_of_openai_sample_freely(name: str) -> None:
    assert sent(name=name, provider="openai", temperature=0.2, top_p=0.9) == {
        "max_completion_tokens": 500,
        "temperature": 0.2,
        "top_p": 0.9,
    }


def test_a_local_server_is_sent_max_tokens_whatever_the_model_is_called() -> None:
    assert sent(name="gpt-5-mini", provider="local", temperature=0.0) == {
        "max_tokens": 500,
        "temperature": 0.0,
    }


def test_gemini_answers_at_its_compatible_address() -> None:
    settings = ModelSettings(name="gemini-2.5-flash", provider="gemini", temperature=0.5)
    rules = rules_for(settings)
    assert rules.base_url == "https://generativelanguage.googleapis.com/v1beta/openai"
    assert rules.host == "generativelanguage.googleapis.com"
    assert rules.key_env == "GEMINI_API_KEY"
    assert parameters_for(settings, rules, 7, "a") == {"max_tokens": 7, "temperature": 0.5}


def test_gemini_takes_no_seed() -> None:
    with pytest.raises(Problem, match="takes no seed"):
        rules_for(ModelSettings(name="gemini-2.5-flash", provider="gemini", seed=1))


def test_addresses_and_keys_of_the_others() -> None:
    openai = rules_for(ModelSettings(name="gpt-5-mini", provider="openai"))
    assert (openai.base_url, openai.key_env) == ("https://api.openai.com/v1", "OPENAI_API_KEY")
    local = rules_for(ModelSettings(name="m", provider="local"))
    assert (local.base_url, local.key_env) == ("http://127.0.0.1:5012/v1", None)
    router = rules_for(
        ModelSettings(name="m", provider="compatible", base_url="https://r/v1", api_key_env="ROUTER_KEY")
    )
    assert (router.base_url, router.key_env) == ("https://r/v1", "ROUTER_KEY")


def test_every_call_has_a_seed_of_its_own() -> None:
    first = sent("wake/0/0", name="m", provider="local", seed=1)["seed"]
    assert 0 <= first < 2**31
    assert sent("wake/0/0", name="m", provider="local", seed=1)["seed"] == first
    assert sent("wake/0/1", name="m", provider="local", seed=1)["seed"] != first
    assert sent("wake/0/0", name="m", provider="local", seed=2)["seed"] != first
    assert "seed" not in sent(name="m", provider="local")


def test_further_keys_are_sent_along() -> None:
    given = sent(name="gpt-5-mini", provider="openai", extra_body={"reasoning_effort": "low"})
    assert given == {"reasoning_effort": "low", "max_completion_tokens": 500}


def test_a_key_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = rules_for(ModelSettings(name="gpt-5-mini", provider="openai"))
    monkeypatch.setenv("OPENAI_API_KEY", f" {CANARY}\n")
    assert read_key(rules) == CANARY
    assert read_key(rules_for(ModelSettings(name="m", provider="local"))) is None


@pytest.mark.parametrize("value", [None, "", "  ", "short", f"{CANARY}\u00e9", f"{CANARY} {CANARY}"])
def test_a_key_that_cannot_be_one_is_refused_unseen(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = rules_for(ModelSettings(name="gpt-5-mini", provider="openai"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(Problem, match="OPENAI_API_KEY") as caught:
        read_key(rules)
    assert "export OPENAI_API_KEY=" in str(caught.value)
    assert CANARY not in str(caught.value)
