"""Ways on maps made by hand, where the cheapest is plain to see."""

import pytest
from crafter import constants
from crafter_worlds import LEFT, TOP, at, game_of

from agents.benchmarks.crafter.ground import SIDES, TOOLS, WALKABLE, Ground, around, cell_of, distance, facing


def walk(ground: Ground, goal: tuple[int, int], side: str, most: int = 400) -> list[str]:
    """The way to a stand: its cells and sides, the start left out."""
    found = ground.route({at(*goal) * 4 + SIDES.index(side): 0}, most=most)
    return [
        f"{stand // 4 // 66 - 1 - LEFT},{stand // 4 % 66 - 1 - TOP} {SIDES[stand % 4]}" for stand in found[1:]
    ]


def test_cells() -> None:
    assert cell_of((0, 0)) == 67
    assert distance(cell_of((3, 5)), cell_of((1, 9))) == 6
    assert len(set(around(cell_of((4, 4))))) == 9
    assert facing([cell_of((4, 4))], 2) == {
        cell_of((5, 4)) * 4 + 0: 2,
        cell_of((3, 4)) * 4 + 1: 2,
        cell_of((4, 5)) * 4 + 2: 2,
        cell_of((4, 3)) * 4 + 3: 2,
    }


def test_tools_are_those_of_the_package() -> None:
    assert set(constants.walkable) == WALKABLE
    for material, tool in TOOLS.items():
        assert list(constants.collect[material]["require"]) == ([] if tool is None else [tool])


def test_what_stands_where() -> None:
    ground = Ground(game_of("@.Z ~#t", wood_pickaxe=1))
    assert (ground.here, SIDES[ground.side], ground.ahead) == (at(0, 0), "down", at(0, 1))
    assert ground.find("water") == [at(0, 1)] and ground.kinds("Zombie") == [at(2, 0)]
    assert ground.free(at(1, 0)) and not ground.free(at(2, 0))
    assert ground.minable(at(1, 1)) and not ground.minable(at(2, 1))
    assert ground.materials[0] == "" and ground.materials[at(3, 0)] == "lava"


def test_the_way_goes_round_what_cannot_be_cleared() -> None:
    drawing = "@t. .t. ..."
    assert walk(Ground(game_of(drawing)), (2, 0), "up") == [
        "0,1 down",
        "0,2 down",
        "1,2 right",
        "2,2 right",
        "2,1 up",
        "2,0 up",
    ]


def test_the_way_goes_through_stone_with_a_pickaxe() -> None:
    drawing = "@#. .#. ..."
    # Turn to the stone, mine and enter it, go on.
    assert walk(Ground(game_of(drawing, wood_pickaxe=1)), (2, 0), "right") == [
        "0,0 right",
        "1,0 right",
        "2,0 right",
    ]


def test_nothing_leads_over_lava_or_turns_to_it() -> None:
    ground = Ground(game_of("@L. .L. .L.", stone=9, wood_pickaxe=1))
    assert walk(ground, (2, 0), "up") == []
    assert ground.route({ground.here * 4 + SIDES.index("right"): 0}) == []


def test_water_is_crossed_with_a_stone() -> None:
    drawing = "@~."
    assert walk(Ground(game_of(drawing)), (2, 0), "right") == []
    crossing = Ground(game_of(drawing, stone=1, wood_pickaxe=1))
    assert walk(crossing, (2, 0), "right") == ["0,0 right", "1,0 right", "2,0 right"]
    assert walk(crossing, (2, 0), "right", most=4) == []  # turn, three to cross, step: five


def test_the_cheaper_goal_wins() -> None:
    ground = Ground(game_of("@....."))
    near, far = (at(x, 0) * 4 + 1 for x in (2, 4))
    assert ground.route({near: 0, far: 0})[-1] == near
    assert ground.route({near: 3, far: 0})[-1] == far


def test_kept_cells_are_not_dug() -> None:
    ground = Ground(game_of("@#.", wood_pickaxe=1))
    goal = {at(2, 0) * 4 + 1: 0}
    assert len(ground.route(goal)) == 4
    assert ground.route(goal, {at(1, 0)}) == []


def test_zombies_are_kept_away_from() -> None:
    open_ground = "@......... .......... .......... .......... .........."
    straight = walk(Ground(game_of(open_ground)), (9, 0), "right")
    assert len(straight) == 9
    guarded = walk(Ground(game_of(open_ground[:4] + "Z" + open_ground[5:])), (9, 0), "right")
    assert len(guarded) > 9 and not any(step.startswith("4,0") for step in guarded)


@pytest.mark.parametrize(
    ("drawing", "stand", "action"),
    [
        ("@.", ((1, 0), "right"), "move right"),
        ("@#", ((0, 0), "right"), "move right"),
        ("@ #", ((0, 1), "down"), "do"),
        ("@ ~", ((0, 1), "down"), "place stone"),
        ("@ C", ((0, 1), "down"), "do"),
        ("@ .", ((0, 1), "down"), "move down"),
    ],
)
def test_the_action_to_the_next_stand(drawing: str, stand: tuple[tuple[int, int], str], action: str) -> None:
    ground = Ground(game_of(drawing, wood_pickaxe=1, stone=1))
    assert ground.toward(at(*stand[0]) * 4 + SIDES.index(stand[1])) == action


def test_enclosed() -> None:
    assert Ground(game_of("### #@# ###")).enclosed()
    assert Ground(game_of("#### #@P~ ####")).enclosed()
    assert not Ground(game_of("##### #@.Z# #####")).enclosed()
    assert not Ground(game_of("########### #@........# ###########")).enclosed()
