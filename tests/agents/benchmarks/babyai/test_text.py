"""What is seen, in words and values: against boards written down by hand, and Minigrid's numbers."""

import json

from hypothesis import given
from hypothesis import strategies as st
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX

from agents.benchmarks.babyai.text import (
    COLORS,
    DIRECTIONS,
    DOOR_STATES,
    TYPES,
    Thing,
    describe,
    plain,
    read_view,
    state_of,
)

# Far rows first, as drawn; the agent is in the middle of the last row.
SIGNS = {
    "?": (0, 0, 0),
    ".": (1, 0, 0),
    "#": (2, 5, 0),
    "a": (6, 0, 0),  # red ball
    "b": (7, 2, 0),  # blue box
    "k": (5, 4, 0),  # yellow key
    "o": (4, 1, 0),  # open green door
    "c": (4, 3, 1),  # closed purple door
    "l": (4, 5, 2),  # locked grey door
}


def image_of(board: str) -> list[list[tuple[int, int, int]]]:
    """[left to right][far to near], as Minigrid gives it."""
    rows = board.split()
    assert [len(row) for row in rows] == [7] * 7
    return [[SIGNS[row[column]] for row in rows] for column in range(7)]


ROOM = """
???????
???????
##c####
#.....#
#.a..b#
#.....#
#.....#
"""


def test_a_room_in_words() -> None:
    text = describe(read_view(image_of(ROOM), 3))
    assert text.splitlines() == [
        "You face north and carry nothing.",
        "Forward: 3 free, then a wall. Left: 2 free, then a wall. Right: 2 free, then a wall.",
        "Objects in view: red ball 2 forward 1 left; blue box 2 forward 2 right; "
        "closed purple door 4 forward 1 left.",
    ]


def test_a_room_in_values() -> None:
    state = state_of(read_view(image_of(ROOM), 3))
    assert json.loads(json.dumps(state)) == state
    assert state["direction"] == "north"
    assert state["carrying"] is None
    assert state["objects"] == [
        {"type": "ball", "color": "red", "state": None, "position": [-1, 2]},
        {"type": "box", "color": "blue", "state": None, "position": [2, 2]},
        {"type": "door", "color": "purple", "state": "closed", "position": [-1, 4]},
    ]
    assert [0, 4] in state["walls"] and [3, 0] in state["walls"] and len(state["walls"]) == 6 + 8
    assert [0, 1] in state["free"] and [0, 0] not in state["free"] and len(state["free"]) == 20 - 2 - 1


def test_what_ends_a_way() -> None:
    board = """
    ...k...
    .......
    .......
    .......
    .......
    .......
    #o.k.l?
    """
    text = describe(read_view(image_of(board), 0))
    assert "You face east and carry a yellow key." in text
    assert "Forward: 5 free, then a yellow key." in text
    assert "Left: 1 free, then an open green door." in text
    assert "Right: 1 free, then a locked grey door." in text
    assert "yellow key 6 forward" in text


def test_nothing_in_view() -> None:
    board = "??????? " * 5 + "...?... ......."
    text = describe(read_view(image_of(board), 1))
    assert "You face south and carry nothing." in text
    assert "Forward: 0 free, then out of view. Left: 3 free, then out of view." in text
    assert text.endswith("Objects in view: none.")


def test_the_numbers_are_minigrids() -> None:
    assert {name: number for number, name in enumerate(TYPES)} == OBJECT_TO_IDX
    assert {name: number for number, name in enumerate(COLORS)} == COLOR_TO_IDX
    assert {name: number for number, name in enumerate(DOOR_STATES)} == STATE_TO_IDX


IMAGES = st.lists(
    st.lists(st.sampled_from(list(SIGNS.values())), min_size=7, max_size=7), min_size=7, max_size=7
)


@given(IMAGES, st.integers(0, 3))
def test_every_cell_in_view_is_told_once_and_hidden_ones_never(
    image: list[list[tuple[int, int, int]]], direction: int
) -> None:
    view = read_view(image, direction)
    told = [*view.things, *view.walls, *view.free]
    seen = {(x - 3, 6 - y) for x in range(7) for y in range(7) if image[x][y][0] != 0} - {(0, 0)}
    assert len(told) == len(set(told)) and set(told) == seen
    assert view.direction == DIRECTIONS[direction]
    lines = describe(view).splitlines()
    assert len(lines) == 3
    assert lines[2].count(";") == max(0, len(view.things) - 1)
    assert all(str(thing) in lines[2] for thing in view.things.values())
    far = [abs(right) + forward for right, forward in view.things]
    assert far == sorted(far)


def test_a_thing_in_words() -> None:
    assert str(Thing("door", "red", "locked")) == "locked red door"
    assert str(Thing("key", "grey", None)) == "grey key"


@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_an_action_is_one_short_line_that_files_can_hold(action: str) -> None:
    line = plain(action)
    assert plain(line) == line
    assert "\n" not in line and line == line.strip() and len(line) <= 80
    line.encode()


def test_case_and_spaces_do_not_matter() -> None:
    assert plain("  Turn \n LEFT ") == "turn left"
