"""Settings: every one is needed, and none is taken that makes no sense."""

from dataclasses import asdict, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Problem
from retro.search.settings import MODES, Settings
from scripted_game.searching import SMALL

NAMES = [field.name for field in fields(Settings)]


def test_settings_come_back_from_plain_values() -> None:
    settings = Settings.read(SMALL)
    assert Settings.read(asdict(settings)) == settings
    assert sorted([*SMALL, "guidance"]) == sorted(NAMES)
    assert settings.guidance == {}
    guided = Settings.read({**SMALL, "guidance": {"table": 0.3, "policy": 0.7}})
    assert Settings.read(asdict(guided)) == guided != settings


@pytest.mark.parametrize("name", SMALL)
def test_each_setting_is_needed(name: str) -> None:
    with pytest.raises(Problem, match=f"the setting '{name}' is missing"):
        Settings.read({key: value for key, value in SMALL.items() if key != name})


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(Problem, match="unknown setting 'patients'") as caught:
        Settings.read({**SMALL, "patients": 3})
    assert ", ".join(NAMES) in str(caught.value)


@pytest.mark.parametrize("name", [name for name in SMALL if name != "modes"])
@pytest.mark.parametrize("value", [-1, 1.5, "3", True, None, [1], float("nan")])
def test_a_malformed_number_is_named(name: str, value: Any) -> None:
    with pytest.raises(Problem, match=f"^{name} is .*, expected a whole number of at least [01]$"):
        Settings.read({**SMALL, name: value})


@pytest.mark.parametrize("name", [name for name in SMALL if name != "modes"])
def test_zero_is_for_what_can_be_left_out(name: str) -> None:
    if name in ("lookahead", "shave", "settle"):
        assert getattr(Settings.read({**SMALL, name: 0}), name) == 0
    else:
        with pytest.raises(Problem, match=f"^{name} is 0"):
            Settings.read({**SMALL, name: 0})


@pytest.mark.parametrize(
    ("modes", "reason"),
    [
        *((value, "modes is not a table") for value in (3, "walks", ["walks"], None)),
        ({}, "modes names no mode"),
        ({"walks": 0, "tree": 0.0}, "add up to nothing"),
        *(
            ({"walks": value, "tree": 1}, "the share of mode 'walks' is")
            for value in (-1, "60", True, None, float("nan"), float("inf"))
        ),
    ],
)
def test_malformed_shares_are_named(modes: Any, reason: str) -> None:
    with pytest.raises(Problem, match=reason):
        Settings.read({**SMALL, "modes": modes})


@pytest.mark.parametrize(
    ("guidance", "reason"),
    [
        *((value, "guidance is not a table") for value in (3, "table", ["table"], None)),
        ({"table": 0.6, "policy": 0.5}, "add up to more than 1"),
        *(
            ({"table": value}, "the share of guidance 'table' is")
            for value in (-0.1, 1.1, "0.3", True, None, float("nan"))
        ),
    ],
)
def test_malformed_guidance_is_named(guidance: Any, reason: str) -> None:
    with pytest.raises(Problem, match=reason):
        Settings.read({**SMALL, "guidance": guidance})


@given(st.dictionaries(st.sampled_from([*MODES, "own.module:Class"]), st.floats(0, 1e9), min_size=1))
def test_any_shares_that_add_up_to_something_are_taken(modes: dict[str, float]) -> None:
    if sum(modes.values()) > 0:
        assert Settings.read({**SMALL, "modes": modes}).modes == modes


def test_every_mode_of_the_engine_is_there() -> None:
    from retro.search.modes import load_mode

    for name in MODES:
        mode = load_mode(name)
        assert callable(mode.choose)
        assert callable(mode.explore)
