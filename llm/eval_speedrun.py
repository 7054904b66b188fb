"""FIXED: draw the completions of the held-out puzzles and write them as evidence.

    python -m llm.eval_speedrun outputs/<run>              a trained run: completes its folder
    python -m llm.eval_speedrun --eval-checkpoint base     the untrained model: the baseline

The prompt is that of the run's recipe. What is drawn is kept in `evidence.partial.jsonl`, so an evaluation
that was interrupted goes on where it stopped. On GPUs one vLLM server a GPU draws; on CPUs one process a
core, with plain transformers.
"""

import argparse
import gc
import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import PreTrainedTokenizerBase

from harness import machine as machines
from harness.errors import Problem, run_command
from harness.files import canonical_json, read_bytes, sha256_bytes, sha256_file, unwritable, write_atomic
from harness.lock import locked
from harness.progress import progress_bar
from harness.run import Run
from harness.silent import end_with_parent, ignored_signals
from harness.track import Score
from llm.checkpoint import FOLDER, INDEX, index_files, open_checkpoint
from llm.completion import Engine, complete, completion_seed, completion_text
from llm.engines.local import LocalEngine
from llm.engines.server import Servers
from llm.evidence import completion_row, write_evidence
from llm.models import end_token, load_model, load_tokenizer, model_folder, prompt_tokens
from llm.prompt import check_prompt
from llm.puzzles import Puzzle, read_puzzles
from llm.track import TASKS, TRACK, Task, evidence_header, read_outcomes, score_outcomes

PARTIAL = "evidence.partial.jsonl"
BASE = "base"  # in place of a run: the untrained model
CHUNK = 25  # puzzles that a process draws at a time on a CPU
IN_FLIGHT = 64  # completions that a GPU draws at a time
LONGEST_PROMPT = 1024  # tokens; the questions have fewer than 600, and what stands around them fewer than 300


class Job(NamedTuple):
    """What is evaluated."""

    task: Task
    model: Path
    """Folder of the weights; the tokenizer and its chat template are the starting model's."""
    prompt: str
    header: dict[str, Any]


def evaluate(run: Run) -> Score:
    """Evaluate a run's checkpoint, write the evidence, log the score that judging it gives, end the run.

    The held-out puzzles are for the pinned recipe; an experiment, whose flags change it, gets others.
    """
    recipe = run.manifest.recipe
    task = TASKS[str(recipe["task"])]
    experiment = run.manifest.flags or run.manifest.smoke
    folder = open_checkpoint(run.path)
    run.eval_start()
    header = evidence_header(
        task.hardware_class,
        task.valid if experiment else task.eval,
        checkpoint_sha256=sha256_file(run.path / INDEX),
        prompt=str(recipe["prompt"]),
    )
    evidence = run.path / TRACK.evidence_name
    score = play(Job(task, folder, str(recipe["prompt"]), header), evidence, run.manifest.run_id)
    run.eval_stop(evidence, score)
    run.stop()
    return score


def play(job: Job, evidence: Path, run_id: str) -> Score:
    """Draw every completion that this run has not drawn yet, write the evidence and judge it."""
    puzzles = read_puzzles(job.header["puzzles"])
    print(
        f"Evaluation on {job.header['puzzles']}, {len(puzzles)} puzzles x {job.task.completions}", flush=True
    )
    kept = Partial(evidence.with_name(PARTIAL), {**job.header, "run_id": run_id})
    todo = [puzzle for puzzle in puzzles if puzzle.index not in kept.rows]
    if kept.rows:
        print(f"{len(kept.rows)} puzzles are drawn already", flush=True)
    started, tokens = time.monotonic(), 0
    with progress_bar(len(puzzles), "puzzle") as bar:
        bar.update(len(kept.rows))
        for drawn in draw(job, todo):
            kept.add(drawn)
            tokens += sum(completion["tokens"] for row in drawn for completion in row["completions"])
            bar.set_postfix(tokens_per_s=f"{tokens / (time.monotonic() - started):,.0f}", refresh=False)
            bar.update(len(drawn))
    write_evidence(evidence, job.header, [kept.rows[puzzle.index] for puzzle in puzzles])
    score = score_outcomes(read_outcomes(evidence))
    kept.path.unlink()
    return score


# ---- drawing ------------------------------------------------------------------------------------------


def draw(job: Job, puzzles: Sequence[Puzzle]) -> Iterator[list[dict[str, Any]]]:
    """Rows of evidence, some puzzles at a time, in whatever order they are done."""
    chunks: Sequence[Sequence[Puzzle]]
    chunks = [puzzles[start : start + CHUNK] for start in range(0, len(puzzles), CHUNK)]
    if not chunks:
        return
    with ExitStack() as stack:
        pool: Executor
        draw_chunk: Callable[[Sequence[Puzzle]], list[dict[str, Any]]]
        if torch.cuda.is_available():
            gc.collect()
            torch.cuda.empty_cache()  # what training leaves would be missing to the servers
            chunks = [[puzzle] for puzzle in puzzles]  # they take long, and an interruption may lose few
            pool = ThreadPoolExecutor(len(chunks))
            # Before the servers, so that it waits for its threads when these have been let go.
            stack.callback(pool.shutdown, wait=True, cancel_futures=True)
            gpus = range(torch.cuda.device_count())
            tokenizer = load_tokenizer(model_folder(job.task))
            longest = job.task.limits.max_tokens + LONGEST_PROMPT
            engine = stack.enter_context(
                Servers(
                    job.model,
                    gpus,
                    end=end_token(tokenizer),
                    max_model_len=longest,
                    in_flight=IN_FLIGHT * len(gpus),
                )
            )
            draw_chunk = partial(draw_rows, engine, tokenizer, job)
        else:
            pool = stack.enter_context(_processes(machines.available_cores() or 1, job))
            draw_chunk = _draw_chunk
        with ignored_signals():  # the pool's processes start here
            futures = [pool.submit(draw_chunk, chunk) for chunk in chunks]
        for future in as_completed(futures):
            yield future.result()


def draw_rows(
    engine: Engine, tokenizer: PreTrainedTokenizerBase, job: Job, puzzles: Sequence[Puzzle]
) -> list[dict[str, Any]]:
    """All completions of some puzzles as rows of evidence."""
    task = job.task
    prompts = prompt_tokens(tokenizer, job.prompt, task, puzzles)
    completions = complete(
        engine,
        tokenizer,
        [prompt for prompt in prompts for _ in range(task.completions)],
        [
            completion_seed(task.seed, puzzle.index, index)
            for puzzle in puzzles
            for index in range(task.completions)
        ],
        task.limits,
        task.sampling,
    )
    rows = [completion_row(completion, *completion_text(tokenizer, completion)) for completion in completions]
    return [
        {
            "puzzle": puzzle.index,
            "completions": rows[place * task.completions : (place + 1) * task.completions],
        }
        for place, puzzle in enumerate(puzzles)
    ]


@contextmanager
def _processes(count: int, job: Job) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes are killed where what uses it breaks off, and what they were drawing is lost."""
    pool = ProcessPoolExecutor(count, get_context("spawn"), initializer=_load, initargs=(job,))
    with pool:
        try:
            yield pool
        except BrokenProcessPool as error:
            remedy = "see if memory ran out; what is drawn is kept"
            raise Problem("a process that drew completions was killed", remedy=remedy) from error
        except BaseException:
            for process in pool._processes.values():
                process.kill()
            raise


class _Worker(NamedTuple):
    job: Job
    engine: Engine
    tokenizer: PreTrainedTokenizerBase


_worker: _Worker | None = None  # what the initializer of a process of the pool leaves for its tasks


def _load(job: Job) -> None:
    global _worker
    end_with_parent()
    torch.set_num_threads(1)
    tokenizer = load_tokenizer(model_folder(job.task))
    model = load_model(job.model, torch.device("cpu"))
    _worker = _Worker(job, LocalEngine(model, end_token(tokenizer)), tokenizer)


def _draw_chunk(puzzles: Sequence[Puzzle]) -> list[dict[str, Any]]:
    assert _worker is not None
    return draw_rows(_worker.engine, _worker.tokenizer, _worker.job, puzzles)


# ---- what is kept of an evaluation that is not done ---------------------------------------------------


class Partial:
    """The rows drawn so far, in memory and in a file that outlives a crash."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        """The header says whose rows they are and how they are drawn; rows under another one are dropped."""
        self.path = path
        self.rows = _rows_of(path, header) if path.exists() else {}
        lines = [canonical_json(value) + "\n" for value in (header, *self.rows.values())]
        write_atomic(path, "".join(lines))

    def add(self, rows: Sequence[dict[str, Any]]) -> None:
        """Keep some more."""
        self.rows |= {row["puzzle"]: row for row in rows}
        try:
            with self.path.open("a") as handle:
                handle.writelines(canonical_json(row) + "\n" for row in rows)
        except OSError as error:
            raise unwritable(self.path, error) from error


def _rows_of(path: Path, header: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Puzzle -> row; none where the file is of another run or checkpoint, or drawn with other settings."""
    *lines, _ = read_bytes(path).split(b"\n")  # a crash may have cut the last line short
    try:
        found, *rows = [json.loads(line) for line in lines]
        return {int(row["puzzle"]): row for row in rows} if found == header else {}
    except (ValueError, TypeError, KeyError) as error:
        raise Problem("is damaged", file=path, remedy="delete it, and the evaluation starts anew") from error


# ---- command line -------------------------------------------------------------------------------------


def evaluate_baseline(task: Task, prompt: str, puzzles: str, outputs: Path = Path("outputs")) -> Score:
    """Evaluate the untrained model; the evidence goes to a folder of its own."""
    folder = model_folder(task)
    index = canonical_json({"files": index_files(folder)}) + "\n"
    path = outputs / f"llm_{task.hardware_class}_base"
    path.mkdir(parents=True, exist_ok=True)
    write_atomic(path / INDEX, index)
    header = evidence_header(
        task.hardware_class, puzzles, checkpoint_sha256=sha256_bytes(index.encode()), prompt=prompt
    )
    with locked(path):
        score = play(Job(task, folder, prompt, header), path / TRACK.evidence_name, BASE)
    print(
        f"{TRACK.metric} {score.value:.4f} [{score.low:.4f}, {score.high:.4f}] on {score.count} {score.unit}"
    )
    print(f"Evidence: {path / TRACK.evidence_name}")
    return score


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m llm.eval_speedrun",
        description="Draw and judge the completions of the held-out puzzles.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("run", nargs="?", help="run folder, outputs/<run>")
    what.add_argument(
        "--eval-checkpoint",
        help=f"outputs/<run>, or its checkpoint folder; or '{BASE}', the untrained model",
    )
    hardware = machines.nearest_class(TRACK, machines.inspect())
    parser.add_argument(
        "--class",
        dest="name",
        choices=TASKS,
        default=hardware.name,
        help="whose untrained model (default: %(default)s, by this machine)",
    )
    parser.add_argument(
        "--prompt", default="{question}", help="what stands around the question to the untrained model"
    )
    parser.add_argument(
        "--valid", action="store_true", help="ask the untrained model the puzzles that are there to tune on"
    )
    arguments = parser.parse_args()
    if arguments.eval_checkpoint == BASE:
        task = TASKS[arguments.name]
        check_prompt(arguments.prompt)
        evaluate_baseline(task, arguments.prompt, task.valid if arguments.valid else task.eval)
        return
    path = Path(arguments.run or arguments.eval_checkpoint)
    path = path.parent if path.name in (FOLDER, INDEX) else path
    with Run.open(path, TRACK.name) as run:
        evaluate(run)


if __name__ == "__main__":
    run_command(main)
