"""Crafter: what random actions and the oracle reach, and how fast the environment runs.

    python -m benchmarks.agents_crafter --episodes 20 --out crafter.json

Players play the first seeds of a split, the same ones each. Speeds are CPU seconds of this process on one
core, with random actions; an episode that ends is begun again outside the clock, and the world's making is
timed apart. "the package" is Crafter as released, which draws a picture of 64 by 64 pixels each step.
"""

import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from random import Random

import crafter
import tyro
from rich.console import Console
from rich.table import Table

from agents.benchmarks.base import Environment, Episode, Player, Split
from agents.benchmarks.crafter import BENCHMARK
from agents.benchmarks.crafter.repair import Game
from agents.benchmarks.crafter.text import ACHIEVEMENTS, ACTIONS
from harness.files import write_atomic

TASK = BENCHMARK.tasks[0]


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    split: Split = "test"
    """whose first seeds are played"""
    episodes: int = 20
    """episodes a player"""
    steps: int = 2000
    """steps of each speed"""
    out: Path | None = None
    """JSON file to write"""


def play(player: Player, settings: Settings) -> dict[str, float]:
    """The benchmark's summary of a player's episodes, with the mean score."""
    environment = BENCHMARK.make()
    details, scores = [], []
    for seed in BENCHMARK.seeds(TASK, settings.split)[: settings.episodes]:
        environment.reset(Episode(TASK, seed))
        generator = Random(seed)
        while not environment.done:
            environment.step(player.act(environment, generator))
        details.append(environment.details())
        scores.append(environment.score)
    return {"score": sum(scores) / len(scores)} | BENCHMARK.summary(details)


def speed(begin: Callable[[int], None], step: Callable[[int], bool], steps: int) -> tuple[float, float]:
    """Steps a second, and seconds to begin; `step` takes an action's number and tells of the end."""
    generator = Random(0)
    stepping = beginning = 0.0
    begun, done = 0, True
    for _ in range(steps):
        if done:
            start = time.process_time()
            begin(begun)
            beginning += time.process_time() - start
            begun += 1
        action = generator.randrange(len(ACTIONS))
        start = time.process_time()
        done = step(action)
        stepping += time.process_time() - start
    return steps / stepping, beginning / begun


def speeds(steps: int) -> dict[str, tuple[float, float]]:
    """Steps a second and seconds to begin, of the package, of its repaired game, and of the environment."""
    package = [crafter.Env(seed=0)]
    game = Game()
    environment: Environment = BENCHMARK.make()

    def begin_package(seed: int) -> None:
        package[0] = crafter.Env(seed=seed)
        package[0].reset()

    def with_state(action: int) -> bool:
        done = environment.step(ACTIONS[action]).done
        environment.state()
        return done

    def begin(seed: int) -> None:
        environment.reset(Episode(TASK, seed))

    return {
        "the package": speed(begin_package, lambda action: bool(package[0].step(action)[2]), steps),
        "the repaired game": speed(game.begin, lambda action: bool(game.step(action)[2]), steps),
        "the environment": speed(begin, lambda action: environment.step(ACTIONS[action]).done, steps),
        "the environment, and state()": speed(begin, with_state, steps),
    }


def main(settings: Settings) -> None:
    """Measure, print, write."""
    rows = {
        "random": play(BENCHMARK.random_player(), settings),
        "oracle": play(BENCHMARK.oracle(), settings),
    }
    fast = speeds(settings.steps)
    console = Console()
    console.print(
        f"{settings.episodes} episodes of {settings.split}, at most {BENCHMARK.step_limit(TASK)} steps; "
        f"crafter {version('crafter')}, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    table = Table("", *rows)
    for name in rows["oracle"]:
        shown = "{:.0%}" if name in (*ACHIEVEMENTS, "died") else "{:.2f}"
        table.add_row(name, *(shown.format(row[name]) for row in rows.values()))
    console.print(table)
    table = Table("", "steps/s", "seconds to begin")
    for name, (rate, seconds) in fast.items():
        table.add_row(name, f"{rate:,.0f}", f"{seconds:.2f}")
    console.print(table)
    if settings.out is not None:
        report = {"settings": asdict(settings) | {"out": None}, "players": rows, "speeds": fast}
        write_atomic(settings.out, json.dumps(report, indent=1).encode() + b"\n")


if __name__ == "__main__":
    main(tyro.cli(Settings, prog="python -m benchmarks.agents_crafter", description=__doc__))
