"""Search modes that fail in one way each. ACCIDENT names a file: while it is there, the accident happens."""

import os
import random
import signal
from pathlib import Path

from retro.search.modes import Starts
from retro.search.walks import Walks
from retro.search.world import World


class Killed(Walks):
    """The first worker to come here is killed in the middle of its work."""

    def explore(self, world: World, starts: Starts, generator: random.Random) -> list[int]:
        flag = Path(os.environ["ACCIDENT"])
        if flag.exists():
            flag.unlink()
            world.go(starts[0])
            world.act(world.masks[0], 4)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().explore(world, starts, generator)


class Exits(Walks):
    """Every worker ends with status 7."""

    def explore(self, world: World, starts: Starts, generator: random.Random) -> list[int]:
        os._exit(7)


class Raises(Walks):
    """A mistake in the mode."""

    def explore(self, world: World, starts: Starts, generator: random.Random) -> list[int]:
        raise ValueError("this mode has a mistake")


class Idle(Walks):
    """Plays nothing."""

    def explore(self, world: World, starts: Starts, generator: random.Random) -> list[int]:
        return []


class HoldsBoth(Walks):
    """Presses RIGHT and A together, for long."""

    def explore(self, world: World, starts: Starts, generator: random.Random) -> list[int]:
        while world.spent < world.budget:
            for start in starts:
                world.go(start)
                world.act(5, 8)
        return []
