"""FIXED: the task of the retro track, and how its evidence is scored.

A run is `SEARCHES` independent searches, each of which looks for the fastest way from power-on to the ending
of every game in `GAMES`, from a seed of its own that follows from the run's. The score is the mean over
searches of frames divided by the fewest that are possible, or known. The high end of its 95% interval, a
bootstrap over searches, must lie strictly below `TRACK.target`.

`retro.evidence` describes the evidence. Every movie in it is played again from power-on, in a process of its
own that loads no savestate, and whatever it says of the replay must be so.
"""

from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import Problem, Unavailable
from harness.files import canonical_json
from harness.intervals import Interval, bootstrap
from harness.rulesets import before_2
from harness.track import FIRST_LINE, HARNESS_FILES, Board, HardwareClass, Report, Score, Track
from retro.calibration import calibrate
from retro.evidence import Found, at, evidence_row, movie_inputs, read_evidence, read_movies
from retro.task import CHECKPOINT, EVIDENCE, GAMES, HASH_EVERY, SEARCHES, benchmark

if TYPE_CHECKING:
    from retro.replay import Replay

MISSING = 10.0
"""The ratio of a search that found no way to the ending of a game; no ratio is higher."""


def score(evidence: Path) -> Score:
    """The mean over searches of their frames over the fewest, every movie played again from power-on.

    Raises:
        Problem: as `read_evidence`; or, with file and line, a replay that goes otherwise than the evidence
            says; or this machine cannot replay.
    """
    header, lines = read_evidence(evidence)
    ratios: list[list[float]] = [[] for _ in range(SEARCHES)]
    with closing(replay_all([line.found for line in lines])) as replays:
        for line, replay in zip(lines, replays, strict=True):
            with at(evidence, line.number):
                _compare(line.row, evidence_row(line.found, replay), header["versions"])
            frames, game = line.row["frames"], benchmark(line.found.game)
            ratios[line.found.search].append(MISSING if frames is None else min(MISSING, frames / game.best))
    outcomes = tuple(sum(row) / len(row) for row in ratios)
    return Score(
        sum(outcomes) / SEARCHES,
        *_interval(outcomes),
        successes=None,
        count=SEARCHES,
        unit="searches",
        outcomes=outcomes,
        hardware_class=header["class"],
        seed=header["seed"],
        shared_units=False,
    )


def _check_checkpoint(path: Path, recipe: Mapping[str, Any], seed: int) -> None:
    read_movies(path, seed)


def replay_all(found: Sequence[Found]) -> Generator["Replay | None", None, None]:
    """The replays of movies, two at a time and each in a process of its own, in order; None without inputs.

    A movie that this process has had replayed before is not replayed again.
    """
    require_emulator()
    from retro.replay import replay_fresh

    def play(one: Found) -> "Replay | None":
        if one.inputs is None:
            return None
        key = (one.game, one.inputs)
        if key not in _REPLAYED:
            _REPLAYED[key] = replay_fresh(
                benchmark(one.game).package, movie_inputs(one), hash_every=HASH_EVERY
            )
        return _REPLAYED[key]

    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(play, found)


_REPLAYED: "dict[tuple[str, str], Replay]" = {}


def require_emulator() -> None:
    """Unavailable where stable-retro is not installed."""
    if missing := _missing():
        raise Unavailable(f"replaying takes {' and '.join(missing)}", remedy="pip install '.[retro]'")


def _compare(row: Mapping[str, Any], shown: Mapping[str, Any], versions: Mapping[str, str]) -> None:
    """A Problem where a line says otherwise than the replay shows."""
    if canonical_json(row) == canonical_json(shown):
        return
    from retro.emulator import versions as versions_here

    name = next(name for name in shown if canonical_json(row[name]) != canonical_json(shown[name]))
    said, seen = row[name], shown[name]
    if name == "ram" and isinstance(said, list):
        pairs = list(zip(said, seen, strict=False))
        place = next((place for place, (one, other) in enumerate(pairs) if one != other), len(pairs))
        name = f"hash {place} of work RAM, one every {HASH_EVERY} frames,"
        said, seen = (hashes[place] if place < len(hashes) else None for hashes in (said, seen))
    here = versions_here()
    remedy = None if dict(versions) == here else f"it was made on {dict(versions)}, and here is {here}"
    raise Problem(f"{name} is {str(said)[:80]}, expected {str(seen)[:80]} by the replay", remedy=remedy)


def _interval(outcomes: Sequence[float]) -> Interval:
    """The bootstrap over searches; where all took the same, that one number."""
    if len(set(outcomes)) == 1:
        return Interval(outcomes[0], outcomes[0])
    return bootstrap(outcomes)


def _missing() -> list[str]:
    return [
        f"the {title} library"
        for name, title in (("stable_retro", "stable-retro"), ("xxhash", "xxhash"))
        if find_spec(name) is None
    ]


def _ready() -> list[str]:
    return _missing() + (["the PyAV library (for videos)"] if find_spec("av") is None else [])


def _route(folder: Path) -> str:
    from retro.figures import route  # it reads this file, and matplotlib is slow to import

    return route(folder)


def _cells(folder: Path) -> str:
    from retro.figures import cells

    return cells(folder)


def _splits(folder: Path) -> str:
    from retro.splits import splits

    return splits(folder)


def _movies(root: Path) -> str:
    from retro.movies import board  # it reads this file

    return board(root)


_SINCE_2 = (
    "retro/__init__.py",
    "retro/games/__init__.py",
    "retro/pixels.py",
    "retro/times.py",
    "retro/video.py",
)

TRACK = Track(
    name="retro",
    title="Tool-assisted speedruns by search",
    metric="ratio to the optimum",
    target=1.45,
    goal="below",
    ruleset="2",
    classes=(HardwareClass("cpu", "two CPU cores", cores=2, gpus=0, gpu_name="", warmup_limit_s=60),),
    fixed_files=(
        "retro/track.py",
        "retro/task.py",
        "retro/evidence.py",
        "retro/eval_speedrun.py",
        "retro/calibration.py",
        "retro/emulator.py",
        "retro/memory.py",
        "retro/inputs.py",
        "retro/fresh.py",
        "retro/replay.py",
        "retro/movie.py",
        "retro/packages.py",
        "retro/packing.py",
        "retro/faults.py",
        *_SINCE_2,
        "retro/search/*.py",
        "retro/games/quarterstep/*",
        "retro/games/quarterstep/src/*",
        "retro/games/quarterstep/Quarterstep-Nes-v0/*",
        *HARNESS_FILES,
    ),
    earlier={"1": before_2("retro/packing.py", *_SINCE_2)},
    evidence_name=EVIDENCE,
    not_played=FIRST_LINE,
    checkpoint_name=CHECKPOINT,
    data_files=lambda: {f"{game.name}/{Path(game.rom).name}": game.rom_sha256 for game in GAMES},
    score=score,
    check_checkpoint=_check_checkpoint,
    calibrate=calibrate,
    ready=_ready,
    reports=(
        Report("route.svg", "the route of the best movie", _route),
        Report("cells.svg", "situations found over emulated frames", _cells),
        Report("splits.md", "Frames that each search took for each level", _splits),
    ),
    boards=(Board("movies", _movies),),
)
