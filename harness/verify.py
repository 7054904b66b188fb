"""Check records: `python verify_record.py records/<track>/<record>...` prints every check of every record.

Exits 0 where all records pass, 1 where any check fails, 2 on a path that is no folder.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.checks import Check, RecordFolder, check_all
from harness.errors import Problem
from harness.track import ROOT

_PASS, _PENDING, _FAIL = Text("pass", "green"), Text("pending", "yellow"), Text("FAIL", "bold red")


def verify_record(path: Path, *, root: Path = ROOT) -> list[Check]:
    """Every check of a record, in order, against the fixed files of the checkout at `root`. Never raises."""
    return check_all(RecordFolder(path, root=root))


def show(path: Path, checks: Sequence[Check], console: Console) -> bool:
    """Print a record's checks as a table; whether all passed."""
    pending = sum(check.pending for check in checks)
    failed = sum(not check.passed for check in checks) - pending
    verdict = f"all {len(checks)} checks passed"
    if failed or pending:
        verdict = f"of {len(checks)} checks {failed} failed and {pending} are pending"
    table = Table(title=Text(str(path)), title_justify="left", header_style="bold")
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("reason", overflow="fold")
    for check in checks:
        word = _PASS if check.passed else _PENDING if check.pending else _FAIL
        table.add_row(Text(check.name), word, Text(check.reason))
    console.print(table)
    console.print(Text(f"{path}: {verdict}"), soft_wrap=True)
    return not (failed or pending)


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
            raise Problem("is no folder", file=path, remedy="give folders records/<track>/<record>")
    console = Console(width=None if Console().is_terminal else 200)
    results = [show(path, verify_record(path), console) for path in paths]
    return 0 if all(results) else 1
