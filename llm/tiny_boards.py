"""Random boards of one box on at most 4x4 cells, and the fewest moves that solve a board."""

from itertools import product
from random import Random

from llm.puzzles import MOVES
from sokoban.levels import Cell, Level
from sokoban.reference import Game


def random_level(generator: Random) -> Level | None:
    """An unsolved board of 3 to 4 by 3 to 4 cells in a ring of wall, with one box; None for a useless draw.

    Every cell becomes wall with one probability between 0 and 0.4, drawn for the board. Draws whose floor
    falls apart are useless.
    """
    height, width = generator.randint(5, 6), generator.randint(5, 6)
    density = 0.4 * generator.random()
    board = set(product(range(height), range(width)))
    inside = sorted(product(range(1, height - 1), range(1, width - 1)))
    floor = [cell for cell in inside if generator.random() >= density]
    if len(floor) < 3 or not _connected(floor):
        return None
    box, goal = generator.sample(floor, 2)
    player = generator.choice([cell for cell in floor if cell != box])
    walls = frozenset(board.difference(floor))
    return Level(height, width, walls, frozenset({goal}), frozenset({box}), player)


def _connected(floor: list[Cell]) -> bool:
    reached, frontier = {floor[0]}, [floor[0]]
    while frontier:
        row, column = frontier.pop()
        beside = {(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)}
        fresh = beside.intersection(floor) - reached
        reached |= fresh
        frontier += fresh
    return len(reached) == len(floor)


def shortest_solution(level: Level, longest: int) -> str | None:
    """The fewest moves that solve `level`, the first of them in the order U D L R; None if over `longest`."""
    game = Game(level)
    seen = {(level.player, level.boxes)}
    frontier = [(level.player, level.boxes, "")]
    for _ in range(longest):
        positions, frontier = frontier, []
        for player, boxes, moves in positions:
            for direction, letter in enumerate(MOVES):
                game.player, game.boxes = player, set(boxes)
                game.move(direction)
                if game.solved:
                    return moves + letter
                position = game.player, frozenset(game.boxes)
                if position not in seen:
                    seen.add(position)
                    frontier.append((*position, moves + letter))
    return None
