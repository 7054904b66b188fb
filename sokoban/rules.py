"""The rules of Sokoban for thousands of boards at once, as bitboards in plain torch operations.

The outer ring of a Boxoban level is wall, so its 8x8 interior fits one 64-bit word a plane, bit
8 * row + column. A batch is four int64 tensors (floor, goals, boxes, player), and a rule is a few shifts and
masks. Nothing here branches on data except the flood fill's early exit, so the same code runs on a CPU and on
a GPU, eager or compiled. `sokoban.reference` says the same rules in plain words.

Directions are 0 up, 1 down, 2 left, 3 right. A primitive action is a direction. A push action is
`direction * 64 + cell`: walk to the far side of the box at `cell` by a shortest path and push it once; the
walking moves count.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sokoban.table import LevelTable

STEP_LIMIT = 120
PUSH_ACTIONS = 4 * 64
DISTANCE_BITS = 6  # no shortest walk on an 8x8 board is longer than 63 moves


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


_NOT_TOP = _signed(0x00FF_FFFF_FFFF_FFFF)  # what can be left after a shift down in value by 8 (up a row)
_NOT_FIRST_COLUMN = _signed(0xFEFE_FEFE_FEFE_FEFE)
_NOT_LAST_COLUMN = _signed(0x7F7F_7F7F_7F7F_7F7F)
# A step is ((word << left) >> right) & mask; the masks also undo the sign extension of >>.
_LEFT = (0, 8, 0, 1)
_RIGHT = (8, 0, 1, 0)
_MASK = (_NOT_TOP, -1, _NOT_LAST_COLUMN, _NOT_FIRST_COLUMN)
OPPOSITE = (1, 0, 3, 2)


def shift(words: Tensor, direction: int) -> Tensor:
    """Move every set bit of `words` (any shape, int64) one cell in `direction`; bits leave at the edge."""
    if _LEFT[direction]:
        return (words << _LEFT[direction]) & _MASK[direction]
    return (words >> _RIGHT[direction]) & _MASK[direction]


Steps = tuple[Tensor, Tensor, Tensor]  # what to shift left by, then right by, and the mask, each (B,)


def _shift_each(words: Tensor, steps: Steps) -> Tensor:
    """`shift` for (B,) words that each move in a direction of their own."""
    left, right, mask = steps
    return ((words << left) >> right) & mask


def unpack(words: Tensor) -> Tensor:
    """(...,) int64 words to (..., 64) booleans, one a cell."""
    return (words.unsqueeze(-1) >> torch.arange(64, device=words.device)) & 1 != 0


class Boards(NamedTuple):
    """B boards: four int64 tensors of shape (B,). `player` has one bit set."""

    floor: Tensor
    goals: Tensor
    boxes: Tensor
    player: Tensor


class Walks(NamedTuple):
    """Where the players can walk without a push: `reach` (B,) int64, and its distances in binary.

    Bit b of the distance of a cell is the cell's bit in `distance[b]` (B,) int64.
    """

    reach: Tensor
    distance: tuple[Tensor, ...]

    def moves_to(self, cells: Tensor) -> Tensor:
        """The length (B,) int64 of the shortest walk to each board's one set bit of `cells` (B,)."""
        moves = torch.zeros_like(cells)
        for bit, plane in enumerate(self.distance):
            moves += ((plane & cells) != 0).long() << bit
        return moves


class Rewards(NamedTuple):
    """Of a primitive move, a box pushed onto a goal and off one, and a level solved; they add up.

    The defaults are those of Guez et al. 2019, "An investigation of model-free planning".
    """

    move: float = -0.1
    box_on: float = 1.0
    box_off: float = -1.0
    solved: float = 10.0


class Outcome(NamedTuple):
    """What one action did to each board: `reward` (B,) float32, `solved`, `failed` (B,) bool.

    A board that failed ran out of moves or had no legal push left; either way its episode is over. `moves`
    (B,) int64 is how many primitive moves the action took, and `after` the boards as it left them, before
    those that ended were started again.
    """

    reward: Tensor
    solved: Tensor
    failed: Tensor
    moves: Tensor
    after: Boards

    @property
    def done(self) -> Tensor:
        """Whether the episode ended, (B,) bool."""
        return self.solved | self.failed


def find_walks(floor: Tensor, boxes: Tensor, player: Tensor) -> Walks:
    """Flood fill from the player, one ring of cells an iteration."""
    free = floor & ~boxes
    ring, unseen = player, free & ~player
    distance = [torch.zeros_like(player) for _ in range(DISTANCE_BITS)]
    exit_early = floor.device.type == "cpu" and not torch.compiler.is_compiling()
    for moves in range(1, 1 << DISTANCE_BITS):
        ring = (shift(ring, 0) | shift(ring, 1) | shift(ring, 2) | shift(ring, 3)) & unseen
        if exit_early and not ring.any():
            break
        unseen = unseen & ~ring
        for bit in range(DISTANCE_BITS):
            if moves >> bit & 1:
                distance[bit] = distance[bit] | ring
    return Walks((free | player) & ~unseen, tuple(distance))


def legal_pushes(floor: Tensor, boxes: Tensor, reach: Tensor) -> Tensor:
    """(B, 4) words: in plane `direction`, the boxes that can be pushed that way from within `reach` (B,)."""
    free = floor & ~boxes
    planes = [boxes & shift(reach, d) & shift(free, OPPOSITE[d]) for d in range(4)]
    return torch.stack(planes, dim=1)


def transform(words: Tensor, symmetry: int) -> Tensor:
    """One of the square's 8 symmetries: bit 0 flips the rows, bit 1 the columns, bit 2 then transposes."""
    if symmetry & 1:
        words = _swap(words, 8, 0x00FF_00FF_00FF_00FF)
        words = _swap(words, 16, 0x0000_FFFF_0000_FFFF)
        words = _swap(words, 32, 0x0000_0000_FFFF_FFFF)
    if symmetry & 2:
        words = _swap(words, 1, 0x5555_5555_5555_5555)
        words = _swap(words, 2, 0x3333_3333_3333_3333)
        words = _swap(words, 4, 0x0F0F_0F0F_0F0F_0F0F)
    if symmetry & 4:  # swap off-diagonal 1x1, 2x2, then 4x4 blocks
        for distance, mask in (
            (7, 0x00AA_00AA_00AA_00AA),
            (14, 0x0000_CCCC_0000_CCCC),
            (28, 0x0000_0000_F0F0_F0F0),
        ):
            moved = (words ^ (words >> distance)) & mask
            words = words ^ moved ^ (moved << distance)
    return words


def _swap(words: Tensor, distance: int, mask: int) -> Tensor:
    """Exchange the bits under `mask` with those `distance` places higher."""
    return ((words >> distance) & mask) | ((words & mask) << distance)


class SokobanBatch:
    """B boards in play on one device, started again on the next level as soon as they end.

    The levels (and with `symmetries` their eight images) are shuffled once by `generator`; board b plays
    entries b, b + B, b + 2B, ... of that order and starts over at its end, so that no level is drawn twice
    before the others had their turn. With `generator=None` boards start on the levels in order.

    Attributes:
        boards: the current `Boards`.
        moves: (B,) int64, primitive moves made in the episode.
        level_index: (B,) int64, the row of the (shuffled) level table in play.
    """

    def __init__(
        self,
        levels: LevelTable,
        batch: int,
        *,
        generator: torch.Generator | None,
        device: torch.device | str = "cpu",
        symmetries: bool = False,
        rewards: Rewards = Rewards(),  # noqa: B008  (immutable)
        step_limit: int = STEP_LIMIT,
    ) -> None:
        if batch < 1 or len(levels) < 1:
            raise ValueError(f"a batch needs boards and levels, got {batch} boards and {len(levels)} levels")
        planes = (levels.floor, levels.goals, levels.boxes, levels.player)
        table = torch.from_numpy(np.stack([plane.view(np.int64) for plane in planes], axis=1))
        if symmetries:
            table = torch.cat([transform(table, symmetry) for symmetry in range(8)])
        if generator is not None:
            table = table[torch.randperm(len(table), generator=generator)]
        self.table = table.to(device)  # (levels, 4)
        self.batch, self.rewards, self.step_limit = batch, rewards, step_limit
        self.level_index = torch.arange(batch, device=device) % len(table)
        self.moves = torch.zeros(batch, dtype=torch.int64, device=device)
        self.boards = Boards(*self.table[self.level_index].unbind(1))
        self._left = torch.tensor(_LEFT, device=device)
        self._right = torch.tensor(_RIGHT, device=device)
        self._mask = torch.tensor(_MASK, device=device)
        self._opposite = torch.tensor(OPPOSITE, device=device)

    def move(self, directions: Tensor) -> Outcome:
        """Play one primitive action (B,) int64 on every board; boards that end are started again."""
        floor, goals, boxes, player = self.boards
        steps = self._steps(directions)
        ahead = _shift_each(player, steps)
        free = floor & ~boxes
        box = ahead & boxes
        target = _shift_each(box, steps) & free  # empty where no box is pushed
        moved = torch.where(target != 0, box | target, 0)
        entered = (ahead & free) | target
        self.boards = Boards(floor, goals, boxes ^ moved, torch.where(entered != 0, ahead, player))
        self.moves = self.moves + 1
        return self._finish(box & moved, target, torch.ones_like(directions), self.moves >= self.step_limit)

    def push(self, actions: Tensor, walks: Walks) -> Outcome:
        """Play one push action (B,) int64 on every board; boards that end are started again.

        `walks` is `self.walks()` of the boards as they stand. A push that is not legal changes nothing and
        costs one move; one whose last move lies beyond the step limit is not made and ends the episode, and
        so does any action on a board without a legal push.
        """
        floor, goals, boxes, player = self.boards
        directions, cells = actions >> 6, actions & 63
        box = (torch.ones_like(cells) << cells) & boxes
        beyond = _shift_each(box, self._steps(directions)) & floor & ~boxes
        behind = _shift_each(box, self._steps(self._opposite[directions])) & walks.reach
        legal = (beyond != 0) & (behind != 0)
        spent = torch.where(legal, walks.moves_to(behind) + 1, 1)
        moves = self.moves + spent
        made = legal & (moves <= self.step_limit)
        moved = torch.where(made, box | beyond, 0)
        stuck = (self.legal_pushes(walks) == 0).all(dim=1)
        self.boards = Boards(floor, goals, boxes ^ moved, torch.where(made, box, player))
        self.moves = moves
        return self._finish(box & moved, beyond & moved, spent, stuck | (moves >= self.step_limit))

    def walks(self) -> Walks:
        """Where every player can walk."""
        return find_walks(self.boards.floor, self.boards.boxes, self.boards.player)

    def legal_pushes(self, walks: Walks) -> Tensor:
        """(B, 4) words of the pushes that are legal, see `legal_pushes`."""
        return legal_pushes(self.boards.floor, self.boards.boxes, walks.reach)

    def restart(self, which: Tensor) -> None:
        """Start the boards of `which` (B,) bool on their next level."""
        following = (self.level_index + self.batch) % len(self.table)
        self.level_index = torch.where(which, following, self.level_index)
        fresh = self.table.index_select(0, self.level_index).unbind(1)
        self.boards = Boards(
            *[torch.where(which, new, old) for new, old in zip(fresh, self.boards, strict=True)]
        )
        self.moves = torch.where(which, 0, self.moves)

    def _steps(self, directions: Tensor) -> Steps:
        """The shifts and masks of each board's own direction (B,)."""
        left, right, mask = (
            constants.index_select(0, directions) for constants in (self._left, self._right, self._mask)
        )
        return left, right, mask

    def _finish(self, box_from: Tensor, box_to: Tensor, spent: Tensor, over: Tensor) -> Outcome:
        _, goals, boxes, _ = self.boards
        solved = boxes == goals
        failed = over & ~solved
        reward = (
            self.rewards.move * spent
            + self.rewards.box_on * ((box_to & goals) != 0)
            + self.rewards.box_off * ((box_from & goals) != 0)
            + self.rewards.solved * solved
        ).float()
        after = self.boards
        self.restart(solved | failed)
        return Outcome(reward, solved, failed, spent, after)
