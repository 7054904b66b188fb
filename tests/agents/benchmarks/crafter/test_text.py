"""Words agree with the package's data."""

import pytest
from crafter import constants
from hypothesis import given
from hypothesis import strategies as st

from agents.benchmarks.crafter.text import (
    ACHIEVEMENTS,
    ACTIONS,
    GOAL,
    MOST,
    RULES,
    STATE_HELP,
    STATUS,
    brightness,
    describe_change,
    describe_status,
    describe_view,
    inventory_of,
    plain,
    way,
)
from agents.benchmarks.crafter.view import Creature, View

START = {name: info["initial"] for name, info in constants.items.items()}
MEADOW = tuple(("grass",) * 9 for _ in range(7))


def test_names_are_those_of_the_package() -> None:
    assert [action.replace(" ", "_") for action in ACTIONS] == list(constants.actions)
    assert list(ACHIEVEMENTS) == list(constants.achievements)
    assert [*STATUS, *inventory_of(START)] == [plain(name) for name in constants.items]
    assert {info["max"] for info in constants.items.values()} == {MOST}
    for name in ACHIEVEMENTS:
        assert plain(name) in GOAL


def test_the_rules_name_every_action_and_what_it_needs() -> None:
    lines = [line for line in RULES.splitlines() if line.startswith("- ")]
    explained = {action: line for line in lines for action in line[2:].split(":")[0].split(", ")}
    assert set(explained) == set(ACTIONS)
    for name, info in constants.place.items():
        for item, count in info["uses"].items():
            assert f"needs {count} {item}" in explained[f"place {name}"]
        for material in info["where"]:
            assert material in explained[f"place {name}"]
    for name, info in constants.make.items():
        line = explained[f"make {plain(name)}"]
        for item, count in info["uses"].items():
            assert f"{count} {item}" in line
        for neighbour in ("table", "furnace"):
            assert (neighbour in line) == (neighbour in info["nearby"])


def test_mining_is_as_the_rules_say() -> None:
    needs = {name: list(info["require"]) for name, info in constants.collect.items()}
    assert needs == {
        "tree": [],
        "stone": ["wood_pickaxe"],
        "coal": ["wood_pickaxe"],
        "iron": ["stone_pickaxe"],
        "diamond": ["iron_pickaxe"],
        "water": [],
        "grass": [],
    }
    assert constants.collect["tree"]["leaves"] == "grass"
    assert constants.collect["grass"]["probability"] == 0.1


def test_the_help_names_all_materials_and_things() -> None:
    for name in [*constants.materials, *inventory_of(START), "unseen", "outside"]:
        assert name in STATE_HELP


@given(st.sampled_from(ACTIONS), st.sampled_from([" ", "_", "  ", "\t"]), st.booleans())
def test_actions_are_read_in_any_spelling(action: str, gap: str, upper: bool) -> None:
    spelled = f" {action.replace(' ', gap)}\n"
    assert plain(spelled.upper() if upper else spelled) == action


@pytest.mark.parametrize(
    ("right", "down", "words"),
    [(0, 0, "here"), (-2, 0, "2 left"), (1, -3, "1 right 3 up"), (0, 2, "2 down"), (-4, 1, "4 left 1 down")],
)
def test_ways(right: int, down: int, words: str) -> None:
    assert way(right, down) == words


def test_daylight_in_words() -> None:
    words = [brightness(daylight / 20) for daylight in range(21)]
    assert words == ["very dark"] * 3 + ["dark"] * 5 + ["dim"] * 7 + ["bright"] * 6


def test_status_and_changes() -> None:
    after = START | {"wood": 2, "wood_pickaxe": 1, "drink": 8}
    assert describe_status(after, False, 1.0) == [
        "Status: health 9/9, food 9/9, drink 8/9, energy 9/9; awake; daylight: bright.",
        "Inventory: 2 wood, 1 wood pickaxe.",
    ]
    assert describe_status(START, True, 0.0) == [
        "Status: health 9/9, food 9/9, drink 9/9, energy 9/9; asleep; daylight: very dark.",
        "Inventory: empty.",
    ]
    assert describe_change(START, after) == ["drink -1", "wood +2", "wood pickaxe +1"]
    assert describe_change(after, after) == []


def test_the_view_in_words() -> None:
    grid = [list(row) for row in MEADOW]
    grid[0][4] = "tree"  # 3 up
    grid[3][1] = "tree"  # 3 left
    grid[3][5] = "water"
    grid[6] = ["outside"] * 9
    grid[0][0] = grid[0][8] = "unseen"
    creatures = (Creature("cow", 0, 1, None), Creature("arrow", 2, 0, "left"), Creature("cow", -1, 2, None))
    view = View(tuple(tuple(row) for row in grid), creatures, "down", "grass", "cow")
    assert describe_view(view) == [
        "Facing down: cow, on grass.",
        "Standing on: grass.",
        "In view:",
        "- cow: 1 down (2 in view)",
        "- arrow flying left: 2 right",
        "- grass: 1 up (48 in view)",
        "- tree: 3 up (2 in view)",
        "- water: 1 right",
        "- the edge of the world: 3 down",
        "It is too dark to see 2 of the 63 cells in view.",
    ]


def test_the_edge_of_the_world_ahead() -> None:
    view = View(MEADOW, (), "up", "outside", None)
    assert describe_view(view)[0] == "Facing up: the edge of the world."
