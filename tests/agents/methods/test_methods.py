"""All methods by name, and react, which learns nothing."""

import pytest
from pydantic import ValidationError
from scripted_replies import Script, make_tools, oracle_episode

from agents.benchmarks.base import Episode
from agents.methods import METHODS
from agents.methods.base import Exchange, MethodSettings, Sleep
from agents.methods.react import React


def test_six_methods_by_name() -> None:
    assert list(METHODS) == ["react", "opo", "speedrunner", "speedrunner_no_cl", "asi", "voyager"]
    assert [name for name, method in METHODS.items() if not method.parallel] == ["voyager"]


@pytest.mark.parametrize("name", METHODS)
def test_a_new_memory_is_empty_and_survives_itself(name: str) -> None:
    method = METHODS[name](make_tools(Script()))
    assert method.memory_text(Episode("goto", 1), "a wall") == ""
    assert method.skills_source() == ""
    method.load(METHODS[name](make_tools(Script())).dump())


def test_react_asks_nothing_asleep() -> None:
    react = React(make_tools(Script()))
    sleep = react.sleep([oracle_episode("goto", 3)], 0)
    assert sleep == Sleep(False, "react keeps no memory")
    assert react.dump() == {}
    with pytest.raises(ValueError, match="guide was saved"):
        react.load({"guide": {}})


def test_a_sleep_as_json() -> None:
    exchange = Exchange("sleep/0/0", (("user", "go"),), "gone", "stop")
    assert Sleep(True, "why", "diff", ("fault",), (exchange,), 3).to_json() == {
        "changed": True,
        "reason": "why",
        "diff": "diff",
        "errors": ["fault"],
        "exchanges": [exchange.to_json()],
        "steps": 3,
    }


@pytest.mark.parametrize(
    "settings", [{"sleep_token": 1}, {"sleep_turns": 1}, {"verify": "yes"}, {"retrieve": 0}]
)
def test_settings_are_strict(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MethodSettings.model_validate(settings)
