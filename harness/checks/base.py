"""A check, the rule behind it, and the files of a record as rules see them: guarded and never trusted."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from harness.errors import Problem
from harness.files import read_bytes, sha256_file
from harness.log import RunLog, read_log
from harness.manifest import Manifest, read_manifest
from harness.record import LOG, MANIFEST, RECORD, SECOND, SOURCE, Record, RunEntry, read_record
from harness.track import Score, Track, load_track

SIZE_LIMIT = 8 * 2**20  # bytes of one file


@dataclass(frozen=True)
class Check:
    """The outcome of one rule: what was found where it passed, what is wrong and where if it did not.

    A check that has not passed may still have found nothing wrong: it is `pending` where something is to be
    added, and `unavailable` where this machine lacks what the check takes. Else it has failed.
    """

    name: str
    passed: bool
    reason: str
    pending: bool = False
    unavailable: bool = False

    @property
    def failed(self) -> bool:
        """Whether something is wrong."""
        return not (self.passed or self.pending or self.unavailable)


class Pending(Problem):
    """Raised by a rule where something is still to be added."""


Subject = TypeVar("Subject")


class Rule(NamedTuple, Generic[Subject]):
    """A named rule. `examine` says what it found or raises Problem; the rules in `needs` must pass first."""

    name: str
    needs: tuple[str, ...]
    examine: Callable[[Subject], str]


def rule(*needs: str) -> Callable[[Callable[[Subject], str]], Rule[Subject]]:
    """Make a rule of a function and name it after the function (`class_` becomes `class`)."""
    return lambda examine: Rule(examine.__name__.rstrip("_"), needs, examine)


def expect(
    what: str, found: object, expected: object, *, by: str, file: str, line: int | None = None
) -> None:
    """Raise the Problem of a value that is not what another place says."""
    if found != expected:
        raise Problem(f"{what} is {found!r}, expected {expected!r} by {by}", file=file, line=line)


class RecordFolder:
    """A record's folder in the checkout `root`.

    While it is being assembled, `place` is where it will stand, and `replaces` what stands there so far.
    """

    def __init__(
        self, path: Path, *, root: Path, place: Path | None = None, replaces: Path | None = None
    ) -> None:
        self.path, self.root, self.replaces = path, root, replaces
        absolute = path.absolute()  # the folder's own name counts, even if it is a link
        self.place = place or absolute.parent.resolve() / absolute.name

    def file(self, name: str) -> Path:
        """The path of a file in the record, once it is known to be a plain file of allowed size.

        Raises:
            Problem: there is none, it or a folder on the way is a link or no plain file, or it is too large.
        """
        path = self.path / name
        for part in (self.path, path.parent, path):
            if part.is_symlink():
                raise Problem("is a link, expected a plain file", file=name)
        if not path.is_file():
            raise Problem("is not a plain file" if path.exists() else "is missing", file=name)
        if (size := path.stat().st_size) > SIZE_LIMIT:
            raise Problem(f"has {size:,} bytes, at most {SIZE_LIMIT:,} are allowed", file=name)
        return path

    def text(self, name: str) -> str:
        """The text of a file, line ends as they are; Problem where it is not UTF-8."""
        try:
            return read_bytes(self.file(name)).decode()
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise Problem(f"is not UTF-8: {error.reason}", file=name, line=line) from None

    def sha256(self, name: str) -> str:
        """The hash of a file."""
        return sha256_file(self.file(name))

    def siblings(self) -> Iterator[Path]:
        """The other record folders of the track, by name."""
        others = self.place.parent
        if others.is_dir():
            for path in sorted(others.iterdir()):
                if path.is_dir() and path.name[0] != "." and path not in (self.place, self.replaces):
                    yield path

    @cached_property
    def record(self) -> Record:
        """record.json, valid by the schema."""
        return read_record(self.file(RECORD))

    @cached_property
    def track(self) -> Track:
        """The track that record.json names, as its ruleset has it, with the target of its class."""
        return load_track(self.record.track).under(self.record.ruleset).of_class(self.record.hardware_class)

    @cached_property
    def source(self) -> str:
        """The text of the recipe's source."""
        return self.text(SOURCE)

    @cached_property
    def first(self) -> "RunFiles":
        """The run behind the record."""
        return RunFiles(self, "")

    @cached_property
    def second(self) -> "RunFiles":
        """The run that verifies it."""
        return RunFiles(self, f"{SECOND}/")


class RunFiles:
    """One of a record's two runs: `prefix` is "" for the first, "verification/" for the second."""

    def __init__(self, home: RecordFolder, prefix: str) -> None:
        self.home, self.prefix = home, prefix

    def name(self, file: str) -> str:
        """A file's name from the record's folder."""
        return self.prefix + file

    def field(self, name: str) -> str:
        """A field's name in record.json."""
        return self.prefix.replace("/", ".") + name

    @property
    def entry(self) -> RunEntry:
        """What record.json says of this run."""
        if not self.prefix:
            return self.home.record.first
        if self.home.record.verification is None:
            raise Problem("has no verification", file=RECORD)
        return self.home.record.verification

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest, valid by its schema."""
        return read_manifest(self.home.file(self.name(MANIFEST)))

    @cached_property
    def log(self) -> RunLog:
        """The log, whole and in order."""
        return read_log(self.home.file(self.name(LOG)))

    @property
    def evidence(self) -> str:
        """The name of the evidence."""
        return self.name(self.home.track.evidence_name)

    @property
    def checkpoint(self) -> str:
        """The name of the checkpoint."""
        return self.name(self.home.track.checkpoint_name)

    @cached_property
    def score(self) -> Score:
        """The score that the evidence gives when it is played again."""
        self.home.file(self.checkpoint)  # a track may read it beside the evidence
        return self.home.track.score(self.home.file(self.evidence))
