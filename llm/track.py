"""FIXED: the task of the llm track, and how its evidence is scored.

A language model is fine-tuned by RL on Sokoban puzzles. It then writes eight completions for every puzzle of
a held-out set, and the low end of the 95% interval of its pass@1 must lie strictly above 0.80. Puzzles, not
completions, are the units of the interval: all completions of a puzzle are resampled together.

`llm.evidence` describes the evidence. Every completion in it is judged again, and what could not have come
from the protocol of `llm.completion` is refused.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import Problem
from harness.intervals import bootstrap
from harness.machine import inspect, nearest_class
from harness.rulesets import before_2
from harness.track import HARNESS_FILES, ROOT, HardwareClass, Report, Score, Track
from llm.answers import Verdict, judge
from llm.calibration import calibrate
from llm.completion import Limits, Sampling
from llm.evidence import check_index, completion_fault, read_evidence, text_fault, words_of
from llm.prompt import check_prompt
from llm.puzzles import Puzzle, dataset_sha256, read_puzzles

SAMPLING = Sampling(temperature=0.8, top_p=0.95)


@dataclass(frozen=True)
class Task:
    """What one class of hardware has to learn, and how that is measured."""

    hardware_class: str
    model: str
    """Name on the Hugging Face hub, or folder from the root of the repository."""
    revision: str | None
    """Commit of the model on the hub; None = it is a folder."""
    train: str
    valid: str
    """To tune on: experiments are evaluated on it."""
    eval: str
    limits: Limits
    sampling: Sampling = SAMPLING
    completions: int = 8
    """Completions a puzzle."""
    seed: int = 12345
    """Of the completions, see `llm.completion.completion_seed`."""


TASKS = {
    task.hardware_class: task
    for task in (
        Task(
            "8xH100",
            "Qwen/Qwen3-4B-Instruct-2507",
            "cdbee75f17c01a7cc42f958dc650907174af0554",
            *("sokoban_train", "sokoban_valid", "sokoban_eval"),
            Limits(max_tokens=12288, answer_tokens=512),
        ),
        Task(
            "cpu",
            "llm/tiny",
            None,
            *("tiny_train", "tiny_valid", "tiny_eval"),
            Limits(max_tokens=96, answer_tokens=16),
        ),
    )
}


class Outcomes(NamedTuple):
    """Evidence that keeps the rules, judged."""

    header: dict[str, Any]
    puzzles: list[Puzzle]
    completions: list[list[tuple[Verdict, dict[str, Any]]]]
    """For each puzzle, for each of its completions: the verdict, and the completion as evidence has it."""


def evidence_header(task_class: str, puzzles: str, *, checkpoint_sha256: str, prompt: str) -> dict[str, Any]:
    """The first line of evidence: on which puzzles, by which checkpoint, asked and sampled how."""
    task = TASKS[task_class]
    return {
        "class": task_class,
        "puzzles": puzzles,
        "puzzles_sha256": dataset_sha256(puzzles),
        "checkpoint_sha256": checkpoint_sha256,
        "prompt": prompt,
        "sampling": {**task.sampling._asdict(), "seed": task.seed},
        "limits": task.limits._asdict(),
    }


def score(evidence: Path) -> Score:
    """pass@1 on the held-out puzzles, every completion judged again.

    Raises:
        Problem: see `read_outcomes`; or evidence on the puzzles that are there to tune on.
    """
    outcomes = read_outcomes(evidence)
    name, wanted = outcomes.header["puzzles"], TASKS[outcomes.header["class"]].eval
    if name != wanted:
        raise Problem(f"evidence on {name!r}, not on {wanted!r}", file=evidence, line=1)
    return score_outcomes(outcomes)


def score_outcomes(outcomes: Outcomes) -> Score:
    """The mean over puzzles of the part of their completions that solve, resampled by puzzle."""
    solved = [[float(verdict.solved) for verdict, _ in row] for row in outcomes.completions]
    means = tuple(sum(row) / len(row) for row in solved)
    value = sum(means) / len(means)
    task_class, prompt = outcomes.header["class"], outcomes.header["prompt"]
    return Score(
        value,
        *bootstrap(solved),
        successes=None,
        count=len(means),
        unit="puzzles",
        outcomes=means,
        hardware_class=task_class,
        recipe={"task": task_class, "prompt": prompt},
    )


def read_outcomes(evidence: Path) -> Outcomes:
    """Read evidence, check all of it and judge every completion.

    Raises:
        Problem: with file and line: a header that names another class, dataset, sampling or limits than the
            track's, or a prompt about the task; a puzzle or completion missing, repeated or out of order; a
            completion that the protocol of `llm.completion` cannot have made.
    """
    lines = read_evidence(evidence)
    number, header = next(lines, (1, {}))
    with _at(evidence, number):
        task, puzzles = _check_header(header)
    judged: list[list[tuple[Verdict, dict[str, Any]]]] = []
    for number, row in lines:
        with _at(evidence, number):
            if len(judged) == len(puzzles):
                raise Problem(f"more than {len(puzzles)} puzzles")
            judged.append(_judge_row(row, puzzles[len(judged)], task))
    if len(judged) < len(puzzles):
        raise Problem(f"{len(judged)} of {len(puzzles)} puzzles, the rest is missing", file=evidence)
    return Outcomes(header, puzzles, judged)


@contextmanager
def _at(file: Path, line: int) -> Iterator[None]:
    """Say where in the evidence a Problem is, unless it is in another file."""
    try:
        yield
    except Problem as problem:
        if problem.file is not None:
            raise
        raise Problem(problem.reason, file=file, line=line, remedy=problem.remedy) from problem


def _check_header(header: dict[str, Any]) -> tuple[Task, list[Puzzle]]:
    """The task and the puzzles that the first line names."""
    for key in ("class", "puzzles", "checkpoint_sha256", "prompt"):
        if not isinstance(header.get(key), str):
            raise Problem(f"the first line does not name its {key}")
    task, name, checkpoint = TASKS.get(header["class"]), header["puzzles"], header["checkpoint_sha256"]
    if task is None:
        raise Problem(f"class is none of {', '.join(TASKS)}")
    if name not in (task.valid, task.eval):
        raise Problem(f"puzzles is neither {task.eval} nor {task.valid}")
    if not re.fullmatch("[0-9a-f]{64}", checkpoint):
        raise Problem("checkpoint_sha256 is not a SHA-256")
    check_prompt(header["prompt"])
    expected = evidence_header(
        task.hardware_class, name, checkpoint_sha256=checkpoint, prompt=header["prompt"]
    )
    for key, value in expected.items():
        if not _same(header.get(key), value):
            raise Problem(f"{key} is not {value!r}")
    if len(header) > len(expected):
        raise Problem(f"the first line holds more than {', '.join(expected)}")
    return task, read_puzzles(name)


def _same(found: object, expected: object) -> bool:
    """Whether two values of JSON are one, where 1, 1.0 and true are three."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return found.keys() == expected.keys() and all(_same(found[key], expected[key]) for key in expected)
    return type(found) is type(expected) and found == expected


def _judge_row(row: dict[str, Any], puzzle: Puzzle, task: Task) -> list[tuple[Verdict, dict[str, Any]]]:
    """The verdicts on the completions of one puzzle."""
    completions = row.get("completions")
    if row.keys() != {"puzzle", "completions"} or not _same(row["puzzle"], puzzle.index):
        raise Problem(f"this must be puzzle {puzzle.index} with its completions")
    if not isinstance(completions, list) or len(completions) != task.completions:
        raise Problem(f"puzzle {puzzle.index} has no list of {task.completions} completions")
    words = words_of(ROOT / task.model) if task.revision is None else None
    for index, completion in enumerate(completions):
        if fault := completion_fault(completion, task.limits) or text_fault(completion, words):
            raise Problem(f"puzzle {puzzle.index}, completion {index}: {fault}")
    return [
        (judge(puzzle, completion["text"], stopped=completion["finish"] == "stop"), completion)
        for completion in completions
    ]


def _check_checkpoint(path: Path, recipe: Mapping[str, Any], seed: int) -> None:
    task = TASKS.get(str(recipe.get("task")))
    check_index(path, ROOT / task.model if task is not None and task.revision is None else None)


def _ready() -> list[str]:
    libraries = ["torch", "transformers", "safetensors", *(["vllm"] if inspect().gpus else [])]
    return [f"the {name} library" for name in libraries if find_spec(name) is None]


def _progress(folder: Path) -> str:
    from llm.figures import progress  # matplotlib is slow to import

    return progress(folder)


def _completions(folder: Path) -> str:
    from llm.report import completions  # it reads this file

    return completions(folder)


def _prepare() -> str:
    """See that the starting model of this machine's class is here and whole."""
    from llm.models import check_model

    check_model(TASKS[nearest_class(TRACK, inspect()).name])
    return ""


TRACK = Track(
    name="llm",
    title="Sokoban by RL fine-tuning",
    metric="pass@1",
    target=0.80,
    ruleset="2",
    classes=(
        HardwareClass("8xH100", "eight H100s", cores=None, gpus=8, gpu_name="H100", warmup_limit_s=1800),
        HardwareClass("cpu", "two CPU cores", cores=2, gpus=0, gpu_name="", warmup_limit_s=180),
    ),
    fixed_files=(
        "llm/__init__.py",
        "llm/track.py",
        "llm/puzzles.py",
        "llm/answers.py",
        "llm/prompt.py",
        "llm/completion.py",
        "llm/evidence.py",
        "llm/models.py",
        "llm/checkpoint.py",
        "llm/eval_speedrun.py",
        "llm/calibration.py",
        "llm/engines/*.py",
        "llm/datasets/datasets.sha256",
        "llm/tiny/*",
        "sokoban/__init__.py",
        "sokoban/reference.py",
        "sokoban/levels.py",
        *HARNESS_FILES,
    ),
    earlier={"1": before_2("llm/__init__.py", "sokoban/__init__.py")},
    evidence_name="evidence.jsonl.xz",
    not_played=re.compile(rb'\A.*\n|,"tokens":[0-9]+|"answer_tokens":[0-9]+,'),
    checkpoint_name="checkpoint.json",
    data_files=lambda: {task.train: dataset_sha256(task.train) for task in TASKS.values()},
    score=score,
    calibrate=calibrate,
    ready=_ready,
    prepare=_prepare,
    check_checkpoint=_check_checkpoint,
    reports=(
        Report("progress.svg", "how training went, step by step", _progress),
        Report("completions.md", "What the model answered", _completions),
    ),
)
