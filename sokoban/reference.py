"""The rules of Sokoban, written to be read: one level, plain Python, no arrays.

This is what the verifier trusts. `sokoban.rules` plays thousands of boards at once and must agree with it.

The player steps up, down, left or right. A step into a box pushes it one cell if the cell behind is free.
A step into a wall, or into a box that cannot move, changes nothing but still counts as a move. A level is
solved when every box stands on a goal, and play ends there or after `STEP_LIMIT` moves.
"""

from collections import deque
from collections.abc import Set
from dataclasses import dataclass

from sokoban.levels import Cell, Level

UP, DOWN, LEFT, RIGHT = range(4)
OFFSETS: tuple[Cell, ...] = ((-1, 0), (1, 0), (0, -1), (0, 1))
LETTERS = "udlr"
STEP_LIMIT = 120  # the limit of Guez et al. 2019 and of every Boxoban result since


class IllegalMove(ValueError):
    """A move string that the rules do not allow. `index` is the 0-based position of the first bad letter."""

    def __init__(self, index: int, letter: str, reason: str) -> None:
        super().__init__(f"move {index + 1} ({letter!r}): {reason}")
        self.index, self.letter, self.reason = index, letter, reason


class Game:
    """One level in play: `player` and `boxes` move, `moves` counts the steps taken, bumps included."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self.player: Cell = level.player
        self.boxes: set[Cell] = set(level.boxes)
        self.moves = 0

    @property
    def solved(self) -> bool:
        """Whether every box stands on a goal."""
        return self.boxes == self.level.goals

    def move(self, direction: int) -> bool:
        """Step once in `direction` (0 up, 1 down, 2 left, 3 right); True if that pushed a box."""
        self.moves += 1
        ahead = neighbour(self.player, direction)
        if ahead in self.level.walls:
            return False
        pushed = ahead in self.boxes
        if pushed:
            beyond = neighbour(ahead, direction)
            if beyond in self.level.walls or beyond in self.boxes:
                return False
            self.boxes.remove(ahead)
            self.boxes.add(beyond)
        self.player = ahead
        return pushed


@dataclass(frozen=True, slots=True)
class Replay:
    """What a move string did: whether it solved the level, its length, and how many moves were pushes."""

    solved: bool
    moves: int
    pushes: int


def replay(level: Level, moves: str, limit: int = STEP_LIMIT) -> Replay:
    """Play a move string in LURD notation: `udlr` for moves without a push (bumps too), `UDLR` for pushes.

    Raises:
        IllegalMove: a letter that is unknown, whose case disagrees with what happened, or that comes after
            the level was solved or after `limit` moves.
    """
    game = Game(level)
    pushes = 0
    for index, letter in enumerate(moves):
        direction = LETTERS.find(letter.lower()) if letter.isascii() else -1
        if direction < 0:
            raise IllegalMove(index, letter, "not one of u d l r U D L R")
        if game.solved:
            raise IllegalMove(index, letter, "the level is already solved")
        if game.moves == limit:
            raise IllegalMove(index, letter, f"past the limit of {limit} moves")
        pushed = game.move(direction)
        if pushed != letter.isupper():
            raise IllegalMove(
                index, letter, "this move pushes a box" if pushed else "this move pushes no box"
            )
        pushes += pushed
    return Replay(game.solved, game.moves, pushes)


def walk(level: Level, boxes: Set[Cell], start: Cell, end: Cell) -> str | None:
    """The shortest walk from `start` to `end` around walls and boxes, or None where there is none.

    Among shortest walks it is the one that breadth-first search meets first when every cell tries up, down,
    left and right in this order, so the walk is a function of the position alone.
    """
    paths = {start: ""}
    queue = deque([start])
    while queue:
        cell = queue.popleft()
        if cell == end:
            return paths[cell]
        for direction, letter in enumerate(LETTERS):
            ahead = neighbour(cell, direction)
            if ahead not in paths and ahead not in boxes and ahead not in level.walls:
                paths[ahead] = paths[cell] + letter
                queue.append(ahead)
    return None


def neighbour(cell: Cell, direction: int) -> Cell:
    """The cell one step from `cell` in `direction`."""
    row, column = OFFSETS[direction]
    return cell[0] + row, cell[1] + column
