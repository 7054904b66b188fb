"""FIXED: the task of the agents track, and how its evidence is scored.

An agent around a language model learns on the training episodes of a benchmark, by whatever its method
remembers, and then plays the test episodes of its class with that memory frozen. The score is the mean over
episodes, as many of each task; the low end of its 95% interval must lie strictly above the class's target.
What ranks are tokens, prompt and completion, of training and evaluation together: the seconds of a server
depend on who else asks it.

`agents.evidence` describes the evidence. Every episode in it is played again, action by action, and the
tokens of all calls are added up. That these are as many as were used is the server's word.
"""

import math
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agents.benchmarks import load_benchmark
from agents.calibration import calibrate
from agents.evidence import PROMPTS, read_checkpoint, read_evidence
from agents.task import CHECKPOINT, EVIDENCE, TASKS
from agents.traces import check_played
from harness.errors import Problem
from harness.files import sha256_bytes
from harness.intervals import bootstrap
from harness.rulesets import before_2
from harness.track import HARNESS_FILES, Board, HardwareClass, Score, Track

LIBRARIES = {
    "openai": "openai",
    "httpx": "httpx",
    "jinja2": "jinja2",
    "yaml": "pyyaml",
    "minigrid": "minigrid",
    "crafter": "crafter",
    "scienceworld": "scienceworld",
}
"""Module -> distribution of what the track needs."""


def score(evidence: Path) -> Score:
    """The mean score of the test episodes, all played again; the units of the interval are episodes.

    Raises:
        Problem: as `read_evidence`; or, with file and line, an episode that goes otherwise than the evidence
            says; or this machine cannot run the benchmark.
    """
    found = read_evidence(evidence)
    header, cost, trained = found.header, found.tokens(), found.tokens("wake", "sleep")
    files = _prompts(header["class"], header["prompts"], evidence)
    check_played(header["class"], found.episodes, evidence, found.first_line, header["versions"])
    outcomes = tuple(one.score for one in found.episodes)
    return Score(
        sum(outcomes) / len(outcomes),
        *bootstrap(outcomes),
        successes=None,
        count=len(outcomes),
        unit="episodes",
        outcomes=outcomes,
        hardware_class=header["class"],
        recipe={**header["recipe"], "episodes": found.learned},
        files=files,
        seed=header["seed"],
        cost=None if cost is None else float(cost),
        trained=None if trained is None else float(trained),
    )


def _prompts(name: str, told: Mapping[str, str], evidence: Path) -> dict[str, str]:
    """Path -> SHA-256 of the prompts that evidence names; a Problem where the benchmark's words differ."""
    benchmark = load_benchmark(name)
    own = {"rules": benchmark.rules(), "state_help": benchmark.state_help()}
    for part, text in own.items():
        if told.get(part) != sha256_bytes(text.encode()):
            raise Problem(f"prompts names other {part} than those of {name}", file=evidence, line=1)
    return {f"{PROMPTS}{part}.md": digest for part, digest in told.items() if part not in own}


def _check_checkpoint(path: Path, recipe: Mapping[str, Any], seed: int) -> None:
    read_checkpoint(path, str(recipe.get("method")), seed)


def _ready() -> list[str]:
    from agents.benchmarks.scienceworld.java import find_java

    missing = [f"the {name} library" for module, name in LIBRARIES.items() if find_spec(module) is None]
    try:
        find_java()
    except Problem:
        missing.append("Java (for ScienceWorld)")
    return missing or _silent_models()


def _silent_models() -> list[str]:
    """What keeps the recipes of this checkout from asking their models, as they would say it."""
    from agents.speedrun import RECIPES, check  # open, and it imports this file

    found: dict[str, list[str]] = {}
    for name, recipe in RECIPES.items():
        try:
            check(name, recipe)
        except Problem as problem:
            found.setdefault(str(problem), []).append(name)
    return [f"a model for {', '.join(names)}: {reason}" for reason, names in found.items()]


def _players(benchmark: str) -> Board:
    def make(root: Path) -> str:
        from agents.references import board  # it reads this file

        return board(benchmark, root)

    return Board(f"{benchmark}-players", make)


_SINCE_2 = ("agents/scripted/*.py", "harness/figures.py", "harness/readme.py", "harness/record.py")

TRACK = Track(
    name="agents",
    title="Agents that learn skills online",
    metric="score",
    target=math.inf,  # each class has its own
    ruleset="2",
    classes=tuple(
        HardwareClass(
            task.benchmark,
            task.title,
            cores=None,
            gpus=None,
            gpu_name="",
            warmup_limit_s=300,
            target=task.target,
        )
        for task in TASKS.values()
    ),
    fixed_files=(
        "agents/__init__.py",
        "agents/task.py",
        "agents/track.py",
        "agents/traces.py",
        "agents/evidence.py",
        "agents/eval_speedrun.py",
        "agents/calibration.py",
        "agents/reach.py",
        "agents/references.py",
        "agents/replay_record.py",
        "agents/config.py",
        "agents/strict_yaml.py",
        "agents/benchmarks/*.py",
        "agents/benchmarks/*/*.py",
        "agents/core/*.py",
        "agents/llm/*.py",
        "agents/llm/prices.toml",
        "agents/sandbox/*.py",
        "agents/memory/functions.py",
        "agents/memory/trajectory.py",
        "agents/memory/versions.py",
        "agents/methods/answers.py",
        "agents/methods/conversation.py",
        "agents/methods/serving.py",
        "agents/methods/trial.py",
        "agents/prompts/prompts.py",
        *_SINCE_2,
        *HARNESS_FILES,
    ),
    earlier={"1": before_2(*_SINCE_2)},
    open_files=("agents/memory/*.py", "agents/methods/*.py", "agents/prompts/*"),
    evidence_name=EVIDENCE,
    not_played=re.compile(rb'(?m)\A.*\n|^\{"completion":.*"kind":"call",.*\n'),
    checkpoint_name=CHECKPOINT,
    data_files=dict,
    score=score,
    check_checkpoint=_check_checkpoint,
    calibrate=calibrate,
    ready=_ready,
    boards=tuple(_players(name) for name in TASKS),
    cost="tokens",
    class_is_chosen=True,
)
