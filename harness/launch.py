"""From the command line of a speedrun.py to a scored run folder and the command that comes next.

A speedrun.py ends with

    if __name__ == "__main__":
        run_command(lambda: launch(TRACK, RECIPES, train=train, evaluate=evaluate, source=Path(__file__)))
"""

import dataclasses
import functools
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, NoReturn

import tyro

from harness import machine as machines
from harness.eligibility import eligibility, second_seed
from harness.errors import Problem
from harness.files import canonical_json, sha256_bytes, sha256_file
from harness.folder import stage
from harness.log import read_log
from harness.manifest import read_manifest
from harness.resume import begun
from harness.run import LOG_NAME, MANIFEST_NAME, SOURCE_NAME, Run
from harness.silent import SilentRun
from harness.track import ROOT, HardwareClass, Score, Track, load_track, open_file_hashes


@dataclass(frozen=True)
class Options:
    """Command-line flags of every speedrun.py; each field of the recipe is one too."""

    smoke: bool = False
    """Run a tiny version in seconds; ranks nowhere."""
    verify: Annotated[Path | None, tyro.conf.arg(metavar="RECORD")] = None
    """A record's folder: run its recipe with the second seed, which its first run decides."""
    resume: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """A run's folder: go on with a run that broke off, with its own flags; if it trains, it ranks nowhere."""
    save_every: Annotated[float | None, tyro.conf.arg(metavar="SECONDS")] = None
    """Seconds between two savings of what --resume goes on from; with this flag the run ranks nowhere.
    Without it there are 30 or more, so many that saving takes no more than 0.5% of the time."""


def launch(
    track: Track,
    recipes: Mapping[str, Any],
    *,
    train: Callable[[Any, Any], None],
    evaluate: Callable[[Run], Score],
    source: Path,
    check: Callable[[str, Any], None] = lambda name, recipe: None,
) -> int:
    """Parse the command line, train the recipe of its class, evaluate it, say what comes next.

    The class is the machine's, or, where `track.class_is_chosen`, the first argument. recipes: class name ->
    frozen dataclass with a `seed`, that of the first run (`run.seed` is the one to use), and a method
    `smoke()` that gives the same recipe done in seconds. Returns the exit status, 0 whatever the score. Of
    the processes that torchrun starts, the first keeps the run; the others only train. `check` is
    given the class and its recipe before anything is made, and raises a Problem where it cannot run here.
    """
    if track.class_is_chosen:
        hardware, options, recipe = _parse_chosen(track, recipes)
    else:
        hardware = machines.nearest_class(track, machines.inspect())
        options, recipe = _parse(track, recipes[hardware.name])
    if hardware.cores is not None:
        machines.pin(hardware.cores)
    pinned = recipes[hardware.name]
    flags = [
        f"--recipe.{field.name.replace('_', '-')}"
        for field in dataclasses.fields(pinned)
        if getattr(recipe, field.name) != getattr(pinned, field.name)
    ]
    if options.smoke:
        recipe = recipe.smoke()
    seed, seed_source, verifies = recipe.seed, "recipe", None
    if options.verify is not None:
        if not (options.verify / MANIFEST_NAME).is_file():
            remedy = f"give a folder records/{track.name}/<record>"
            raise Problem(f"is not a record: it has no {MANIFEST_NAME}", file=options.verify, remedy=remedy)
        first = read_manifest(options.verify / MANIFEST_NAME)
        track = track.under(first.ruleset)  # which goes for both runs of a record
        seed, verifies = verifying_seed(track, options.verify, recipe, source), first.run_id
        seed_source = f"derived from {verifies}"
    path = options.resume
    if path is not None:
        if recipe != pinned or options.smoke or options.verify is not None:
            command = f"{track.command(hardware.name)} --resume {quote(str(path))}"
            raise Problem(
                "a run goes on with the flags that it began with", remedy=f"leave them away: {command}"
            )
        manifest, recipe = begun(path, track, hardware.name, pinned, source)
        track, seed = track.under(manifest.ruleset), manifest.seed
    left = "training" if path is None else stage(path)
    signal.signal(signal.SIGTERM, _terminate)
    if os.environ.get("RANK", "0") != "0":
        if left == "training":
            train(SilentRun(seed), recipe)
        return 0
    if note := track.prepare():
        print(note, flush=True)
    check(hardware.name, recipe)
    started = time.monotonic()
    if left == "training":
        if path is not None:
            run = Run.resume(path, save_every=options.save_every)
        else:
            run = Run.create(
                track,
                recipe_name=hardware.name,
                recipe=dataclasses.asdict(recipe),
                hardware_class=hardware,
                seed=seed,
                seed_source=seed_source,
                flags=flags if options.save_every is None else [*flags, "--save-every"],
                smoke=options.smoke,
                source=source,
                verifies=verifies,
                save_every=options.save_every,
            )
            path = run.path
        with run:
            train(run, recipe)
    assert path is not None
    with Run.open(path) as run:
        score = evaluate(run)
    print(f"The whole run took {time.monotonic() - started:.0f} s", flush=True)
    print(next_command(run, score, options.verify), flush=True)
    return 0


def verifying_seed(track: Track, record: Path, recipe: Any, source: Path) -> int:
    """The seed of the run that verifies `record`.

    Raises:
        Problem: there is no record, or it was made by another recipe or another speedrun.py than these.
    """
    manifest = read_manifest(record / MANIFEST_NAME)
    if manifest.track != track.name:
        raise Problem(
            f"is of the track {manifest.track}",
            file=record,
            remedy=f"{load_track(manifest.track).command(manifest.hardware_class)} --verify {record}",
        )
    if sha256_file(source) != manifest.source_sha256:
        raise Problem(
            f"{source.name} is not the one that made this record",
            file=record,
            remedy=f"cp {record / SOURCE_NAME} {track.name}/{SOURCE_NAME}",
        )
    here = open_file_hashes(track)
    if strange := sorted(dict(here.items() ^ manifest.open_files.items())):
        commit = manifest.git.commit if manifest.git else None
        raise Problem(
            f"not as they were when this record was made: {', '.join(strange)}",
            file=record / MANIFEST_NAME,
            remedy=f"check out those files of commit {commit}" if commit else None,
        )
    if sha256_bytes(canonical_json(dataclasses.asdict(recipe)).encode()) != manifest.recipe_sha256:
        raise Problem(
            f"the record was made by recipe {manifest.recipe_name!r}, and this is another",
            file=record / MANIFEST_NAME,
            remedy=f"verify it without flags: {track.command(manifest.recipe_name)} --verify {record}"
            if track.class_is_chosen
            else "verify it without flags on a machine of its class",
        )
    return second_seed(record / track.evidence_name, manifest, track)


def next_command(run: Run, score: Score, verifies: Path | None) -> str:
    """What to do with a finished run."""
    reasons = eligibility(run.manifest, read_log(run.path / LOG_NAME)) + run.track.shortcomings(score)
    if reasons:
        return "No record, because " + "; ".join(reasons)
    if run.manifest.verifies is not None:
        record = verifies or f"records/{run.track.name}/<the record of {run.manifest.verifies}>"
        return f"Next: RUN={run.path} VERIFY_OF={record} ./assemble_record.sh"
    if (same := repeated(run)) is not None:
        change = f"for one of your own, change {run.track.name}/{SOURCE_NAME}"
        return f"No new record, because what was played is that of {same}, to the byte; {change}"
    return f"Next: RUN={run.path} DEST=name-of-your-idea ./assemble_record.sh"


def repeated(run: Run) -> Path | None:
    """The standing record with the evidence of this run, as a path from the root of the repository."""
    evidence = sha256_file(run.path / run.track.evidence_name)
    for path in sorted((ROOT / "records" / run.track.name).glob(f"[0-9]*/{run.track.evidence_name}")):
        if sha256_file(path) == evidence:
            return path.parent.relative_to(ROOT)
    return None


def _terminate(number: int, frame: object) -> NoReturn:
    """End like Ctrl-C does, so that the log says that the run was interrupted."""
    raise SystemExit("terminated")


def _parse(track: Track, pinned: Any) -> tuple[Options, Any]:
    """The flags on the command line and the recipe that they leave."""
    return tyro.cli(
        _command(pinned),
        prog=f"python -m {track.name}.speedrun",
        description=f"{track.title}. Without flags this runs the pinned recipe of this machine's class; "
        "with any --recipe flag the run ranks nowhere.",
    )


def _parse_chosen(track: Track, recipes: Mapping[str, Any]) -> tuple[HardwareClass, Options, Any]:
    """The class that the command line names, its other flags and the recipe that they leave."""

    def choose(hardware: HardwareClass) -> Callable[..., Any]:
        parse = _command(recipes[hardware.name])

        @functools.wraps(parse)
        def chosen(*arguments: Any, **named: Any) -> tuple[HardwareClass, Options, Any]:
            return hardware, *parse(*arguments, **named)

        chosen.__doc__ = f"The recipe of {hardware.title}."
        return chosen

    found: tuple[HardwareClass, Options, Any] = tyro.extras.subcommand_cli_from_dict(
        {hardware.name: choose(hardware) for hardware in track.classes},
        prog=f"python -m {track.name}.speedrun",
        description=f"{track.title}. Without further flags this runs the pinned recipe of the class that is "
        "named; with any --recipe flag the run ranks nowhere.",
    )
    return found


def _command(pinned: Any) -> Callable[..., tuple[Options, Any]]:
    """A function whose signature is the command line."""
    recipe_class: Any = type(pinned)

    def command(
        options: Annotated[Options, tyro.conf.arg(name="")],
        recipe: recipe_class = pinned,
    ) -> tuple[Options, Any]:
        return options, recipe

    return command
