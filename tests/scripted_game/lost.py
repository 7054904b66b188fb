"""A package of a real game whose ROM is not there."""

from pathlib import Path

from retro.games.quarterstep import Quarterstep


class Lost(Quarterstep):
    @property
    def integration(self) -> Path:
        return Path(__file__).parent
