"""The boards in README.md and the figures, made from the records: `python -m harness.boards [--check]`.

A board is the block `<!-- board:<track>:<class>:start -->` to `:end` of README.md; only record.json and the
ledger of standings are read for it. A block `board:<track>:<name>` holds a board of the track's own, from
what the track keeps.
With --check nothing is written, and what differs is named (exit 1). With --records only that is made, or
checked, which lies in the records' own folders: pull requests leave the rest to the main branch.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from harness import figures
from harness.errors import Problem, run_command
from harness.files import read_bytes, read_text, write_atomic
from harness.readme import RESULTS, block_names, interval, replace_block, results_block
from harness.record import (
    CURVE,
    README,
    RECORD,
    Record,
    contributors_fault,
    description_fault,
    minutes,
    read_record,
    spent_text,
)
from harness.standing import Standing, read_standings
from harness.track import ROOT, Track, available_tracks, load_track

_LEFT = {"record", "first seed", "second seed", "date", "contributors", "description"}


class Entry(NamedTuple):
    """A record, the folder it lies in, and what became of it since."""

    folder: Path
    record: Record
    standing: Standing | None = None
    """None = it stands as it is."""

    @property
    def valid(self) -> bool:
        """Whether it was not invalidated."""
        return self.standing is None or self.standing.standing != "invalidated"

    @property
    def ranked(self) -> Record:
        """The record with the seconds that rank: where it was retimed, those."""
        return self.record if self.standing is None else self.standing.ranked(self.record)

    @property
    def comparable(self) -> bool:
        """Whether it stands on the board of the track's current ruleset."""
        return load_track(self.record.track).under(self.record.ruleset).comparable


def read_records(root: Path = ROOT) -> list[Entry]:
    """Every record under `root`/records, ordered by track and number; Problem on one that cannot be shown."""
    entries = []
    standings = {folder: read_standings(folder) for folder in root.glob("records/*") if folder.is_dir()}
    for path in sorted(root.glob(f"records/*/[!.]*/{RECORD}")):
        record = read_record(path)
        if fault := description_fault(record.description):
            raise Problem(f"description {fault}", file=path)
        if fault := contributors_fault(record.contributors):
            raise Problem(f"contributors {fault}", file=path)
        entries.append(Entry(path.parent, record, standings[path.parent.parent].get(path.parent.name)))
    return sorted(entries, key=lambda entry: (entry.record.track, entry.record.number))


def board(entries: Iterable[Entry], root: Path = ROOT) -> str:
    """The tables of a class's records, those of rulesets that do not compare with the current one below."""
    entries = list(entries)
    older = list(dict.fromkeys(entry.record.ruleset for entry in entries if not entry.comparable))
    parts = [_table([entry for entry in entries if entry.comparable], root)]
    for ruleset in older:
        table = _table([entry for entry in entries if entry.record.ruleset == ruleset], root)
        parts.append(f"Under ruleset {ruleset}, which does not compare:\n\n{table}")
    return "\n\n".join(parts)


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Records of one class as its board lists them: valid and verified first, the best on top."""

    def rank(entry: Entry) -> tuple[bool, bool, float]:
        spent = load_track(entry.record.track).spent(entry.ranked)
        return not entry.valid, entry.record.verification is None, spent

    return sorted(entries, key=rank)


def _table(entries: Sequence[Entry], root: Path) -> str:
    """A Markdown table and the curve of the first one that is valid."""
    if not entries:
        return "No record yet."
    track, ordered = load_track(entries[0].record.track), in_order(entries)
    rows = [_row(entry, track, root) for entry in ordered]
    columns = tuple(rows[0])
    lines = [columns, tuple("---" if column in _LEFT else "---:" for column in columns)]
    lines += [tuple(row.values()) for row in rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    if not ordered[0].valid:
        return table
    best = ordered[0].folder.relative_to(root).as_posix()
    return f"{table}\n\n![the training curve of {ordered[0].record.name}]({best}/{CURVE})"


def with_boards(document: str, entries: Sequence[Entry], root: Path = ROOT) -> str:
    """README.md with every board in it made anew; Problem where a class, or a record, has no board."""
    shown = set()
    for name in block_names(document, "board:"):
        shown.add(name)
        document = replace_block(document, name, _block(name, entries, root), file=README)
    for entry in entries:
        name = f"board:{entry.record.track}:{entry.record.hardware_class}"
        if name not in shown:
            raise Problem(f"has no block {name} for {entry.folder.name}", file=README)
    for track in map(load_track, available_tracks(root)):
        for part in [*(c.name for c in track.classes), *(b.name for b in track.boards)]:
            if (name := f"board:{track.name}:{part}") not in shown:
                remedy = f"add the lines <!-- {name}:start --> and <!-- {name}:end -->"
                raise Problem(f"has no block {name}", file=README, remedy=remedy)
    return document


def refresh(root: Path = ROOT, *, write: bool = True, records_only: bool = False) -> list[Path]:
    """Make all that is generated anew, or only what lies in the records' folders; returns what differed."""
    entries = read_records(root)
    wanted = {} if records_only else shared_files(read_text(root / README), entries, root)
    for entry in entries:
        wanted |= own_files(entry)
    different = [
        path for path, text in wanted.items() if not path.is_file() or read_bytes(path) != text.encode()
    ]
    for path in different if write else ():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, wanted[path])
    return different


def shared_files(document: str, entries: Sequence[Entry], root: Path = ROOT) -> dict[Path, str]:
    """What all records share, path -> text: README.md, made of a version of it, and the histories."""
    wanted = {root / README: with_boards(document, entries, root)}
    for name in sorted({entry.record.track for entry in entries}):
        ranking = [e.ranked for e in entries if e.record.track == name and e.valid and e.comparable]
        if ranking:
            wanted[root / f"docs/figures/{name}_history.svg"] = figures.history(ranking, load_track(name))
    return wanted


def own_files(entry: Entry) -> dict[Path, str]:
    """What is made in a record's folder, path -> text: its results, its curve and the track's reports."""
    folder, record, track = entry.folder, entry.record, load_track(entry.record.track)
    readme = read_text(folder / README)
    return {
        folder / README: replace_block(
            readme, RESULTS, results_block(record, track), file=str(folder / README)
        ),
        folder / CURVE: figures.training_curve(folder, record, track),
        **{folder / report.name: report.make(folder) for report in track.reports},
    }


def _block(name: str, entries: Sequence[Entry], root: Path) -> str:
    """The text of a block `board:<track>:<class or board>`."""
    parts = name.split(":")
    if len(parts) != 3:
        raise Problem(f"has a block {name}, expected board:<track>:<class>", file=README)
    track, part = load_track(parts[1]), parts[2]
    for own in track.boards:
        if own.name == part:
            return own.make(root)
    if part not in [hardware.name for hardware in track.classes]:
        raise Problem(f"has a block {name}, but {track.name} has no class {part!r}", file=README)
    place = (track.name, part)
    return board([e for e in entries if (e.record.track, e.record.hardware_class) == place], root)


def _row(entry: Entry, track: Track, root: Path) -> dict[str, str]:
    """Column -> what it says of a record."""
    record, second, standing = entry.ranked, entry.record.verification, entry.standing
    link = entry.folder.relative_to(root).as_posix()
    cost = {track.cost: spent_text(track, record)} if track.cost else {}
    row = {
        "#": str(record.number),
        "record": f"[{record.name}]({link})",
        **cost,
        "time": minutes(record.time_s),
        "CPU s": f"{record.cpu_s:.0f}",
        "first seed": interval(record.score),
        "second seed": interval(second.score) if second else "pending",
        "calibration s": f"{record.calibration_s:.2f}",
        "date": record.date.isoformat(),
        "contributors": ", ".join(record.contributors),
        "description": record.description,
    }
    if standing is None:
        return row
    if entry.valid:
        row["time"] += " (retimed)"
    else:
        row = {column: f"~~{cell}~~" for column, cell in row.items()}
    row["description"] += f" ({standing})"
    return row


def main(arguments: Sequence[str] | None = None, *, root: Path = ROOT) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.boards",
        description="Make the boards in README.md and all figures from the records.",
    )
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 and name what differs")
    parser.add_argument(
        "--records", action="store_true", help="only what lies in the records' folders, as in pull requests"
    )
    options = parser.parse_args(arguments)
    check: bool = options.check
    different = refresh(root, write=not check, records_only=options.records)
    for path in different:
        print(f"{path.relative_to(root)}: {'differs from the records' if check else 'written'}")
    if not different:
        print("Boards and figures agree with the records.")
    if check and different:
        print("Remedy: run python -m harness.boards and commit what it writes.")
    return 1 if check and different else 0


if __name__ == "__main__":
    run_command(main)
