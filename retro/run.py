"""The search on the command line.

    python -m retro.run search quarterstep quick      find a movie from power-on to the ending
    python -m retro.run improve outputs/retro/...     search every segment again, for a faster one
    python -m retro.run marathon quarterstep marathon   find a movie, then faster ones without end
    python -m retro.run info outputs/retro/...        splits, times, and how each search ended
    python -m retro.run play outputs/retro/...        write the movie as .bk2 and as MP4
    python -m retro.run verify movie.bk2              replay it from power-on in a fresh process
    python -m retro.run check module:Class            look for mistakes in a game package

A search that was stopped, in whatever way, goes on by the same command; `improve` begins a new pass.
"""

import argparse
import json
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from harness.errors import Problem, run_command
from harness.files import read_bytes, sha256_file, unwritable
from harness.lock import locked
from harness.progress import progress_bar
from harness.track import ROOT
from retro.config import MOST_WORKERS, Config, read_config
from retro.emulator import CONSOLES, console_of
from retro.inputs import parse_inputs
from retro.packages import GamePackage, load_package
from retro.random_play import FRAMES
from retro.search.guidance import open_guidance
from retro.search.pool import Pool, open_pool
from retro.search.route import SEGMENT, Route, RouteSearch, Watcher, check_route, read_route, read_run
from retro.search.segment import SegmentSearch
from retro.task import CHECKPOINT, GAMES
from retro.times import format_frames

OUTPUTS = Path("outputs/retro")
MOVIE, VIDEO = "movie.bk2", "movie.mp4"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m retro.run", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, words: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")

    command = add("search", "find a movie, segment by segment")
    command.add_argument("package", help="a folder of retro/games, or module:Class")
    command.add_argument("config", help="a TOML file, or the name of one in retro/configs")
    command.add_argument("--until", metavar="STATE", help="stop when this state is entered")
    command.add_argument("--out", type=Path, help="the run folder (default: outputs/retro/<game>_seed<n>)")
    _add_live(command)
    command.set_defaults(run=lambda o: search(o.package, read_config(o.config), o.until, o.out, o.live))

    command = add("improve", "search every segment again, bounded by its frames")
    command.add_argument("folder", type=Path, help="the run folder")
    command.add_argument("--passes", type=whole(1), default=1, help="times through all segments (default: 1)")
    command.add_argument("--config", help="settings for it (default: those of the folder)")
    command.add_argument(
        "--workers",
        type=whole(0, MOST_WORKERS),
        default=2,
        help="processes with an emulator each (default: 2)",
    )
    _add_live(command)
    command.set_defaults(run=lambda o: improve(o.folder, o.passes, o.config, o.workers, o.live))

    command = add("marathon", "find a movie, then faster ones without end")
    command.add_argument("package", help="a folder of retro/games, or module:Class")
    command.add_argument("config", help="a TOML file, or marathon, which is in retro/configs")
    command.add_argument("--out", type=Path, help="the folder (default: outputs/retro/<game>_marathon<n>)")
    command.add_argument("--hours", type=positive, default=0, help="stop after so many (default: never)")
    command.add_argument("--frames", type=whole(1), default=0, help="stop after so many emulated ones")
    command.set_defaults(run=lambda o: marathon(o.package, o.config, o.out, o.hours, o.frames))

    command = add("info", "show splits, times, and how each search ended")
    command.add_argument("folder", type=Path, help="the run folder")
    command.set_defaults(run=lambda o: info(o.folder))

    command = add("play", "write the movie as .bk2 and as MP4")
    command.add_argument("source", type=Path, help="a run folder, a .bk2, or a .txt of inputs")
    command.add_argument("--scale", type=int, choices=(1, 2, 3), default=2, help="of the video (default: 2)")
    command.add_argument(
        "--package", help="of a .txt, or of a .bk2 whose game no package of retro/games knows"
    )
    command.add_argument(
        "--out",
        type=Path,
        help="the folder for what is written (default: the source's, or one in outputs/retro for records/)",
    )
    command.set_defaults(run=lambda o: play(o.source, o.scale, o.package, o.out))

    command = add("verify", "replay a movie from power-on in a fresh process")
    command.add_argument("movie", type=Path, help="a .bk2, or a run folder that holds one")
    command.add_argument("--package", help="of a game that no package of retro/games knows")
    command.set_defaults(run=lambda o: verify_movie(o.movie, o.package))

    command = add("check", "look for mistakes in a game package by playing at random")
    command.add_argument("package", help="a folder of retro/games, or module:Class")
    command.add_argument("--seed", type=whole(0), default=0, help="of the random play (default: 0)")
    command.add_argument("--frames", type=whole(1), help=f"about how many to play (default: {FRAMES:,})")
    command.set_defaults(run=lambda o: check(o.package, o.seed, o.frames))

    options = parser.parse_args()
    status: int = options.run(options)
    return status


# ---- commands ----------------------------------------------------------------------------------------------


def search(
    spec: str, config: Config, until: str | None, out: Path | None = None, live: str | None = None
) -> int:
    package = load_package(spec)
    last = package.state_index(until) if until is not None else len(package.states) - 1
    folder = out or OUTPUTS / f"{package.name}_seed{config.seed}"
    _make(folder)
    started = time.monotonic()
    with locked(folder):  # before the route is read: whoever holds it may yet write there
        route = _route(folder, spec, package, config)
        ending = _search(spec, config, last, folder, route, package, live)
    if ending is not None:
        piece = route.pieces[-1].entered
        if ending == "exhausted":
            print(f"The search of {piece} is exhausted: no action from any cell finds another one: {folder}")
        else:
            print(
                f"The search of {piece} was cut off. More frames in the configuration let it go on: {folder}"
            )
        return 1
    rate = package_rate(package)
    print(f"{package.title}: {format_frames(route.frames, rate)} to {route.pieces[-1].entered}")
    print(
        f"The search took {time.monotonic() - started:.0f} s; every segment replays from power-on: {folder}"
    )
    if last == len(package.states) - 1:
        print(f"Next: python -m retro.run play {shlex.quote(str(folder))}")
    return 0


def _search(
    spec: str, config: Config, last: int, folder: Path, route: Route, package: GamePackage, live: str | None
) -> str | None:
    """Search on in a folder that is locked, up to state `last`; how that ended, None = there."""
    with (
        open_pool(spec, config.workers) as pool,
        open_guidance(spec, route.settings.guidance, route.seed, folder) as guidance,
        Report(package, route) as report,
        _watched(live, folder, route, pool, config.workers, package, report.watch) as watch,
    ):
        _meet(package, route, folder)
        searcher = RouteSearch(folder, route, pool, watch, guidance=guidance)
        return None if searcher.run(last) else searcher.ending


def improve(folder: Path, passes: int, config: str | None, workers: int, live: str | None = None) -> int:
    _no_movies(folder)
    read_route(folder)  # no lock is put where there is no search
    _no_marathon(folder)
    settings = read_config(config).settings if config is not None else None
    with locked(folder):
        route, package = read_run(folder)
        route.settings = settings or route.settings
        _improve(folder, passes, workers, route, package, live)
    return 0


def _improve(
    folder: Path, passes: int, workers: int, route: Route, package: GamePackage, live: str | None
) -> None:
    with (
        open_pool(route.package, workers) as pool,
        open_guidance(route.package, route.settings.guidance, route.seed, folder) as guidance,
        Report(package, route) as report,
        _watched(live, folder, route, pool, workers, package, report.watch) as watch,
    ):
        searcher = RouteSearch(folder, route, pool, watch, guidance=guidance)
        for number in range(1, passes + 1):
            saved = searcher.improve()
            now = format_frames(route.frames, package_rate(package))
            tqdm.write(f"Pass {number}: {saved} frames saved, {now}")


def marathon(spec: str, config: str, out: Path | None, hours: float, frames: int) -> int:
    from retro.marathon import command
    from retro.marathon.config import read_config

    package, told = load_package(spec), read_config(config)
    folder = out or OUTPUTS / f"{package.name}_marathon{told.seed}"

    _make(folder)

    @contextmanager
    def reporting(package: GamePackage, route: Route) -> Iterator[Watcher]:
        with Report(package, route) as report:
            yield report.watch

    try:
        route = command.run_marathon(spec, told, folder, reporting, hours, frames)
    except KeyboardInterrupt:
        if (folder / MOVIE).exists():
            print(f"Movie: {folder / MOVIE}")
        print(f"The same command goes on: {folder}", flush=True)
        raise
    reached = f"{format_frames(route.frames, package_rate(package))} to {route.pieces[-1].entered}"
    print(f"{package.title}: {reached}, verified: {folder}")
    return 0


def info(folder: Path) -> int:
    _no_movies(folder)
    route, package = read_run(folder)
    rate = package_rate(package)
    table = Table(title=f"{package.title}: {format_frames(route.frames, rate)}", title_justify="left")
    for name in ("segment", "frames", "entered at"):
        table.add_column(name, justify="left" if name == "segment" else "right")
    for name in ("search ended", "before shaving", "searched", "cells", "dropped", "deaths"):
        table.add_column(name, justify="left" if name == "search ended" else "right")
    at = 0
    for piece in route.pieces:
        at += piece.frames
        counts = (piece.first, piece.searched, piece.cells, piece.dropped, piece.deaths)
        table.add_row(
            f"{piece.state} to {piece.entered}", f"{piece.frames:,}", format_frames(at, rate), piece.ending,
            *(f"{count:,}" for count in counts),
        )  # fmt: skip
    console = Console()
    if not console.is_terminal:
        console.width = 160  # whoever reads a pipe wants all of it
    console.print(table)
    if _next(route, package):
        print(_next(route, package))
    return 0


def play(source: Path, scale: int, spec: str | None, out: Path | None = None) -> int:
    from retro.movie import write_movie
    from retro.replay import make_movie, replay_fresh, verify
    from retro.video import write_video

    if source.is_dir():
        _no_movies(source)
    folder = out or _place(source)
    if source.is_dir() or source.suffix == ".txt":
        if source.is_dir():
            route, package = read_run(source)
            spec, movie = route.package, folder / MOVIE
            inputs = route.inputs(package.console_buttons)
            if not inputs:
                raise Problem("nothing has been found yet", file=source, remedy="go on with the search")
            if _next(route, package):
                print(f"The search has not reached the ending: {_next(route, package)}")
        else:
            if spec is None:
                raise Problem("inputs as text do not say of which game", file=source, remedy="add --package")
            package, movie = load_package(spec), folder / source.with_suffix(".bk2").name
            try:
                inputs = parse_inputs(
                    read_bytes(source, links=True).decode(errors="replace"), package.console_buttons
                )
            except Problem as problem:
                raise Problem(problem.reason, file=source, remedy=problem.remedy) from problem
        made = make_movie(package, inputs, replay_fresh(spec, inputs))
        _make(folder)
        write_movie(movie, made)
        print(f"Movie: {movie}")
    else:
        shown = verify(source, spec)
        if shown.package is None:
            raise Problem(
                f"no package knows {shown.movie.game}", file=source, remedy="name one with --package"
            )
        spec, inputs, movie = shown.package, list(shown.movie.inputs), source
        _make(folder)
    video = folder / movie.with_suffix(".mp4").name
    write_video(video, spec, inputs, scale=scale)
    print(f"Video: {video}")
    return 0


def verify_movie(path: Path, spec: str | None) -> int:
    from retro.replay import verify

    if path.is_dir():
        path /= MOVIE
        if not path.exists():
            raise Problem("holds no movie", file=path.parent, remedy="write it: python -m retro.run play")
    shown = verify(path, spec)
    for difference in shown.differences:
        print(f"{path}: {difference}")
    if shown.differences:
        print("FAIL: the movie does not do from power-on what it claims")
        return 1
    for state, frame in shown.replay.splits.items():
        print(f"{frame:>8,}  {state}")
    claims = "as it claims" if shown.compared else "and claims nothing that could be compared"
    print(f"pass: {shown.replay.frames:,} frames from power-on, {claims}")
    return 0


def check(spec: str, seed: int, frames: int | None) -> int:
    from retro.check import run_check

    return run_check(spec, seed=seed, frames=frames)


# ---- helpers -----------------------------------------------------------------------------------------------


def whole(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    """Reads a whole number of the command line."""

    def read(text: str) -> int:
        if not re.fullmatch("[0-9]{1,10}", text, re.ASCII) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most:,}")
        return int(text)

    return read


def positive(text: str) -> float:
    """Reads a number above 0 of the command line."""
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text, re.ASCII) or not float(text) > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return float(text)


def _add_live(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--live",
        nargs="?",
        const="",
        metavar="URL",
        help="publish a live view into the run folder, and upload it if a backend is named",
    )


def _watched(
    live: str | None,
    folder: Path,
    route: Route,
    pool: Pool,
    workers: int,
    package: GamePackage,
    watch: Watcher,
) -> AbstractContextManager[Watcher]:
    """`watch`, and a live view's too if one is asked for."""
    if live is None:
        return nullcontext(watch)
    from retro.live.watching import watched  # it makes videos and pictures, which most searches do not

    return watched(live, folder, route, pool, workers, package, watch)


def _route(folder: Path, spec: str, package: GamePackage, config: Config) -> Route:
    """The route in a folder, to go on with, or a new one."""
    _no_marathon(folder)
    rom = sha256_file(package.rom, links=True)
    if not (folder / "route.json").exists():
        return Route(spec, package.name, rom, config.seed, config.settings, package.source_sha256)
    route = read_route(folder)
    for name, here, there in (
        ("the game", package.name, route.game),
        ("the ROM", rom, route.rom_sha256),
        ("the seed", config.seed, route.seed),
    ):
        if here != there:
            remedy = "choose another folder with --out, or remove this one"
            raise Problem(
                f"holds a search whose {name[4:]} is {there}, not {here}", file=folder, remedy=remedy
            )
    check_route(folder, route, package)
    at = route.pieces[-1].entered if route.pieces else "power-on"
    print(f"Going on {'with a whole route' if at == package.states[-1].name else f'at {at}'}: {folder}")
    route.settings = config.settings
    return route


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise Problem("is not a folder", file=folder, remedy="choose another with --out") from error
    except OSError as error:
        raise unwritable(folder, error) from error


def _place(source: Path) -> Path:
    """The folder for what is made of a source: its own, but nothing in records/ is written over."""
    folder = source if source.is_dir() else source.parent
    if folder.resolve().is_relative_to(ROOT / "records"):
        return OUTPUTS / folder.resolve().name
    return folder


def _no_movies(path: Path) -> None:
    """A Problem where a path is a movie, or a run of `retro.speedrun`, which are no run folders."""
    play = "python -m retro.run play"
    if path.is_file() and path.suffix == ".bk2":
        remedy = f"see its splits: python -m retro.run verify {shlex.quote(str(path))}"
        raise Problem("is a movie, and no run folder", file=path, remedy=remedy)
    movies, best = path / CHECKPOINT, path / "best.bk2"
    if not movies.exists() or (path / "route.json").exists():
        return
    if best.exists():
        remedy = f"watch its best: {play} {shlex.quote(str(best))}"
    else:
        script = f'import json; print(json.load(open({json.dumps(str(movies))}))["searches"][0]["inputs"])'
        show = f"python -c {shlex.quote(script)} > first.txt && {play} first.txt --package {GAMES[0].package}"
        remedy = f"watch the first of its movies, or another in its place: {show}"
    raise Problem("holds the movies of a run, and no search", file=path, remedy=remedy)


def _no_marathon(folder: Path) -> None:
    """A Problem where a folder is a marathon's, whose route.json is no more than what it shows."""
    if (folder / "marathon.json").exists():
        raise Problem("holds a marathon", file=folder, remedy="go on with it: python -m retro.run marathon")


def _next(route: Route, package: GamePackage) -> str:
    """What is to be searched next; "" = nothing."""
    reached = route.pieces[-1].entered if route.pieces else "power-on"
    return f"{reached} is next." if reached != package.states[-1].name else ""


def _meet(package: GamePackage, route: Route, folder: Path) -> None:
    """Let go of the search of the segment in work, if another version of the package named its cells."""
    if route.package_sha256 != package.source_sha256:
        print("The game package has changed: the search of the segment that is in work begins anew")
        (folder / SEGMENT).unlink(missing_ok=True)
        route.package_sha256 = package.source_sha256
        route.save(folder)


def package_rate(package: GamePackage) -> float:
    """The true frames a second of the package's console, NTSC."""
    return float(CONSOLES[console_of(package.rom)].frame_rates[0])


class Report:
    """A progress bar for each segment, and a line when it is done."""

    def __init__(self, package: GamePackage, route: Route) -> None:
        self._package, self._route = package, route
        self._bar: tqdm[None] | None = None
        self._search: SegmentSearch | None = None

    def __enter__(self) -> "Report":
        return self

    def __exit__(self, *_: object) -> None:
        self._finish()

    def watch(self, doing: str, search: SegmentSearch) -> None:
        if search is not self._search:
            self._finish()
            self._search = search
            self._bar = progress_bar(search.settings.frames + search.settings.shave, "frame")
        assert self._bar is not None
        name = self._package.states[search.beginning.segment].name
        self._bar.set_description(f"{name}: {doing}", refresh=False)
        best = "none" if search.best is None else search.best
        self._bar.set_postfix(best=best, cells=len(search.archive.cells), refresh=False)
        self._bar.update(search.frames - self._bar.n)

    def _finish(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


if __name__ == "__main__":
    run_command(main)
