"""FIXED: what every search of the retro track has to play, and within which bounds."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from harness.files import read_json, sha256_file
from harness.track import ROOT

SEARCHES = 8
HASH_EVERY = 60  # frames
MOST_FRAMES = 36_000  # of a movie: ten minutes, so that a replay has an end
CHECKPOINT, EVIDENCE = "movies.json", "evidence.jsonl.xz"


@dataclass(frozen=True)
class Benchmark:
    """A game that every search plays."""

    name: str
    package: str
    """As `retro.packages.load_package` takes it."""
    rom: str
    """Path from the root of the repository."""
    optimum: str
    """Path from the root of a JSON file with the fastest movie: `frames`, `splits` by state, and `inputs`."""
    proven: bool
    """Whether there can be no fewer; otherwise they are the fewest known."""

    @cached_property
    def best(self) -> int:
        """The fewest frames from power-on to the ending."""
        return int(self._fastest["frames"])

    @cached_property
    def best_inputs(self) -> str:
        """The inputs that take so many, as text."""
        return str(self._fastest["inputs"])

    @cached_property
    def best_splits(self) -> dict[str, int]:
        """State -> frame at which they enter it."""
        return dict(self._fastest["splits"])

    @cached_property
    def _fastest(self) -> dict[str, Any]:
        found: dict[str, Any] = read_json(ROOT / self.optimum)
        return found

    @cached_property
    def rom_sha256(self) -> str:
        """Hash of the ROM in this checkout, which is among the fixed files."""
        return sha256_file(ROOT / self.rom)


GAMES = (
    Benchmark(
        name="Quarterstep-Nes-v0",
        package="quarterstep",
        rom="retro/games/quarterstep/Quarterstep-Nes-v0/rom.nes",
        optimum="retro/games/quarterstep/optimum.json",
        proven=True,
    ),
)


def benchmark(name: str) -> Benchmark:
    """The game of this name, one of GAMES."""
    return next(game for game in GAMES if game.name == name)
