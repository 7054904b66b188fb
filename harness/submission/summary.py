"""What the review of a pull request found, as a file of plain texts and as Markdown that can hold no others'.

    python -m harness.submission.summary summary.json            the Markdown
    python -m harness.submission.summary --number summary.json   the number of the pull request

The workflow that comments reads a file that a stranger's pull request may have written, with a token that may
comment. So this module uses the standard library alone, takes nothing but what `Summary` says, and writes
every text that it was given as code, in which GitHub sees no link, mention, markup or HTML.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

SIZE_LIMIT = 2_000_000  # bytes of a summary
COMMENT_LIMIT = 60_000  # characters; GitHub takes 65,536
SHOWN_FAULTS, SHOWN_CHECKS, SHOWN_RECORDS = 30, 10, 10
LONGEST_TEXT = 600


class BadSummary(Exception):
    """The file is no summary."""


@dataclass(frozen=True)
class RecordSummary:
    """One record of a pull request, in texts for people."""

    folder: str
    board: str
    """Track and class."""
    checks: str
    """How many passed."""
    failed: tuple[str, ...]
    """Name and reason of each check that did not."""
    score: str
    second: str
    """The second seed's score."""
    spent: str
    """What ranks: time, or the track's cost."""
    rank: str
    """The place on its board that it would take."""
    comparison: str
    """What it takes beside the best of the others on its board."""
    verdict: str
    """What may be said of the two; empty where nothing can."""
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Summary:
    """What a review found."""

    number: int | None
    """Of the pull request; None where there is none yet."""
    base: str
    head: str
    files: int
    """How many differ."""
    faults: tuple[str, ...]
    """Everything for which the pull request is refused, but for what the records' checks say."""
    records: tuple[RecordSummary, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing is to be put right."""
        return not self.faults and not any(record.failed for record in self.records)

    @property
    def said(self) -> str:
        """The verdict in words."""
        count = len(self.faults) + sum(len(record.failed) for record in self.records)
        return f"{count} to put right" if count else "nothing to put right"


def dump(summary: Summary) -> str:
    """The summary as JSON, its lists and texts cut to what is shown, so that `load` takes it."""
    records = [
        replace(record, failed=_cut(record.failed, SHOWN_CHECKS), remarks=_cut(record.remarks, SHOWN_CHECKS))
        for record in summary.records[:SHOWN_RECORDS]
    ]
    faults = list(summary.faults)
    if len(summary.records) > SHOWN_RECORDS:
        faults.insert(0, f"{len(summary.records)} records, of which {SHOWN_RECORDS} are shown")
    bounded = replace(summary, records=tuple(records), faults=_cut(faults, SHOWN_FAULTS))
    return json.dumps(_shortened(asdict(bounded)), indent=1) + "\n"


def load(path: Path) -> Summary:
    """Read a summary that anyone may have written.

    Raises:
        BadSummary: it is a link, too large, no JSON, or has other fields or types than a summary.
    """
    if path.is_symlink() or not path.is_file():
        raise BadSummary("not a plain file")
    if path.stat().st_size > SIZE_LIMIT:
        raise BadSummary(f"more than {SIZE_LIMIT} bytes")
    try:
        content = json.loads(path.read_bytes().decode())
    except (ValueError, RecursionError):
        raise BadSummary("no JSON") from None
    fields = _fields(content, Summary)
    records = tuple(_record(item) for item in _list(fields.pop("records")))
    number, files = fields.pop("number"), fields.pop("files")
    if not (number is None or _counts(number)) or not _counts(files):
        raise BadSummary("a number that is none")
    faults = _texts(fields.pop("faults"))
    return Summary(number=number, files=files, faults=faults, records=records, **_all_texts(fields))


def markdown(summary: Summary, warning: str = "") -> str:
    """The comment: the verdict, a table of the records, and what is to be put right."""
    parts = [f"### Records in this pull request: {summary.said}"]
    parts += [f"**{warning}**"] if warning else []
    if summary.records:
        parts.append(_table(summary.records))
    parts += _section("Not as a record's pull request should be", summary.faults, SHOWN_FAULTS)
    for record in summary.records:
        parts += _section(f"Checks of {code(record.folder)}", record.failed, SHOWN_CHECKS)
        remarks = [*filter(None, [record.verdict]), *record.remarks]
        parts += _section(f"On {code(record.folder)}", remarks, SHOWN_CHECKS)
    commits = f"{code(summary.head[:12])} on {code(summary.base[:12])}, {summary.files} files differ."
    parts.append(f"{commits} Rules and remedies: CONTRIBUTING.md and docs/rules.md.")
    text = "\n\n".join(parts) + "\n"
    return text if len(text) <= COMMENT_LIMIT else f"{parts[0]}\n\nThe summary is too long to show.\n"


def code(text: str) -> str:
    """Any text as a code span that fits into a table: one line, nothing of it read as Markdown."""
    cut = str(_shortened(text))
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in cut)
    # A code span knows no escapes, and a table would split at a bar even within one.
    return f"`` {shown.replace('`', chr(0x2BC)).replace('|', '¦').strip() or '-'} ``"


def _table(records: Sequence[RecordSummary]) -> str:
    titles = ("record", "board", "checks", "score", "second seed", "ranks by", "place", "to the best")
    lines = [titles, tuple("---" for _ in titles)]
    for r in records:
        cells = (r.folder, r.board, r.checks, r.score, r.second, r.spent, r.rank, r.comparison)
        lines.append(tuple(map(code, cells)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _section(title: str, texts: Sequence[str], shown: int) -> list[str]:
    lines = [f"- {code(text)}" for text in _cut(texts, shown)]
    return [f"{title}:\n\n" + "\n".join(lines)] if lines else []


def _cut(texts: Sequence[str], most: int) -> tuple[str, ...]:
    """The first of the texts, and how many more there are."""
    more = len(texts) - most
    return tuple(texts) if more <= 1 else (*texts[:most], f"and {more} more")


def _shortened(value: Any) -> Any:
    """The same with every text cut to what is shown of it."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}..."
    if isinstance(value, dict):
        return {name: _shortened(inner) for name, inner in value.items()}
    return [_shortened(inner) for inner in value] if isinstance(value, list | tuple) else value


def _record(content: Any) -> RecordSummary:
    fields = _fields(content, RecordSummary)
    failed, remarks = _texts(fields.pop("failed")), _texts(fields.pop("remarks"))
    return RecordSummary(failed=failed, remarks=remarks, **_all_texts(fields))


def _fields(content: Any, of: type[Summary] | type[RecordSummary]) -> dict[str, Any]:
    if not isinstance(content, dict) or set(content) != set(of.__dataclass_fields__):
        raise BadSummary(f"other fields than those of {of.__name__}")
    return dict(content)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise BadSummary("no list where one is expected")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(_all_texts(dict(enumerate(_list(value)))).values())


def _all_texts(values: Mapping[Any, Any]) -> dict[Any, str]:
    if not all(isinstance(value, str) for value in values.values()):
        raise BadSummary("no text where one is expected")
    return dict(values)


def _counts(value: Any) -> bool:
    return type(value) is int and 0 <= value < 10**9


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; exits 2 on a file that is no summary."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.submission.summary", description="Show the summary of a review as Markdown."
    )
    parser.add_argument("file", type=Path, help="what `python -m harness.submission --summary` wrote")
    parser.add_argument("--number", action="store_true", help="print the number of the pull request instead")
    parser.add_argument("--warning", default="", help="a sentence to put on top")
    given = parser.parse_args(arguments)
    try:
        summary = load(given.file)
        if given.number and summary.number is None:
            raise BadSummary("of no pull request")
    except BadSummary as error:
        print(f"{given.file}: {error}", file=sys.stderr)
        return 2
    text = f"{summary.number}\n" if given.number else markdown(summary, given.warning)
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
