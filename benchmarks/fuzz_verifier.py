"""True records, changed at random, against the verifier: it must refuse them, and neither crash nor hang.

    BOXOBAN_LEVELS=... python -m benchmarks.fuzz_verifier --mutations 10000

Mutations are of bytes, lines, fields of JSON, files and folders of the committed records, and of two that the
tests make: one of their toy track, and one of agents with a script for a model. Every second record has its
hashes, canonical form and README made to agree again. A pass is false where the record claims other than the
true one, see `benchmarks.fuzzing.records.claims`. What evidence, source and checkout were found to say is
remembered by their contents; all else is checked anew.

Exits 1 after a crash or a false pass, each of which is kept in `--failures` with the command that repeats it.
"""

import argparse
import importlib
import io
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from benchmarks.fuzzing.judging import Kind, Scores, remember_scores, write
from benchmarks.fuzzing.mutations import mutate
from benchmarks.fuzzing.records import TrueRecord
from benchmarks.fuzzing.workers import Judged, Limits, Source, chance, donors, judge_all
from harness.checks import CHECKS, RecordFolder, check_all
from harness.errors import Problem, run_command
from harness.record import RECORD
from harness.track import ROOT

TOY, AGENTS = "toy_track", "agents"
_KINDS = get_args(Kind)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz, and print what became of the mutations."""
    options = _options(arguments)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tests")])  # of the workers
    sys.path.append(str(ROOT / "tests"))
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        sources = list(_sources(options.tracks, Path(scratch)))
        records = [source.enter(stack) for source in sources]
        known: Scores = {}
        for name in {record.place.parent.name for record in records}:
            remember_scores(name, known)
        for record in records:
            _require_true(record)
        indices = range(options.mutations) if options.only is None else [options.only]
        limits = Limits(options.seconds, options.memory * 2**20)
        done: list[Judged] = []
        started, status = time.monotonic(), 0
        verdicts = judge_all(
            sources,
            known,
            options.seed,
            indices,
            folder=Path(scratch) / "workers",
            processes=options.processes,
            limits=limits,
        )
        try:
            with closing(verdicts), tqdm(total=len(indices), unit=" mutations", mininterval=1) as bar:
                for judged in verdicts:
                    done.append(judged)
                    bar.update()
                    if judged.verdict.kind in ("crash", "false pass"):
                        _keep(judged, records, options)
        except KeyboardInterrupt:
            status = 130
        show(done, records, Console(width=None if Console().is_terminal else 110))
        print(f"{len(done):,} mutations, seed {options.seed}, {time.monotonic() - started:.0f} s")
    bad = sum(judged.verdict.kind in ("crash", "false pass") for judged in done)
    if bad:
        print(f"{bad} crashes and false passes are kept in {options.failures}")
    return 1 if bad else status


def show(done: Sequence[Judged], records: Sequence[TrueRecord], console: Console) -> None:
    """Print the verdicts by track, by check, and of what passed by what differs."""
    outcomes = Table("track", *_KINDS, "all", title="What became of mutations", title_justify="left")
    names = [record.place.parent.name for record in records]
    for name in [*dict.fromkeys(names), "all"]:
        own = [d.verdict.kind for d in done if name in ("all", names[d.number % len(names)])]
        outcomes.add_row(name, *(str(own.count(kind)) for kind in _KINDS), str(len(own)))
    console.print(outcomes)
    refused = [judged.verdict.checks for judged in done if judged.verdict.kind == "refused"]
    found = Counter(check for checks in refused for check in checks)
    alone = Counter(checks[0] for checks in refused if len(checks) == 1)
    by_check = Table("check", "refused", "alone", title="Which checks refused them", title_justify="left")
    for check in CHECKS:
        if found[check]:
            by_check.add_row(check, str(found[check]), str(alone[check]))
    console.print(by_check)
    passed = Counter(
        ", ".join(d.verdict.differs) or "nothing, however written"
        for d in done
        if d.verdict.kind in ("same", "unproven")
    )
    differing = Table("differs in", "passed", title="What differed where all passed", title_justify="left")
    for kinds, count in passed.most_common():
        differing.add_row(kinds, str(count))
    console.print(differing)
    for judged in sorted(done, key=lambda judged: -judged.seconds)[:3]:
        console.print(
            f"mutation {judged.number} took {judged.seconds:.1f} s: {judged.verdict.what}", markup=False
        )


def _keep(judged: Judged, records: Sequence[TrueRecord], options: argparse.Namespace) -> None:
    """Save a failure: the files as they were written, what was found, and the command that repeats it."""
    folder = options.failures / f"{options.seed}-{judged.number}"
    record = records[judged.number % len(records)]
    mutation = mutate(record, chance(options.seed, judged.number), donors(records))
    folder.mkdir(parents=True, exist_ok=True)
    write(mutation.files, folder / "record")
    command = f"python -m benchmarks.fuzz_verifier --seed {options.seed} --only {judged.number}"
    if options.tracks:
        command += f" --tracks {' '.join(options.tracks)}"
    verdict = judged.verdict
    said = f"{record.name} as {mutation.folder!r}: {mutation.what}; {verdict.what}"
    (folder / "what.txt").write_text(f"{command}\n{said}\n{verdict}\n", errors="backslashreplace")
    tqdm.write(f"{verdict.kind}: {verdict.detail[:200]}\n  {verdict.what}; repeat with: {command}")


def _sources(tracks: Sequence[str], scratch: Path) -> Iterable[Source]:
    """The committed records and those that the tests make, or those of some tracks alone."""
    for path in sorted(ROOT.glob(f"records/*/[0-9]*/{RECORD}")):
        if not tracks or path.parent.parent.name in tracks:
            yield Source(path.parent, ROOT)
    if not tracks or TOY in tracks:
        yield _made("toy_track.records", "plain_machine", scratch / "toy", within=False)
    if not tracks or AGENTS in tracks:
        yield _made("agents_records", "easy_track", scratch / "agents", within=True)


def _made(module: str, context: str, root: Path, *, within: bool) -> Source:
    """The record that a module of the tests makes in a checkout of its own."""
    tools = importlib.import_module(module)
    root.mkdir()
    with vars(tools)[context](), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return Source(tools.make_record(tools.make_checkout(root)), root, f"{module}:{context}" * within)


def _require_true(record: TrueRecord) -> None:
    failed = [check for check in check_all(RecordFolder(record.place, root=record.root)) if not check.passed]
    if failed:
        raise Problem(f"is not a true record here: {failed[0].name}: {failed[0].reason}", file=record.place)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fuzz_verifier",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--mutations", type=int, default=10_000, help="how many (10000)")
    parser.add_argument("--seed", type=int, default=0, help="of all chance (0)")
    parser.add_argument("--only", type=int, metavar="INDEX", help="judge the mutation of this number alone")
    parser.add_argument("--tracks", nargs="+", default=[], help=f"names of tracks, {TOY} too (all)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="at a time (the cores)")
    parser.add_argument("--seconds", type=float, default=300, help="a judgement over this is a hang (300)")
    parser.add_argument("--memory", type=int, default=1024, help="MiB that a judgement may take (1024)")
    parser.add_argument(
        "--failures", type=Path, default=Path("outputs/fuzz_verifier"), help="where they are kept"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    for ending in (signal.SIGINT, signal.SIGTERM):  # also of a command in a script's background
        signal.signal(ending, signal.default_int_handler)
    run_command(main)
