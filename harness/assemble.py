"""From a run folder to a record folder: behind `assemble_record.sh`, with all settings from the environment.

    RUN=outputs/<run> DEST=push-ppo ./assemble_record.sh                   a new record called push-ppo
    RUN=outputs/<run> DEST=records/<track>/<record> ./assemble_record.sh   that record anew, its words kept
    RUN=outputs/<run> VERIFY_OF=records/<track>/<record> ./assemble_record.sh   the second run of a record

Optional: CONTRIBUTORS="a, b", DESCRIPTION="one line". With SOURCE=modal RUN is a launch on Modal, which is
fetched into outputs first (docs/modal.md). What fails a check is refused, and nothing is written. A record is
complete when its idea is written and its second run is added.
"""

import argparse
import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from harness import figures
from harness.checks import RecordFolder, check_all
from harness.checks.base import Check
from harness.checks.folder import hashed_files
from harness.checks.run import describe
from harness.eligibility import eligibility
from harness.errors import Problem, run_command
from harness.fetch import fetch_for_record
from harness.files import read_bytes, read_text, sha256_file, write_atomic
from harness.log import read_log
from harness.manifest import read_manifest
from harness.readme import RESULTS, replace_block, results_block, scaffold
from harness.record import (
    CONTRIBUTOR_PLACEHOLDER,
    CURVE,
    DESCRIPTION_PLACEHOLDER,
    LOG,
    MANIFEST,
    NAME,
    README,
    RECORD,
    SECOND,
    SOURCE,
    FolderName,
    Record,
    RunEntry,
    ScoreEntry,
    milliseconds,
    read_record,
    worse,
)
from harness.renumber import next_number
from harness.track import ROOT, Score, Track, load_track
from harness.verify import show


@dataclass(frozen=True)
class Words:
    """What a person says in a record: all else is derived from the files."""

    name: str
    number: int
    description: str = DESCRIPTION_PLACEHOLDER
    contributors: tuple[str, ...] = (CONTRIBUTOR_PLACEHOLDER,)
    readme: str | None = None
    """The README so far; None = a new one."""


@dataclass(frozen=True)
class Assembled:
    """A record folder that was written, and what its checks say."""

    path: Path
    checks: list[Check]


def assemble(
    run: Path,
    dest: str,
    *,
    root: Path = ROOT,
    contributors: Sequence[str] | None = None,
    description: str | None = None,
) -> Assembled:
    """Make the record `dest` of a run, or, where `dest` is the path of a record, make that record anew.

    A record that is made anew keeps its number, name and words, and its second run if it verifies this run.

    Raises:
        Problem: the run can be no record; every reason is given and nothing was written.
    """
    track = _examine(run)
    _require_source(run, root / track.name / SOURCE)
    folder = root / "records" / track.name
    old = _existing(dest, folder)
    if old is None:
        _refuse_second_copy(run, folder)
        words = Words(dest, next_number(folder))
    else:
        words = _words(old)
    words = replace(
        words,
        description=description or words.description,
        contributors=tuple(contributors or words.contributors),
    )
    parts = {"": run}
    if old is not None and (old / SECOND / MANIFEST).is_file():
        second = read_manifest(old / SECOND / MANIFEST)
        if second.verifies == read_manifest(run / MANIFEST).run_id:
            parts[SECOND] = old / SECOND
    return _write(parts, words, track, folder, old, root)


def add_verification(run: Path, record: Path, *, root: Path = ROOT) -> Assembled:
    """Add a run as the second run of a record.

    Raises:
        Problem: the run does not verify the record; every reason is given and nothing was written.
    """
    track = _examine(run)
    folder = root / "records" / track.name
    old = _existing(str(record), folder)
    if old is None:
        raise Problem(f"is not a record of {track.name}", file=record)
    return _write({"": old, SECOND: run}, _words(old), track, folder, old, root)


def _examine(run: Path) -> Track:
    """The track of a run, once the run is known to be complete, eligible and past the target."""
    if not (run / MANIFEST).is_file():
        raise Problem(
            "is not a run folder: it has no manifest.json", file=run, remedy="give RUN=outputs/<run>"
        )
    manifest, log = read_manifest(run / MANIFEST), read_log(run / LOG)
    track = load_track(manifest.track).under(manifest.ruleset).of_class(manifest.hardware_class)
    reasons = eligibility(manifest, log)
    if log.status == "incomplete" and log.find("checkpoint"):
        remedy = f"{track.command(manifest.recipe_name)} --resume {run}"
        raise Problem("; ".join(reasons), file=run, remedy=remedy)
    if reasons:
        raise Problem("; ".join(reasons), file=run, remedy="run again without what makes it ineligible")
    score = track.score(run / track.evidence_name)
    if reasons := track.shortcomings(score):
        raise Problem("; ".join(reasons), file=run / track.evidence_name)
    return track


def _require_source(run: Path, source: Path) -> None:
    if not source.is_file() or sha256_file(source) != sha256_file(run / SOURCE):
        remedy = f"put it back with: cp {run / SOURCE} {source}"
        raise Problem("is not the source that this run ran", file=source, remedy=remedy)


def _existing(dest: str, folder: Path) -> Path | None:
    """The record folder that `dest` is the path of, or None where it is a name for a new one."""
    if re.fullmatch(NAME, dest):
        return None
    path = Path(dest).resolve()
    if path.parent != folder.resolve() or not (path / RECORD).is_file():
        remedy = f"give a name of lower-case letters, digits and hyphens, or a folder in {folder}"
        raise Problem(f"{dest!r} is neither a name nor a record of this track", remedy=remedy)
    return folder / path.name


def _refuse_second_copy(run: Path, folder: Path) -> None:
    manifest = read_bytes(run / MANIFEST)
    for path in sorted(folder.glob(f"*/{MANIFEST}")):
        if read_bytes(path) == manifest:
            remedy = f"give DEST={path.parent} to make that record anew"
            raise Problem("this run is a record already", file=path.parent, remedy=remedy)


def _words(path: Path) -> Words:
    record = read_record(path / RECORD)
    readme = read_text(path / README)
    return Words(record.name, record.number, record.description, record.contributors, readme)


def _write(
    parts: Mapping[str, Path], words: Words, track: Track, folder: Path, old: Path | None, root: Path
) -> Assembled:
    """Build a record beside its place, check it, and move it there in place of `old`."""
    started = read_log(parts[""] / LOG).get("run_start").utc.date()
    place = folder / str(FolderName(started, words.number, words.name))
    draft = folder / f".{place.name}.{secrets.token_hex(4)}.partial"
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, draft, ignore_errors=True)
        for part, source in parts.items():
            (draft / part).mkdir(parents=True)
            names = [MANIFEST, LOG, track.evidence_name, track.checkpoint_name, *([] if part else [SOURCE])]
            for name in names:
                write_atomic(draft / part / name, read_bytes(source / name))
        record = _record(draft, words, track)
        home = RecordFolder(draft, root=root, place=place, replaces=old)
        hashes = {name: home.sha256(name) for name in sorted(hashed_files(record, track))}
        record = record.model_copy(update={"files": hashes})
        write_atomic(draft / RECORD, record.dump())
        write_atomic(draft / README, _readme(words.readme, record, track))
        write_atomic(draft / CURVE, figures.training_curve(draft, record, track))
        for report in track.reports:
            write_atomic(draft / report.name, report.make(draft))
        checks = check_all(home)
        wrong = [f"{check.name}: {check.reason}" for check in checks if not (check.passed or check.pending)]
        if wrong:
            raise Problem("refused, for it would not be a true record:\n  " + "\n  ".join(wrong))
        _swap(draft, place, old)
    return Assembled(place, checks)


def _record(draft: Path, words: Words, track: Track) -> Record:
    """The record of the files in `draft`, all but their hashes."""
    manifest, log = read_manifest(draft / MANIFEST), read_log(draft / LOG)
    first = _entry(draft, track)
    second = _entry(draft / SECOND, track) if (draft / SECOND).is_dir() else None
    return Record(
        ruleset=manifest.ruleset,
        track=manifest.track,
        hardware_class=manifest.hardware_class or "",
        number=words.number,
        date=log.get("run_start").utc.date(),
        name=words.name,
        description=words.description,
        contributors=words.contributors,
        target=track.target,
        hardware=describe(manifest.machine),
        files={},
        verification=second,
        published=worse(track, first.score, second.score if second else None),
        **dict(first),
    )


def _entry(folder: Path, track: Track) -> RunEntry:
    manifest, log = read_manifest(folder / MANIFEST), read_log(folder / LOG)
    score: Score = track.score(folder / track.evidence_name)
    return RunEntry(
        seed=manifest.seed,
        time_s=milliseconds(log.time_s),
        cpu_s=milliseconds(log.cpu_s),
        cost=score.cost,
        score=ScoreEntry(value=score.value, low=score.low, high=score.high, count=score.count),
        calibration_s=milliseconds(manifest.calibration_s),
    )


def _readme(text: str | None, record: Record, track: Track) -> str:
    if text is None:
        return scaffold(record, track)
    return replace_block(text, RESULTS, results_block(record, track), file=README)


def _swap(draft: Path, place: Path, old: Path | None) -> None:
    """Move `draft` to `place`; what stood at `old` goes only once its successor is there."""
    if old is None:
        draft.rename(place)
        return
    aside = old.with_name(f".{old.name}.{secrets.token_hex(4)}.old")
    old.rename(aside)
    try:
        draft.rename(place)
    except OSError:
        aside.rename(old)
        raise
    shutil.rmtree(aside)


def main(arguments: Sequence[str] | None = None, *, root: Path = ROOT) -> int:
    """The command line: everything comes from the environment."""
    argparse.ArgumentParser(
        prog="assemble_record.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args(arguments)
    given = {
        name: os.environ.get(name, "").strip()
        for name in ("RUN", "DEST", "VERIFY_OF", "SOURCE", "CONTRIBUTORS", "DESCRIPTION")
    }
    if given["SOURCE"] not in ("", "local", "modal"):
        raise Problem(f"SOURCE={given['SOURCE']} is unknown", remedy="SOURCE=modal, or leave it away")
    if not given["RUN"] or bool(given["DEST"]) == bool(given["VERIFY_OF"]):
        raise Problem("RUN and one of DEST and VERIFY_OF must be set", remedy="./assemble_record.sh --help")
    run = Path(given["RUN"])
    if given["SOURCE"] == "modal":
        run = fetch_for_record(given["RUN"], root / "outputs")
    if given["VERIFY_OF"]:
        assembled = add_verification(run, Path(given["VERIFY_OF"]), root=root)
    else:
        names = [name.strip() for name in given["CONTRIBUTORS"].split(",") if name.strip()]
        assembled = assemble(
            run, given["DEST"], root=root, contributors=names, description=given["DESCRIPTION"]
        )
    path = assembled.path.relative_to(root)
    complete = show(path, assembled.checks, Console())
    record = read_record(assembled.path / RECORD)
    command = load_track(record.track).command(record.hardware_class)
    if complete:
        print(f"Next: commit {path}, then python -m harness.submission reviews it as a pull request will be")
    elif (assembled.path / SECOND).is_dir():
        print(f"Next: write what is pending in {path}, then python verify_record.py {path}")
    else:
        print(f"Next: {command} --verify {path}")
    return 0


if __name__ == "__main__":
    run_command(main)
