"""Exhaustive breadth-first search of one level over the model: the fewest frames, and the proof of it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.errors import Problem
from retro.games.quarterstep import model
from retro.games.quarterstep.levels import BRICK, CLOSED, EXIT, SPARK, SPIKE, TILE, Screen

Keys = NDArray[Any]
"""Sorted distinct keys, each a state of play."""

_PIECE = 1 << 18  # states that are expanded at once
LONGEST = 600  # frames after which a level counts as impossible
_GROUNDED = 63  # what a key holds for vy = 0 on the ground; else it is vy + _LOWEST
_LOWEST = 32


class Solution(NamedTuple):
    """What the search of one level found."""

    frames: int
    """From the first frame of play to the one that touches the exit, both included."""
    inputs: list[int]
    """One fastest way."""
    states: int
    """Distinct states met, up to that frame."""
    ways: int
    """How many sequences of the six actions are as fast."""
    on_fastest: int
    """Distinct states on those ways."""


class Packing:
    """A state as one number. Leaves out what the rest of a level cannot depend on.

    That is the random number in a level without a lock, and in any level once the lock was touched: only
    the lock reads it. Bits, from the lowest: x 10, y as many as the open rows take, vx 5, vy with grounded
    6, then the rest: 1 bit for lag, or in a level with a lock 7 for the door or, at 64 and above, the random
    number while the door is closed.
    """

    def __init__(self, screen: Screen) -> None:
        open_rows = np.flatnonzero((screen.tiles < BRICK).any(axis=1))
        self.top = int(open_rows[0]) * TILE
        self.y_bits = int((open_rows[-1] + 1) * TILE - self.top - 1).bit_length()
        self.locked = screen.door is not None
        if self.locked and SPARK in screen.tiles:
            raise Problem(f"screen {screen.number} has both sparks and a lock, which a key cannot hold")
        self.bits = 10 + self.y_bits + 11 + (7 if self.locked else 1)
        self.type = np.uint32 if self.bits <= 32 else np.uint64

    def pack(self, state: model.State, lag: Keys) -> Keys:
        """The keys of states; `lag` is whether the next frame is lost to the sparks."""
        height = np.where(state.grounded, _GROUNDED, state.vy + _LOWEST)
        rest = np.where(state.door == CLOSED, CLOSED + state.rng, state.door) if self.locked else lag
        key: Keys = rest.astype(self.type)
        for value, bits in ((height, 6), (state.vx + 8, 5), (state.y - self.top, self.y_bits), (state.x, 10)):
            key = (key << bits) | value.astype(self.type)
        return key

    def unpack(self, keys: Keys) -> tuple[model.State, Keys]:
        """The states of keys and their lag; what was left out of a key is 1."""
        values = []
        for bits in (10, self.y_bits, 5, 6):
            values.append((keys & ((1 << bits) - 1)).astype(np.int16))
            keys = keys >> bits
        x, y, vx, height = values
        rest = keys.astype(np.int16)
        grounded = (height == _GROUNDED).astype(np.int16)
        one = np.ones_like(x)
        rng = np.where(rest > CLOSED, rest - CLOSED, one) if self.locked else one
        door = np.minimum(rest, CLOSED) if self.locked else one * 0
        vy = np.where(grounded, 0, height - _LOWEST)
        return model.State(x, y + self.top, vx - 8, vy, grounded, rng, door), rest * (not self.locked)


class Seen:
    """A set of keys: one bit for every key that could be."""

    def __init__(self, bits: int) -> None:
        self.words = np.zeros(1 << (bits - 3), np.uint8)  # the system gives memory to what is touched only

    def missing(self, keys: Keys) -> Keys:
        """Those of the keys that are not in the set."""
        found: Keys = keys[(self.words[keys >> 3] >> (keys & 7).astype(np.uint8)) & 1 == 0]
        return found

    def add(self, keys: Keys) -> None:
        """Put sorted distinct keys into the set."""
        if len(keys):
            places = keys >> 3
            first = np.flatnonzero(np.diff(places, prepend=places[0] + 1))
            bits = np.left_shift(1, (keys & 7).astype(np.uint8), dtype=np.uint8)
            self.words[places[first]] |= np.bitwise_or.reduceat(bits, first)


def expand(screen: Screen, packing: Packing, keys: Keys) -> list[tuple[Keys, Keys, Keys]]:
    """For each action: which keys live on (indices), the keys that follow, and which reach the exit."""
    state, lag = packing.unpack(keys)
    waiting = np.flatnonzero(lag)
    moving = np.flatnonzero(lag == 0)
    free = model.State(*(value[moving] for value in state))
    after_lag = keys[waiting] & ((1 << (packing.bits - 1)) - 1)
    found = []
    for action in model.ACTIONS:
        following, touched = model.step(screen, free, action)
        alive = (touched != EXIT) & (touched != SPIKE)
        following = model.State(*(value[alive] for value in following))
        next_keys = packing.pack(following, touched[alive] == SPARK)
        found.append(
            (
                np.concatenate([moving[alive], waiting]),
                np.concatenate([next_keys, after_lag]),
                moving[touched == EXIT],
            )
        )
    return found


def solve(screen: Screen, progress: Callable[[int], object] = lambda states: None) -> Solution:
    """Search a level from its start; `progress` is told how many states were met.

    Raises:
        Problem: the exit cannot be reached.
    """
    packing = Packing(screen)
    seen = Seen(packing.bits)
    frontiers = [packing.pack(model.start(screen), np.zeros(1, np.int16))]
    seen.add(frontiers[0])
    while True:
        candidates = []
        reached = False
        for piece in np.array_split(frontiers[-1], len(frontiers[-1]) // _PIECE + 1):
            for _, keys, goals in expand(screen, packing, piece):
                reached |= len(goals) > 0
                candidates.append(seen.missing(keys))
        if reached:
            break
        frontier = distinct(np.concatenate(candidates))
        if len(frontier) == 0 or len(frontiers) == LONGEST:
            raise Problem(f"the exit of screen {screen.number} cannot be reached in {LONGEST} frames")
        seen.add(frontier)
        frontiers.append(frontier)
        progress(sum(map(len, frontiers)))
    del seen
    return _trace(screen, packing, frontiers)


def distinct(keys: Keys) -> Keys:
    """The keys sorted, each once."""
    keys.sort()
    return keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys


def _trace(screen: Screen, packing: Packing, frontiers: list[Keys]) -> Solution:
    """Back from the exit through the frontiers, keeping every state from which it is reached in time."""
    layers: list[tuple[Keys, NDArray[Any]]] = []  # from the last: keys on fastest ways, and one action each
    ways: NDArray[Any] = np.zeros(0, object)
    for frontier in reversed(frontiers):
        counts = np.zeros(len(frontier), object)
        choice = np.full(len(frontier), -1, np.int16)
        offset = 0
        for piece in np.array_split(frontier, len(frontier) // _PIECE + 1):
            for action, (indices, keys, goals) in zip(
                model.ACTIONS, expand(screen, packing, piece), strict=True
            ):
                if layers:
                    later = layers[-1][0]
                    places = np.minimum(np.searchsorted(later, keys), len(later) - 1)
                    good = later[places] == keys
                    chosen = indices[good] + offset
                    counts[chosen] += ways[places[good]]
                else:
                    chosen = goals + offset
                    counts[chosen] += 1
                choice[chosen] = np.where(choice[chosen] < 0, action, choice[chosen])
            offset += len(piece)
        kept = np.flatnonzero(choice >= 0)
        layers.append((frontier[kept], choice[kept]))
        ways = counts[kept]
    inputs = []
    key = layers[-1][0][:1]
    for number in range(len(layers) - 1, -1, -1):
        keys, choice = layers[number]
        action = int(choice[np.searchsorted(keys, key)[0]])
        inputs.append(action)
        key = expand(screen, packing, key)[model.ACTIONS.index(action)][1]
    return Solution(
        frames=len(frontiers),
        inputs=inputs,
        states=sum(map(len, frontiers)),
        ways=int(ways[0]),
        on_fastest=sum(len(keys) for keys, _ in layers),
    )
