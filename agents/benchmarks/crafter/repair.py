"""FIXED: Crafter 1.8.3 made reproducible: the same seed and actions give the same game in any process.

The released package keeps the creatures of a region in a set of objects hashed by their address in memory.
Every ten steps it draws one of them, by its place in that set, to vanish, so that a game depends on where
the interpreter happened to put things. Here the creatures of a region stand in the order in which they came.
Nothing is drawn as a picture: at night the package takes the picture's noise from the world's own random
numbers, so that a game with pictures is another game.
"""

from collections import defaultdict
from typing import Any

import crafter
import numpy as np
from crafter import constants, engine

REGION = (12, 12)  # cells, as in the package
AREA = (64, 64)
PICTURE_GRID = (9, 9)  # cells of the picture; its two lower rows show the inventory


class InOrder(dict[Any, None]):
    """A set that lists its members in the order in which they were added."""

    def add(self, member: Any) -> None:
        """Add a member; one that is there keeps its place."""
        self[member] = None

    def remove(self, member: Any) -> None:
        """Take a member out; KeyError if it is not there."""
        del self[member]


class World(engine.World):  # type: ignore[misc]
    """The package's world with its regions in order."""

    def reset(self, seed: int | None = None) -> None:
        """Empty the world."""
        super().reset(seed)
        self._chunks: defaultdict[tuple[int, int, int, int], InOrder] = defaultdict(InOrder)


class Game(crafter.Env):  # type: ignore[misc]
    """One game at a time, without pictures: `begin`, then the package's `step`, whose picture is None.

    `begin(seed)` makes the world that `crafter.Env(seed=seed)` makes at its first reset.
    """

    def __init__(self) -> None:
        # The package's own __init__ makes its world itself and loads textures. This sets what its reset
        # and step use; the step limit is the environment's.
        self._area = AREA
        self._view = np.array(PICTURE_GRID)
        self._length = 0
        self._reward = True
        self._world = World(AREA, constants.materials, REGION)
        self._step: int | None = None
        self._player: Any = None
        self._last_health: int | None = None
        self._unlocked: set[str] | None = None

    def begin(self, seed: int) -> None:
        """Make a new world."""
        self._seed = seed
        self._episode = 0
        self.reset()

    @property
    def world(self) -> Any:
        """The package's world: materials, creatures, daylight."""
        return self._world

    @property
    def player(self) -> Any:
        """The package's player."""
        return self._player

    def _obs(self) -> None:
        """No picture."""

    def _sem_view(self) -> None:
        """No map of the whole world for `info`."""
