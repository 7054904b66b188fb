"""The board of the fastest movies, whoever made them and however long it took.

    python -m retro.movies add movie.bk2 --name low-road --contributor Ada --description "How it was made"
    python -m retro.movies verify

A movie lies in records/retro/movies/<game>/<frames>_<name>/ as movie.bk2, with what is said of it in
movie.json, and perhaps as movie.mp4. Games are those of retro/games. `add` takes only what reaches the ending
when it is played from power-on in a fresh process; `verify` plays all of them again.
"""

import argparse
import datetime
import re
import secrets
import shutil
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, Field

from harness.errors import Problem, run_command
from harness.files import STRICT, read_bytes, read_model, sha256_file, unwritable, write_atomic
from harness.record import NAME, contributors_fault, description_fault
from harness.track import ROOT
from retro.task import GAMES
from retro.times import format_time

FOLDER = Path("records/retro/movies")
MOVIE, ABOUT, VIDEO = "movie.bk2", "movie.json", "movie.mp4"
LARGEST_VIDEO = 4 * 2**20  # bytes

_COLUMNS = ("game", "frames", "time", "above the optimum", "movie", "date", "contributors", "description")
_RIGHT = {"frames", "time", "above the optimum"}


class About(BaseModel):
    """All of movie.json. What a replay can tell is compared with one by `verify`."""

    model_config = STRICT

    game: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$", max_length=80)]
    frames: Annotated[int, Field(gt=0)]
    """From power-on to the first frame in which the ending holds."""
    frame_rate: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,8}/[1-9][0-9]{0,8}$")]
    """Frames a second of the console, exactly."""
    movie_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    name: Annotated[str, Field(pattern=f"^{NAME}$", max_length=60)]
    date: datetime.date
    contributors: tuple[str, ...]
    description: str
    """How it was made."""

    @property
    def folder(self) -> Path:
        """Where it lies, from FOLDER."""
        return Path(self.game) / f"{self.frames}_{self.name}"


class Entry(NamedTuple):
    """A movie on the board."""

    folder: Path
    about: About


def read_movies(root: Path = ROOT) -> list[Entry]:
    """Every movie under `root`, by game and frames; a Problem on one that cannot be shown."""
    entries = []
    for path in sorted((root / FOLDER).glob(f"[!.]*/[!.]*/{ABOUT}")):
        about = read_model(path, About)
        _check_words(about, path)
        if path.parent != root / FOLDER / about.folder:
            raise Problem(f"lies in {path.parent.name!r}, expected {about.folder.as_posix()!r}", file=path)
        entries.append(Entry(path.parent, about))
    return sorted(entries, key=lambda entry: (entry.about.game, entry.about.frames, entry.about.date))


def board(root: Path = ROOT) -> str:
    """The board as a Markdown table; only movie.json is read for it."""
    entries = read_movies(root)
    if not entries:
        return "No movie yet."
    lines = [_COLUMNS, tuple("---:" if column in _RIGHT else "---" for column in _COLUMNS)]
    lines += [_row(entry, root) for entry in entries]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def add(
    path: Path,
    *,
    name: str,
    contributors: Sequence[str],
    description: str,
    date: datetime.date,
    video: Path | None = None,
    root: Path = ROOT,
) -> Path:
    """Put a movie on the board; returns its folder, which is written whole or not at all.

    `description` says how it was made.

    Raises:
        Problem: the movie does not reach the ending or differs from its replay, is there already, or what is
            said of it cannot stand on the board.
    """
    if not re.fullmatch(NAME, name):
        raise Problem(f"{name!r} cannot be a name", remedy="use lower-case letters, digits and hyphens")
    game, frames, rate = examine(path)
    made = About(
        game=game,
        frames=frames,
        frame_rate=f"{rate.numerator}/{rate.denominator}",
        movie_sha256=sha256_file(path, links=True),
        name=name,
        date=date,
        contributors=tuple(contributors),
        description=description,
    )
    _check_words(made, path)
    for folder, other in read_movies(root):
        if other.movie_sha256 == made.movie_sha256 or other.folder == made.folder:
            raise Problem("this movie, or one of this name, is on the board already", file=folder)
    if video is not None and len(read_bytes(video, links=True)) > LARGEST_VIDEO:
        raise Problem(f"is larger than {LARGEST_VIDEO // 2**20} MiB", file=video, remedy="leave it away")
    place = root / FOLDER / made.folder
    draft = place.with_name(f".{place.name}.{secrets.token_hex(4)}.partial")
    try:
        draft.mkdir(parents=True)
        write_atomic(draft / MOVIE, read_bytes(path, links=True))
        write_atomic(draft / ABOUT, made.model_dump_json(indent=2) + "\n")
        if video is not None:
            write_atomic(draft / VIDEO, read_bytes(video, links=True))
        draft.rename(place)
    except OSError as error:
        raise unwritable(place, error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return place


def examine(path: Path) -> tuple[str, int, Fraction]:
    """Play a movie from power-on in a fresh process.

    Returns the game's name, the frames to its ending and the console's frame rate.

    Raises:
        Problem: it does not reach the ending, its replay differs from what it says, or no package of
            retro/games knows the game.
    """
    from retro.emulator import CONSOLES
    from retro.replay import verify

    done = verify(path)
    if done.differences:
        raise Problem("; ".join(done.differences), file=path)
    if not done.replay.ending:
        raise Problem(f"no package knows the ending of {done.movie.game}", file=path)
    frames = done.replay.splits.get(done.replay.ending)
    if frames is None:
        raise Problem(f"does not reach the ending in {done.replay.frames:,} frames", file=path)
    return done.movie.game, frames, CONSOLES[done.movie.system].frame_rates[0]


def check(entry: Entry) -> None:
    """Play a movie of the board again; a Problem where it is not what movie.json says."""
    folder, about = entry
    if sha256_file(folder / MOVIE) != about.movie_sha256:
        raise Problem(f"is not the movie that {ABOUT} names", file=folder / MOVIE)
    if (folder / VIDEO).is_file() and (folder / VIDEO).stat().st_size > LARGEST_VIDEO:
        raise Problem(f"is larger than {LARGEST_VIDEO // 2**20} MiB", file=folder / VIDEO)
    if strangers := {path.name for path in folder.iterdir()} - {MOVIE, ABOUT, VIDEO}:
        raise Problem(f"holds {', '.join(sorted(strangers))}, which do not belong here", file=folder)
    game, frames, rate = examine(folder / MOVIE)
    said = (about.game, about.frames, Fraction(about.frame_rate))
    if (game, frames, rate) != said:
        raise Problem(f"is {game}, {frames} frames at {rate} Hz, expected {said}", file=folder / MOVIE)


def _check_words(about: About, path: Path) -> None:
    for what, fault in (
        ("description", description_fault(about.description)),
        ("contributors", contributors_fault(about.contributors)),
    ):
        if fault:
            raise Problem(f"{what} {fault}", file=path)


def _row(entry: Entry, root: Path) -> tuple[str, ...]:
    folder, about = entry
    link = folder.relative_to(root).as_posix()
    video = f" · [mp4]({link}/{VIDEO})" if (folder / VIDEO).is_file() else ""
    return (
        about.game,
        f"{about.frames:,}",
        format_time(about.frames, Fraction(about.frame_rate)),
        _gap(about),
        f"{about.name} · [bk2]({link}/{MOVIE}){video}",
        about.date.isoformat(),
        ", ".join(about.contributors),
        about.description,
    )


def _gap(about: About) -> str:
    """Frames above the fewest, where these are known."""
    best = next((game for game in GAMES if game.name == about.game), None)
    if best is None:
        return "not known"
    over = about.frames - best.best
    words = "0, proven" if best.proven else "0"
    return f"{over:+,} ({100 * over / best.best:.1f}%)" if over else words


def main(arguments: Sequence[str] | None = None, *, root: Path = ROOT) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m retro.movies", description="Keep the board of the fastest movies."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser(
        "add",
        help="verify a movie and put it on the board",
        description="Verify a movie and put it on the board.",
    )
    adding.add_argument("movie", type=Path, help="a .bk2 file that starts from power-on")
    adding.add_argument("--name", required=True, help="in lower case, with hyphens")
    adding.add_argument("--contributor", required=True, action="append", help="may be given several times")
    adding.add_argument("--description", required=True, help="how it was made, in one line")
    adding.add_argument("--video", type=Path, help="an MP4 of at most 4 MiB")
    commands.add_parser(
        "verify",
        help="play every movie of the board again",
        description="Play every movie of the board again.",
    )
    given = parser.parse_args(arguments)
    if given.command == "verify":
        return verify_all(root)
    place = add(
        given.movie,
        name=given.name,
        contributors=given.contributor,
        description=given.description,
        date=datetime.datetime.now(datetime.UTC).date(),
        video=given.video,
        root=root,
    )
    print(f"Added {place.relative_to(root)}. Next: commit it; make boards shows it")
    return 0


def verify_all(root: Path = ROOT) -> int:
    """Play every movie of the board again and print a line for each; 1 where one fails, else 0."""
    failed = 0
    for entry in read_movies(root):
        try:
            check(entry)
        except Problem as problem:
            failed += 1
            print(f"FAIL {problem}")
        else:
            print(f"pass {entry.folder.relative_to(root)}")
    return 1 if failed else 0


if __name__ == "__main__":
    run_command(main)
