"""Where the seconds of training go: environment, inference, update.

    python -m benchmarks.speedrun_shares [--updates 20]

One process plays and learns with the cpu recipe's network and settings, uncompiled and compiled, on generated
levels. CPU seconds, so that other programs on the machine disturb little.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from non_llm.speedrun import PLAIN, RECIPES, Learner, Network, Player
from sokoban.generator import generate
from sokoban.rules import SokobanBatch


class Stopwatch:
    """Adds up the CPU seconds of the calls that it wraps, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            start = time.process_time()
            result = function(*arguments)
            self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - start
            return result

        return timed


def measure(updates: int, compiled: bool) -> dict[str, float]:
    """CPU microseconds a push, by part."""
    torch.manual_seed(0)
    recipe = RECIPES["cpu"]
    boards = recipe.boards // recipe.processes
    network = Network(recipe.channels, recipe.blocks)
    tools = PLAIN
    if compiled:
        tools = tools._replace(
            choose=torch.compile(tools.choose, dynamic=False),
            ppo_loss=torch.compile(tools.ppo_loss, dynamic=False),
        )
    batch = SokobanBatch(generate(2000, seed=0), boards, generator=torch.Generator().manual_seed(0))
    player, learner = Player(network, batch, recipe, 0, tools), Learner(network, recipe, 0, tools)
    learner.learn(player.play()[0], 0, 0)

    watch = Stopwatch()
    player.tools = tools._replace(choose=watch.wrap("inference", tools.choose))
    player.look = watch.wrap("environment", player.look)  # type: ignore[method-assign]
    batch.push = watch.wrap("environment", batch.push)  # type: ignore[method-assign]
    play = watch.wrap("play", player.play)
    learn = watch.wrap("update", learner.learn)
    for _ in range(updates):
        samples, _ = play()
        learn(samples, 0, 0)
    seconds = watch.seconds
    seconds["advantages"] = seconds.pop("play") - seconds["inference"] - seconds["environment"]
    return {name: 1e6 * value / (updates * boards * recipe.horizon) for name, value in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speedrun_shares", description="Where the seconds of training go."
    )
    parser.add_argument("--updates", type=int, default=20, help="updates to time (20)")
    updates = parser.parse_args().updates
    torch.set_num_threads(1)
    table = Table("part", title="CPU microseconds a push, and the share of all")
    columns = [measure(updates, compiled) for compiled in (False, True)]
    for heading in ("uncompiled", "", "compiled", ""):
        table.add_column(heading, justify="right")
    totals = [sum(column.values()) for column in columns]
    for name in ("environment", "inference", "advantages", "update"):
        cells = [
            text
            for column, total in zip(columns, totals, strict=True)
            for text in (f"{column[name]:.1f}", f"{column[name] / total:.0%}")
        ]
        table.add_row(name, *cells)
    table.add_row("all", f"{totals[0]:.1f}", "", f"{totals[1]:.1f}", "")
    Console().print(table)


if __name__ == "__main__":
    main()
