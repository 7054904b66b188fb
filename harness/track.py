"""What a track fixes: the task, the target, the classes of hardware and how evidence is scored."""

import importlib
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeVar

from harness.errors import Problem, Unavailable
from harness.files import sha256_file

ROOT = Path(__file__).resolve().parent.parent
"""The root of the repository, to which all recorded paths are relative."""

HARNESS_FILES = (
    "harness/__init__.py",
    "harness/eligibility.py",
    "harness/errors.py",
    "harness/files.py",
    "harness/folder.py",
    "harness/intervals.py",
    "harness/launch.py",
    "harness/lock.py",
    "harness/log.py",
    "harness/machine.py",
    "harness/manifest.py",
    "harness/packed.py",
    "harness/progress.py",
    "harness/resume.py",
    "harness/rulesets.py",
    "harness/run.py",
    "harness/silent.py",
    "harness/state.py",
    "harness/track.py",
)
"""What of the harness makes a run, and so is fixed in every track."""


NOTHING = re.compile(rb"(?!)")
FIRST_LINE = re.compile(rb"\A.*\n")


class Interval(Protocol):
    """A score as far as a target is concerned: a value and its two-sided 95% interval."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


AnyScore = TypeVar("AnyScore", bound=Interval)


class Spent(Protocol):
    """What a run took: seconds on the clock, and the track's cost where it has one."""

    @property
    def time_s(self) -> float: ...
    @property
    def cost(self) -> float | None: ...


@dataclass(frozen=True)
class Score:
    """What the evidence is worth: the metric and its two-sided 95% interval."""

    value: float
    low: float
    high: float
    successes: int | None
    """How many units succeeded, where a unit succeeds or fails."""
    count: int
    """Independent units behind the interval."""
    unit: str
    """What a unit is: "levels", "puzzles"."""
    outcomes: tuple[float, ...]
    """One outcome per unit, in a fixed order."""
    hardware_class: str | None = None
    """The class whose task was played, where classes have tasks of their own."""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the recipe that the evidence repeats, because they shaped the play."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Open files that the evidence names, with their SHA-256."""
    seed: int | None = None
    """The run's seed, where the evidence repeats it."""
    cost: float | None = None
    """What training and play took of `Track.cost`; None = the track has none, or it is not known."""
    trained: float | None = None
    """What of that training took."""
    shared_units: bool = True
    """Whether the k-th unit is the same in every run, as a level is; repeats with own seeds are not."""

    def __post_init__(self) -> None:
        if not all(math.isfinite(number) for number in (self.value, self.low, self.high, *self.outcomes)):
            raise ValueError("a score and its outcomes must be finite")
        if self.cost is not None and not (math.isfinite(self.cost) and self.cost >= 0):
            raise ValueError(f"a cost of {self.cost}")
        if len(self.outcomes) != self.count or not self.count:
            raise ValueError(f"{len(self.outcomes)} outcomes for {self.count} {self.unit}")


@dataclass(frozen=True)
class HardwareClass:
    """A kind of machine with a board of its own; where `Track.class_is_chosen`, a task with one."""

    name: str
    """Short name, as in folder names: "cpu", "1xH100"."""
    title: str
    """Name for people: "two CPU cores"."""
    cores: int | None
    """Exactly so many cores may be available to the run; None = any number."""
    gpus: int | None
    """Exactly so many GPUs must be visible; 0 = none may be, None = any number."""
    gpu_name: str
    """Part of the name of every GPU; "" where there is none."""
    warmup_limit_s: float
    """The longest warm-up before the clock starts, in seconds."""
    target: float | None = None
    """The target of this class; None = the track's."""


class Report(NamedTuple):
    """A text file about a record or a run that everyone makes anew from the folder's other files."""

    name: str
    """Name of the file: "progress.svg"."""
    title: str
    """What it shows, in a few words."""
    make: Callable[[Path], str]
    """From the folder of a record, with its second run in `verification` if there is one, or of a run."""


class Board(NamedTuple):
    """A table in README.md besides those of the classes: the block `board:<track>:<name>`."""

    name: str
    """Unlike the name of any class: "movies"."""
    make: Callable[[Path], str]
    """The block's text, from the root of the checkout."""


@dataclass(frozen=True)
class Track:
    """One task with its target; `<name>/track.py` holds it as TRACK."""

    name: str
    title: str
    metric: str
    """What the score measures: "solve rate"."""
    target: float
    """The whole interval must lie strictly on the goal's side of this."""
    ruleset: str
    """Version of the rules that new runs are made under; a record is checked by its own."""
    classes: tuple[HardwareClass, ...]
    fixed_files: tuple[str, ...]
    """Paths or globs from the root of every file that no recipe may change."""
    evidence_name: str
    checkpoint_name: str
    data_files: Callable[[], Mapping[str, str]]
    """Name -> pinned SHA-256 of every file that training may read."""
    score: Callable[[Path], Score]
    """Plays the evidence again; raises Problem with file and line on evidence that breaks the rules."""
    calibrate: Callable[[], float]
    """Runs the set piece and returns its seconds, so that machines can be compared."""
    ready: Callable[[], list[str]]
    """What this machine lacks for this track; empty = ready."""
    assets: Callable[[], Mapping[str, str]] = dict
    """What it reads besides the checkout, name -> where that is on this machine."""
    prepare: Callable[[], str] = str
    """Fetches what runs need, before any clock starts; says why a run here ranks nowhere, or nothing."""
    reports: tuple[Report, ...] = ()
    """What its records hold besides the training curve."""
    goal: Literal["above", "below"] = "above"
    """On which side of the target scores are good."""
    boards: tuple[Board, ...] = ()
    """Tables in README.md besides those of the classes."""
    cost: str | None = None
    """What ranks in place of wall time, as a board's column: "tokens". Every score must tell it."""
    class_is_chosen: bool = False
    """Whether the classes are tasks, of which the command line names one; else the machine decides."""
    check_checkpoint: Callable[[Path, Mapping[str, Any], int], None] = lambda path, recipe, seed: None
    """Raises Problem on a file that no training of this recipe and seed can have saved; runs nothing."""
    open_files: tuple[str, ...] = ()
    """Paths or globs of files besides speedrun.py that a recipe may change; a record's runs share them."""
    not_played: re.Pattern[bytes] = NOTHING
    """What of the evidence, as `plain_lines` writes it, may differ beside the same play: no second seed
    follows from it. In no text there stands a bare quote, so a pattern with one finds keys only."""
    earlier: Mapping[str, Callable[["Track"], "Track"]] = field(default_factory=dict)
    """Earlier ruleset -> what makes of this track the one that it had."""
    closes: date | None = None
    """The last day, in UTC, on which the first run of a record may start; None = not yet known."""
    comparable: bool = True
    """Whether clock, task and target mean what they mean now, so that one board holds both."""

    def under(self, ruleset: str) -> "Track":
        """The track as a ruleset has it; a Problem where it never had that one."""
        if ruleset == self.ruleset:
            return self
        if ruleset not in self.earlier:
            known = ", ".join([*self.earlier, self.ruleset])
            remedy = f"the rulesets here are: {known}; a later checkout may know more"
            raise Problem(f"{self.name} has no ruleset {ruleset!r}", remedy=remedy)
        return replace(self.earlier[ruleset](self), ruleset=ruleset)

    def of_class(self, name: str | None) -> Self:
        """The same track with the target of a class; unchanged where the class is unknown or has none."""
        target = next((hardware.target for hardware in self.classes if hardware.name == name), None)
        return self if target is None else replace(self, target=target)

    def command(self, class_name: str | None) -> str:
        """The command line that runs the recipe of a class."""
        chosen = f" {class_name}" if self.class_is_chosen else ""
        return f"python -m {self.name}.speedrun{chosen}"

    def spent(self, run: Spent) -> float:
        """What ranks, less being better: the run's cost, or its seconds where the track has none."""
        if self.cost is None:
            return run.time_s
        if run.cost is None:
            raise Problem(f"a run of {self.name} that does not tell its {self.cost}")
        return run.cost

    def shortcomings(self, score: Score) -> list[str]:
        """Why evidence of this score makes no record; empty = it does."""
        reasons = [] if self.clears(score) else [self.verdict(score)]
        if self.cost is not None and score.cost is None:
            reasons.append(f"its {self.cost} are not known")
        return reasons

    def bound(self, score: Interval) -> float:
        """The end of a score's interval that decides: the low one, or with the goal "below" the high one."""
        return score.low if self.goal == "above" else score.high

    def clears(self, score: Interval) -> bool:
        """Whether the whole interval lies strictly on the goal's side of the target."""
        bound = self.bound(score)
        return bound > self.target if self.goal == "above" else bound < self.target

    def verdict(self, score: Interval) -> str:
        """Whether it does, in words."""
        end, verb = "low" if self.goal == "above" else "high", "is" if self.clears(score) else "is not"
        return f"the {end} end {self.bound(score):.6g} {verb} {self.goal} the target {self.target}"

    def worst(self, scores: Sequence[AnyScore]) -> AnyScore:
        """The score with the worst value, and of equal values with the worst bound."""
        pick = min if self.goal == "above" else max
        return pick(scores, key=lambda score: (score.value, self.bound(score)))


def load_track(name: str) -> Track:
    """TRACK of `<name>/track.py`; a Problem where there is none, or where a library of it is missing."""
    if not re.fullmatch(r"[a-z_]+", name):
        raise Problem(f"{name!r} cannot be the name of a track")
    # Records name tracks, and importing a package that is none may do anything.
    if not any(Path(folder, name, "track.py").is_file() for folder in sys.path):
        known = ", ".join(available_tracks(ROOT))
        raise Problem(f"there is no track {name!r}", remedy=f"choose one of: {known}")
    try:
        module = importlib.import_module(f"{name}.track")
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"track {name!r} needs the module {error.name!r}", remedy="install the extras of this track"
        ) from error
    track = getattr(module, "TRACK", None)
    if not isinstance(track, Track) or track.name != name:
        raise Problem(f"{name}/track.py defines no TRACK named {name!r}")
    return track


def available_tracks(root: Path = ROOT) -> list[str]:
    """Names of the folders under `root` that hold a track, sorted."""
    return sorted(path.parent.name for path in root.glob("*/track.py") if path.parent.name != "harness")


def fixed_file_hashes(track: Track, root: Path = ROOT) -> dict[str, str]:
    """Path from `root` -> SHA-256 of every fixed file, sorted; a Problem where a pattern matches nothing."""
    return _hashes(track, "fixed", track.fixed_files, root)


def open_file_hashes(track: Track, root: Path = ROOT) -> dict[str, str]:
    """The same of every file of `Track.open_files`."""
    return _hashes(track, "open", track.open_files, root)


def _hashes(track: Track, kind: str, patterns: Sequence[str], root: Path) -> dict[str, str]:
    found: set[Path] = set()
    for pattern in patterns:
        matches = {path for path in root.glob(pattern) if path.is_file()}
        if not matches:
            raise Problem(f"no file matches the {kind} files {pattern!r} of track {track.name!r}", file=root)
        found |= matches
    return {path.relative_to(root).as_posix(): sha256_file(path) for path in sorted(found)}
