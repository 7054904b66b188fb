"""Compare two records or runs unit by unit: `python -m harness.compare A B`.

Without B the two runs of the record A are compared. A record counts with both its runs, a folder under
outputs/, or a record's `verification`, as one run. A is the newer one. Exits 0 where the two were compared,
whatever came out, and 2 where they cannot be.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.checks import RecordFolder
from harness.comparison import Comparison, RunFacts, Side
from harness.errors import Problem, run_command
from harness.log import read_log
from harness.manifest import Manifest, read_manifest
from harness.record import LOG, MANIFEST, RECORD, SECOND, milliseconds
from harness.standing import read_standings
from harness.track import ROOT, Track, load_track
from harness.verdict import plain, rounded_down, rounded_up, sentences, sides, verdict


def compare(a: Path, b: Path | None = None) -> Comparison:
    """Compare what two folders hold, or the two runs of one record; plays all evidence again.

    Raises:
        Problem: a folder holds no evaluated run, or the two do not compare.
    """
    first = read_side(a)
    if b is not None:
        return Comparison(first, read_side(b))
    if len(first.runs) < 2:
        raise Problem("holds one run", file=a, remedy="give a record with two runs, or a second folder")
    one, other = (
        Side(f"{a}, {which} run", first.track, first.hardware_class, (run,))
        for which, run in zip(("first", "second"), first.runs, strict=True)
    )
    return Comparison(one, other, one_record=True)


def read_side(path: Path) -> Side:
    """The runs in a folder: both of a record, or the one of a run."""
    if not path.is_dir():
        raise Problem(
            "is not a folder", file=path, remedy="give a folder records/<track>/<record> or outputs/<run>"
        )
    folders = [path, path / SECOND] if (path / SECOND).exists() else [path]
    manifests = [read_manifest(_file(folder, MANIFEST)) for folder in folders]
    track = load_track(manifests[0].track).under(manifests[0].ruleset).of_class(manifests[0].hardware_class)
    runs = tuple(_facts(*pair, track) for pair in zip(folders, manifests, strict=True))
    place = path.absolute()
    standing = read_standings(place.parent).get(place.name) if (place / RECORD).is_file() else None
    return Side(str(path), track, manifests[0].hardware_class, runs, standing)


def _facts(folder: Path, manifest: Manifest, track: Track) -> RunFacts:
    log, evidence = read_log(_file(folder, LOG)), _file(folder, track.evidence_name)
    times = milliseconds(log.time_s), milliseconds(log.cpu_s), manifest.calibration_s
    return RunFacts(manifest.run_id, manifest.seed, track.score(evidence), *times)


def _file(folder: Path, name: str) -> Path:
    """A plain file of the folder, of a size that records may have."""
    try:
        return RecordFolder(folder, root=ROOT).file(name)
    except Problem as problem:
        remedy = "give a record, or a run that was evaluated"
        raise Problem(problem.reason, file=folder / name, remedy=remedy) from problem


def show(found: Comparison, console: Console) -> None:
    """Print the runs, the differences and what may be said."""
    for name, side in sides(found):
        console.print(Text.assemble((f"{name}  ", "bold"), side.name), soft_wrap=True)
    console.print(_runs(found))
    console.print(_differences(found))
    said = Table.grid(padding=(0, 2))
    for topic, text in (sentences(found) | {"verdict": verdict(found)}).items():
        said.add_row(Text(topic, "bold"), Text(text))
    console.print(said)


def _runs(found: Comparison) -> Table:
    track = found.a.track
    table = Table(title=Text(f"{track.title}: {track.metric}, target {track.target:g}"), title_justify="left")
    cost = [track.cost] if track.cost else []
    for column in ("run", "seed", "score", *cost, "time s", "CPU s", "calibration s", "time / calibration"):
        table.add_column(column, justify="left" if column == "run" else "right", no_wrap=column == "run")
    for name, side in sides(found):
        for which, run in zip(("first", "second"), side.runs, strict=False):
            row = [f"{name} {which}" if len(side.runs) > 1 else name, str(run.seed), _score(run)]
            row += [f"{run.cost:,.0f}" if run.cost is not None else "-"] if cost else []
            row += [f"{run.time_s:.3f}", f"{run.cpu_s:.2f}", f"{run.calibration_s:.3f}"]
            table.add_row(*row, f"{run.time_s / run.calibration_s:.1f}")
    return table


def _score(run: RunFacts) -> str:
    return f"{run.score.value:.4f} [{run.score.low:.4f}, {run.score.high:.4f}]"


def _differences(found: Comparison) -> Table:
    table = Table(title="A - B", title_justify="left")
    for column in ("against other", "difference", "95% interval", "p", "how"):
        table.add_column(column, justify="left" if column in ("against other", "how") else "right")
    for what, one in ((found.unit, found.score), ("seeds", found.seeds)):
        if one is not None:
            ends = "-"
            if one.interval is not None:  # its ends rounded outwards, as in the sentences
                ends = f"{rounded_down(one.interval.low, '+')} to {rounded_up(one.interval.high, '+')}"
            table.add_row(what, f"{one.value:+.4f}", ends, f"{one.p:.4f}", Text(one.method))
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.compare",
        description="Compare two records or runs unit by unit: difference, interval, and whether A beats B. "
        "It plays the evidence again but checks no record: that is for verify_record.py.",
        epilog="Exits 0 where the two were compared, whatever came out, and 2 where they cannot be.",
    )
    parser.add_argument("a", type=Path, metavar="A", help="a record or run folder, the newer one")
    parser.add_argument("b", type=Path, metavar="B", nargs="?", help="another; without it, A's two runs")
    parser.add_argument("--json", action="store_true", help="print plain values as JSON")
    options = parser.parse_args(arguments)
    found = compare(options.a, options.b)
    if options.json:
        print(json.dumps(plain(found), indent=2))
    else:
        show(found, Console(width=None if Console().is_terminal else 120))
    return 0


if __name__ == "__main__":
    run_command(main)
