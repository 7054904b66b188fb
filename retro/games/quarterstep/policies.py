"""Players of a level that do not search it, on the model: what the proven optimum is compared with."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retro.games.quarterstep import model
from retro.games.quarterstep.levels import EXIT, SPARK, SPIKE, TILE, Screen

LONGEST = 600
"""Frames after which a player gives up."""
_HOLD, _AHEAD = 8, 3  # frames and holds that a planning player looks ahead
_WALKERS = 10_000


class Crowd:
    """Many players in one level, each with actions of its own, by frames."""

    def __init__(self, screen: Screen, state: model.State, lag: NDArray[Any]) -> None:
        self.screen, self.state, self.lag = screen, state, lag
        self.ended = np.zeros(len(lag), np.int16)
        """EXIT or SPIKE for who has touched it, else 0."""

    def step(self, actions: NDArray[Any]) -> None:
        """Run one frame."""
        moving = (self.ended == 0) & (self.lag == 0)
        self.lag = np.zeros_like(self.lag)
        values = [value.copy() for value in self.state]
        for action in model.ACTIONS:
            chosen = np.flatnonzero(moving & (actions == action))
            following, touched = model.step(
                self.screen, model.State(*(value[chosen] for value in self.state)), action
            )
            for value, new in zip(values, following, strict=True):
                value[chosen] = new
            self.lag[chosen] = touched == SPARK
            self.ended[chosen] = np.where((touched == EXIT) | (touched == SPIKE), touched, 0)
        self.state = model.State(*values)


def policies(screen: Screen) -> dict[str, int | None]:
    """Frames that each player takes to the exit, None where it dies or gives up."""
    right, both = model.RIGHT, model.RIGHT | model.A
    return {
        "right": _play(screen, lambda crowd, frame: right),
        "right-and-jump": _play(screen, lambda crowd, frame: both),
        "look-ahead": _play(screen, _LookAhead()),
        "random": _wander(screen),
    }


def _begin(screen: Screen) -> Crowd:
    return Crowd(screen, model.start(screen), np.zeros(1, np.int16))


def _play(screen: Screen, choose: Callable[[Crowd, int], int]) -> int | None:
    crowd = _begin(screen)
    for frame in range(LONGEST):
        crowd.step(np.array([choose(crowd, frame)]))
        if crowd.ended[0]:
            return frame + 1 if crowd.ended[0] == EXIT else None
    return None


class _LookAhead:
    """Every 8 frames, tries each three actions for 8 frames each, and takes the first of those that lead
    nearest to the exit in a straight line."""

    def __init__(self) -> None:
        self._plans = np.array(list(product(model.ACTIONS, repeat=_AHEAD)))
        self._action = 0

    def __call__(self, crowd: Crowd, frame: int) -> int:
        if frame % _HOLD == 0:
            many = len(self._plans)
            state = model.State(*(value.repeat(many) for value in crowd.state))
            ahead = Crowd(crowd.screen, state, crowd.lag.repeat(many))
            cost = np.full(many, np.inf)
            for later in range(_HOLD * _AHEAD):
                ahead.step(self._plans[:, later // _HOLD])
                arrived = (ahead.ended == EXIT) & np.isinf(cost)
                cost[arrived] = later - LONGEST
            far = np.where(ahead.ended == SPIKE, np.inf, _distance(ahead))
            self._action = int(self._plans[np.argmin(np.minimum(cost, far)), 0])
        return self._action


def _distance(crowd: Crowd) -> NDArray[Any]:
    row, column = np.argwhere(crowd.screen.tiles == EXIT)[0]
    x, y = column * TILE + TILE // 4, row * TILE + TILE // 4
    return np.hypot(crowd.state.x - float(x), crowd.state.y - float(y))


def _wander(screen: Screen, seed: int = 0) -> int | None:
    """The first of 10,000 to arrive, who each change to a random action every 8 frames."""
    random = np.random.default_rng(seed)
    one = _begin(screen)
    crowd = Crowd(
        screen, model.State(*(value.repeat(_WALKERS) for value in one.state)), one.lag.repeat(_WALKERS)
    )
    actions: Sequence[int] | NDArray[Any] = ()
    for frame in range(LONGEST):
        if frame % _HOLD == 0:
            actions = random.choice(model.ACTIONS, _WALKERS)
        crowd.step(np.asarray(actions))
        if (crowd.ended == EXIT).any():
            return frame + 1
    return None
