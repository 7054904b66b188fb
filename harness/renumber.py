"""Give a record the next free number: `python -m harness.renumber records/<track>/<record>`.

For the second of two records that took the same number in two pull requests. A number stands in the folder's
name, in record.json and in the title of the README. No run knows it, so both runs and their seeds stay valid.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from harness.errors import Problem, run_command
from harness.files import read_text, write_atomic
from harness.record import README, RECORD, FolderName, read_record
from harness.standing import LEDGER, read_standings
from harness.track import ROOT


def next_number(folder: Path) -> int:
    """The number of the next record in records/<track>: one more than the highest."""
    folders = (path.name for path in folder.glob("[0-9]*") if path.is_dir())
    return 1 + max((FolderName.parse(name).number for name in folders), default=0)


def renumber(path: Path) -> Path:
    """Give the record in a folder the next number; returns its new folder.

    Raises:
        Problem: there is no record, or none beside it that has its number, or the ledger names it.
    """
    if not (path / RECORD).is_file():
        raise Problem("is not a record", file=path, remedy="give a folder records/<track>/<record>")
    record = read_record(path / RECORD)
    others = [other for other in path.parent.glob("[0-9]*") if other.is_dir() and other.name != path.name]
    if all(FolderName.parse(other.name).number != record.number for other in others):
        remedy = "merge the main branch first, if the number was taken there"
        raise Problem(f"no other record here has the number {record.number}", file=path, remedy=remedy)
    if path.name in read_standings(path.parent):
        remedy = "renumber the other record of this number"
        raise Problem(f"{LEDGER} names it, so it keeps its number", file=path, remedy=remedy)
    number = next_number(path.parent)
    title = re.compile(rf"(?m)^(# .*, record ){record.number}(: {re.escape(record.name)})$")
    text = title.sub(rf"\g<1>{number}\g<2>", read_text(path / README), count=1)
    renumbered = record.model_copy(update={"number": number})
    place = path.rename(path.with_name(renumbered.folder_name))
    write_atomic(place / RECORD, renumbered.dump())
    write_atomic(place / README, text)
    return place


def main(arguments: Sequence[str] | None = None, *, root: Path = ROOT) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.renumber",
        description="Give a record the next number where another has its own. Its runs stay valid.",
    )
    parser.add_argument("record", type=Path, help="records/<track>/<record>")
    path = parser.parse_args(arguments).record.absolute()
    if path.parent.parent != root / "records":
        raise Problem("is not a record", file=path, remedy="give a folder records/<track>/<record>")
    place = renumber(path)
    print(f"{path.relative_to(root)} is {place.relative_to(root)} now")
    print(f"Next: python verify_record.py {place.relative_to(root)}, and commit both names")
    return 0


if __name__ == "__main__":
    run_command(main)
