"""FIXED: episodes as they were played: every action, and a hash of all that was seen; and their replay."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from agents.benchmarks import load_benchmark
from agents.benchmarks.base import Environment, Episode
from agents.task import TASKS, versions
from harness.errors import Problem, Unavailable
from harness.files import canonical_json

LONGEST_TRACE = 100_000  # actions of an episode

_KEYS = {"kind", "task", "seed", "actions", "score", "steps", "digest"}
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Played(NamedTuple):
    """An episode that was played, as its player saw it."""

    task: str
    seed: int
    actions: tuple[str, ...]
    """Every primitive action, as written."""
    score: float
    """0 to 1."""
    steps: int
    digest: str
    """As `digest_of`."""

    @property
    def episode(self) -> Episode:
        return Episode(self.task, self.seed)

    def line(self) -> dict[str, Any]:
        """The episode as evidence has it."""
        return {"kind": "episode", **self._asdict(), "actions": list(self.actions)}


class Replay(NamedTuple):
    """What actions led to."""

    played: Played
    details: dict[str, Any]
    """What the benchmark reports of the episode."""


def digest_of(goal: str, observations: Iterable[str]) -> str:
    """SHA-256 of a goal and all observations, the first before any action."""
    return hashlib.sha256(canonical_json([goal, *observations]).encode()).hexdigest()


def read_played(row: Mapping[str, Any], wanted: Episode) -> Played:
    """The episode on a line; a Problem where it has another form or is not the `wanted` one."""
    where = f"task {wanted.task!r}, seed {wanted.seed}"
    if row.keys() != _KEYS or row["kind"] != "episode":
        raise Problem(f"this must be the episode of {where}, with exactly {', '.join(sorted(_KEYS))}")
    for name, value in wanted._asdict().items():
        if type(row[name]) is not type(value) or row[name] != value:
            raise Problem(f"{name} is {row[name]!r:.60}, expected {value!r}: this must be {where}")
    actions = row["actions"]
    if not isinstance(actions, list) or not all(isinstance(action, str) for action in actions):
        raise Problem(f"actions of {where} are not a list of texts")
    if len(actions) > LONGEST_TRACE:
        raise Problem(f"{where} has {len(actions):,} actions, at most {LONGEST_TRACE:,} are allowed")
    if type(row["steps"]) is not int or row["steps"] != len(actions):
        raise Problem(f"steps of {where} are {row['steps']!r:.60}, but it has {len(actions)} actions")
    if type(row["score"]) not in (int, float) or not 0 <= row["score"] <= 1:
        raise Problem(f"score of {where} is {row['score']!r:.60}, no number from 0 to 1")
    written = abs(float(row["score"]))
    if str(row["score"]) != str(written):  # 1 and 1.0, 0.0 and -0.0 are equal, and make other seeds
        raise Problem(f"score of {where} is {row['score']!r}, expected {written!r}")
    if not isinstance(row["digest"], str) or not _SHA256.fullmatch(row["digest"]):
        raise Problem(f"digest of {where} is not a SHA-256")
    own = {"actions": tuple(actions), "score": written}
    return Played(**{**{name: row[name] for name in Played._fields}, **own})


def play(environment: Environment, episode: Episode, act: Callable[[int], str | None]) -> Replay:
    """Play an episode; `act` gives action 0, 1, 2, ..., or None to leave it there."""
    observations = [environment.reset(episode)]
    actions: list[str] = []
    while (action := act(len(actions))) is not None:
        if environment.done:
            raise Problem(f"action {len(actions)} comes after the episode's end")
        actions.append(action)
        observations.append(environment.step(action).observation)
    digest = digest_of(environment.goal, observations)
    played = Played(*episode, tuple(actions), abs(float(environment.score)), environment.steps, digest)
    return Replay(played, dict(environment.details()))


@contextmanager
def replaying(name: str) -> Iterator[Callable[[Played], Replay]]:
    """A function from an episode of a class to what its actions lead to here, in an environment of its own.

    What this process has replayed before is not replayed again.

    Raises:
        Problem: actions go on after their episode's end, or this machine cannot run the benchmark.
    """
    environment: Environment | None = None

    def replay(one: Played) -> Replay:
        nonlocal environment
        key = (name, one.episode, one.actions)
        if key not in _REPLAYED:
            environment = environment or load_benchmark(name).make()
            _REPLAYED[key] = play(environment, one.episode, dict(enumerate(one.actions)).get)
        return _REPLAYED[key]

    try:
        yield replay
    finally:
        if environment is not None:
            environment.close()


_REPLAYED: dict[tuple[str, Episode, tuple[str, ...]], Replay] = {}


def check_played(
    name: str, played: Sequence[Played], evidence: Path, first_line: int, made_on: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Replay the episodes of evidence and compare; `made_on` are the versions that it names.

    Returns what the benchmark reports of each.

    Raises:
        Problem: with file and line: an episode goes otherwise than the evidence says.
    """
    remedy = _versions_differ(made_on, versions(name))
    details = []
    with replaying(name) as replay:
        for line, one in enumerate(played, start=first_line):
            with at(evidence, line, remedy=remedy):
                shown = replay(one)
                details.append(shown.details)
                for field in ("score", "steps", "digest"):
                    said, seen = getattr(one, field), getattr(shown.played, field)
                    if said != seen:
                        raise Problem(f"{field} is {said}, expected {seen} by the replay of {one.episode}")
    return details


@contextmanager
def at(file: Path, line: int, *, remedy: str | None = None) -> Iterator[None]:
    """Say where in evidence a Problem is, and what to do unless it says so itself."""
    try:
        yield
    except Problem as problem:
        if problem.file is not None or isinstance(problem, Unavailable):
            raise
        raise Problem(problem.reason, file=file, line=line, remedy=problem.remedy or remedy) from problem


def _versions_differ(made_on: Mapping[str, str], here: Mapping[str, str]) -> str | None:
    if dict(made_on) == dict(here):
        return None
    wanted = " ".join(f"{package}=={made_on.get(package)}" for package in here)
    return f"replay with what it was played with: pip install {wanted}"


def versions_fault(name: str, value: object) -> str | None:
    """Why `value` does not name the versions of a class's libraries, or None where it does."""
    packages = TASKS[name].packages
    texts = value.values() if isinstance(value, dict) and value.keys() == set(packages) else [None]
    if all(isinstance(text, str) and re.fullmatch(r"[\w.+!-]{1,40}", text) for text in texts):
        return None
    return f"versions does not name those of {', '.join(packages)} and no others"
