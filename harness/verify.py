"""Check records: `python verify_record.py records/<track>/<record>...` prints every check of every record.

Under the checks stand remarks: what is too good or too regular to pass without a look. They fail nothing.

Exits 0 where all records pass that were not invalidated, 1 where any check fails or is pending, 2 on a path
that is no folder, and 3 where nothing fails but this machine lacks what some check takes.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.checks import Check, RecordFolder, check_all
from harness.errors import Problem
from harness.record import MANIFEST, RECORD
from harness.remarks import Remark, remarks
from harness.standing import is_invalidated
from harness.track import ROOT

_PASS, _PENDING, _FAIL = Text("pass", "green"), Text("pending", "yellow"), Text("FAIL", "bold red")
_UNAVAILABLE = Text("not here", "magenta")


def verify_record(path: Path, *, root: Path = ROOT) -> list[Check]:
    """Every check of a record, in order, against the fixed files of the checkout at `root`. Never raises."""
    return check_all(RecordFolder(path, root=root))


def remarks_on(home: RecordFolder, checks: Sequence[Check]) -> list[Remark]:
    """What to look at in a record, beside its siblings; nothing where a check failed, which says enough."""
    if any(check.failed for check in checks):
        return []
    return remarks(home, [RecordFolder(path, root=home.root) for path in home.siblings()])


def show(path: Path, checks: Sequence[Check], console: Console, noticed: Sequence[Remark] = ()) -> bool:
    """Print a record's checks, and the remarks on it, as tables; whether all checks passed."""
    pending, failed = sum(check.pending for check in checks), sum(check.failed for check in checks)
    verdict = f"all {len(checks)} checks passed"
    if not all(check.passed for check in checks):
        verdict = f"of {len(checks)} checks {failed} failed and {pending} are pending"
    if unavailable := sum(check.unavailable for check in checks):
        verdict += f", and {unavailable} cannot be checked here"
    table = Table(title=Text(str(path)), title_justify="left", header_style="bold")
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("reason", overflow="fold")
    for check in checks:
        word = _FAIL if check.failed else _PENDING if check.pending else _UNAVAILABLE
        word = _PASS if check.passed else word
        table.add_row(Text(check.name), word, Text(check.reason))
    console.print(table)
    if noticed:
        seen = Table(
            title="Remarks, which fail nothing: look here", title_justify="left", header_style="bold"
        )
        seen.add_column("remark", no_wrap=True)
        seen.add_column("what was noticed", overflow="fold")
        for remark in noticed:
            seen.add_row(Text(remark.name, "yellow"), Text(remark.text))
        console.print(seen)
        verdict += f"; {len(noticed)} {'remark' if len(noticed) == 1 else 'remarks'}"
    console.print(Text(f"{path}: {verdict}"), soft_wrap=True)
    return all(check.passed for check in checks)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="verify_record.py", description="Check records: play the evidence again and compare all claims."
    )
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="a folder records/<track>/<record>"
    )
    paths: list[Path] = parser.parse_args(arguments).paths
    for path in paths:
        if not path.is_dir():
            raise Problem("is not a folder", file=path, remedy="give folders records/<track>/<record>")
        if not (path / RECORD).exists() and (path / MANIFEST).exists():
            remedy = f"make a record of it: RUN={path} DEST=<name> ./assemble_record.sh"
            raise Problem("is the folder of a run, not a record", file=path, remedy=remedy)
        if next(path.glob(f"*/{RECORD}"), None):
            raise Problem("holds records, and is none", file=path, remedy=f"give {path}/*")
    console = Console(width=None if Console().is_terminal else 200)
    found: list[Check] = []
    for path in paths:
        home = RecordFolder(path, root=ROOT)
        checks = check_all(home)
        show(path, checks, console, remarks_on(home, checks))
        if is_invalidated(path):
            console.print(f"{path}: it was invalidated, so what fails does not count", markup=False)
        else:
            found += checks
    if any(check.failed or check.pending for check in found):
        return 1
    return 3 if any(check.unavailable for check in found) else 0
