"""How BabyAI is played without a model, and how many steps a second its environments take.

    python -m benchmarks.agents_babyai [--episodes 100] [--tasks goto open BabyAI-GoTo-v0] [--speed-only]

The first table has the share of test episodes that the oracle (Minigrid's bot) and the random player solve
within the step limit, and the steps of the oracle's successes. Unless named, tasks are the five families;
`--tasks all` plays every level.

The second table has medians of turns that the contestants take one after another, by the clock: Minigrid's
own environment with its numeric observation, ours in this process, and ours behind the server, the client
waiting for each reply. The random player's actions are the same for all.
"""

import argparse
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from statistics import median
from typing import Any

import uvicorn
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from agents.benchmarks.babyai import BENCHMARK, BabyAI
from agents.benchmarks.babyai.environment import ACTIONS
from agents.benchmarks.babyai.level import make_level
from agents.benchmarks.babyai.server import application, listen
from agents.benchmarks.babyai.sessions import Sessions
from agents.benchmarks.babyai.tasks import FAMILIES
from agents.benchmarks.base import Environment, Episode, Player
from harness.errors import run_command

WIDTH = 100
STEPS = 100  # of a turn


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agents_babyai",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--episodes", type=int, default=100, help="of a task")
    parser.add_argument(
        "--tasks", nargs="+", default=list(FAMILIES), help="the five families; all = every level"
    )
    parser.add_argument("--turns", type=int, default=40, help="of a task, for speed")
    parser.add_argument("--speed-only", action="store_true", help="the second table alone")
    options = parser.parse_args()
    tasks = list(BENCHMARK.tasks) if options.tasks == ["all"] else options.tasks
    console = Console(width=WIDTH)
    if not options.speed_only:
        console.print(players_table(tasks, options.episodes))
    console.print(speed_table(options.turns))


# ---- players -------------------------------------------------------------------------------------------


def players_table(tasks: list[str], episodes: int) -> Table:
    """Success by task."""
    table = Table(title=f"BabyAI, {episodes} test episodes a task", title_justify="left")
    table.add_column("task")
    for column in ("step limit", "oracle", "its steps, median", "at most", "random"):
        table.add_column(column, justify="right")
    environment = BENCHMARK.make()
    oracles, randoms = [], []
    for task in tqdm(tasks, "tasks"):
        drawn = BENCHMARK.draw([task], "test", episodes, Random(task))
        solved = [play(environment, BENCHMARK.oracle(), episode) for episode in drawn]
        found = [play(environment, BENCHMARK.random_player(), episode) is not None for episode in drawn]
        steps = [count for count in solved if count is not None]
        oracles.append(len(steps) / episodes)
        randoms.append(sum(found) / episodes)
        table.add_row(
            task,
            str(BENCHMARK.step_limit(task)),
            f"{oracles[-1]:.2f}",
            f"{median(steps):g}" if steps else "",
            str(max(steps)) if steps else "",
            f"{randoms[-1]:.2f}",
        )
    means = (sum(rates) / len(rates) for rates in (oracles, randoms))
    table.add_row("mean", "", f"{next(means):.3f}", "", "", f"{next(means):.3f}")
    return table


def play(environment: Environment, player: Player, episode: Episode) -> int | None:
    """Steps until the mission is done; None if it is not."""
    environment.reset(episode)
    generator = Random(episode.seed)
    while not environment.done:
        environment.step(player.act(environment, generator))
    return environment.steps if environment.success else None


# ---- speed ---------------------------------------------------------------------------------------------


def speed_table(turns: int) -> Table:
    """Steps a second, and what beginning an episode takes."""
    table = Table(title=f"Speed, medians of {turns} turns", title_justify="left")
    for column in ("task", "environment", "steps/s", "episode begun in ms"):
        table.add_column(column, justify="left" if column in ("task", "environment") else "right")
    with ExitStack() as stack:
        contestants: dict[str, Callable[[], Any]] = {
            "Minigrid's numbers": Bare,
            "in this process": BENCHMARK.make,
            "behind the server": BabyAI(server=_start_server(stack)).make,
        }
        for task in ("goto", "BabyAI-BossLevel-v0"):
            environments = {name: make() for name, make in contestants.items()}
            taken: dict[str, list[tuple[float, float]]] = {name: [] for name in environments}
            for turn in tqdm(range(turns), task):
                for name, environment in environments.items():
                    taken[name].append(take_turn(environment, Episode(task, 2_000_000 + turn)))
            for name, rows in taken.items():
                steps, begun = (median(row[place] for row in rows) for place in (0, 1))
                table.add_row(task, name, f"{steps:,.0f}", f"{begun * 1000:.1f}")
                environments[name].close()
    return table


def take_turn(environment: Any, episode: Episode) -> tuple[float, float]:
    """Steps a second of an episode, and the seconds of its beginning."""
    generator = Random(episode.seed)
    started = time.perf_counter()
    environment.reset(episode)
    begun = time.perf_counter()
    count = 0
    while count < STEPS and not environment.done:
        environment.step(generator.choice(ACTIONS))
        count += 1
    return count / (time.perf_counter() - begun), begun - started


class Bare:
    """Minigrid without our environment around it."""

    done: bool

    def reset(self, episode: Episode) -> None:
        self._level = make_level(episode)
        self.done = False

    def step(self, action: str) -> None:
        self.done = self._level.step(ACTIONS.index(action))[2]

    def close(self) -> None:
        self._level.close()


def _start_server(stack: ExitStack) -> str:
    """The address of a server in a thread, which ends with the stack."""
    listening = stack.enter_context(listen("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application(Sessions(8, 60)), log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()

    def end() -> None:
        server.should_exit = True
        thread.join()

    stack.callback(end)
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


if __name__ == "__main__":
    run_command(main)
