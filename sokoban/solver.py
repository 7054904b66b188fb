"""A small brute-force solver: breadth-first search over pushes, optimal in the number of pushes.

It proves that a small level has a solution, or has none, and plays on the plain rules of
`sokoban.reference`. It is no match for hard levels; `max_states` bounds what it may try.
"""

from collections import deque
from collections.abc import Iterator, Set

from sokoban.levels import Cell, Level
from sokoban.reference import DOWN, LEFT, LETTERS, RIGHT, UP, neighbour, walk

_OPPOSITE = (DOWN, UP, RIGHT, LEFT)

State = tuple[frozenset[Cell], Cell]  # the boxes, and the first cell of the player's region


class OutOfStates(Exception):
    """The search met `max_states` positions and found neither a solution nor the end of what is reachable."""


def solve(level: Level, *, max_states: int | None = None) -> str | None:
    """Solve `level` in as few pushes as any solution has, with a shortest walk to each push.

    Returns:
        The moves in LURD notation (lowercase a walk, uppercase a push), or None where no solution exists.

    Raises:
        OutOfStates: more than `max_states` positions were met; the level may or may not be solvable.
    """
    if len(level.boxes) != len(level.goals):
        return None
    alive = live_cells(level)
    # Each position is kept with the one before it and the push in between, as the box's cell and direction.
    came_from: dict[State, tuple[State, Cell, int] | None] = {}
    start = (level.boxes, min(region(level, level.boxes, level.player)))
    came_from[start] = None
    queue = deque([start])
    while queue:
        state = queue.popleft()
        boxes, player = state
        if boxes == level.goals:
            return _moves(level, came_from, state)
        for box, direction in pushes(level, boxes, player):
            target = neighbour(box, direction)
            if target not in alive:
                continue
            pushed = boxes - {box} | {target}
            following = (pushed, min(region(level, pushed, box)))
            if following in came_from:
                continue
            if max_states is not None and len(came_from) >= max_states:
                raise OutOfStates(f"no answer within {max_states} positions")
            came_from[following] = (state, box, direction)
            queue.append(following)
    return None


def region(level: Level, boxes: Set[Cell], player: Cell) -> set[Cell]:
    """Every cell that the player can walk to without a push, its own included."""
    seen = {player}
    waiting = [player]
    while waiting:
        cell = waiting.pop()
        for direction in range(4):
            ahead = neighbour(cell, direction)
            if ahead not in seen and ahead not in boxes and ahead not in level.walls:
                seen.add(ahead)
                waiting.append(ahead)
    return seen


def pushes(level: Level, boxes: Set[Cell], player: Cell) -> Iterator[tuple[Cell, int]]:
    """Every push that the player can walk to, as (the box's cell, direction), in a fixed order."""
    reach = region(level, boxes, player)
    for box in sorted(boxes):
        for direction in range(4):
            beyond = neighbour(box, direction)
            if (
                neighbour(box, _OPPOSITE[direction]) in reach
                and beyond not in boxes
                and beyond not in level.walls
            ):
                yield box, direction


def live_cells(level: Level) -> set[Cell]:
    """The cells from which a lone box can be pushed to some goal: a box elsewhere is lost for good."""
    live = set(level.goals)
    waiting = list(level.goals)
    while waiting:  # pull a box backwards from the goals
        cell = waiting.pop()
        for direction in range(4):
            behind = neighbour(cell, direction)
            player = neighbour(behind, direction)
            if behind not in live and behind not in level.walls and player not in level.walls:
                live.add(behind)
                waiting.append(behind)
    return live


def _moves(level: Level, came_from: dict[State, tuple[State, Cell, int] | None], state: State) -> str:
    """Trace the pushes back to the start, then walk from each to the next."""
    line = []
    while (step := came_from[state]) is not None:
        state, box, direction = step
        line.append((state[0], box, direction))
    moves, player = "", level.player
    for boxes, box, direction in reversed(line):
        steps = walk(level, boxes, player, neighbour(box, _OPPOSITE[direction]))
        assert steps is not None, "every push of the search is within reach"
        moves += steps + LETTERS[direction].upper()
        player = box
    return moves
