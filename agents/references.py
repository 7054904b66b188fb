"""FIXED: reference rows: what players without a model reach in the test episodes, so that scores can be read.

    python -m agents.references add babyai random
    python -m agents.references add babyai oracle
    python -m agents.references verify

A row lies in records/agents/references/<benchmark>/<player>/: `evidence.jsonl.xz` holds every action that was
taken, and `reference.json` what they are worth. `verify` plays all of them again and compares.
"""

import argparse
import datetime
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field

from agents.benchmarks import load_benchmark
from agents.benchmarks.base import Environment, Episode, Player
from agents.task import EVIDENCE, SEED, TASKS, episodes, versions
from agents.traces import Played, at, check_played, play, read_played, versions_fault
from harness.errors import Problem, run_command
from harness.files import STRICT, canonical_json, read_model, sha256_file, unwritable, write_atomic
from harness.intervals import bootstrap
from harness.packed import pack_lines, unpack_lines
from harness.progress import progress_bar
from harness.readme import interval
from harness.record import ScoreEntry
from harness.track import ROOT

FOLDER = Path("records/agents/references")
ABOUT = "reference.json"
LONGEST_LINE = 2**22  # bytes
LARGEST_EVIDENCE = 2**22  # bytes

TITLES = {
    ("babyai", "random"): "the floor: any of the six actions, equally likely",
    ("babyai", "oracle"): "Minigrid's bot, which plans on the true map as far as it has been in view",
    ("crafter", "random"): "the floor: any of the 17 actions, equally likely",
    ("crafter", "oracle"): "a hand-written script that looks into the true world",
    ("scienceworld", "random"): "the floor: any of the valid actions, equally likely",
    ("scienceworld", "oracle"): "the benchmark's own gold paths",
}
"""(benchmark, player) -> what it does."""

Number = Annotated[float, Field(allow_inf_nan=False)]


class Reference(BaseModel):
    """All of reference.json; a replay of the evidence gives all but the date."""

    model_config = STRICT

    benchmark: str
    player: Literal["random", "oracle"]
    title: str
    date: datetime.date
    score: ScoreEntry
    steps: Number
    """Mean of an episode."""
    summary: dict[str, Number]
    """What the benchmark says of the episodes besides."""
    evidence_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Entry(NamedTuple):
    """A row and the folder it lies in."""

    folder: Path
    about: Reference


# ---- adding and verifying -------------------------------------------------------------------------------


def add(name: str, player: str, *, date: datetime.date, root: Path = ROOT) -> Path:
    """Let a player play the test episodes of a class and keep the row, in place of one that is there.

    Returns its folder, which is written whole or not at all.
    """
    folder = root / FOLDER / name / player
    content = pack_lines([_header(name, player), *(one.line() for one in perform(name, player))])
    draft = folder.with_name(f".{player}.{secrets.token_hex(4)}.partial")
    try:
        draft.mkdir(parents=True)
        write_atomic(draft / EVIDENCE, content)
        about = examine(draft / EVIDENCE, date)
        write_atomic(draft / ABOUT, about.model_dump_json(indent=2) + "\n")
        if folder.exists():
            shutil.rmtree(folder)
        draft.rename(folder)
    except OSError as error:
        raise unwritable(folder, error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def perform(name: str, player: str) -> list[Played]:
    """Let a player play the test episodes of a class: the same each time."""
    benchmark, todo = load_benchmark(name), episodes(name)
    make = {"random": benchmark.random_player, "oracle": benchmark.oracle}[player]
    environment = benchmark.make()
    played: list[Played] = []
    try:
        with progress_bar(len(todo), "episode") as bar:
            for episode in todo:
                acting, generator = make(), Random(f"{SEED} {episode.task} {episode.seed}")
                played.append(_perform(environment, episode, acting, generator))
                bar.update()
    finally:
        environment.close()
    return played


def _perform(environment: Environment, episode: Episode, player: Player, generator: Random) -> Played:
    def act(_: int) -> str | None:
        return None if environment.done else player.act(environment, generator)

    return play(environment, episode, act).played


def examine(evidence: Path, date: datetime.date) -> Reference:
    """What a row's evidence is worth: every episode is played again.

    Raises:
        Problem: with file and line: another form, an episode missing or out of order, or one that goes
            otherwise than the evidence says.
    """
    lines = unpack_lines(evidence, LONGEST_LINE)
    number, header = next(lines, (1, {}))
    with at(evidence, number):
        _check_header(header)
        wanted = episodes(header["benchmark"])
    played: list[Played] = []
    for number, row in lines:
        with at(evidence, number):
            if len(played) == len(wanted):
                raise Problem(f"more than {len(wanted)} episodes")
            played.append(read_played(row, wanted[len(played)]))
    if len(played) < len(wanted):
        raise Problem(f"{len(played)} of {len(wanted)} episodes, the rest is missing", file=evidence)
    name = header["benchmark"]
    details = check_played(name, played, evidence, 2, header["versions"])
    scores = [one.score for one in played]
    value, (low, high) = sum(scores) / len(scores), bootstrap(scores)
    return Reference(
        benchmark=name,
        player=header["player"],
        title=TITLES[name, header["player"]],
        date=date,
        score=ScoreEntry(value=value, low=low, high=high, count=len(scores)),
        steps=sum(one.steps for one in played) / len(played),
        summary=load_benchmark(name).summary(details),
        evidence_sha256=sha256_file(evidence),
    )


def check(entry: Entry) -> None:
    """Play a row again; a Problem where reference.json says otherwise."""
    folder, about = entry
    if strangers := {path.name for path in folder.iterdir()} - {ABOUT, EVIDENCE}:
        raise Problem(f"holds {', '.join(sorted(strangers))}, which do not belong here", file=folder)
    if not (folder / EVIDENCE).is_file() or (folder / EVIDENCE).is_symlink():
        raise Problem("is not a plain file", file=folder / EVIDENCE)
    if (size := (folder / EVIDENCE).stat().st_size) > LARGEST_EVIDENCE:
        raise Problem(f"has {size:,} bytes, at most {LARGEST_EVIDENCE:,} are allowed", file=folder / EVIDENCE)
    found = examine(folder / EVIDENCE, about.date)
    for field in Reference.model_fields:
        said, shown = getattr(about, field), getattr(found, field)
        if said != shown:
            raise Problem(
                f"{field} is {said!s:.200}, expected {shown!s:.200} by a replay", file=folder / ABOUT
            )


def verify_all(root: Path = ROOT) -> int:
    """Play every row again and print a line for each; 1 where one fails, else 0."""
    failed = 0
    for entry in read_references(root):
        try:
            check(entry)
        except Problem as problem:
            failed += 1
            print(f"FAIL {problem}", flush=True)
        else:
            print(f"pass {entry.folder.relative_to(root)}", flush=True)
    return 1 if failed else 0


def _header(name: str, player: str) -> dict[str, Any]:
    return {
        "benchmark": name,
        "player": player,
        "episodes": len(episodes(name)),
        "seed": SEED,
        "versions": versions(name),
    }


def _check_header(header: Mapping[str, Any]) -> None:
    name, player = header.get("benchmark"), header.get("player")
    if (name, player) not in list(TITLES):
        raise Problem(f"names the benchmark {name!r:.60} and the player {player!r:.60}, which there are not")
    assert isinstance(name, str) and isinstance(player, str)
    if fault := versions_fault(name, header.get("versions")):
        raise Problem(fault)
    wanted = _header(name, player) | {"versions": header["versions"]}
    if canonical_json(dict(header)) != canonical_json(wanted):
        raise Problem(f"the first line is {canonical_json(dict(header)):.200}, expected {wanted}")


# ---- the board -------------------------------------------------------------------------------------------


def read_references(root: Path = ROOT) -> list[Entry]:
    """Every row under `root`, the floor before the oracle; a Problem on one that cannot be shown."""
    entries = []
    for path in sorted((root / FOLDER).glob(f"[!.]*/[!.]*/{ABOUT}")):
        about = read_model(path, Reference)
        if path.parent != root / FOLDER / about.benchmark / about.player:
            reason = f"lies in {path.parent.name!r}, expected {about.benchmark}/{about.player}"
            raise Problem(reason, file=path)
        if about.title != TITLES.get((about.benchmark, about.player)):
            raise Problem(f"title is {about.title!r:.80}, which is not that of this player", file=path)
        entries.append(Entry(path.parent, about))
    order = list(TITLES)
    return sorted(entries, key=lambda entry: order.index((entry.about.benchmark, entry.about.player)))


def board(name: str, root: Path = ROOT) -> str:
    """The rows of a class as a Markdown table; only reference.json is read for it."""
    rows = [entry for entry in read_references(root) if entry.about.benchmark == name]
    if not rows:
        return "No reference row yet."
    lines = ["| player | score | steps an episode | what it does |", "| --- | --- | ---: | --- |"]
    for folder, about in rows:
        link = f"[{about.player}]({folder.relative_to(root).as_posix()})"
        lines.append(f"| {link} | {interval(about.score)} | {about.steps:.1f} | {about.title} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None, *, root: Path = ROOT) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m agents.references", description="Keep the rows that scores can be read by."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser(
        "add",
        help="let a player play the test episodes, and keep what it reaches",
        description="Let a player play the test episodes, and keep what it reaches.",
    )
    adding.add_argument("benchmark", choices=TASKS, help="whose test episodes")
    adding.add_argument("player", choices=("random", "oracle"), help="who plays them")
    commands.add_parser("verify", help="play every row again", description="Play every row again.")
    given = parser.parse_args(arguments)
    if given.command == "verify":
        return verify_all(root)
    today = datetime.datetime.now(datetime.UTC).date()
    folder = add(given.benchmark, given.player, date=today, root=root)
    about = read_model(folder / ABOUT, Reference)
    print(f"{about.title}: {interval(about.score)} in {about.steps:.1f} steps an episode")
    print(f"Added {folder.relative_to(root)}. Next: python -m harness.boards, then commit both")
    return 0


if __name__ == "__main__":
    run_command(main)
