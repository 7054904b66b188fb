"""How ScienceWorld is played without a model, how fast its environment is, and what repeats.

    python -m benchmarks.agents_scienceworld [--episodes 5] [--random 50] [--tasks boil melt] [--speed-only]

The first table has, for each task, the episodes of the test split (variations spread evenly over it), what
the oracle (gold paths) and the random player score in them, and the steps of gold paths.

The second table has times by the clock, medians over the tasks of `--tasks` of the first test variation: of
the start of Java, of building a world, and of a step with and without asking for the menu, along the gold
path; and the memory of the Java process at the end. Then two processes play a fixed list of actions in all
tasks, one of them from the last task to the first, and the table says in how many tasks they saw the same:
with Java's identity hashes as they are, and made equal as the environment does it.
"""

import argparse
import hashlib
import time
from random import Random
from statistics import mean, median
from typing import NamedTuple

import psutil
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from agents.benchmarks.base import Episode, Player
from agents.benchmarks.scienceworld import BENCHMARK, java
from agents.benchmarks.scienceworld.environment import ScienceWorldEnvironment
from agents.benchmarks.scienceworld.tasks import TASKS, find_task
from harness.errors import run_command

WIDTH = 110
ACTIONS = [  # for traces
    *("teleport to greenhouse", "wait", "open bee hive", "wait", "look around", "teleport to kitchen"),
    *("activate stove", "move metal pot to stove", "look in drawer", "teleport to outside", "wait"),
    *("look around", "teleport to greenhouse", "wait", "look in greenhouse", "teleport to workshop"),
]


class Played(NamedTuple):
    """Episodes of a task by one player."""

    scores: list[float]
    steps: list[int]
    failed: float
    """Share of episodes."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agents_scienceworld",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--episodes", type=int, default=5, help="of a task, for the oracle")
    parser.add_argument("--random", type=int, default=50, help="of a task, for the random player")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS, metavar="TASK", help="all")
    parser.add_argument("--speed-only", action="store_true", help="the second table alone")
    options = parser.parse_args()
    console = Console(width=WIDTH)
    if not options.speed_only:
        console.print(players_table(options.tasks, options.episodes, options.random))
    console.print(speed_table(options.tasks))


# ---- players -------------------------------------------------------------------------------------------


def players_table(tasks: list[str], episodes: int, random: int) -> Table:
    table = Table(title="Scores, of 100, in the test split", title_justify="left")
    for name in ("", "task", "oracle", "gold steps", "random", "failed", "random's steps"):
        table.add_column(name, justify="left" if name in ("", "task") else "right")
    environment = ScienceWorldEnvironment()
    oracles, randoms = [], []
    for task in tqdm(tasks, unit="task"):
        oracle = play(environment, BENCHMARK.oracle(), task, episodes)
        chance = play(environment, BENCHMARK.random_player(), task, random)
        oracles.append(mean(oracle.scores))
        randoms.append(mean(chance.scores))
        table.add_row(
            find_task(task).number,
            task,
            f"{100 * oracles[-1]:.1f}",
            f"{min(oracle.steps)} to {max(oracle.steps)}",
            f"{100 * randoms[-1]:.1f}",
            f"{chance.failed:.0%}",
            f"{mean(chance.steps):.0f}",
        )
    environment.close()
    table.add_section()
    table.add_row("", "mean", f"{100 * mean(oracles):.1f}", "", f"{100 * mean(randoms):.1f}", "", "")
    return table


def play(environment: ScienceWorldEnvironment, player: Player, task: str, count: int) -> Played:
    """Test episodes of a task, spread over the split's variations; each variation comes again in turn."""
    seeds = BENCHMARK.seeds(task, "test")
    generator = Random(task)
    scores, steps, failed = [], [], []
    for place in range(count):
        environment.reset(Episode(task, seeds[place * max(1, len(seeds) // count) % len(seeds)]))
        while not environment.done:
            environment.step(player.act(environment, generator))
        scores.append(environment.score)
        steps.append(environment.steps)
        failed.append(environment.details()["failed"])
    return Played(scores, steps, mean(failed))


# ---- speed and repetition ------------------------------------------------------------------------------


def speed_table(tasks: list[str]) -> Table:
    start, first = clock_start(tasks[0])
    environment = ScienceWorldEnvironment()
    builds: list[float] = []
    times: dict[bool, list[float]] = {False: [], True: []}
    sizes: list[int] = []
    for task in tqdm(tasks, unit="task"):
        episode = Episode(task, BENCHMARK.seeds(task, "test")[0])
        environment.reset(episode)
        path = environment.simulator.gold_path()
        for ask in (False, True):
            began = time.perf_counter()
            environment.reset(episode)
            builds.append(time.perf_counter() - began)
            began = time.perf_counter()
            for command in path:
                if environment.done:
                    break
                environment.step(command)
                if ask:
                    sizes.append(len(environment.actions()))
            times[ask].append((time.perf_counter() - began) / environment.steps)
    assert environment.simulator.machine is not None
    memory = psutil.Process(environment.simulator.machine.pid).memory_info().rss
    environment.close()
    table = Table(title="Times and sizes", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("start of Java, s", f"{start:.2f}")
    table.add_row("first world, s", f"{first:.2f}")
    table.add_row("later worlds, ms", f"{1e3 * median(builds):.0f}")
    table.add_row("step, ms", f"{1e3 * median(times[False]):.1f}")
    table.add_row("step and menu, ms", f"{1e3 * median(times[True]):.1f}")
    table.add_row("commands on the menu, median and most", f"{median(sizes):.0f} and {max(sizes)}")
    table.add_row("memory of the Java process, MB", f"{memory / 1e6:.0f}")
    for name, options in (("hashes as they are", _plain()), ("hashes equal", java.OPTIONS)):
        same = repeated(tasks, options)
        table.add_row(f"same in another order, {name}", f"{same} of {len(tasks)} tasks")
    return table


def clock_start(task: str) -> tuple[float, float]:
    """Seconds from nothing to a Java process, and from there to a world."""
    began = time.perf_counter()
    java.Machine().close()
    start = time.perf_counter() - began
    environment = ScienceWorldEnvironment()
    began = time.perf_counter()
    environment.reset(Episode(task, 0))
    first = time.perf_counter() - began - start
    environment.close()
    return start, first


def repeated(tasks: list[str], options: tuple[str, ...]) -> int:
    """In how many tasks the same actions show the same in a process that plays the tasks from the last to
    the first, with these options of Java."""
    ours, java.OPTIONS = java.OPTIONS, options
    try:
        one, other = traces(tasks), traces(tasks[::-1])[::-1]
    finally:
        java.OPTIONS = ours
    return sum(a == b for a, b in zip(one, other, strict=True))


def traces(tasks: list[str]) -> list[str]:
    environment = ScienceWorldEnvironment()
    digests = []
    for task in tasks:
        seen = hashlib.sha256(environment.reset(Episode(task, BENCHMARK.seeds(task, "test")[0])).encode())
        for action in ACTIONS:
            if not environment.done:
                seen.update(repr((environment.step(action), environment.state())).encode())
        seen.update(repr(environment.actions()).encode())
        digests.append(seen.hexdigest())
    environment.close()
    return digests


def _plain() -> tuple[str, ...]:
    return tuple(option for option in java.OPTIONS if "hashCode" not in option)


if __name__ == "__main__":
    run_command(main)
