"""FIXED: play the test episodes with what a run has learned, its memory frozen, and write the evidence.

    python -m agents.eval_speedrun outputs/<run>

The run's folder holds the checkpoint `memory.json` and, in `training/` and `evaluation/`, what
`agents.core` writes of an experiment: every call, every trajectory, the cache. An evaluation that broke off
goes on from there: episodes that were played stay, and answers that were given come from the cache.
"""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agents.benchmarks import load_benchmark
from agents.config import Config, differences, read_config
from agents.core import checkpoint
from agents.core.checkpoint import CALLS
from agents.core.journal import TRAJECTORIES
from agents.core.loop import End, Experiment
from agents.core.provenance import told_hashes
from agents.evidence import CallRow, evidence_header, read_checkpoint, write_evidence
from agents.memory.trajectory import Trajectory
from agents.methods import METHODS
from agents.reach import check_reachable, model_server
from agents.task import TASKS, episodes, versions
from agents.traces import Played, digest_of
from agents.track import TRACK
from harness.errors import Problem, run_command
from harness.files import canonical_json, sha256_file
from harness.run import Run
from harness.track import Score

TRAINING, EVALUATION = "training", "evaluation"

MODEL_FIELDS = ("provider", "base_url", "api_key_env", "temperature", "top_p", "max_tokens")
BUDGET_FIELDS = ("dollars", "tokens", "calls")
EXPERIMENT_FIELDS = ("method", "sleep_every", "turn_limit", "history", "parallel")
METHOD_FIELDS = ("sleep_tokens", "sleep_turns", "answer_tokens", "functions", "experience")
"""Fields that every recipe has, besides seed, model, tasks and episodes, and what they are settings of."""

_FREE = ("model.base_url", *(f"budget.{field}" for field in BUDGET_FIELDS))


def config_of(name: str, recipe: Mapping[str, Any], seed: int) -> Config:
    """What a recipe asks of an experiment on a class.

    Raises:
        Problem: it lacks a field, or has a value that cannot be.
    """
    known_tasks = load_benchmark(name).tasks
    tasks = tuple(recipe["tasks"]) or TASKS[name].tasks or known_tasks
    for kind, value, known in (
        *(("task", task, known_tasks) for task in tasks),
        ("method", recipe["method"], tuple(METHODS)),
    ):
        if value not in known:
            raise Problem(f"the recipe names the {kind} {value!r}", remedy=f"choose from: {', '.join(known)}")
    try:
        return Config.model_validate(
            {
                "benchmark": name,
                "model": {"name": recipe["model"], **{field: recipe[field] for field in MODEL_FIELDS}},
                "phases": ({"tasks": tasks, "episodes": recipe["episodes"]},),
                "seed": seed,
                "budget": {field: recipe[f"budget_{field}"] for field in BUDGET_FIELDS},
                "method_settings": {field: recipe[field] for field in METHOD_FIELDS},
                **{field: recipe[field] for field in EXPERIMENT_FIELDS},
            }
        )
    except KeyError as error:
        raise Problem(f"the recipe has no {error.args[0]}") from error
    except ValidationError as error:
        found = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        raise Problem(f"the recipe cannot be: {'; '.join(found)}") from error


@contextmanager
def placed(name: str, recipe: Mapping[str, Any], seed: int) -> Iterator[Config]:
    """The same with a model that can be asked: the scripted one runs as long as this."""
    with model_server(recipe["base_url"]) as address:
        yield config_of(name, {**recipe, "base_url": address}, seed)


# ---- the checkpoint ----------------------------------------------------------------------------------------


def checkpoint_bytes(method: str, seed: int, memory: Mapping[str, Any]) -> bytes:
    """The content of memory.json: what a method has learned, as it dumps it, and in which run."""
    return canonical_json({"method": method, "seed": seed, "memory": memory}).encode() + b"\n"


# ---- playing -----------------------------------------------------------------------------------------------


def evaluate(run: Run) -> Score:
    """Play the test episodes of the run's class, write the evidence, log its score, end the run."""
    name, recipe = run.manifest.recipe_name, run.manifest.recipe
    path = run.path / TRACK.checkpoint_name
    memory = read_checkpoint(path, str(recipe["method"]), run.seed)
    run.eval_start()
    with placed(name, recipe, run.seed) as config:
        played = play_test(run.path, config, memory)
    header = evidence_header(
        name,
        seed=run.seed,
        checkpoint_sha256=sha256_file(path),
        prompts=told_hashes(load_benchmark(name)),
        recipe=recipe,
        versions=versions(name),
    )
    calls = [*read_calls(run.path / TRAINING / CALLS), *read_calls(run.path / EVALUATION / CALLS)]
    evidence = run.path / TRACK.evidence_name
    write_evidence(evidence, header, calls, played)
    score = TRACK.score(evidence)
    run.eval_stop(evidence, score)
    run.stop()
    print("\n".join(by_task(played)), flush=True)
    return score


def play_test(folder: Path, config: Config, memory: Mapping[str, Any]) -> list[Played]:
    """Play what is left of the test episodes of a run, in its folder `evaluation`.

    The budget is what training has left of the recipe's.

    Raises:
        Problem: the model cannot be asked, or the budget does not suffice.
    """
    place, wanted = folder / EVALUATION, episodes(config.benchmark)
    config = _with_the_rest(config, folder / TRAINING / CALLS)
    place.mkdir(exist_ok=True)
    with checkpoint.locked(place):
        if (place / checkpoint.CONFIG).is_file():
            _check_same(place / checkpoint.CONFIG, config)
        else:
            checkpoint.begin(place, config)
        experiment = Experiment(place, config)
        try:
            experiment.batches, experiment.evaluation = [], wanted
            if experiment.journal.memory() is None:
                experiment.journal.begin(memory)
            elif experiment.journal.memory() != memory:
                raise Problem("was begun with another memory", file=place, remedy=f"delete {place}")
            if experiment.journal.count("eval") < len(wanted):
                check_reachable(config.model)
            end = experiment.run()
        finally:
            experiment.close()
    finish(end, f"python -m agents.eval_speedrun {folder}")
    lines = checkpoint.whole_lines(place / TRAJECTORIES)
    return [played_of(Trajectory.from_json(line["trajectory"])) for line in lines]


def _check_same(path: Path, config: Config) -> None:
    """Refuse to go on with other settings than those that an evaluation began with."""
    changed = [key for key in differences(read_config(path), config) if key not in _FREE]
    if changed:
        reason = f"the evaluation was begun with other values of {', '.join(changed)}"
        raise Problem(reason, file=path, remedy=f"delete {path.parent}")


def finish(end: End, command: str) -> None:
    """Raise what an experiment ended with, where it is not complete; `command` goes on with it."""
    if end.status == "interrupted":
        raise KeyboardInterrupt
    if end.status != "complete":
        raise Problem(f"the experiment is not complete: {end.reason}", remedy=f"then go on with {command}")


def played_of(trajectory: Trajectory) -> Played:
    """An episode as evidence has it."""
    steps = [step for turn in trajectory.turns for step in turn.steps]
    seen = [trajectory.first_observation, *(step.observation for step in steps)]
    return Played(
        *trajectory.episode,
        tuple(step.action for step in steps),
        float(trajectory.score),
        trajectory.steps,
        digest_of(trajectory.goal, seen),
    )


def read_calls(path: Path) -> list[CallRow]:
    """The calls in a calls.jsonl, [] where there is none. What failed attempts may have taken is `lost`."""
    return [_call(line) for line in checkpoint.whole_lines(path)]


def _call(line: Mapping[str, Any]) -> CallRow:
    reply, charged = line["reply"], int(line["charged"]["tokens"])
    if reply is None:
        return CallRow(line["label"], line["hash"], None, None, None, None, charged)
    prompt, completion = reply["usage"]["prompt"], reply["usage"]["completion"]
    known = prompt is not None and completion is not None
    lost = max(0, charged - prompt - completion) if known else 0
    return CallRow(line["label"], line["hash"], reply["text"], reply["finish"], prompt, completion, lost)


def _with_the_rest(config: Config, training: Path) -> Config:
    """The config with what is left of its budget."""
    spent = [line["charged"] for line in checkpoint.whole_lines(training)]
    left = {}
    for name in BUDGET_FIELDS:
        limit = getattr(config.budget, name)
        rest = None if limit is None else limit - sum(charged[name] for charged in spent)
        if rest is not None and rest <= 0:
            raise Problem(f"training left nothing of the budget of {limit} {name} for the evaluation")
        left[name] = rest
    return config.model_copy(update={"budget": config.budget.model_copy(update=left)})


def by_task(played: list[Played]) -> list[str]:
    """A line for each task: its mean score."""
    scores: dict[str, list[float]] = {}
    for one in played:
        scores.setdefault(one.task, []).append(one.score)
    return [f"  {task}: {sum(some) / len(some):.3f} of {len(some)}" for task, some in scores.items()]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m agents.eval_speedrun",
        description="Play the test episodes with the memory that a run has learned, and score them.",
    )
    parser.add_argument("run", type=Path, help="run folder, outputs/<run>")
    arguments = parser.parse_args()
    with Run.open(arguments.run, TRACK.name) as run:
        evaluate(run)


if __name__ == "__main__":
    run_command(main)
