"""Random Sokoban levels for property tests: any walls, boxes, goals and player, solvable or not."""

from hypothesis import strategies as st

from sokoban.levels import Cell, Level


@st.composite
def levels(draw: st.DrawFn, *, largest: int = 8, most_boxes: int = 6) -> Level:
    """A level whose interior is up to `largest` x `largest`; some start solved, many cannot be solved."""
    height, width = draw(st.integers(1, largest)), draw(st.integers(3, largest))
    inside = [(row, column) for row in range(1, height + 1) for column in range(1, width + 1)]
    density = draw(st.sampled_from([0, 1, 2, 3]))  # eighths of the inside that may be wall
    rolls = draw(st.binary(min_size=len(inside), max_size=len(inside)))
    floor = [cell for cell, roll in zip(inside, rolls, strict=True) if roll & 7 >= density]
    floor = list(dict.fromkeys(floor + inside))[:2] if len(floor) < 2 else floor
    order = draw(st.permutations(range(len(floor))))
    boxes = draw(st.integers(1, min(most_boxes, len(floor) - 1)))
    player, *taken = (floor[index] for index in order[: boxes + 1])
    goals = draw(st.lists(st.sampled_from(floor), min_size=boxes, max_size=boxes, unique=True))
    return closed_level(height, width, set(floor), set(goals), set(taken), player)


def closed_level(
    height: int, width: int, floor: set[Cell], goals: set[Cell], boxes: set[Cell], player: Cell
) -> Level:
    """A level with a `height` x `width` interior, wall all around and wherever there is no floor."""
    everything = {(row, column) for row in range(height + 2) for column in range(width + 2)}
    return Level(
        height + 2,
        width + 2,
        frozenset(everything - floor),
        frozenset(goals),
        frozenset(boxes),
        player,
    )


def directions(*, longest: int) -> st.SearchStrategy[list[int]]:
    """A list of directions 0 to 3, at most `longest` of them (four are drawn as one byte)."""
    return st.binary(max_size=longest // 4).map(
        lambda data: [byte >> shift & 3 for byte in data for shift in (0, 2, 4, 6)]
    )
