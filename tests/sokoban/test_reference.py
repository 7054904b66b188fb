"""The plain rules against examples worked by hand."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_levels import directions, levels

from sokoban.levels import Cell, Level, parse_levels
from sokoban.reference import (
    DOWN,
    LEFT,
    LETTERS,
    RIGHT,
    STEP_LIMIT,
    UP,
    Game,
    IllegalMove,
    Replay,
    neighbour,
    replay,
    walk,
)


def level_of(text: str) -> Level:
    """The one level drawn in `text`."""
    (level,) = parse_levels(text)
    return level


CORRIDOR = level_of("########\n#@ $  .#\n########\n")
ROOM = level_of("######\n#    #\n# $. #\n# .$ #\n# @  #\n######\n")


def test_directions_are_up_down_left_right() -> None:
    assert (UP, DOWN, LEFT, RIGHT) == (0, 1, 2, 3)
    assert [neighbour((5, 5), direction) for direction in range(4)] == [(4, 5), (6, 5), (5, 4), (5, 6)]


def test_walking_and_pushing_along_a_corridor() -> None:
    game = Game(CORRIDOR)
    assert [game.move(RIGHT) for _ in range(4)] == [False, True, True, True]
    assert game.player == (1, 5)
    assert game.boxes == {(1, 6)}
    assert game.moves == 4
    assert game.solved


def test_a_bump_changes_nothing_but_counts() -> None:
    game = Game(CORRIDOR)
    for direction in (UP, DOWN, LEFT):
        assert not game.move(direction)
    assert (game.player, game.boxes, game.moves) == ((1, 1), {(1, 3)}, 3)


def test_two_boxes_in_a_row_do_not_move() -> None:
    game = Game(level_of("#######\n#@$$..#\n#######\n"))
    assert not game.move(RIGHT)
    assert (game.player, game.boxes, game.moves) == ((1, 1), {(1, 2), (1, 3)}, 1)


def test_a_box_does_not_move_into_a_wall() -> None:
    game = Game(level_of("######\n#.@ $#\n######\n"))
    assert not game.move(RIGHT)
    assert game.player == (1, 3)
    assert not game.move(RIGHT)
    assert game.player == (1, 3)


def test_a_box_leaves_its_goal_and_the_level_is_no_longer_solved() -> None:
    game = Game(level_of("#######\n#@* $.#\n#######\n"))
    assert game.move(RIGHT)
    assert game.boxes == {(1, 3), (1, 4)}
    assert not game.solved


def test_the_level_itself_never_changes() -> None:
    before = frozenset(CORRIDOR.boxes)
    Game(CORRIDOR).move(RIGHT)
    replay(CORRIDOR, "rRRR")
    assert CORRIDOR.boxes == before


@pytest.mark.parametrize(
    ("level", "moves", "expected"),
    [
        (CORRIDOR, "rRRR", Replay(solved=True, moves=4, pushes=3)),
        (CORRIDOR, "", Replay(solved=False, moves=0, pushes=0)),
        (CORRIDOR, "ulrRR", Replay(solved=False, moves=5, pushes=2)),
        (ROOM, "luuRddrruL", Replay(solved=True, moves=10, pushes=2)),
    ],
)
def test_replay(level: Level, moves: str, expected: Replay) -> None:
    assert replay(level, moves) == expected


@pytest.mark.parametrize(
    ("moves", "index", "letter", "reason"),
    [
        ("rrRR", 1, "r", "this move pushes a box"),
        ("RRRR", 0, "R", "this move pushes no box"),
        ("U", 0, "U", "this move pushes no box"),
        ("rRx", 2, "x", "not one of"),
        ("r R", 1, " ", "not one of"),
        ("rRRR\n", 4, "\n", "not one of"),
        ("rRRRl", 4, "l", "already solved"),
        ("rR\u0131", 2, "\u0131", "not one of"),  # a letter outside ASCII
        ("\u212a", 0, "\u212a", "not one of"),  # the kelvin sign, which lower() turns into a plain k
    ],
)
def test_replay_names_the_first_illegal_move(moves: str, index: int, letter: str, reason: str) -> None:
    with pytest.raises(IllegalMove, match=f"move {index + 1} ") as caught:
        replay(CORRIDOR, moves)
    assert (caught.value.index, caught.value.letter) == (index, letter)
    assert reason in caught.value.reason


def test_replay_stops_at_the_limit() -> None:
    assert STEP_LIMIT == 120
    assert replay(CORRIDOR, "l" * 120).moves == 120
    with pytest.raises(IllegalMove, match="limit of 120 moves") as caught:
        replay(CORRIDOR, "l" * 121)
    assert caught.value.index == 120
    assert replay(CORRIDOR, "l" * 117 + "rRR").solved is False
    assert replay(CORRIDOR, "l" * 116 + "rRRR") == Replay(solved=True, moves=120, pushes=3)
    with pytest.raises(IllegalMove, match="limit of 4 moves"):
        replay(CORRIDOR, "lrRRR", limit=4)


def test_a_level_that_starts_solved_needs_no_moves() -> None:
    level = level_of("#####\n#@* #\n#####\n")
    assert replay(level, "") == Replay(solved=True, moves=0, pushes=0)
    with pytest.raises(IllegalMove, match="already solved"):
        replay(level, "R")


def test_walk_is_shortest_and_breaks_ties_up_down_left_right() -> None:
    open_floor = level_of("######\n#@   #\n#    #\n#  $.#\n######\n")
    assert walk(open_floor, open_floor.boxes, (3, 1), (1, 3)) == "uurr"
    assert walk(open_floor, open_floor.boxes, (1, 3), (3, 1)) == "dldl"
    assert walk(open_floor, open_floor.boxes, (1, 1), (1, 1)) == ""
    assert walk(open_floor, open_floor.boxes, (3, 2), (2, 4)) == "urr"


def test_walk_goes_around_boxes_or_gives_up() -> None:
    split = level_of("#####\n#@#.#\n# # #\n# $ #\n#####\n")
    assert walk(split, split.boxes, (1, 1), (1, 3)) is None
    assert walk(split, set(), (1, 1), (1, 3)) == "ddrruu"
    assert walk(split, split.boxes, (1, 1), (3, 2)) is None


def distances_from(level: Level, start: Cell) -> dict[Cell, int]:
    """Walking distances by relaxing every cell until nothing changes, with no queue and no order."""
    cells = [(row, column) for row in range(level.height) for column in range(level.width)]
    free = [cell for cell in cells if cell not in level.walls and cell not in level.boxes]
    distance = {start: 0} if start in free else {}
    changed = True
    while changed:
        changed = False
        for cell in free:
            near = [distance[n] for d in range(4) if (n := neighbour(cell, d)) in distance]
            if near and min(near) + 1 < distance.get(cell, len(cells)):
                distance[cell] = min(near) + 1
                changed = True
    return distance


@given(levels())
def test_walk_is_the_first_shortest_walk_in_the_order_of_its_letters(level: Level) -> None:
    ends = [(row, column) for row in range(level.height) for column in range(level.width)]
    for end in ends[:: max(1, len(ends) // 12)]:
        left = distances_from(level, end)
        steps = walk(level, level.boxes, level.player, end)
        if level.player not in left:
            assert steps is None
            continue
        cell, expected = level.player, ""
        while cell != end:  # the first direction that comes closer is the first in the order of letters
            closer = [d for d in range(4) if left.get(neighbour(cell, d), 99) < left[cell]]
            expected += LETTERS[closer[0]]
            cell = neighbour(cell, closer[0])
        assert steps == expected


@given(levels(), directions(longest=STEP_LIMIT))
def test_what_was_played_can_be_replayed(level: Level, moves: list[int]) -> None:
    game, line = Game(level), ""
    for direction in moves:
        if game.solved:
            break
        letter = LETTERS[direction]
        line += letter.upper() if game.move(direction) else letter
    assert replay(level, line) == Replay(game.solved, len(line), sum(map(str.isupper, line)))
    assert len(game.boxes) == len(level.boxes)
    assert not game.boxes & level.walls
    assert game.player not in game.boxes | level.walls


@given(levels(), directions(longest=40), st.randoms(use_true_random=False))
def test_replay_refuses_a_letter_of_the_wrong_case(
    level: Level, moves: list[int], chance: random.Random
) -> None:
    game, line = Game(level), ""
    for direction in moves:
        if game.solved:
            break
        letter = LETTERS[direction]
        line += letter.upper() if game.move(direction) else letter
    if not line:
        return
    wrong = chance.randrange(len(line))
    with pytest.raises(IllegalMove) as caught:
        replay(level, line[:wrong] + line[wrong].swapcase() + line[wrong + 1 :])
    assert caught.value.index == wrong
