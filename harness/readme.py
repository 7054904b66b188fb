"""What the tools keep inside files that people write: blocks between marks, and the README of a record."""

import re
from dataclasses import dataclass

from harness.errors import Problem
from harness.record import CURVE, Record, ScoreEntry, minutes, spent_text
from harness.track import Report, Track

RESULTS = "results"
IDEA_PLACEHOLDER = "Replace this sentence: what is new here, why it is faster, and what did not work."


@dataclass(frozen=True)
class Block:
    """The text between two marks, without the newlines around it, and the number of its first line."""

    text: str
    line: int


def find_block(document: str, name: str, *, file: str) -> Block:
    """The block `name` of a document; Problem where its marks are missing, repeated or out of order."""
    lines = document.split("\n")
    places = []
    for mark in _marks(name):
        found = [index for index, line in enumerate(lines) if line == mark]
        if len(found) != 1:
            raise Problem(f"has {len(found)} lines {mark}, expected one", file=file)
        places += found
    first, last = places
    if first > last:
        raise Problem(f"the end of {name} comes before its start", file=file, line=last + 1)
    return Block("\n".join(lines[first + 1 : last]), first + 2)


def replace_block(document: str, name: str, text: str, *, file: str) -> str:
    """The document with `text` in place of what stood in its block `name`."""
    block = find_block(document, name, file=file)
    lines = document.split("\n")
    first = block.line - 1
    last = next(index for index in range(first, len(lines)) if lines[index] == _marks(name)[1])
    return "\n".join([*lines[:first], text, *lines[last:]])


def block_names(document: str, kind: str) -> list[str]:
    """Names of the blocks whose name begins with `kind`, in the order of their start marks."""
    return re.findall(rf"(?m)^<!-- ({re.escape(kind)}\S*):start -->$", document)


def scaffold(record: Record, track: Track) -> str:
    """The README of a new record: generated results, and a place for the author's own words."""
    start, end = _marks(RESULTS)
    return f"""# {track.title}, record {record.number}: {record.name}

{start}
{results_block(record, track)}
{end}

## Idea

{IDEA_PLACEHOLDER}

## Reproduce

With this folder's `speedrun.py` in place of `{record.track}/speedrun.py`:

```
{track.command(record.hardware_class)}
```
"""


def results_block(record: Record, track: Track) -> str:
    """What a record's README repeats from record.json."""
    runs = [record.first, *([record.verification] if record.verification else [])]
    headings = ["first run", "second run"]
    rows = [
        ("seed", [str(run.seed) for run in runs]),
        *([(track.cost, [spent_text(track, run) for run in runs])] if track.cost else []),
        ("time", [f"{minutes(run.time_s)} ({run.time_s} s)" for run in runs]),
        ("CPU time", [f"{run.cpu_s} s" for run in runs]),
        (track.metric, [interval(run.score) for run in runs]),
        ("calibration", [f"{run.calibration_s} s" for run in runs]),
    ]
    if len(runs) == 1:
        rows = [(name, [*cells, "pending"]) for name, cells in rows]
    lines = [("", headings), ("---", ["---:", "---:"]), *rows]
    table = "\n".join(f"| {' | '.join([name, *cells])} |" for name, cells in lines)
    target = f"{track.goal} {record.target}"
    return f"""{record.description}

By {", ".join(record.contributors)}, {record.date}. Class {record.hardware_class}, ruleset {record.ruleset}.

{table}

Published: {track.metric} {record.published.value:.4f}, the worse of the runs. Target: {target}.
Ran on {record.hardware}.

![{track.metric} in training against time]({CURVE}){"".join(map(_shown, track.reports))}"""


def interval(score: ScoreEntry) -> str:
    """A score for people, with its 95% interval and the number of units behind it."""
    return f"{score.value:.4f} [{score.low:.4f}, {score.high:.4f}] of {score.count}"


def _shown(report: Report) -> str:
    """A picture as such, and anything else as a link."""
    return f"\n\n{'!' if report.name.endswith('.svg') else ''}[{report.title}]({report.name})"


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}:start -->", f"<!-- {name}:end -->"
