"""FIXED: the command line of a benchmark's experiments: start, resume or replay a run, and report on it."""

import json
import re
import shlex
import shutil
import signal
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from agents.config import Config, read_config
from agents.core import checkpoint
from agents.core.figures import draw_figures
from agents.core.loop import End, Experiment, Extent
from agents.core.provenance import make_manifest
from agents.core.replay import REPORT, REPORT_TEXT, extent_of, unequal
from agents.core.report import Report, make_report
from agents.core.report_text import report_text
from agents.core.watch import dollars_text, short
from agents.reach import check_reachable
from harness.errors import Problem
from harness.files import write_atomic
from harness.lock import locked
from harness.track import ROOT

OUTPUTS = ROOT / "outputs" / "agents"

_START = (
    "start a server with agents/scripts/run_server.sh, or name one that runs with --base_url; "
    "python -m agents.scripted.server answers the configs with `scripted` in their names"
)
_STATUS = {"complete": 0, "budget": 0, "interrupted": 130, "failed": 2}


@dataclass(frozen=True)
class Options:
    """Run an experiment: agents that learn from episode to episode."""

    config_file: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """The config, such as agents/configs/babyai/react-gpt5_mini-balrog.yaml."""
    name: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Name of the run's folder in outputs/agents/; where it is not given, the config's, with the --model."""
    resume: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Folder of a run that broke off: go on with it. A config file may raise its budget."""
    replay: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Folder of a run that ended: run it again from its recorded answers, and compare."""
    model: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Ask this model instead of the config's."""
    base_url: Annotated[str | None, tyro.conf.arg(metavar="URL")] = None
    """Ask this server instead of the config's: http://127.0.0.1:5012/v1."""
    server: Annotated[str | None, tyro.conf.arg(metavar="URL")] = None
    """BabyAI: play on this server of it instead of in this process: http://127.0.0.1:8080."""


def main(benchmark: str, method: str | None = None) -> int:
    """Do what the command line asks for, on this benchmark alone, and with this method alone if one is named.

    Returns the exit status: 0 where the run is complete or its budget spent, 130 after Ctrl-C, 2 where it
    broke off, 1 where a replay differs.

    Raises:
        Problem: it cannot start.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends in order, as Ctrl-C does
    options = tyro.cli(Options, prog=_command(benchmark, method), use_underscores=True)
    if sum(folder is not None for folder in (options.resume, options.replay)) > 1:
        raise Problem("a run is either resumed or replayed")
    config = None
    if options.config_file is not None:
        config = read_config(
            options.config_file, model=options.model, base_url=options.base_url, server=options.server
        )
    elif any(change is not None for change in (options.model, options.base_url, options.server)):
        raise Problem("--model, --base_url and --server change a config", remedy="name it with --config_file")
    if options.resume is not None:
        return _resume(options.resume, config, benchmark, method)
    if options.replay is not None:
        return _replay(options, config, benchmark, method)
    if config is None:
        raise Problem("no config is named", remedy="give --config_file, --resume or --replay")
    _check(config, benchmark, method)
    assert options.config_file is not None
    folder = _folder(options.name or _name(options.config_file.stem, config, options.model))
    checkpoint.check_free(folder)
    if config.model.provider in ("local", "compatible"):
        check_reachable(config.model, remedy=_START)
    return run_new(folder, config)


def run_new(folder: Path, config: Config) -> int:
    """Start a run in a folder that holds nothing."""
    made = checkpoint.begin(folder, config)
    with locked(folder):
        return _run(folder, config, made=made)


def _resume(folder: Path, config: Config | None, benchmark: str, method: str | None) -> int:
    if not folder.is_dir():
        raise Problem("there is no such folder", file=folder)
    with locked(folder):
        config = checkpoint.config_of(folder, config)
        _check(config, benchmark, method)
        checkpoint.write_config(folder, config)
        return _run(folder, config)


def _replay(options: Options, config: Config | None, benchmark: str, method: str | None) -> int:
    replayed = options.replay
    assert replayed is not None
    extent = extent_of(replayed)
    config = checkpoint.config_of(replayed, config)
    _check(config, benchmark, method)
    folder = _folder(options.name or f"{replayed.resolve().name}-replay")
    made = checkpoint.begin(folder, config)
    with locked(folder):
        status = _run(folder, config, replayed, extent, made=made)
    if status == _STATUS["failed"]:
        return status
    differing = unequal(replayed, folder)
    if differing:
        print(f"The replay differs from {replayed} in: {', '.join(differing)}", file=sys.stderr)
        return 1
    print(f"The replay is equal to {replayed} in all but times.")
    return 0


def _run(
    folder: Path,
    config: Config,
    replayed: Path | None = None,
    extent: Extent | None = None,
    *,
    made: bool = False,
) -> int:
    """Make the run in a folder that is locked, and report on it; `made`: this command made the folder."""
    try:
        with closing(Experiment(folder, config, replayed=replayed, extent=extent)) as experiment:
            manifest = make_manifest(config, experiment.benchmark, experiment.confinement, replayed)
            if (folder / checkpoint.MANIFEST).exists():
                checkpoint.check_same(folder, manifest)
            else:
                write_atomic(folder / checkpoint.MANIFEST, json.dumps(manifest, indent=2) + "\n")
            try:
                end = experiment.run()
            except Exception as error:
                write_report(experiment, End("failed", f"{type(error).__name__}: {error}"))
                raise
            report = write_report(experiment, end)
    except Problem:
        if made and not (folder / checkpoint.MANIFEST).exists():  # nothing has begun: the name stays free
            shutil.rmtree(folder)
        raise
    _summarise(folder, report, resumable=replayed is None)
    return _STATUS[end.status]


def write_report(experiment: Experiment, end: End) -> Report:
    """Write report.json, report.md and figures/ of a run that has ended as told."""
    folder = experiment.folder
    report = make_report(experiment, end)
    figures = draw_figures(report)
    (folder / "figures").mkdir(exist_ok=True)
    for name, content in figures.items():
        write_atomic(folder / "figures" / f"{name}.svg", content)
    text = report_text(report, list(figures))
    write_atomic(folder / REPORT_TEXT, text.encode("utf-8", "replace"))
    write_atomic(folder / REPORT, json.dumps(report, indent=2, allow_nan=False) + "\n")
    return report


def _summarise(folder: Path, report: Report, *, resumable: bool) -> None:
    """Say on the terminal what came of the run, and where to read more."""
    if report["status"] != "complete":
        print(f"Ended early ({report['status']}): {report['reason']}", file=sys.stderr)
        if resumable:
            command = f"{_command(report['benchmark'])} --resume {shlex.quote(str(folder))}"
            print(f"Go on with: {command}", file=sys.stderr)
    if report["sandbox"] == "unsafe":
        print("WARNING: nothing confined the code that the model wrote (sandbox: unsafe)", file=sys.stderr)
    for part in ("learning", "evaluation"):
        if report[part]:
            scores = report[part]
            print(f"{part}: {report['metric']} {scores['score']:.3f} in {scores['episodes']} episodes")
    total = report["calls"]["total"]
    cost = dollars_text(total["dollars"], total["unpriced"])
    print(f"{short(total['tokens'])} tokens in {total['calls']} calls; cost {cost}")
    print(f"report: {folder / REPORT_TEXT}")


def _command(benchmark: str, method: str | None = None) -> str:
    """How the command line of a benchmark, or of one method on it, is called."""
    return f"python -m agents.benchmarks.{benchmark}.train" + (f"_{method}" if method else "")


def _check(config: Config, benchmark: str, method: str | None) -> None:
    if config.benchmark != benchmark:
        raise Problem(
            f"the config is for {config.benchmark}",
            remedy=f"run it with: {_command(config.benchmark)}",
        )
    if method is not None and config.method != method:
        raise Problem(f"the config is for the method {config.method}, and this command for {method} alone")


def _name(stem: str, config: Config, model: str | None) -> str:
    """Name of a run that is given none: the config's, with the command line's model in place of its own."""
    if model is None:
        return stem
    word = re.sub(r"[^\w.]+", "_", model.rpartition("/")[2])
    parts = stem.split("-")
    if len(parts) == 3 and parts[0] == config.method:  # <method>-<model>-<task set>
        return f"{parts[0]}-{word}-{parts[2]}"
    return f"{stem}-{word}"


def _folder(name: str) -> Path:
    if not name or "/" in name or name.startswith(".") or not name.isprintable():
        raise Problem(
            f"{name!r} cannot be the name of a run",
            remedy="choose a plain one without / that begins with no dot",
        )
    return OUTPUTS / name
