"""What it costs a run to be able to go on: agreeing whether to save, at every step, and a saving.

    python -m benchmarks.state_cost

Two processes of the cpu recipes of non_llm and llm do both, beside nothing else; medians of wall
milliseconds, and what that makes of the seconds that the standing record of each trained.
"""

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

import llm.speedrun
import non_llm.speedrun
from harness.log import LOG_NAME, read_log
from harness.state import Pace, State, write_state
from harness.track import ROOT

REPEATS = 20


def non_llm_state(rank: int, meeting_place: str) -> Iterator[Callable[[], bytes]]:
    """What a process of non_llm packs."""
    from sokoban.generator import generate
    from sokoban.rules import SokobanBatch

    recipe = non_llm.speedrun.RECIPES["cpu"]
    with non_llm.speedrun.group(rank, recipe, meeting_place):
        network = non_llm.speedrun.Network(recipe.channels, recipe.blocks)
        batch = SokobanBatch(generate(1000, seed=0), recipe.boards // recipe.processes, generator=None)
        player = non_llm.speedrun.Player(network, batch, recipe, 0, non_llm.speedrun.PLAIN)
        learner = non_llm.speedrun.Learner(network, recipe, 0, non_llm.speedrun.PLAIN)
        learner.learn(player.play()[0], 0, 1)
        yield partial(non_llm.speedrun.pack, 1, player, learner)


def llm_state(rank: int, meeting_place: str) -> Iterator[Callable[[], bytes]]:
    """What a process of llm packs."""
    import torch

    from llm.models import load_model, load_tokenizer, model_folder
    from llm.track import TASKS

    recipe = llm.speedrun.RECIPES["cpu"]
    with llm.speedrun.group(rank, recipe, meeting_place):
        folder, device = model_folder(TASKS["cpu"]), torch.device("cpu")
        policy = llm.speedrun.Policy(load_model(folder, device), recipe)
        setting = llm.speedrun.Setting(recipe, load_tokenizer(folder), device, 1, rank)
        learner = llm.speedrun.Learner(policy, setting)
        learner.step(0.0)
        puzzles = llm.speedrun.Puzzles([], [], 1)
        progress = llm.speedrun.Progress(learner, puzzles, llm.speedrun.Guard(recipe))
        yield partial(progress.pack, 1)


TRACKS = {
    "non_llm": (non_llm_state, non_llm.speedrun.from_first),
    "llm": (llm_state, llm.speedrun.from_first),
}


def work(rank: int, track: str, folder: Path) -> None:
    """What each process does; the first one writes down its times."""
    state, from_first = TRACKS[track]
    for pack in state(rank, f"file://{folder}/rendezvous"):
        agreeing, saving, size = [], [], 0
        for _ in range(REPEATS):
            start = time.perf_counter()
            from_first(False)
            agreeing.append(time.perf_counter() - start)
        for _ in range(REPEATS):
            start = time.perf_counter()
            data = pack()
            if rank == 0:
                write_state(folder, State("0" * 32, 1, 0.0, data))
            from_first(True)
            saving.append(time.perf_counter() - start)
            size = len(data)
        if rank == 0:
            times = f"{statistics.median(agreeing)} {statistics.median(saving)} {size}"
            (folder / "times").write_text(times)


def measure(track: str) -> tuple[float, float, int]:
    """Seconds to agree and to save, and bytes."""
    with tempfile.TemporaryDirectory(dir=ROOT / "outputs") as folder:
        context = multiprocessing.get_context("spawn")
        workers = [context.Process(target=work, args=(rank, track, Path(folder))) for rank in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        agreeing, saving, size = (Path(folder) / "times").read_text().split()
    return float(agreeing), float(saving), int(size)


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m benchmarks.state_cost",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    (ROOT / "outputs").mkdir(exist_ok=True)
    table = Table("track", title="The price of going on after a crash", title_justify="left")
    for name in ("agreeing, ms", "saving, ms", "state, MB", "savings", "of the record's time"):
        table.add_column(name, justify="right")
    for track in TRACKS:
        agreeing, saving, size = measure(track)
        log = read_log(max((ROOT / "records" / track).glob("[0-9]*")) / LOG_NAME)
        savings = int(log.time_s / max(Pace.EVERY_S, saving / Pace.SHARE))
        share = (len(log.steps) * agreeing + savings * saving) / log.time_s
        cells = (f"{1e3 * agreeing:.2f}", f"{1e3 * saving:.0f}", f"{size / 1e6:.1f}", str(savings))
        table.add_row(track, *cells, f"{share:.2%}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
