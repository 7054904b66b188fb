"""The marathon on the command line, see `retro.run`."""

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.lock import locked
from retro.emulator import CONSOLES, console_of
from retro.marathon.config import Config
from retro.marathon.engine import Marathon
from retro.marathon.rival import Rival, read_rival
from retro.marathon.store import open_saved
from retro.marathon.tracking import tracked
from retro.packages import GamePackage, load_package
from retro.search.guidance import open_guidance
from retro.search.pool import Pool, open_pool
from retro.search.route import Route, Watcher
from retro.times import format_frames

if TYPE_CHECKING:
    from retro.live.publisher import Publisher

Reporting = Callable[[GamePackage, Route], AbstractContextManager[Watcher]]
"""Shows progress."""


def run_marathon(
    spec: str, config: Config, folder: Path, report: Reporting, hours: float = 0, frames: int = 0
) -> Route:
    """Begin a marathon in a folder that exists, or go on with the one that it holds; see `Marathon.go`.

    Raises:
        Problem: the folder holds something else, or something of the configuration does not fit the game.
    """
    package = load_package(spec)
    rival = None if config.reference is None else read_rival(config.reference, spec)
    # A machine that goes down says so by SIGTERM; and what a script runs in the background ignores SIGINT.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with locked(folder):  # before it is read: whoever holds it may yet write there
            return _go(spec, package, config, folder, rival, report, hours, frames)
    finally:
        signal.signal(signal.SIGTERM, before)


def _go(
    spec: str,
    package: GamePackage,
    config: Config,
    folder: Path,
    rival: Rival | None,
    report: Reporting,
    hours: float,
    frames: int,
) -> Route:
    saved = open_saved(folder, spec, package, config)
    rate = CONSOLES[console_of(package.rom)].frame_rates[0]
    if rival is not None:
        reached, entered = max(rival.splits.items(), key=lambda split: split[1])
        print(f"Reference: {format_frames(entered, rate)} to {reached}: {config.reference}")
    at = saved.route.pieces[-1].entered if saved.route.pieces else "power-on"
    goes_on = f"Going on at {at}, {format_frames(saved.route.frames, rate)}: {folder}"
    print(goes_on if saved.tally.starts else f"A new marathon: {folder}", flush=True)
    with (
        _workers(spec, config) as pool,
        open_guidance(spec, config.settings.guidance, config.seed, folder) as guidance,
        tracked(folder, package, config),
        report(package, saved.route) as watch,
        _published(folder, saved.route, pool, config) as publisher,
    ):
        marathon = Marathon(folder, saved, pool, config, guidance, publisher, watch, rival)
        marathon.go(hours, frames)
    return marathon.route


def _workers(spec: str, config: Config) -> AbstractContextManager[Pool]:
    if config.cluster is None:
        return open_pool(spec, config.workers)
    from retro.marathon.cluster import open_cluster  # it takes Ray

    return open_cluster(spec, config.workers, config.cluster)


@contextmanager
def _published(folder: Path, route: Route, pool: Pool, config: Config) -> "Iterator[Publisher | None]":
    """The live view, if the configuration asks for one."""
    if not config.live:
        yield None
        return
    from retro.live.publisher import Publisher  # it makes videos and pictures
    from retro.live.watching import relaying

    with (
        relaying(folder, config.live_url),
        Publisher(
            folder, route.package, route.seed, rom_sha256=route.rom_sha256, workers=max(1, config.workers),
            screens=pool.screens,
        ) as publisher,
    ):  # fmt: skip
        yield publisher
