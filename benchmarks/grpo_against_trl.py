"""Seconds a step and learning of the cpu recipe's loop against TRL's stock GRPOTrainer, in one run.

    python -m benchmarks.grpo_against_trl [--steps 60] [--out grpo.json]

Both start from the same model and see the same puzzles in the same order, with the same loss, group size,
optimizer and rates; only their draws of completions differ. TRL generates with transformers, as it does by
default, and is set up for a CPU (no bfloat16, no recomputation, one batch a step). Two threads are in one
process, or in two processes that share gradients over gloo. The phases are `rollout` from prompts to texts,
`reward` the judge, `update` from the scored batch to the end of the optimizer's step, and `rest` all that
lies between: data, padding, advantages, logging. A completion may have as many tokens as ours has before it
is interrupted; TRL knows no interruption.
Steps before `--warmup` teach but are not timed. Seconds are medians, since other programs share the machine,
and CPU seconds of all processes stand beside them.
"""

import json
import multiprocessing
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import mean, median
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers is imported

import torch
import tyro
from rich.console import Console
from rich.table import Table
from transformers import PrinterCallback, TrainerCallback
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from harness.files import write_atomic
from harness.silent import SilentRun
from llm.answers import judge
from llm.completion import INTERRUPTION
from llm.models import load_model, load_tokenizer, model_folder, prompt_tokens
from llm.puzzles import read_puzzles
from llm.track import TASKS

# Open to change, or without types: looked up when this runs.
speedrun: Any = import_module("llm.speedrun")
datasets: Any = import_module("datasets")

PHASES = ("rollout", "reward", "update", "rest")
THREADS = 2
"""Of all processes of a contestant together."""


@dataclass(frozen=True)
class Settings:
    """What to compare."""

    steps: int = 60
    """gradient steps of each"""
    warmup: int = 5
    """steps at the start that are not timed"""
    processes: tuple[int, ...] = (1, 2)
    """set-ups: one process with two threads, two with one each"""
    seed: int = 1
    """of the order of the puzzles and of the completions"""
    learning_rate: float = 1e-4
    """constant, of AdamW"""
    out: Path | None = None
    """JSON file to write"""


@dataclass
class Step:
    """One gradient step as one process saw it."""

    rollout: float = 0.0
    reward: float = 0.0
    update: float = 0.0
    rest: float = 0.0
    cpu: float = 0.0
    pass_rate: float = 0.0
    tokens: float = 0.0
    """mean of a completion"""

    @property
    def seconds(self) -> float:
        """Of the whole step."""
        return self.rollout + self.reward + self.update + self.rest


class Stopwatch:
    """Splits the time between two marks into phases; what no phase took is the rest."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.begin()

    def begin(self) -> None:
        """Start a step."""
        self.step, self.wall, self.cpu = Step(), time.perf_counter(), time.process_time()

    def end(self) -> None:
        """End the step and start the next."""
        self.step.cpu = time.process_time() - self.cpu
        self.step.rest = time.perf_counter() - self.wall - self.step.seconds
        self.steps.append(self.step)
        self.begin()

    def add(self, phase: str, seconds: float) -> None:
        """Count seconds towards a phase of this step."""
        setattr(self.step, phase, getattr(self.step, phase) + seconds)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count what is done inside towards a phase."""
        start = time.perf_counter()
        yield
        self.add(name, time.perf_counter() - start)


# ---- TRL ----------------------------------------------------------------------------------------------


class Watch(TrainerCallback):
    """Marks the end of the update and of the step."""

    def __init__(self, watch: Stopwatch) -> None:
        self.watch, self.scored = watch, 0.0

    def on_train_begin(self, *arguments: Any, **others: Any) -> None:
        self.watch.begin()

    def on_optimizer_step(self, *arguments: Any, **others: Any) -> None:
        self.watch.add("update", time.perf_counter() - self.scored)

    def on_step_end(self, *arguments: Any, **others: Any) -> None:
        self.watch.end()


class TimedTrainer(GRPOTrainer):
    """The stock trainer; its own methods are timed and nothing else."""

    watch: Watch

    def _generate(self, *arguments: Any) -> Any:
        with self.watch.watch.phase("rollout"):
            return super()._generate(*arguments)

    def _calculate_rewards(self, *arguments: Any) -> Any:
        with self.watch.watch.phase("reward"):
            return super()._calculate_rewards(*arguments)

    def _prepare_inputs(self, *arguments: Any) -> Any:
        inputs = super()._prepare_inputs(*arguments)
        self.watch.scored = time.perf_counter()
        return inputs


def train_trl(recipe: Any, seed: int, folder: Path) -> list[Step]:
    """TRL's GRPOTrainer with the recipe's settings; the steps of this process."""
    task = TASKS[recipe.task]
    tokenizer = load_tokenizer(model_folder(task))
    tokenizer.padding_side = "left"
    model = load_model(model_folder(task), torch.device("cpu"))
    puzzles = read_puzzles(task.train)
    source = speedrun.Puzzles(puzzles, prompt_tokens(tokenizer, recipe.prompt, task, puzzles), seed)
    rows = [
        {"prompt": tokenizer.decode(prompt), "puzzle": puzzle.index}
        for _, puzzle, prompt in source.take(recipe.steps * recipe.puzzles)
    ]

    def solved(
        completions: list[str], completion_ids: list[list[int]], puzzle: list[int], **_: Any
    ) -> list[float | None]:
        return [
            float(judge(puzzles[index], text, stopped=ids[-1] == tokenizer.eos_token_id).solved)
            for index, text, ids in zip(puzzle, completions, completion_ids, strict=True)
        ]

    sentence = tokenizer.encode(INTERRUPTION, add_special_tokens=False)
    config = GRPOConfig(
        str(folder),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        logging_steps=1,
        seed=seed,
        shuffle_dataset=False,  # the rows have their order
        max_steps=recipe.steps,
        per_device_train_batch_size=recipe.puzzles * recipe.group // recipe.trainers,
        gradient_accumulation_steps=1,
        num_generations=recipe.group,
        max_completion_length=recipe.max_tokens - recipe.answer_tokens - len(sentence),
        temperature=recipe.temperature,
        top_p=1.0,
        top_k=0,
        loss_type=recipe.loss,
        epsilon=recipe.clip_low,
        epsilon_high=recipe.clip_high,
        scale_rewards="group" if recipe.scaled else "none",
        learning_rate=recipe.learning_rate,
        lr_scheduler_type="constant",
        adam_beta2=recipe.beta2,
        weight_decay=recipe.weight_decay,
        max_grad_norm=recipe.max_gradient_norm,
    )
    trainer = TimedTrainer(
        model=model,
        reward_funcs=solved,
        args=config,
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=tokenizer,
    )
    trainer.watch = Watch(Stopwatch())
    trainer.add_callback(trainer.watch)
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    steps = trainer.watch.watch.steps
    logged = [entry for entry in trainer.state.log_history if "reward" in entry]
    for step, entry in zip(steps, logged, strict=False):  # only the first process logs
        step.pass_rate, step.tokens = entry["reward"], entry["completions/mean_length"]
    return steps


# ---- ours ---------------------------------------------------------------------------------------------


class TimedRun(SilentRun):
    """A run that keeps what the loop logs of each step."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.watch = Stopwatch()

    def train_start(self) -> None:
        self.watch.begin()

    def log_step(self, step: int, **numbers: float) -> None:
        # The judge has its own phase, which lies inside the rollout's.
        self.watch.add("rollout", numbers["rollout_s"] - self.watch.step.reward)
        self.watch.add("update", numbers["update_s"])
        self.watch.step.pass_rate, self.watch.step.tokens = numbers["pass_rate"], numbers["length"]
        self.watch.end()


def train_ours(recipe: Any, seed: int, rank: int) -> list[Step]:
    """The loop of llm/speedrun.py; the steps of this process."""
    run = TimedRun(seed)

    def timed_judge(*arguments: Any, **others: Any) -> Any:
        with run.watch.phase("reward"):
            return judge(*arguments, **others)

    speedrun.judge = timed_judge
    speedrun.work(run, recipe, rank)
    return run.watch.steps


# ---- comparison ---------------------------------------------------------------------------------------


def settings_of_both(settings: Settings, processes: int) -> Any:
    """The recipe: how it computes is as pinned, what it computes is what TRL is asked for too."""
    return replace(
        speedrun.RECIPES["cpu"],
        trainers=processes,
        steps=settings.steps,
        puzzles=32,
        group=8,
        temperature=1.0,
        loss="dapo",
        clip_low=0.2,
        clip_high=0.28,
        scaled=False,
        blame=1.0,
        learning_rate=settings.learning_rate,
        warmup_steps=0,
        final_rate=1.0,
        beta2=0.999,
        weight_decay=0.0,
        max_gradient_norm=1.0,
        sharded=False,
        staleness=0,
    )


def work(rank: int, system: str, recipe: Any, seed: int, port: int, folder: Path) -> list[Step]:
    """One process of one contestant; its steps."""
    processes = recipe.trainers
    torch.set_num_threads(THREADS // processes)
    if system == "TRL":
        if processes > 1:  # what torchrun would tell it
            told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": processes, "LOCAL_WORLD_SIZE": processes}
            told |= {"MASTER_PORT": port, "OMP_NUM_THREADS": THREADS // processes}
            os.environ.update({name: str(value) for name, value in told.items()}, MASTER_ADDR="127.0.0.1")
        return train_trl(recipe, seed, folder / "trainer")
    if processes > 1:
        with speedrun.group(rank, recipe, f"file://{folder}/rendezvous"):
            return train_ours(recipe, seed, rank)
    return train_ours(recipe, seed, rank)


def compete(system: str, processes: int, settings: Settings) -> list[Step]:
    """All steps of a contestant: what the first process saw, with the CPU seconds of all."""
    recipe = settings_of_both(settings, processes)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name, ProcessPoolExecutor(processes, context) as pool:
        one = partial(work, system=system, recipe=recipe, seed=settings.seed, port=port, folder=Path(name))
        first, *others = pool.map(one, range(processes))
    for step, *rest in zip(first, *others, strict=True):
        step.cpu += sum(other.cpu for other in rest)
    return first


def table(results: dict[tuple[str, int], list[Step]], settings: Settings) -> Table:
    """Medians and shares of the phases, and what was learned."""
    view = Table("a step", title=f"seconds, by processes x threads, load {os.getloadavg()[0]:.1f}", box=None)
    for system, processes in results:
        view.add_column(f"{system}, {processes}x{THREADS // processes}", justify="right")
    learned = list(results.values())
    timed = [steps[settings.warmup :] for steps in learned]

    def row(name: str, cell: Callable[[list[Step]], str], columns: list[list[Step]]) -> None:
        view.add_row(name, *map(cell, columns))

    def phase(steps: list[Step], name: str) -> str:
        values = [getattr(step, name) for step in steps]
        return f"{median(values):.3f} ({sum(values) / sum(step.seconds for step in steps):.0%})"

    for name in PHASES:
        row(name, partial(phase, name=name), timed)
    row("all", lambda steps: f"{median(step.seconds for step in steps):.3f}", timed)
    row("CPU seconds", lambda steps: f"{median(step.cpu for step in steps):.3f}", timed)
    row("tokens a completion", lambda steps: f"{mean(step.tokens for step in steps):.1f}", timed)
    view.add_section()
    row("pass rate, all", lambda steps: f"{mean(step.pass_rate for step in steps):.3f}", learned)
    row("pass rate, last 10", lambda steps: f"{mean(step.pass_rate for step in steps[-10:]):.3f}", learned)
    return view


def main(settings: Settings) -> None:
    """Run the contestants one after the other, print the table, write the file."""
    results = {
        (system, processes): compete(system, processes, settings)
        for processes in settings.processes
        for system in ("TRL", "ours")
    }
    console = Console()
    console.print(table(results, settings))
    if settings.out:
        report = {
            "settings": asdict(settings) | {"out": str(settings.out)},
            "load_average": os.getloadavg(),
            "results": [
                {"system": system, "processes": processes, "steps": [asdict(step) for step in steps]}
                for (system, processes), steps in results.items()
            ],
        }
        write_atomic(settings.out, json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Settings, prog="python -m benchmarks.grpo_against_trl", description=__doc__))
