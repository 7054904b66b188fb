"""Settings of a model: strict, and no place for a key."""

from typing import Any

import pytest
from chat_servers import CANARY
from pydantic import ValidationError

from agents.llm.settings import ModelSettings


def test_a_name_and_a_provider_are_enough() -> None:
    settings = ModelSettings(name="gpt-5-mini", provider="openai")
    assert settings.base_url is None and settings.temperature is None and settings.price is None


def test_whole_numbers_are_taken_for_fractions() -> None:
    settings = ModelSettings(name="m", provider="local", temperature=0, price={"input": 1, "output": 2})
    assert settings.temperature == 0.0 and settings.price is not None and settings.price.output == 2.0


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""},
        {"provider": "other"},
        {"unknown": 1},
        {"temperature": -0.1},
        {"temperature": "0.5"},
        {"top_p": 0.0},
        {"max_tokens": 0},
        {"max_tokens": 10.0},
        {"timeout_s": 0.0},
        {"timeout_s": float("inf")},
        {"retries": -1},
        {"concurrency": 0},
        {"requests_per_minute": 0},
        {"requests_per_minute": 99999999999999999999},
        {"seed": -1},
        {"price": {"input": -1.0, "output": 1.0}},
        {"price": {"input": 1.0}},
        {"provider": "compatible"},
        {"base_url": "localhost:5012"},
        {"base_url": "ftp://host/v1"},
        {"base_url": "http://[::1/v1"},
        {"base_url": "http://127.0.0.1:abc/v1"},
        {"base_url": "http://127.0.0.1:99999/v1"},
        {"base_url": f"http://{CANARY}@host/v1"},
        {"base_url": f"http://user:{CANARY}@host/v1"},
        {"base_url": f"https://host/v1?key={CANARY}"},
        {"base_url": f"https://host/v1#{CANARY}"},
        {"api_key_env": CANARY},
        {"api_key_env": "sk"},
        {"extra_body": {"messages": []}},
        {"extra_body": {"max_tokens": 3}},
        {"extra_body": {"n": 2, "stream": True}},
    ],
)
def test_what_is_wrong_is_refused_and_shows_no_key(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        ModelSettings(**{"name": "m", "provider": "local", **change})
    assert CANARY not in str(caught.value) + repr(caught.value)


def test_the_address_loses_its_last_slash() -> None:
    assert ModelSettings(name="m", provider="local", base_url="http://host/v1/").base_url == "http://host/v1"
