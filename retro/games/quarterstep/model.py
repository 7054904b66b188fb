"""The rules of Quarterstep, exactly: a step of play for many states at once, and the game by frames."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retro.games.quarterstep.levels import (
    BOX,
    BRICK,
    CLOSED,
    DOOR,
    EXIT,
    HANGING,
    LOCK,
    PORTAL,
    SPARK,
    SPIKE,
    TILE,
    WIDTH,
    Screen,
    screens,
)

TOP_SPEED, FALL_LIMIT, JUMP, CUT = 8, 16, 17, 6  # quarter pixels a step
BOOT, DRAW, TITLE, PLAY, DYING, CLEAR, ENDING = range(7)
"""What the variable mode holds."""
BOOT_FRAMES, DRAW_FRAMES, DYING_FRAMES, CLEAR_FRAMES, LIVES = 3, 18, 30, 20, 3
START, LEFT, RIGHT, A = 1 << 3, 1 << 6, 1 << 7, 1 << 8
"""Bits of a frame's buttons, in stable-retro's order; the other buttons do nothing."""
ACTIONS = (0, LEFT, RIGHT, A, LEFT | A, RIGHT | A)
"""All that matters in play. Left and right together are as neither, and START is not looked at."""
RANDOM_AFTER = np.array([(r << 1 & 15) | (r >> 3 ^ r >> 2) & 1 for r in range(16)], np.int16)

Array = NDArray[Any]


class State(NamedTuple):
    """What play depends on: integer arrays of one shape. Places and speeds are in quarter pixels."""

    x: Array
    y: Array
    vx: Array
    vy: Array
    grounded: Array
    rng: Array
    door: Array


def start(screen: Screen) -> State:
    """The state at a level's start, as arrays of length 1."""
    values = (*screen.start, 0, 0, 1, 1, CLOSED if screen.door else 0)
    return State(*(np.array([value], np.int16) for value in values))


def step(screen: Screen, state: State, buttons: int) -> tuple[State, Array]:
    """The states one step later under the same buttons, and the tile that each touches; spikes are SPIKE."""
    x, y, vx, vy, grounded, rng, door = state
    tiles = screen.tiles.ravel()
    door = door - ((door > 0) & (door < CLOSED))
    rng = RANDOM_AFTER[rng]
    if buttons & A:
        rng = np.where(grounded, RANDOM_AFTER[rng], rng)

    sides = buttons & (LEFT | RIGHT)
    if sides == RIGHT:
        vx = np.minimum(vx + 1, TOP_SPEED)
    elif sides == LEFT:
        vx = np.maximum(vx - 1, -TOP_SPEED)
    else:
        vx = vx - np.sign(vx)
    vy = np.where(grounded, -JUMP - abs(vx) // 2, vy) if buttons & A else np.maximum(vy, -CUT)
    vy = np.minimum(vy + 1, FALL_LIMIT)

    def solid(left: Array, top: Array) -> Array:
        found = tiles[(top >> 6) * WIDTH + (left >> 6)]
        blocked: Array = (found >= BRICK) & ((found != DOOR) | (door > 0))
        return blocked

    # Along x, then along y: where the leading edge would enter something solid, stop beside it.
    x = x + vx
    side = np.where(vx > 0, x + BOX - 1, x)
    hit = (vx != 0) & (solid(side, y) | solid(side, y + BOX - 1))
    x = np.where(hit, (side & -TILE) + np.where(vx > 0, -BOX, TILE), x)
    vx = np.where(hit, 0, vx)
    y = y + vy
    side = np.where(vy >= 0, y + BOX - 1, y)
    hit = solid(x, side) | solid(x + BOX - 1, side)
    y = np.where(hit, (side & -TILE) + np.where(vy >= 0, -BOX, TILE), y)
    grounded = (hit & (vy >= 0)).astype(np.int16)
    vy = np.where(hit, 0, vy)

    touched = tiles[(y + BOX // 2 >> 6) * WIDTH + (x + BOX // 2 >> 6)]
    door = np.where((touched == LOCK) & (door == CLOSED), 4 * rng - 3, door)
    if HANGING in tiles:
        touched = np.where(touched == HANGING, SPIKE, touched)
    if PORTAL in tiles:
        through = touched == PORTAL
        x, y = np.where(through, screen.beyond[0], x), np.where(through, screen.beyond[1], y)
        vy, grounded = np.where(through, 0, vy), np.where(through, 0, grounded)
    return State(x, y, vx, vy, grounded, rng, door), touched


class Values(NamedTuple):
    """The variables in work RAM, as data.json names them."""

    mode: int = BOOT
    level: int = 0
    x: int = 0
    y: int = 0
    vx: int = 0
    vy: int = 0
    grounded: int = 0
    rng: int = 0
    door: int = 0
    lag: int = 0
    deaths: int = 0
    timer: int = 0


class Game:
    """The whole game, frame by frame from power-on; `values` is what work RAM holds after the last frame."""

    def __init__(self) -> None:
        self.frame = 0
        self.values = Values()

    def step(self, buttons: int) -> Values:
        """Run one frame."""
        self.frame += 1
        now = self.values
        if now.mode == BOOT:
            now = now._replace(mode=DRAW if self.frame == BOOT_FRAMES else BOOT)
        elif now.mode == DRAW:
            now = _draw(now)
        elif now.mode == TITLE:
            if buttons & START:
                now = now._replace(mode=DRAW, level=1)
        elif now.mode == PLAY:
            now = now._replace(lag=0) if now.lag else _play(now, buttons)
        elif now.mode == DYING:
            now = now._replace(timer=now.timer + 1)
            if now.timer == DYING_FRAMES:
                over = now.deaths == LIVES
                level, deaths = (0, 0) if over else (now.level, now.deaths)
                now = now._replace(mode=DRAW, timer=0, level=level, deaths=deaths)
        elif now.mode == CLEAR:
            now = now._replace(timer=now.timer + 1)
            if now.timer == CLEAR_FRAMES:
                now = now._replace(mode=DRAW, timer=0, level=now.level + 1)
        self.values = now
        return now


def _draw(now: Values) -> Values:
    if now.timer == 0:
        now = now._replace(**_first(start(screens()[now.level])))
    if now.timer < DRAW_FRAMES - 1:
        return now._replace(timer=now.timer + 1)
    mode = {0: TITLE, len(screens()) - 1: ENDING}.get(now.level, PLAY)
    return now._replace(timer=0, mode=mode)


def _play(now: Values, buttons: int) -> Values:
    state = State(*(np.array([getattr(now, name)], np.int16) for name in State._fields))
    state, touched = step(screens()[now.level], state, buttons)
    now = now._replace(**_first(state))
    if touched[0] == EXIT:
        return now._replace(mode=CLEAR)
    if touched[0] == SPIKE:
        return now._replace(mode=DYING, deaths=now.deaths + 1)
    return now._replace(lag=int(touched[0] == SPARK))


def _first(state: State) -> dict[str, int]:
    return {name: int(value[0]) for name, value in state._asdict().items()}
