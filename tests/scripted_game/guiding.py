"""What guidance is tried on: a game that a policy learns in seconds, and a source that knows the way."""

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retro.packages import GamePackage, Ram
from retro.search.archive import Runs
from retro.search.guidance import Move
from scripted_game.small import DEAD, LEFT, Now, Rooms, onward, walked


class Cliff(Rooms):
    """LEFT ends the run, and the first room takes 24 steps to the right."""

    @staticmethod
    def advance(now: Now, mask: int) -> Now:
        if now.room in (0, 1) and mask & LEFT:
            return now._replace(room=DEAD)
        return onward(walked(now, mask), 24)


@dataclass(frozen=True)
class Insists:
    """A guide with one move."""

    share: float
    move: Move

    def propose(self, package: GamePackage, ram: Ram, generator: random.Random) -> Move | None:
        return self.move


class Knows:
    """A source that tells the way through Hopper's title screen, and later a move."""

    def __init__(self, spec: str, share: float, seed: int, folder: Path) -> None:
        self.share, self.rounds, self.closed = share, 0, False

    def begin(self, pool: Any, beginning: Any, pieces: Sequence[Runs]) -> Insists | None:
        self.pieces = list(pieces)
        return None

    def news(self) -> Insists | None:
        self.rounds += 1
        return Insists(self.share, (8, 1)) if self.rounds == 2 else None

    def exits(self) -> list[Runs]:
        return [((8, 1),)] if self.rounds == 0 else []

    def close(self) -> None:
        self.closed = True


def imported(world: Any, names: Sequence[str]) -> list[str]:
    """Which of these modules a worker has loaded."""
    return [name for name in names if name in sys.modules]
