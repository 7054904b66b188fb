"""The standing of records: which of them were retimed or invalidated since, when, why and by whom.

    python -m harness.standing retime records/<track>/<record> SECONDS SECONDS --machine "..." --reason "..."
    python -m harness.standing invalidate records/<track>/<record> --reason "..."

`records/<track>/standing.jsonl` is the maintainers' ledger. It has an entry a line, in the one form that this
command writes; the last entry of a record counts, and after an invalidation there is none.
"""

import argparse
import datetime
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from harness.errors import Problem, run_command
from harness.files import STRICT, canonical_json, read_bytes, read_jsonl, write_atomic
from harness.record import RECORD, Record, description_fault, milliseconds, read_record
from harness.track import ROOT, load_track

LEDGER = "standing.jsonl"
ROLES = ("maintainer", "contributor")

Taken = Annotated[FiniteFloat, Field(gt=0, le=366 * 86_400)]


class Standing(BaseModel):
    """One entry: a record that was retimed, so that other seconds rank, or invalidated, so that none do."""

    model_config = STRICT

    record: str
    """Name of its folder."""
    standing: Literal["retimed", "invalidated"]
    date: datetime.date
    by: Literal["maintainer", "contributor"]
    reason: str
    times_s: tuple[Taken, Taken] | None
    """Retimed: what training took in the first and in the second run, in place of the record's seconds."""
    machine: str | None
    """Retimed: where."""

    def ranked(self, record: Record) -> Record:
        """The record with the seconds that rank."""
        if self.times_s is None or record.verification is None:
            return record
        first, second = self.times_s
        verification = record.verification.model_copy(update={"time_s": second})
        return record.model_copy(update={"time_s": first, "verification": verification})

    def __str__(self) -> str:
        where = f" on {self.machine}" if self.machine else ""
        return f"{self.standing} {self.date}{where} by a {self.by}: {self.reason}"


def read_standings(folder: Path) -> dict[str, Standing]:
    """Name of a record's folder -> its last entry in the ledger of `folder`, which is records/<track>.

    Raises:
        Problem: with file and line, an entry in another form or order, of no record, or that cannot be.
    """
    path = folder / LEDGER
    if not path.exists() and not path.is_symlink():
        return {}
    if path.is_symlink() or not path.is_file():
        raise Problem("is not a plain file", file=path)
    lines = read_bytes(path).split(b"\n")
    found: dict[str, Standing] = {}
    last = datetime.date.min
    for number, content in read_jsonl(path):
        try:
            entry = Standing.model_validate_json(canonical_json(content))
        except ValidationError as error:
            faults = [
                f"{'.'.join(map(str, item['loc'])) or 'entry'}: {item['msg']}" for item in error.errors()
            ]
            raise Problem("; ".join(faults), file=path, line=number) from error
        fault = _fault(entry, folder, found.get(entry.record))
        if lines[number - 1] != _line(entry).encode():
            fault = f"is not in the form that is written: {_line(entry)}"
        if not fault and entry.date < last:
            fault = f"is of {entry.date}, after one of {last}"
        if fault:
            raise Problem(fault, file=path, line=number)
        found[entry.record], last = entry, entry.date
    return found


def is_invalidated(record: Path) -> bool:
    """Whether the record in this folder was invalidated, by a ledger that can be read."""
    place = record.absolute()
    try:
        found = read_standings(place.parent).get(place.name)
    except Problem:
        return False
    return found is not None and found.standing == "invalidated"


def add_standing(folder: Path, entry: Standing) -> Path:
    """Add an entry to the ledger of records/<track>; a Problem where it cannot be, and nothing is written."""
    if fault := _fault(entry, folder, read_standings(folder).get(entry.record)):
        raise Problem(fault, file=folder / entry.record)
    path = folder / LEDGER
    before = read_bytes(path) if path.exists() else b""
    write_atomic(path, before + _line(entry).encode() + b"\n")
    return path


def _line(entry: Standing) -> str:
    return canonical_json(entry.model_dump(mode="json"))


def _fault(entry: Standing, folder: Path, before: Standing | None) -> str | None:
    """Why an entry cannot be, or None where it can."""
    if Path(entry.record).name != entry.record or not (folder / entry.record / RECORD).is_file():
        return f"there is no record {entry.record!r} in {folder.name}"
    record = read_record(folder / entry.record / RECORD)
    if before is not None and before.standing == "invalidated":
        return f"{entry.record} is invalidated already"
    if entry.date < record.date:
        return f"date is {entry.date}, before the record's, {record.date}"
    if fault := description_fault(entry.reason):
        return f"the reason {fault}"
    retimed = entry.standing == "retimed"
    if retimed != (entry.times_s is not None) or retimed != (entry.machine is not None):
        return "times_s and machine are told of what is retimed, and of nothing else"
    if not retimed:
        return None
    if record.verification is None:
        return f"{entry.record} has no second run, so it cannot be retimed"
    if (cost := load_track(record.track).cost) is not None:
        return f"on {record.track} {cost} rank, so it cannot be retimed"
    if fault := description_fault(entry.machine or ""):
        return f"the machine {fault}"
    return None


def main(arguments: Sequence[str] | None = None, *, root: Path = ROOT) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.standing",
        description="Write down that a record was retimed or invalidated. The record itself stays as it is.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    retime = commands.add_parser("retime", help="other seconds rank from now on")
    invalidate = commands.add_parser("invalidate", help="it ranks no longer, and stays with the reason")
    for command in (retime, invalidate):
        command.add_argument("record", type=Path, help="records/<track>/<record>")
        command.add_argument("--reason", required=True, help="one plain line, shown on the board")
        command.add_argument(
            "--by", choices=ROLES, default=ROLES[0], help="who says so (default: %(default)s)"
        )
    retime.add_argument("seconds", type=float, nargs=2, help="of training, in the first and the second run")
    retime.add_argument("--machine", required=True, help="where, in a few words")
    options = parser.parse_args(arguments)
    place = options.record.absolute()
    if place.parent.parent != root / "records":
        raise Problem("is not a record", file=options.record, remedy="give a folder records/<track>/<record>")
    times = getattr(options, "seconds", None)
    if times is not None and not all(0.001 <= seconds <= 366 * 86_400 for seconds in times):
        raise Problem(f"{times} are not two times in seconds", remedy="give what training took in both runs")
    entry = Standing(
        record=place.name,
        standing="invalidated" if times is None else "retimed",
        date=datetime.datetime.now(UTC).date(),
        by=options.by,
        reason=options.reason,
        times_s=None if times is None else (milliseconds(times[0]), milliseconds(times[1])),
        machine=getattr(options, "machine", None),
    )
    path = add_standing(place.parent, entry)
    print(f"{path.relative_to(root)}: {entry.record} is {entry}")
    print("Next: python -m harness.boards, and commit what it writes with the ledger")
    return 0


if __name__ == "__main__":
    run_command(main)
