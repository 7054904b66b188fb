"""What record.json may hold, how a record's folder is named, and which words may stand on the board."""

import datetime
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError
from pydantic_core import ErrorDetails

from harness.errors import Problem
from harness.files import canonical_json, read_json
from harness.track import Spent, Track

Seconds = Annotated[FiniteFloat, Field(ge=0, le=366 * 86_400)]
Cost = Annotated[FiniteFloat, Field(ge=0, le=1e15)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Seed = Annotated[int, Field(ge=0, lt=2**31)]

RECORD = "record.json"
README = "README.md"
CURVE = "training_curve.svg"
SOURCE = "speedrun.py"
MANIFEST = "manifest.json"
LOG = "log.jsonl"
SECOND = "verification"
NAME = r"[a-z0-9]+(?:-[a-z0-9]+)*"
DESCRIPTION_PLACEHOLDER = "Say in one line what makes this recipe fast."
CONTRIBUTOR_PLACEHOLDER = "Name of a contributor"
DESCRIPTION_LIMIT, CONTRIBUTOR_LIMIT = 200, 60

# Markdown, HTML, mathematics and links; an underscore inside a word is plain text everywhere.
_MARKUP = re.compile(r"[|`*<>\[\]\\~$]|(?<!\w)_|_(?!\w)|://|\b(?i:www)\.|[\w.+-]@[\w-]|&#?\w+;")
# What makes more than a line of text of a line that begins so: headings, lists, a rule across the page.
_BLOCK = re.compile(r"(?:#{1,6}|[-+]|[0-9]{1,9}[.)])(?: |$)|(?:- *){3,}$")

# Counted as letters or marks, and yet nothing to see; or a tower of marks, which covers other lines.
_UNSEEN = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U00016fe4\U000e0100-\U000e01ef]"
)
_MARKS = 3  # on one letter


class _Entry(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class PublishedScore(_Entry):
    """The metric on the held-out set and its two-sided 95% interval."""

    value: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat


class ScoreEntry(PublishedScore):
    """A score with the number of independent units behind its interval."""

    count: Annotated[int, Field(gt=0)]


class RunEntry(_Entry):
    """What a record says of one run; times are in seconds, rounded to milliseconds."""

    seed: Seed
    time_s: Seconds
    cpu_s: Seconds
    cost: Cost | None = None
    """Where the track has one, and then it ranks."""
    score: ScoreEntry
    calibration_s: Seconds


class Record(_Entry):
    """The whole of record.json: the first run at the top, the second under `verification`."""

    ruleset: str
    track: Annotated[str, Field(pattern=r"^[a-z_]+$")]
    hardware_class: str
    number: Annotated[int, Field(gt=0)]
    date: datetime.date
    name: Annotated[str, Field(pattern=f"^{NAME}$", max_length=60)]
    description: str
    contributors: tuple[str, ...]
    seed: Seed
    time_s: Seconds
    cpu_s: Seconds
    cost: Cost | None = None
    score: ScoreEntry
    target: FiniteFloat
    hardware: str
    calibration_s: Seconds
    files: dict[str, Sha256]
    verification: RunEntry | None
    published: PublishedScore

    @property
    def first(self) -> RunEntry:
        """What the record says of the first run."""
        return RunEntry(**{name: getattr(self, name) for name in RunEntry.model_fields})

    @property
    def folder_name(self) -> str:
        """The name of the folder that holds this record."""
        return str(FolderName(self.date, self.number, self.name))

    def dump(self) -> str:
        """The one form in which a record is written; a cost that there is not is left away."""
        content = self.model_dump(mode="json")
        for run in (content, content["verification"]):
            if run is not None and run["cost"] is None:
                del run["cost"]
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_record(path: Path) -> Record:
    """Read a record.json; a Problem names every field at fault with the value found."""
    text = canonical_json(read_json(path))
    try:
        return Record.model_validate_json(text)
    except ValidationError as error:
        raise Problem("; ".join(map(_describe, error.errors())), file=path) from error


@dataclass(frozen=True)
class FolderName:
    """`<YYYY-MM-DD>_<NN>_<name>`: day of the run, number within the track, the author's name for it."""

    date: datetime.date
    number: int
    name: str

    def __str__(self) -> str:
        return f"{self.date.isoformat()}_{self.number:02d}_{self.name}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Take a folder's name apart.

        Raises:
            Problem: the name has another form.
        """
        try:
            date, number, name = text.split("_")
            parsed = cls(datetime.date.fromisoformat(date), int(number), name)
        except ValueError:
            parsed = None
        if parsed is None or str(parsed) != text or parsed.number < 1 or not re.fullmatch(NAME, parsed.name):
            raise Problem(f"the folder is called {text!r}, expected <YYYY-MM-DD>_<NN>_<name-in-lower-case>")
        return parsed


def milliseconds(seconds: float) -> float:
    """Seconds as records hold them."""
    return round(seconds, 3)


def worse(track: Track, first: ScoreEntry, second: ScoreEntry | None) -> PublishedScore:
    """The score to publish: that of the worse of the two runs."""
    worst = track.worst([first, *([second] if second else [])])
    return PublishedScore(value=worst.value, low=worst.low, high=worst.high)


def description_fault(text: str) -> str | None:
    """Why `text` may not describe a record on the board, or None where it may."""
    return _text_fault(text, DESCRIPTION_LIMIT)


def contributors_fault(contributors: Sequence[str]) -> str | None:
    """Why these names may not stand on the board, or None where they may."""
    if not contributors:
        return "are not named"
    for name in contributors:
        fault = _text_fault(name, CONTRIBUTOR_LIMIT) or ("holds a comma" if "," in name else None)
        if fault:
            return f"have one, {name!r}, that {fault}"
    alike = {" ".join(unicodedata.normalize("NFKC", name).casefold().split()) for name in contributors}
    return "are named twice" if len(alike) < len(contributors) else None


def minutes(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss, rounded down so that no record looks beaten before it is."""
    whole = int(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{whole // 60}:{whole % 60:02d}"


def spent_text(track: Track, run: Spent) -> str:
    """What ranks, for people: "12:38", or "1,234,567" of the track's cost."""
    spent = track.spent(run)
    return minutes(spent) if track.cost is None else f"{spent:,.0f}"


def _text_fault(text: str, limit: int) -> str | None:
    if not text.strip():
        return "is empty"
    if text != text.strip():
        return "begins or ends with a space"
    if len(text) > limit:
        return f"has {len(text)} characters, at most {limit} are allowed"
    if not text.isprintable():
        return "is not one line of printable characters"
    if block := _BLOCK.match(text):
        return f"begins with {block.group()!r}, which Markdown would read"
    if unseen := _UNSEEN.search(text):
        return f"holds U+{ord(unseen.group()):04X} at character {unseen.start() + 1}, which nobody can see"
    marks = "".join("m" if unicodedata.category(character) in ("Mn", "Me") else " " for character in text)
    if (start := marks.find("m" * (_MARKS + 1))) >= 0:
        return f"has more than {_MARKS} marks on the letter at character {start}"
    if markup := _MARKUP.search(text):
        return f"holds {markup.group()!r} at character {markup.start() + 1}, which Markdown would read"
    return None


def _describe(error: ErrorDetails) -> str:
    place = ".".join(map(str, error["loc"])) or "the file"
    found = repr(error["input"])
    return f"{place}: {error['msg']}, found {found if len(found) <= 60 else found[:57] + '...'}"
