"""The step model against measured steps of the cpu class: how far the bound is from the truth, and why.

    python -m benchmarks.llm_step_check [--steps 20]

One thread does what each of the recipe's processes does in a step: it draws its share of the completions and
learns from them. The bound takes the FLOPs of those very completions at the speed of a large matrix product,
measured in the same run, and the reading of weights at the measured speed of reading as many bytes. The next
column adds what a pass through the model costs that has next to nothing to compute, measured too: one
completion a pass for the rollout, one group of two for the update. Times are medians, since other programs
share the machine.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.llm_step_model import Architecture, Device, decode, prefill, update
from harness.files import write_atomic
from llm.completion import Sampling
from llm.models import load_model, load_tokenizer, model_folder, prompt_tokens
from llm.puzzles import read_puzzles
from llm.track import TASKS

# Open to change: looked up when this runs.
speedrun: Any = import_module("llm.speedrun")

FORWARD_AND_BACKWARD = 3.0
"""Forward passes that an update costs where nothing is computed twice."""


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    steps: int = 20
    """steps to time"""
    seed: int = 1
    out: Path | None = None
    """JSON file to write"""


def seconds(work: Callable[[], Any], repeats: int = 15) -> float:
    """The shortest of several times: a speed that the machine can reach."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def this_core(model: Architecture, size: int = 1024) -> Device:
    """Speeds of one core: a product of square matrices, and reading as many bytes as the model has."""
    square, weights = torch.ones(size, size), torch.ones(model.parameters)
    return Device(
        flops=2 * size**3 / seconds(lambda: square @ square),
        bandwidth=4 * model.parameters / seconds(weights.sum),
        value_bytes=4,
    )


COLUMNS = ("flops", "bound", "bound with fixed costs", "measured")


def measure(settings: Settings) -> dict[str, dict[str, float]]:
    """Phase -> COLUMNS, for one core's share of a step; and what was found of the core."""
    pinned = speedrun.RECIPES["cpu"]
    recipe = replace(pinned, trainers=1, puzzles=pinned.puzzles // pinned.trainers, steps=settings.steps)
    task, device = TASKS[recipe.task], torch.device("cpu")
    folder = model_folder(task)
    tokenizer = load_tokenizer(folder)
    setting = speedrun.Setting(recipe, tokenizer, device, settings.seed, 0)
    policy = speedrun.Policy(load_model(folder, device), recipe)
    rollouts, learner = speedrun.OwnRollouts(policy.model, setting), speedrun.Learner(policy, setting)
    puzzles = read_puzzles(task.train)
    prompts = prompt_tokens(tokenizer, recipe.prompt, task, puzzles)
    rollouts.start(speedrun.Puzzles(puzzles, prompts, settings.seed))
    model = Architecture.of(policy.model.config)
    core = this_core(model)
    pass_seconds, update_seconds = fixed_costs(rollouts, learner, prompts[0])

    counter = replace(core, flops=1.0, bandwidth=float("inf"))  # its seconds are FLOPs
    rows: dict[str, list[tuple[float, ...]]] = {"rollout": [], "update": []}
    for step in range(settings.steps + 2):
        start = time.perf_counter()
        groups = rollouts.take(step)
        drawn = time.perf_counter()
        learner.learn(groups, learner.rate(step + 1))
        learned = time.perf_counter()
        if step < 2:  # they find the memory that the others use again
            continue
        flops, bound = (predict(model, speed, groups, recipe) for speed in (counter, core))
        fixed = int(lengths_of(groups).max()) * pass_seconds
        rows["rollout"].append((flops[0], bound[0], bound[0] + fixed, drawn - start))
        rows["update"].append((flops[1], bound[1], bound[1] + update_seconds, learned - drawn))
    table = {
        phase: dict(zip(COLUMNS, (median(column) for column in zip(*values, strict=True)), strict=True))
        for phase, values in rows.items()
    }
    table["step"] = {name: sum(table[phase][name] for phase in rows) for name in COLUMNS}
    speeds = (core.flops, core.bandwidth, pass_seconds, update_seconds)
    table["core"] = dict(zip(("flops", "bandwidth", "pass", "update"), speeds, strict=True))
    return table


def predict(model: Architecture, device: Device, groups: list[Any], recipe: Any) -> tuple[float, float]:
    """Least seconds of drawing these groups and of learning from those that differ in reward."""
    prompt, lengths = round(mean(len(group.prompt) for group in groups)), lengths_of(groups)
    rollout = prefill(model, device, prompt, len(groups)) + decode(model, device, prompt, lengths)
    kept = lengths_of([group for group in groups if not group.constant])
    sharing = recipe.group if recipe.shared_prompts else 1
    return rollout, update(model, device, prompt, kept, FORWARD_AND_BACKWARD, sharing)


def lengths_of(groups: list[Any]) -> np.ndarray:
    """(N,) tokens of each completion."""
    return np.array([len(row.tokens) for group in groups for row in group.completions])


def fixed_costs(rollouts: Any, learner: Any, prompt: list[int]) -> tuple[float, float]:
    """Seconds of a decoding pass for one completion, and of an update on two, with no learning rate."""
    tokens = 8
    sampling = Sampling(temperature=1e9, top_p=1.0)  # hardly ever the end token

    def draw(count: int) -> float:
        return seconds(lambda: rollouts.engine.generate([prompt], [1], [count], sampling))

    one_pass = (draw(1 + tokens) - draw(1)) / tokens
    (generation,) = rollouts.engine.generate([prompt], [1], [2], sampling)
    completion = speedrun.Completion(generation.tokens, generation.log_probabilities, [True] * 2, True, None)
    group = speedrun.Group(prompt, [completion] * 2, [0.0, 1.0], 0)
    small = speedrun.Learner(
        learner.policy, learner.setting._replace(recipe=replace(learner.setting.recipe, group=2))
    )
    return one_pass, seconds(lambda: small.learn([group], rate=0.0))


def main(settings: Settings) -> None:
    """Print the table, write the file."""
    torch.set_num_threads(1)
    found = measure(settings)
    core = found["core"]
    view = Table("seconds", title="one core's share of a step of the cpu recipe", box=None)
    for heading in ("GFLOP", "bound", "with fixed costs", "measured", "over the bound", "over both"):
        view.add_column(heading, justify="right")
    for phase in ("rollout", "update", "step"):
        flops, bound, fixed, measured = found[phase].values()
        view.add_row(
            phase,
            f"{flops / 1e9:.2f}",
            *(f"{value:.3f}" for value in (bound, fixed, measured)),
            f"{measured / bound:.1f}x",
            f"{measured / fixed:.1f}x",
        )
    console = Console()
    console.print(view)
    console.print(
        f"this core: {core['flops'] / 1e9:.0f} GFLOP/s, {core['bandwidth'] / 1e9:.0f} GB/s, "
        f"{1e3 * core['pass']:.2f} ms a decoding pass, {1e3 * core['update']:.1f} ms an update"
    )
    if settings.out:
        report = {"settings": asdict(settings) | {"out": str(settings.out)}, "found": found}
        write_atomic(settings.out, json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Settings, prog="python -m benchmarks.llm_step_check", description=__doc__))
