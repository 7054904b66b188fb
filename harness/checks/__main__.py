"""The table of checks in docs/verification.md, made from the rules: `python -m harness.checks [--write]`."""

import argparse
from pathlib import Path

from harness.checks import explain
from harness.errors import run_command
from harness.files import read_bytes, write_atomic
from harness.readme import replace_block
from harness.track import ROOT

PAGE = Path("docs/verification.md")


def table() -> str:
    """A row for each check: its name, what it looks at, and what must be so."""
    rows = [("check", "of", "passes where"), ("---", "---", "---")]
    rows += [(f"`{name}`", subject, text.removesuffix(".")) for name, subject, text in explain()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def with_table(page: str) -> str:
    """The page with the table as it must be."""
    return replace_block(page, "checks", table(), file=PAGE.as_posix())


def main() -> None:
    """Print the table, or write it into the page."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.checks", description="Print what each check of verify_record.py looks at."
    )
    parser.add_argument("--write", action="store_true", help=f"write it into {PAGE} instead")
    if parser.parse_args().write:
        write_atomic(ROOT / PAGE, with_table(read_bytes(ROOT / PAGE).decode()))
    else:
        print(table())


if __name__ == "__main__":
    run_command(main)
