"""Practice: a level on its own, from the frame before the first change of levels into it that a run made.

What the last frame before a level holds is part of what is practised. A practised way is tried in the run
from the run's own arrival, which may differ: a fresh replay decides. Where it fails there it is a hint,
played first in the searches of the level within the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.files import STRICT
from retro.inputs import format_inputs, parse_inputs
from retro.packages import GamePackage
from retro.packing import pack
from retro.search.archive import Runs
from retro.search.guidance import Guidance, Guide
from retro.search.pool import Pool
from retro.search.route import Piece, runs_of
from retro.search.segment import Solution
from retro.search.world import Beginning, World


@dataclass(frozen=True)
class Practice:
    """A level that is practised."""

    __pydantic_config__ = STRICT
    state: str
    inputs: str
    """From power-on to the first frame of the level, as text."""
    way: str = ""
    """The fastest way out of it, from the frame before that; "" = none is known."""
    entered: str = ""
    """The state that it leads to."""


def before(world: World, runs: Runs) -> Beginning:
    """The frame before the last of some inputs from power-on, as the start of what holds after it; for
    `Pool.ask`. Its cell and its reward are those of the frame after."""
    emulator = world.emulator
    emulator.power_on()
    *most, (mask, frames) = runs
    for buttons, count in (*most, (mask, frames - 1)):
        emulator.step(buttons, count)
    state, ram_hash = emulator.save(), emulator.ram_hash()
    emulator.step(mask)
    after = world.beginning(world.package.state_of(emulator.values()))
    return replace(after, state=pack(state), ram_hash=ram_hash)


def open_practice(
    pool: Pool, package: GamePackage, practice: Practice
) -> tuple[Beginning, Solution | None, list[int]]:
    """Where it starts, the way that is known, and the inputs from power-on to there."""
    inputs = parse_inputs(practice.inputs, package.console_buttons)
    beginning: Beginning = pool.ask(f"{__name__}:before", runs_of(inputs))
    if not practice.way:
        return beginning, None, inputs[:-1]
    way = parse_inputs(practice.way, package.console_buttons)
    into, _ = pool.arrive(runs_of(inputs[:-1] + way))
    return beginning, Solution(len(way), runs_of(way), into), inputs[:-1]


def brought_in(
    pool: Pool, package: GamePackage, pieces: list[Piece], practice: Practice
) -> list[Piece] | None:
    """A run's pieces up to a level, and the practised way after them; None where it leads elsewhere there.

    The way begins a frame before the level does, so the piece before may end with other buttons.
    """
    buttons = package.console_buttons
    way, old = parse_inputs(practice.way, buttons), parse_inputs(pieces[-1].inputs, buttons)
    before = [mask for piece in pieces[:-1] for mask in parse_inputs(piece.inputs, buttons)]
    changed = [*old[:-1], way[0]]
    arrival, waited = pool.arrive(runs_of(before + changed))
    exit, waiting = pool.arrive(runs_of(before + changed + way[1:]))
    names = [package.states[one.segment].name for one in (arrival, exit)]
    if waited or waiting or names != [practice.state, practice.entered]:
        return None
    last = replace(pieces[-1], inputs=format_inputs(changed, buttons), ram_hash=arrival.ram_hash)
    counts = (len(way) - 1, 0, 0, 0, 0, 0)
    text = format_inputs(way[1:], buttons)
    new = Piece(practice.state, practice.entered, text, len(way) - 1, exit.ram_hash, "practised", *counts)
    return [*pieces[:-1], last, new]


class Hinted(Guidance):
    """What guides a search, and ways out that are known from elsewhere, which are played first."""

    def __init__(self, inner: Guidance | None, ways: Sequence[Runs]) -> None:
        super().__init__({})
        self._inner, self._ways = inner, list(ways)

    def begin(self, pool: Pool, beginning: Beginning, pieces: Sequence[Runs]) -> tuple[Guide, ...]:
        return self._inner.begin(pool, beginning, pieces) if self._inner else ()

    def news(self) -> tuple[Guide, ...] | None:
        return self._inner.news() if self._inner else None

    def exits(self) -> list[Runs]:
        ways, self._ways = self._ways, []
        return [*ways, *(self._inner.exits() if self._inner else ())]
