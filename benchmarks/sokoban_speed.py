"""Environment steps a second on one core: our bitboards, Jumanji's Sokoban and gym-sokoban, in one run.

    python -m benchmarks.sokoban_speed --out speed.json

All three play the same levels with uniformly random actions that were drawn beforehand, and start again on a
new level when an episode ends after 120 steps or a solve. A step yields the next state, the reward and
whether the episode ended. Each number is the best of several repeats in CPU seconds of this process, on one
core and one thread, since other programs share the machine; the load average is printed beside the table.
Boards are spread over all ages from 0 to 119 steps before the clock starts, so that restarts are part of
every step.

Jumanji comes with the `benchmarks` extra. gym-sokoban 0.0.6 needs the retired gym:
`pip install gym-sokoban==0.0.6 gym==0.26.2 "setuptools<81"`. What cannot be imported is left out, with the
reason.
"""

import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

# One thread for XLA as for torch; both read this before they start.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.table import Table

from sokoban.environment import load_levels
from sokoban.files import write_atomic
from sokoban.rules import STEP_LIMIT, SokobanBatch, unpack
from sokoban.table import LevelTable

Repeat = Callable[[], tuple[int, float]]  # one repeat: how many steps were made in how many CPU seconds


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    levels: str = "practice"
    """levels to play: practice, generated, or an official split such as unfiltered/train"""
    batches: tuple[int, ...] = (256, 1024, 8192)
    """numbers of boards played at once"""
    repeats: int = 7
    """repeats, of which the best counts"""
    seconds: float = 0.3
    """length of a repeat, about"""
    out: Path | None = None
    """JSON file to write"""


@dataclass(frozen=True)
class Result:
    """The best rate of one contestant at one batch size."""

    name: str
    action: str
    batch: int
    steps_per_second: float


def our_moves(table: LevelTable, batch: int, seconds: float) -> Repeat:
    """Primitive moves with `SokobanBatch.move`."""
    boards, generator = _spread(table, batch)
    actions = torch.randint(4, (_steps(2e7, batch, seconds), batch), generator=generator)

    def repeat() -> tuple[int, float]:
        start = time.process_time()
        for row in actions:
            boards.move(row)
        return actions.numel(), time.process_time() - start

    return repeat


def our_pushes(table: LevelTable, batch: int, seconds: float) -> Repeat:
    """Push actions: walks, legal pushes and the push are timed; the draw among legal pushes is not."""
    boards, generator = _spread(table, batch)
    steps = _steps(2e6, batch, seconds)

    def repeat() -> tuple[int, float]:
        spent = 0.0
        for _ in range(steps):
            start = time.process_time()
            walks = boards.walks()
            legal = boards.legal_pushes(walks)
            spent += time.process_time() - start
            chances = torch.rand(batch, 256, generator=generator) * unpack(legal).flatten(1)
            actions = chances.argmax(dim=1)
            start = time.process_time()
            boards.push(actions, walks)
            spent += time.process_time() - start
        return steps * batch, spent

    return repeat


def jumanji_moves(table: LevelTable, batch: int, seconds: float) -> Repeat:
    """Jumanji under jit, vmap and its own automatic reset, scanned over all the steps of a repeat."""
    import jax
    import jax.numpy as jnp
    from jumanji.environments.routing.sokoban.env import Sokoban
    from jumanji.environments.routing.sokoban.generator import HuggingFaceDeepMindGenerator
    from jumanji.wrappers import AutoResetWrapper, VmapWrapper

    class OurLevels(HuggingFaceDeepMindGenerator):  # type: ignore[misc]
        """Jumanji's own generator, which draws a level at random, over `table`."""

        def __init__(self) -> None:
            fixed, variable = _grids(table, wall=1, goal=2, player=3, box=4)
            self._fixed_grids, self._variable_grids = jnp.asarray(fixed), jnp.asarray(variable)

    env = VmapWrapper(AutoResetWrapper(Sokoban(generator=OurLevels())))
    state, _ = jax.jit(env.reset)(jax.random.split(jax.random.PRNGKey(0), batch))
    ages = jax.random.randint(jax.random.PRNGKey(1), (batch,), 0, STEP_LIMIT)
    state = state.replace(step_count=ages.astype(state.step_count.dtype))
    actions = jax.random.randint(jax.random.PRNGKey(2), (_steps(5e6, batch, seconds), batch), 0, 4)

    def step(state: object, action: object) -> tuple[object, object]:
        state, timestep = env.step(state, action)
        return state, (timestep.reward, timestep.last())

    play = jax.jit(lambda state: jax.lax.scan(step, state, actions))
    holder = [jax.block_until_ready(play(state))[0]]  # compiles

    def repeat() -> tuple[int, float]:
        start = time.process_time()
        holder[0], _ = jax.block_until_ready(play(holder[0]))
        return actions.size, time.process_time() - start

    return repeat


def gym_sokoban_moves(table: LevelTable, seconds: float) -> Repeat:
    """gym-sokoban with its cheapest observation, one pixel a cell; levels from `table` at no cost."""
    from gym_sokoban.envs.sokoban_env import SokobanEnv

    fixed, state = _grids(table, wall=0, goal=2, player=5, box=4, floor=1)
    state = np.where((state == 1) & (fixed != 1), fixed, state)
    env = SokobanEnv(reset=False)
    levels = iter(range(10**9))

    def reset() -> None:
        row = next(levels) % len(table)
        env.room_fixed, env.room_state = fixed[row].copy(), state[row].copy()
        env.player_position = np.argwhere(env.room_state == 5)[0]
        env.num_env_steps = env.reward_last = env.boxes_on_target = 0

    actions = np.random.default_rng(0).integers(1, 5, size=max(1, int(seconds * 10_000))).tolist()

    def repeat() -> tuple[int, float]:
        reset()
        start = time.process_time()
        for action in actions:
            if env.step(action, observation_mode="tiny_rgb_array")[2]:
                reset()
        return len(actions), time.process_time() - start

    return repeat


def _steps(rate: float, batch: int, seconds: float) -> int:
    """Steps of a whole batch that take about `seconds` at `rate` steps a second."""
    return max(1, round(rate * seconds / batch))


def _spread(table: LevelTable, batch: int) -> tuple[SokobanBatch, torch.Generator]:
    """Boards of all ages, on shuffled levels."""
    generator = torch.Generator().manual_seed(0)
    boards = SokobanBatch(table, batch, generator=generator)
    boards.moves = torch.randint(STEP_LIMIT, (batch,), generator=generator)
    return boards, generator


def _grids(
    table: LevelTable, *, wall: int, goal: int, player: int, box: int, floor: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """(N, 10, 10) uint8 grids of what stays (walls, goals) and of what moves (player, boxes)."""
    fixed = np.full((len(table), 10, 10), floor, dtype=np.uint8)
    variable = np.full_like(fixed, floor)
    for index in range(len(table)):
        level = table.level(index)
        for grid, cells, code in (
            (fixed, level.walls, wall),
            (fixed, level.goals, goal),
            (variable, level.boxes, box),
            (variable, {level.player}, player),
        ):
            grid[(index, *np.array(list(cells)).T)] = code
    return fixed, variable


def measure(settings: Settings, console: Console) -> tuple[list[Result], dict[str, str]]:
    """Every contestant that is installed, and why the others are not measured."""
    table = load_levels(settings.levels)
    contestants: list[tuple[str, str, int, Callable[[], Repeat]]] = []
    for batch in settings.batches:
        contestants += [
            (name, action, batch, partial(make, table, batch, settings.seconds))
            for name, action, make in (
                ("ours", "move", our_moves),
                ("ours", "push", our_pushes),
                ("jumanji", "move", jumanji_moves),
            )
        ]
    contestants.append(("gym-sokoban", "move", 1, partial(gym_sokoban_moves, table, settings.seconds)))
    results, skipped = [], {}
    for name, action, batch, prepare in contestants:
        if name in skipped:
            continue
        try:
            repeat = prepare()
            rates = [steps / spent for steps, spent in (repeat() for _ in range(settings.repeats))]
        except (ImportError, AttributeError, TypeError) as error:  # a package too old for what is installed
            if name == "ours":
                raise
            skipped[name] = f"{type(error).__name__}: {error}"
            continue
        results.append(Result(name, action, batch, max(rates)))
        console.print(f"{name} {action} batch {batch}: {max(rates):,.0f} steps/s", style="dim")
    return results, skipped


def main(settings: Settings) -> None:
    """Measure, print the table, write the file."""
    torch.set_num_threads(1)
    if hasattr(os, "sched_setaffinity"):  # one core, also for what does not read its number of threads
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    warnings.simplefilter("ignore")  # what old packages say of themselves
    console = Console()
    results, skipped = measure(settings, console)
    load = os.getloadavg()
    view = Table(title=f"steps a CPU second, {settings.levels} levels, load {load[0]:.1f}", box=None)
    view.add_column("batch", justify="right")
    columns = list(dict.fromkeys((result.name, result.action) for result in results))
    for name, action in columns:
        view.add_column(f"{name}, {action}", justify="right")
    for batch in sorted({result.batch for result in results}):
        cells = {
            (result.name, result.action): f"{result.steps_per_second:,.0f}"
            for result in results
            if result.batch == batch
        }
        view.add_row(f"{batch}", *(cells.get(column, "") for column in columns))
    console.print(view)
    for name, reason in skipped.items():
        console.print(f"{name} was left out: {reason}", style="yellow")
    if settings.out:
        report = {
            "settings": asdict(settings) | {"out": str(settings.out)},
            "results": [asdict(result) for result in results],
            "skipped": skipped,
            "load_average": load,
            "processor": platform.processor() or platform.machine(),
            "python": sys.version.split()[0],
            "packages": {name: version(name) for name in ("torch", "numpy")},
        }
        write_atomic(settings.out, json.dumps(report, indent=2).encode() + b"\n")
        console.print(f"{settings.out} written")


if __name__ == "__main__":
    main(tyro.cli(Settings, prog="python -m benchmarks.sokoban_speed", description=__doc__))
