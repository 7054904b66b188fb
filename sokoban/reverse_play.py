"""How `sokoban.generator` makes a batch of levels: cut rooms, put goals, play in reverse.

Everything is a numpy operation over many boards, and every draw comes from the generator passed in.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sokoban.levels import Cell
from sokoban.reference import LETTERS, OFFSETS, Game, walk
from sokoban.table import INTERIOR, LevelTable, Words

BOXES = 4
ROOMS = 512  # a batch: its arrays fit the second-level cache
WALKERS = 8  # a room
PULLS = 60  # a walker
STAMPS = 42  # steps of the walk that cuts the room
TURN = 0.3  # chance that this walk takes a new direction before a step
SMALLEST_ROOM = 10  # cells; four boxes, four goals and a player need nine
RETREAT_SHIFT = 2  # a pull towards the box's own goal draws from a range 2**RETREAT_SHIFT times smaller

# What a step of the walk opens, as (row, column) from where the walk stands: bars, corners and a square.
PATTERNS: tuple[tuple[Cell, ...], ...] = (
    ((0, -1), (0, 0), (0, 1)),
    ((-1, 0), (0, 0), (1, 0)),
    ((0, -1), (0, 0), (1, 0)),
    ((0, 0), (0, 1), (1, 0)),
    ((0, -1), (0, 0), (1, -1), (1, 0)),
)

_CELLS = INTERIOR * INTERIOR
_ONE = np.uint64(1)
_ROW = np.uint64(INTERIOR)
_NOT_FIRST = np.uint64(0xFEFE_FEFE_FEFE_FEFE)
_NOT_LAST = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
_STEPS = np.array([INTERIOR * row + column for row, column in OFFSETS], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SolvedLevels:
    """N levels and, for each, the pushes that reverse play left behind.

    `pushes` (N, PULLS) uint8 holds push actions as `sokoban.rules` numbers them, direction * 64 + cell of the
    box, in the order of play; the first `lengths[i]` of row i count.
    """

    levels: LevelTable
    pushes: NDArray[np.uint8]
    lengths: NDArray[np.int64]

    def moves(self, index: int) -> str:
        """A solution of level `index` in LURD notation, walks included. It need not be short."""
        level = self.levels.level(index)
        game = Game(level)
        moves = ""
        for action in self.pushes[index, : self.lengths[index]].tolist():
            if game.solved:
                break
            direction, cell = divmod(action, _CELLS)
            row, column = cell // INTERIOR + 1, cell % INTERIOR + 1
            behind = (row - OFFSETS[direction][0], column - OFFSETS[direction][1])
            steps = walk(level, game.boxes, game.player, behind)
            assert steps is not None, "the player of reverse play stood there"
            for letter in steps + LETTERS[direction]:
                game.move(LETTERS.index(letter))
            moves += steps + LETTERS[direction].upper()
        return moves


def make_batch(random: np.random.Generator) -> SolvedLevels:
    """Up to ROOMS levels: rooms too small or without a good position are dropped."""
    rooms = _cut_rooms(random, ROOMS)
    rooms = rooms[np.bitwise_count(rooms) >= SMALLEST_ROOM]
    cells = _scatter(random, rooms, BOXES + 1)
    floor = np.repeat(rooms, WALKERS)
    boxes, history, lengths, scores = _play_in_reverse(random, floor, np.repeat(cells, WALKERS, axis=1))
    best = scores.reshape(len(rooms), WALKERS).argmax(axis=1) + np.arange(len(rooms)) * WALKERS
    best = best[scores[best] > 0]
    goals = _union(np.repeat(cells[:BOXES], WALKERS, axis=1)[:, best])
    floor, boxes, history, lengths = floor[best], boxes[best], history[:, best], lengths[best]

    # Reverse play ends where the player pulled last; from there it may walk anywhere but onto a goal.
    turn = np.arange(len(best))
    last = history[lengths - 1, turn].astype(np.int64)
    stands = last % _CELLS - _STEPS[last // _CELLS]
    places = _region(_bit(stands), floor & ~boxes) & ~goals
    kept = np.flatnonzero(places)
    player = _bit(_scatter(random, places[kept], 1)[0])
    levels = LevelTable(floor[kept], goals[kept], boxes[kept], player)
    order = np.maximum(lengths - 1 - np.arange(PULLS)[:, None], 0)  # pulls backwards are pushes
    return SolvedLevels(levels, history[order, turn].T[kept], lengths[kept])


def _cut_rooms(random: np.random.Generator, count: int) -> Words:
    """(count,) floors, each in one piece."""
    stamps = np.zeros((len(PATTERNS), _CELLS), dtype=np.uint64)
    for shape, stamp in zip(PATTERNS, stamps, strict=True):
        for cell in range(_CELLS):
            places = [(cell // INTERIOR + row, cell % INTERIOR + column) for row, column in shape]
            inside = [place for place in places if min(place) >= 0 and max(place) < INTERIOR]
            stamp[cell] = sum(1 << INTERIOR * row + column for row, column in inside)
    offsets = np.array(OFFSETS)
    place = random.integers(0, INTERIOR, (count, 2))
    direction = random.integers(0, 4, count)
    floor = np.zeros(count, dtype=np.uint64)
    for _ in range(STAMPS):
        direction = np.where(random.random(count) < TURN, random.integers(0, 4, count), direction)
        place = np.clip(place + offsets[direction], 0, INTERIOR - 1)
        pattern = random.integers(0, len(PATTERNS), count)
        floor |= stamps[pattern, place @ np.array([INTERIOR, 1])]
    return floor


def _play_in_reverse(
    random: np.random.Generator, floor: Words, cells: NDArray[np.int64]
) -> tuple[Words, NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Pull boxes from their goals `cells[:4]`, the player starting at `cells[4]`; each column is one walker.

    Returns the boxes of each walker's best position, all its pulls as the pushes that undo them (PULLS, N),
    how many of them lead to the best position, and its score (0 where no position was good).
    """
    walkers = np.arange(len(floor))
    origin, cell = cells[:BOXES], cells[:BOXES].copy()
    goals = _union(cell)
    boxes, player = goals.copy(), _bit(cells[BOXES])
    distance, swaps = np.zeros_like(walkers), np.zeros_like(walkers)
    previous = np.full_like(walkers, -1)
    best, best_boxes, best_length = np.zeros_like(walkers), boxes.copy(), np.zeros_like(walkers)
    history = np.zeros((PULLS, len(floor)), dtype=np.uint8)
    names = np.arange(BOXES * 4, dtype=np.uint16).reshape(BOXES, 4, 1)
    for pull in range(PULLS):
        free = floor & ~boxes
        reach = _region(player, free)
        # A box can be pulled in a direction if the player can stand beside it there and step back once.
        pullable = np.stack([_shift(reach & _shift(free, d ^ 1), d ^ 1) for d in range(4)])
        legal = (_bit(cell)[:, None] & pullable) != 0
        row, column, home_row, home_column = cell >> 3, cell & 7, origin >> 3, origin & 7
        homeward = np.stack(
            [row > home_row, row < home_row, column > home_column, column < home_column], axis=1
        ).view(np.uint8)
        # The largest key wins: random bits on top, below them whether the pull leads homeward, and its name.
        key = random.integers(0, 1 << 16, legal.shape, dtype=np.uint16) >> homeward * np.uint8(RETREAT_SHIFT)
        key = (key & np.uint16(0xFFC0) | np.uint16(0x20) | homeward << np.uint8(4) | names) * legal
        chosen = key.max(axis=(0, 1)).astype(np.int64)
        pulled = chosen > 0
        box, direction = chosen >> 2 & 3, chosen & 3
        start = cell[box, walkers]
        end = start + np.where(pulled, _STEPS[direction], 0)
        cell[box, walkers] = end
        boxes = boxes ^ _bit(start) ^ _bit(end)
        player = np.where(pulled, _bit(end + _STEPS[direction] & _CELLS - 1), player)
        distance += np.where(pulled, 1 - (chosen >> 4 & 1) * 2, 0)
        swaps += pulled & (box != previous) & (previous >= 0)
        previous = np.where(pulled, box, previous)
        history[pull] = (direction ^ 1) * _CELLS + end
        score = np.where((boxes & goals) == 0, swaps * distance, 0)
        better = score > best
        np.copyto(best, score, where=better)
        np.copyto(best_boxes, boxes, where=better)
        np.copyto(best_length, pull + 1, where=better)
    return best_boxes, history, best_length, best


def _scatter(random: np.random.Generator, words: Words, count: int) -> NDArray[np.int64]:
    """(count, N) different random cells of each word, which must have that many."""
    draws = random.random((len(words), _CELLS))
    draws[(words[:, None] >> np.arange(_CELLS, dtype=np.uint64)) & _ONE == 0] = 2.0
    chosen = np.empty((count, len(words)), dtype=np.int64)
    for cells in chosen:
        cells[:] = draws.argmin(axis=1)
        draws[np.arange(len(words)), cells] = 2.0
    return chosen


def _region(player: Words, free: Words) -> Words:
    """Every cell that the player can walk to through `free` cells, its own included."""
    reach = player
    while True:
        before = reach
        for _ in range(4):  # a few rings between two looks at whether anything grew
            sides = (reach & _NOT_FIRST) >> _ONE | (reach & _NOT_LAST) << _ONE
            reach = reach | ((reach >> _ROW | reach << _ROW | sides) & free)
        if np.array_equal(before, reach):
            return reach


def _shift(words: Words, direction: int) -> Words:
    """Move every bit one cell in `direction`; bits leave at the edge."""
    if direction == 0:
        return words >> _ROW
    if direction == 1:
        return words << _ROW
    return (words & _NOT_FIRST) >> _ONE if direction == 2 else (words & _NOT_LAST) << _ONE


def _bit(cells: NDArray[np.int64]) -> Words:
    return _ONE << cells.astype(np.uint64)


def _union(cells: NDArray[np.int64]) -> Words:
    words: Words = np.bitwise_or.reduce(_bit(cells), axis=0)
    return words
