"""Review a pull request with records: `python -m harness.submission [--base origin/main] [--head HEAD]`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from harness.checks import printable
from harness.errors import run_command
from harness.files import write_atomic
from harness.submission import summary
from harness.submission.review import review


def told(found: summary.Summary) -> str:
    """The summary for a terminal."""
    lines = []
    for record in found.records:
        lines.append(f"{record.folder}: {record.checks} checks passed")
        lines.append(f"  {record.board}: place {record.rank}, with {record.spent} ({record.comparison})")
        lines.append(f"  {record.score}, second seed {record.second}")
        lines += [f"  {remark}" for remark in (record.verdict, *record.remarks) if remark]
        lines += [f"  to put right: {check}" for check in record.failed]
    lines += [f"to put right: {fault}" for fault in found.faults]
    lines.append(f"{found.files} files differ: {found.said}")
    return "\n".join(map(printable, lines))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line: 0 where nothing is to be put right, 1 else."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.submission",
        description="Review what a commit would bring to the main branch: what it touches, its records, "
        "links, sizes and boards. Nothing of it is run, and what is not committed is not seen.",
    )
    parser.add_argument("--base", default="origin/main", help="where it shall go (default: %(default)s)")
    parser.add_argument("--head", default="HEAD", help="what shall go there (default: %(default)s)")
    parser.add_argument("--repository", type=Path, default=Path(), help="the checkout that holds both")
    parser.add_argument("--number", type=int, help="of the pull request, for the summary")
    parser.add_argument("--summary", type=Path, help="write the summary to this file, as JSON")
    options = parser.parse_args(arguments)
    found = review(options.repository, options.base, options.head, options.number)
    if options.summary is not None:
        write_atomic(options.summary, summary.dump(found))
    print(told(found))
    return 0 if found.passed else 1


if __name__ == "__main__":
    run_command(main)
