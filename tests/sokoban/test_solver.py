"""The solver against a search over single moves that knows nothing of pushes or dead cells."""

from collections import deque

import pytest
from hypothesis import given, settings
from random_levels import levels

from sokoban.levels import Cell, Level, parse_levels
from sokoban.reference import Game, neighbour, replay, walk
from sokoban.solver import OutOfStates, live_cells, region, solve


def fewest_pushes(level: Level) -> int | None:
    """The fewest pushes of any solution: 0-1 breadth-first search over (player, boxes), a move at a time."""
    start = (level.player, level.boxes)
    best = {start: 0}
    queue = deque([start])
    while queue:
        player, boxes = state = queue.popleft()
        if boxes == level.goals:
            return best[state]
        for direction in range(4):
            game = Game(level)
            game.player, game.boxes = player, set(boxes)
            pushed = game.move(direction)
            following = (game.player, frozenset(game.boxes))
            if best[state] + pushed < best.get(following, 1_000_000):
                best[following] = best[state] + pushed
                if pushed:
                    queue.append(following)
                else:
                    queue.appendleft(following)
    return None


@given(levels(largest=4, most_boxes=3))
@settings(max_examples=150)
def test_solutions_are_optimal_in_pushes_and_none_means_none(level: Level) -> None:
    moves = solve(level)
    fewest = fewest_pushes(level)
    if moves is None:
        assert fewest is None
    else:
        outcome = replay(level, moves, limit=len(moves))
        assert outcome.solved
        assert outcome.pushes == fewest


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("########\n#@ $  .#\n########\n", "rRRR"),
        ("#####\n#@* #\n#####\n", ""),
        ("######\n#.@ $#\n######\n", None),  # in the corner
        ("#####\n#@#.#\n#$# #\n# # #\n#####\n", None),  # a goal behind a wall
        ("#####\n#  .#\n#$ @#\n#   #\n#####\n", None),  # along an edge without a goal
    ],
)
def test_known_levels(text: str, moves: str | None) -> None:
    assert solve(parse_levels(text)[0]) == moves


def test_more_goals_than_boxes_cannot_be_solved() -> None:
    (level,) = parse_levels("######\n#@$ .#\n######\n")
    assert solve(Level(3, 6, level.walls, level.goals | {(1, 1)}, level.boxes, level.player)) is None


def test_the_budget_is_counted_in_positions() -> None:
    (level,) = parse_levels("########\n#@ $  .#\n########\n")
    assert solve(level, max_states=4) == "rRRR"  # the start and one position a push
    with pytest.raises(OutOfStates, match="within 3 positions"):
        solve(level, max_states=3)


@given(levels())
def test_region_holds_what_can_be_walked_to(level: Level) -> None:
    reach = region(level, level.boxes, level.player)
    for row in range(level.height):
        for column in range(level.width):
            walkable = walk(level, level.boxes, level.player, (row, column)) is not None
            assert ((row, column) in reach) == walkable


@given(levels(largest=5, most_boxes=1))
@settings(max_examples=40)
def test_a_lone_box_outside_the_live_cells_is_lost(level: Level) -> None:
    """From every cell and with the player anywhere, pushes alone never bring a lone box to the goal."""
    live = live_cells(level)
    assert level.goals <= live
    for row in range(level.height):
        for column in range(level.width):
            cell = (row, column)
            if cell not in level.walls:
                assert (cell in live) == bool(cells_a_box_can_be_pushed_to(level, cell) & level.goals)


def cells_a_box_can_be_pushed_to(level: Level, box: Cell) -> set[Cell]:
    """Where a lone box can go if the player may appear anywhere between pushes."""
    seen, waiting = {box}, [box]
    while waiting:
        box = waiting.pop()
        for ahead, behind in ((0, 1), (1, 0), (2, 3), (3, 2)):
            target = neighbour(box, ahead)
            if not {target, neighbour(box, behind)} & level.walls and target not in seen:
                seen.add(target)
                waiting.append(target)
    return seen
