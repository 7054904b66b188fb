"""What the model answered, `completions.md`: pass@k, what became of the completions, and examples of them.

    python -m llm.report outputs/<run>

writes it and `progress.svg` (see `llm.figures`) into the folder of a run and prints the tables.
"""

import argparse
import math
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from harness.errors import Problem, run_command
from harness.files import write_atomic
from harness.manifest import read_manifest
from harness.record import LOG, MANIFEST, SECOND
from llm import figures
from llm.answers import REASONS
from llm.track import TRACK, Outcomes, read_outcomes

PROGRESS, COMPLETIONS = "progress.svg", "completions.md"
KS = (1, 2, 4, 8)
SHOWN = 3  # puzzles of each kind
LONGEST_SHOWN = 600  # characters of a completion
_MERGE_MARK = re.compile(r"(?m)^(?=[<>|=]{7})")


class Table(NamedTuple):
    """A table of cells as they are shown; the first column holds names, the others numbers."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def markdown(self) -> str:
        """With its title as a heading."""
        lines = [self.head, ("---", *["---:"] * (len(self.head) - 1)), *self.rows]
        return f"## {self.title}\n\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def rich(self) -> RichTable:
        """For a terminal."""
        table = RichTable(title=Text(self.title), title_justify="left")
        for column, name in enumerate(self.head):
            table.add_column(Text(name), justify="right" if column else "left")
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table


def pass_at(k: int, count: int, solved: int) -> float:
    """Chance that k of a puzzle's completions, drawn without return, hold one that solves.

    The unbiased estimator of pass@k of Chen et al. 2021, equation 1, where `solved` of `count` solve.
    """
    return 1.0 - math.comb(count - solved, k) / math.comb(count, k)


def completions(folder: Path) -> str:
    """The tables, and the examples of the first run, of a record's or run's folder, as Markdown."""
    return page(read_runs(folder))


def page(runs: dict[str, Outcomes]) -> str:
    """The text of `completions.md` for the named runs."""
    first = next(iter(runs.values()))
    size = f"{len(first.puzzles):,} puzzles, {len(first.completions[0])} completions each"
    pieces = [
        "# Completions",
        f"On {first.header['puzzles']}: {size}. pass@k is the chance that one of k completions of a puzzle "
        "solves it (Chen et al. 2021).",
        *(table.markdown() for table in tables(runs)),
        "## Prompt",
        fenced(first.header["prompt"]),
        *examples(first),
    ]
    return "\n\n".join(pieces) + "\n"


def read_runs(folder: Path) -> dict[str, Outcomes]:
    """The evidence of the run or runs in a folder, by name; a Problem where the runs do not compare."""
    second = folder / SECOND / TRACK.evidence_name
    runs = {"first run": read_outcomes(folder / TRACK.evidence_name)}
    if not second.is_file():
        return runs
    runs["second run"] = read_outcomes(second)
    if runs["first run"].header["puzzles"] != runs["second run"].header["puzzles"]:
        raise Problem("the two runs were evaluated on different puzzles", file=folder)
    return runs


# ---- tables -------------------------------------------------------------------------------------------


def tables(runs: dict[str, Outcomes]) -> list[Table]:
    """pass@k, pass@k by difficulty, reasons and tokens; a column or row for each named run."""
    return [_pass_table(runs), _difficulty_table(runs), _reason_table(runs), _token_table(runs)]


def _pass_table(runs: dict[str, Outcomes]) -> Table:
    rows = [
        (name, *(f"{statistics.fmean(_passes(outcomes, k)):.4f}" for k in KS))
        for name, outcomes in runs.items()
    ]
    return Table("pass@k", ("", *(f"pass@{k}" for k in KS)), rows)


def _difficulty_table(runs: dict[str, Outcomes]) -> Table:
    """A row for each number of moves of the reference solution."""
    puzzles = next(iter(runs.values())).puzzles
    columns = [
        (f"pass@{k}{'' if len(runs) == 1 else ', ' + name}", _passes(outcomes, k))
        for name, outcomes in runs.items()
        for k in (KS[0], KS[-1])
    ]
    rows = []
    for moves in sorted({puzzle.difficulty for puzzle in puzzles}):
        here = [place for place, puzzle in enumerate(puzzles) if puzzle.difficulty == moves]
        means = (statistics.fmean(passes[place] for place in here) for _, passes in columns)
        rows.append((str(moves), f"{len(here):,}", *(f"{mean:.3f}" for mean in means)))
    return Table("By moves of the solution", ("moves", "puzzles", *(name for name, _ in columns)), rows)


def _reason_table(runs: dict[str, Outcomes]) -> Table:
    rows = []
    for reason in REASONS:
        cells = []
        for outcomes in runs.values():
            verdicts = [verdict for row in outcomes.completions for verdict, _ in row]
            count = sum(verdict.reason == reason for verdict in verdicts)
            cells.append(f"{count:,} ({count / len(verdicts):.1%})")
        rows.append((reason, *cells))
    return Table("What became of the completions", ("", *runs), rows)


def _token_table(runs: dict[str, Outcomes]) -> Table:
    columns = []
    for outcomes in runs.values():
        drawn = [completion for row in outcomes.completions for _, completion in row]
        tokens = [completion["tokens"] for completion in drawn]
        interrupted = statistics.fmean("interrupted" in completion for completion in drawn)
        cut_off = statistics.fmean(completion["finish"] == "length" for completion in drawn)
        columns.append(
            (
                f"{statistics.fmean(tokens):,.1f}",
                f"{statistics.median(tokens):,.0f}",
                f"{max(tokens):,}",
                f"{interrupted:.1%}",
                f"{cut_off:.1%}",
            )
        )
    names = ("tokens, mean", "tokens, median", "tokens, longest", "interrupted", "cut off")
    return Table("Length", ("", *runs), list(zip(names, *columns, strict=True)))


def _passes(outcomes: Outcomes, k: int) -> list[float]:
    """pass@k of each puzzle."""
    return [pass_at(k, len(row), sum(verdict.solved for verdict, _ in row)) for row in outcomes.completions]


# ---- examples -----------------------------------------------------------------------------------------


def examples(outcomes: Outcomes) -> list[str]:
    """Pieces of Markdown: the first puzzles that all, some and none of their completions solve."""
    solved = [sum(verdict.solved for verdict, _ in row) for row in outcomes.completions]
    counts = [len(row) for row in outcomes.completions]
    kinds = {
        "all of their completions solve": [done == count for done, count in zip(solved, counts, strict=True)],
        "some of their completions solve": [
            0 < done < count for done, count in zip(solved, counts, strict=True)
        ],
        "none of their completions solves": [done == 0 for done in solved],
    }
    pieces = [
        "## Examples",
        f"The first {SHOWN} puzzles of each kind, and of each the first completion that solves it and the "
        f"first that does not. From the middle of what is longer than {LONGEST_SHOWN} characters the rest is "
        "left out, and characters that do not print are escaped.",
    ]
    for kind, belongs in kinds.items():
        places = [place for place, does in enumerate(belongs) if does][:SHOWN]
        pieces.append(f"### Puzzles that {kind}")
        pieces += [piece for place in places for piece in _example(outcomes, place)] or ["None."]
    return pieces


def _example(outcomes: Outcomes, place: int) -> list[str]:
    puzzle, row = outcomes.puzzles[place], outcomes.completions[place]
    pieces = [f"Puzzle {puzzle.index}, solved by `{puzzle.solution}`:", fenced(puzzle.board)]
    for wanted in (True, False):
        found = next((index for index, (verdict, _) in enumerate(row) if verdict.solved == wanted), None)
        if found is not None:
            verdict, completion = row[found]
            interrupted = ", interrupted" if "interrupted" in completion else ""
            pieces.append(
                f"Completion {found}: {verdict.reason}, {completion['tokens']:,} tokens{interrupted}."
            )
            pieces.append(fenced(shortened(completion["text"])))
    return pieces


def shortened(text: str) -> str:
    """The text, or its beginning and its end with a line between that says how much is left out."""
    left_out = len(text) - LONGEST_SHOWN
    if left_out <= 0:
        return text
    half = LONGEST_SHOWN // 2
    return f"{text[:half]}\n[... {left_out:,} characters ...]\n{text[-half:]}"


def fenced(text: str) -> str:
    """Any text as a Markdown block of code that it cannot leave.

    Characters that do not print, among them those that turn the direction of writing round, are escaped, and
    a line that looks like the mark of an unfinished merge begins with a space.
    """
    plain = "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
    plain = _MERGE_MARK.sub(" ", plain)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", plain)), default=0))
    return f"{fence}text\n{plain}\n{fence}"


# ---- the command line ---------------------------------------------------------------------------------


def write(folder: Path, parts: Sequence[str], console: Console) -> None:
    """Write these reports on a run into its folder, and print the tables."""
    if PROGRESS in parts:
        write_atomic(folder / PROGRESS, figures.progress(folder))
    if COMPLETIONS in parts:
        runs = read_runs(folder)
        write_atomic(folder / COMPLETIONS, page(runs))
        for table in tables(runs):
            console.print(table.rich())
    console.print(Text(f"Written: {', '.join(str(folder / part) for part in parts)}"))


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m llm.report",
        description=f"Write {PROGRESS} from a run's log and {COMPLETIONS} from its evidence into its folder.",
    )
    parser.add_argument("run", type=Path, help="folder of a run or of a record")
    folder = parser.parse_args(arguments).run
    sources = {PROGRESS: LOG, COMPLETIONS: TRACK.evidence_name}
    parts = [part for part, source in sources.items() if (folder / source).is_file()]
    if not parts:
        raise Problem(f"holds neither {LOG} nor {TRACK.evidence_name}", file=folder)
    manifest = folder / MANIFEST
    if manifest.is_file() and (track := read_manifest(manifest).track) != TRACK.name:
        raise Problem(f"is a run of the track {track}", file=folder)
    write(folder, parts, Console())


if __name__ == "__main__":
    run_command(main)
