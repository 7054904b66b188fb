"""Boxoban as a Gymnasium environment and vector environment, with single moves as actions.

import gymnasium
import sokoban.environment

env = gymnasium.make("speedruns/Boxoban-v0", levels="practice")
envs = gymnasium.make_vec("speedruns/Boxoban-v0", num_envs=1024, levels="unfiltered/train")
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from sokoban.boxoban import read_split
from sokoban.generator import generate, practice_levels
from sokoban.levels import Level
from sokoban.reference import STEP_LIMIT, Game
from sokoban.render import ansi, picture
from sokoban.rules import Boards, Rewards, SokobanBatch
from sokoban.table import INTERIOR, SIDE, LevelTable

ENV_ID = "speedruns/Boxoban-v0"
PLANES = ("walls", "goals", "boxes", "player")
GENERATED_LEVELS, GENERATED_SEED = 10_000, 0
REWARDS = Rewards()  # the literature's

Observations = NDArray[np.uint8]


def load_levels(levels: str | LevelTable, files: int | None = None) -> LevelTable:
    """A table of levels from its name.

    `levels` is a table already, "practice" (the set in this repository), "generated" (10,000 levels of the
    generator, seed 0), or an official split such as "unfiltered/train", of which the first `files` files are
    read, or all that are pinned.

    Raises:
        ValueError: the name is unknown.
        LevelsUnavailable: the files of a split cannot be had.
    """
    if isinstance(levels, LevelTable):
        return levels
    return _named_levels(levels, files)


@cache
def _named_levels(name: str, files: int | None) -> LevelTable:
    if name == "practice":
        return practice_levels()
    if name == "generated":
        return generate(GENERATED_LEVELS, GENERATED_SEED)
    try:
        return read_split(name, files)
    except ValueError as error:
        raise ValueError(f"{error}; or give 'practice', 'generated' or a LevelTable") from None


class BoxobanEnv(gymnasium.Env[Observations, np.int64]):
    """One board, played by the plain rules of `sokoban.reference`.

    Actions, `Discrete(4)`: 0 up, 1 down, 2 left, 3 right. A step into a box pushes it; a step that is blocked
    changes nothing and still counts.

    Observations, `Box(0, 1, (4, 10, 10), uint8)`: one plane each for walls, goals, boxes and the player.

    Rewards: -0.1 a step, +1 for a box pushed onto a goal, -1 for one pushed off, +10 for solving the level.

    An episode terminates when the level is solved and is truncated after 120 steps. It starts on a level
    drawn at random with replacement; `reset(options={"level": 7})` starts on row 7 of the table instead.
    `info` has `level`, the row in play, and `solved`.

    Args:
        levels, files: see `load_levels`.
        render_mode: "ansi" for text with terminal colours, "rgb_array" for a picture.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 8}  # noqa: RUF012

    def __init__(
        self,
        levels: str | LevelTable = "unfiltered/train",
        *,
        files: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.table = load_levels(levels, files)
        self.render_mode = _checked_render_mode(render_mode)
        self.action_space = Discrete(4)
        self.observation_space = Box(0, 1, (len(PLANES), SIDE, SIDE), np.uint8)
        self.level_index = 0
        self.game = Game(self.table.level(0))

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Start an episode on `options["level"]`, or on a level drawn at random."""
        super().reset(seed=seed)
        if options and "level" in options:
            self.level_index = int(options["level"])
            if not 0 <= self.level_index < len(self.table):
                raise ValueError(f"level {self.level_index}: the table has {len(self.table)} levels")
        else:
            self.level_index = int(self.np_random.integers(len(self.table)))
        self.game = Game(self.table.level(self.level_index))
        return self._observation(), self._info()

    def step(self, action: np.int64) -> tuple[Observations, float, bool, bool, dict[str, Any]]:
        """Move once in direction `action`."""
        game = self.game
        before = len(game.boxes & game.level.goals)
        game.move(int(action))
        gained = len(game.boxes & game.level.goals) - before  # of one box at most
        reward = REWARDS.move + (REWARDS.box_on * (gained > 0)) + (REWARDS.box_off * (gained < 0))
        reward += REWARDS.solved * game.solved
        truncated = game.moves >= STEP_LIMIT and not game.solved
        return self._observation(), reward, game.solved, truncated, self._info()

    def render(self) -> Any:
        """The board as text or as a picture, by `render_mode`."""
        game = self.game
        level = replace(game.level, boxes=frozenset(game.boxes), player=game.player)
        return _draw(level, self.render_mode)

    def _observation(self) -> Observations:
        planes = np.zeros((len(PLANES), SIDE, SIDE), dtype=np.uint8)
        level, game = self.game.level, self.game
        for plane, cells in zip(planes, (level.walls, level.goals, game.boxes, {game.player}), strict=True):
            plane[tuple(np.array(list(cells)).T)] = 1
        return planes

    def _info(self) -> dict[str, Any]:
        return {"level": self.level_index, "solved": self.game.solved}


class BoxobanVectorEnv(VectorEnv[Observations, NDArray[np.int64], NDArray[Any]]):
    """`num_envs` boards at once on the bitboards of `sokoban.rules`; spaces and rewards of `BoxobanEnv`.

    Boards that end start again in the same step (`AutoresetMode.SAME_STEP`). `infos` has `level` and `solved`
    for every board; where any ended, `final_obs` and `final_info` hold what the episode ended with, under the
    mask `_final_obs`.

    The levels are shuffled at `reset` and each has its turn before any comes again. Rewards are float32.

    Args:
        num_envs: number of boards.
        levels, files: see `load_levels`.
        render_mode: as in `BoxobanEnv`; `render` returns one frame a board.
        device: the torch device that holds the boards. Observations and rewards are numpy arrays anyway.
    """

    metadata: dict[str, Any] = {**BoxobanEnv.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        levels: str | LevelTable = "unfiltered/train",
        *,
        files: int | None = None,
        render_mode: str | None = None,
        device: str = "cpu",
    ) -> None:
        self.table = load_levels(levels, files)
        self.num_envs, self.device = num_envs, device
        self.render_mode = _checked_render_mode(render_mode)
        self.single_action_space = Discrete(4)
        self.single_observation_space = Box(0, 1, (len(PLANES), SIDE, SIDE), np.uint8)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.order: NDArray[np.int64] = np.arange(len(self.table))
        self.batch = SokobanBatch(self.table, num_envs, generator=None, device=device)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Shuffle the levels and start every board on one of them. There are no options."""
        super().reset(seed=seed)
        if options:
            raise ValueError(f"{ENV_ID} as a vector environment has no reset options, got {sorted(options)}")
        self.order = self.np_random.permutation(len(self.table))
        shuffled = self.table.take(self.order)
        self.batch = SokobanBatch(shuffled, self.num_envs, generator=None, device=self.device)
        return observations_of(self.batch.boards), self._infos(self._rows(), self.batch.boards)

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Observations, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Move every board once; those that end start again on their next level."""
        if np.shape(actions) != (self.num_envs,):
            raise ValueError(f"actions of shape {np.shape(actions)}, one a board is ({self.num_envs},)")
        rows = self._rows()
        outcome = self.batch.move(torch.as_tensor(actions, dtype=torch.int64, device=self.device))
        solved, failed = outcome.solved.cpu().numpy(), outcome.failed.cpu().numpy()
        ended = solved | failed
        infos = self._infos(self._rows(), self.batch.boards)
        if ended.any():
            final = np.full(self.num_envs, None, dtype=object)
            which = ended.nonzero()[0]
            for index, observation in zip(which, observations_of(outcome.after, which), strict=True):
                final[index] = observation
            infos |= {"final_obs": final, "_final_obs": ended}
            infos |= {"final_info": self._infos(rows, outcome.after, ended), "_final_info": ended}
        return observations_of(self.batch.boards), outcome.reward.cpu().numpy(), solved, failed, infos

    def render(self) -> tuple[Any, ...]:
        """The boards as text or as pictures, by `render_mode`."""
        floor, goals, boxes, player = (plane.cpu().numpy().view(np.uint64) for plane in self.batch.boards)
        table = LevelTable(floor, goals, boxes, player)
        return tuple(_draw(table.level(index), self.render_mode) for index in range(self.num_envs))

    def _rows(self) -> NDArray[np.int64]:
        """The row of the level table that each board plays."""
        rows: NDArray[np.int64] = self.order[self.batch.level_index.cpu().numpy()]
        return rows

    def _infos(
        self, rows: NDArray[np.int64], boards: Boards, where: NDArray[np.bool_] | None = None
    ) -> dict[str, Any]:
        """The infos of the boards `where` (all of them by default) in Gymnasium's form: values and masks."""
        mask = np.ones(self.num_envs, np.bool_) if where is None else where
        solved = (boards.boxes == boards.goals).cpu().numpy()
        return {"level": rows * mask, "_level": mask, "solved": solved & mask, "_solved": mask}


def observations_of(boards: Boards, rows: NDArray[np.int64] | slice = slice(None)) -> Observations:
    """The planes of the boards at `rows`, (B, 4, 10, 10) uint8: walls, goals, boxes, player."""
    floor, goals, boxes, player = boards
    words = torch.stack([~floor, goals, boxes, player], dim=1).cpu().numpy()[rows]
    bits = np.unpackbits(words.astype("<i8").view(np.uint8), bitorder="little")
    planes = np.zeros((len(words), len(PLANES), SIDE, SIDE), dtype=np.uint8)
    planes[:, 0] = 1  # the ring is wall
    planes[:, :, 1:-1, 1:-1] = bits.reshape(len(words), len(PLANES), INTERIOR, INTERIOR)
    return planes


def _draw(level: Level, render_mode: str | None) -> Any:
    """The board as coloured text or as an RGB array."""
    if render_mode == "ansi":
        return ansi(level)
    if render_mode == "rgb_array":
        return np.asarray(picture(level))
    gymnasium.logger.warn("render() shows nothing: the environment was made without a render_mode")
    return None


def _checked_render_mode(render_mode: str | None) -> str | None:
    if render_mode not in (None, *BoxobanEnv.metadata["render_modes"]):
        raise ValueError(f"render mode {render_mode!r}: there are {BoxobanEnv.metadata['render_modes']}")
    return render_mode


gymnasium.register(
    ENV_ID,
    entry_point="sokoban.environment:BoxobanEnv",
    vector_entry_point="sokoban.environment:BoxobanVectorEnv",
)
