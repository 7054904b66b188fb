"""Seconds and steps to the same training solve rate: the recipe of non_llm against Stable-Baselines3's PPO.

    python -m benchmarks.ppo_against_sb3 --out ppo.json

Both learn the same easy levels of four boxes (generated, with a known solution of a few pushes) and their
mirror images, one after the other on one thread, until the given fraction of the episodes that ended last
was solved. Both networks are a 3x3 stem and two residual blocks of 32 channels. They differ in what the
comparison is about: the recipe acts by pushes on bitboards and learns in its own way; Stable-Baselines3
acts by single moves on the Gymnasium vector environment and learns by its own PPO, with the settings below,
which are ordinary ones and not tuned. Rates are constant for both. Seconds are CPU seconds from the first
step on: the recipe's compilation comes before and is shown apart. What does not get there within `--limit`
seconds is reported with its best rate.
"""

import json
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
import tyro
from gymnasium.spaces import Space
from rich.console import Console
from rich.table import Table
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor, nn

from harness.silent import SilentRun
from sokoban.environment import BoxobanVectorEnv
from sokoban.files import write_atomic
from sokoban.generator import generate_solved
from sokoban.rules import Outcome, SokobanBatch, Walks
from sokoban.symmetry import images
from sokoban.table import LevelTable, concatenate

# The recipe is open to change, so its parts are looked up when this runs.
speedrun: Any = import_module("non_llm.speedrun")

CHANNELS, BLOCKS = 32, 2  # of both networks: a 3x3 stem and residual blocks of two 3x3 convolutions


@dataclass(frozen=True)
class Settings:
    """What to compare."""

    target: float = 0.3
    """training solve rate to reach"""
    window: int = 2000
    """episodes that the solve rate is taken over, at least"""
    limit: float = 420.0
    """CPU seconds each may take"""
    most_pushes: int = 6
    """levels whose known solution has at most so many pushes"""
    draws: int = 20_000
    """levels to draw, of which about one in forty is that easy"""
    seed: int = 0
    """of levels, weights and actions"""
    out: Path | None = None
    """JSON file to write"""


@dataclass
class Progress:
    """What one contestant has done so far, and whether it is done."""

    settings: Settings
    started: float = 0.0
    seconds: float = 0.0
    moves: int = 0
    decisions: int = 0
    episodes: int = 0
    solve_rate: float = 0.0
    best_solve_rate: float = 0.0
    reached: bool = False

    def __post_init__(self) -> None:
        self.started = time.process_time()
        self.recent: deque[tuple[int, int]] = deque()  # (solved, ended)

    def add(self, solved: int, ended: int) -> bool:
        """Count episodes; whether to go on."""
        self.recent.append((solved, ended))
        self.episodes += ended
        while sum(count for _, count in self.recent) - self.recent[0][1] >= self.settings.window:
            self.recent.popleft()
        self.seconds = time.process_time() - self.started
        total = sum(count for _, count in self.recent)
        self.solve_rate = sum(count for count, _ in self.recent) / max(1, total)
        if total >= self.settings.window:
            self.best_solve_rate = max(self.best_solve_rate, self.solve_rate)
        self.reached = self.best_solve_rate >= self.settings.target
        return not self.reached and self.seconds < self.settings.limit


# ---- ours ---------------------------------------------------------------------------------------------


class CountingBatch(SokobanBatch):
    """Boards that count what happens on them."""

    counts: ClassVar[Counter[str]] = Counter()

    def push(self, actions: Tensor, walks: Walks) -> Outcome:
        outcome = super().push(actions, walks)
        self.counts["decisions"] += len(actions)
        self.counts["moves"] += int(outcome.moves.sum())
        self.counts["solved"] += int(outcome.solved.sum())
        self.counts["ended"] += int(outcome.done.sum())
        return outcome


class Reached(Exception):
    """Ends a training from inside its loop."""


class Watched(SilentRun):
    """A run that keeps `Progress` and ends the training at the target or the limit."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.built = settings, time.process_time()

    def train_start(self) -> None:
        self.compiling = time.process_time() - self.built
        self.progress_made = Progress(self.settings)
        CountingBatch.counts.clear()

    def log_step(self, step: int, **numbers: float) -> None:
        counts, progress = CountingBatch.counts, self.progress_made
        progress.moves, progress.decisions = counts["moves"], counts["decisions"]
        if not progress.add(counts.pop("solved", 0), counts.pop("ended", 0)):
            raise Reached


def train_ours(levels: LevelTable, settings: Settings, console: Console) -> Progress:
    """The pinned CPU recipe in one process, on `levels`, its rates kept constant."""
    speedrun.training_levels = lambda files: levels
    speedrun.SokobanBatch = CountingBatch
    recipe = replace(
        speedrun.RECIPES["cpu"],
        channels=CHANNELS,
        blocks=BLOCKS,
        processes=1,
        pushes=10**9,  # the target ends it
        final_rate=1.0,
    )
    run = Watched(settings)
    with suppress(Reached):
        speedrun.work(run, recipe, settings.seed, rank=0)
    console.print(f"ours: {run.compiling:.0f} CPU seconds to compile", style="dim")
    return run.progress_made


# ---- Stable-Baselines3 --------------------------------------------------------------------------------


class BoxobanForSB3(VecEnv):  # type: ignore[misc]
    """`BoxobanVectorEnv` as Stable-Baselines3 expects a vector environment; rewards times `reward_scale`."""

    def __init__(self, envs: BoxobanVectorEnv, reward_scale: float) -> None:
        self.envs, self.reward_scale = envs, reward_scale
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self.solved = self.ended = 0

    def reset(self) -> np.ndarray:
        return self.envs.reset(seed=self._seeds[0])[0]

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observations, rewards, terminated, truncated, infos = self.envs.step(self.actions)
        ended = terminated | truncated
        each: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for index in ended.nonzero()[0]:
            each[index] = {
                "terminal_observation": infos["final_obs"][index],
                "TimeLimit.truncated": bool(truncated[index]),
            }
        self.solved, self.ended = self.solved + int(terminated.sum()), self.ended + int(ended.sum())
        return observations, rewards * self.reward_scale, ended, each

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(f"{attr_name}: the boards share their attributes")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise AttributeError(f"{method_name}: the boards share their methods")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))


class Block(nn.Module):
    """Two 3x3 convolutions beside a skip connection."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.second(F.relu(self.first(x))))


class Trunk(BaseFeaturesExtractor):  # type: ignore[misc]
    """Stem and blocks; the features are those of the player's cell and the mean and maximum of all cells."""

    def __init__(self, observation_space: Space[Any], channels: int, blocks: int) -> None:
        super().__init__(observation_space, 3 * channels)
        self.stem = nn.Conv2d(6, channels, 3, padding=1)
        self.body = nn.Sequential(*(Block(channels) for _ in range(blocks)))

    def forward(self, planes: Tensor) -> Tensor:
        walls, goals, boxes, player = planes[:, :, 1:-1, 1:-1].unbind(1)
        home = boxes * goals
        seen = torch.stack([1 - walls, goals, boxes, home, boxes - home, player], dim=1)
        x = self.body(F.relu(self.stem(seen)))
        at_player = (x * player[:, None]).sum((2, 3))
        return torch.cat([at_player, x.mean((2, 3)), x.amax((2, 3))], dim=1)


class Watch(BaseCallback):  # type: ignore[misc]
    """Ends the training at the target or the limit; asked after every rollout, before the update."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self.progress, self.goes_on = progress, True

    def _on_step(self) -> bool:
        return self.goes_on

    def _on_rollout_end(self) -> None:
        envs = self.training_env
        self.progress.moves = self.progress.decisions = self.num_timesteps
        self.goes_on = self.progress.add(envs.solved, envs.ended)
        envs.solved = envs.ended = 0


def train_sb3(levels: LevelTable, settings: Settings, console: Console) -> Progress:
    """Stable-Baselines3's PPO on single moves."""
    envs = BoxobanForSB3(BoxobanVectorEnv(512, levels), reward_scale=0.2)
    model = PPO(
        "MlpPolicy",
        envs,
        learning_rate=1e-3,
        n_steps=32,
        batch_size=512,
        n_epochs=2,
        gamma=0.99,
        gae_lambda=0.95,
        clip_range=0.2,
        ent_coef=0.01,
        vf_coef=0.5,
        policy_kwargs={
            "features_extractor_class": Trunk,
            "features_extractor_kwargs": {"channels": CHANNELS, "blocks": BLOCKS},
            "net_arch": [],
        },
        seed=settings.seed,
        device="cpu",
    )
    progress = Progress(settings)
    model.learn(10**9, callback=Watch(progress))
    return progress


# ---- the comparison -----------------------------------------------------------------------------------


def main(settings: Settings) -> None:
    """Train both, print the table, write the file."""
    torch.set_num_threads(1)
    console = Console()
    drawn = generate_solved(settings.draws, settings.seed)
    easy = drawn.levels.take(drawn.lengths <= settings.most_pushes)
    console.print(f"{len(easy)} levels of at most {settings.most_pushes} pushes", style="dim")
    levels = concatenate(images(easy))
    contestants: Sequence[tuple[str, Callable[[LevelTable, Settings, Console], Progress]]] = (
        ("ours", train_ours),
        ("SB3 PPO", train_sb3),
    )
    view = Table(
        title=f"to a training solve rate of {settings.target}, load {os.getloadavg()[0]:.1f}", box=None
    )
    for column in ("", "reached", "CPU seconds", "moves", "decisions", "episodes", "best rate"):
        view.add_column(column, justify="right" if column else "left")
    report = {}
    for name, train in contestants:
        with console.status(f"{name} trains"):
            progress = train(levels, settings, console)
        view.add_row(
            name,
            "yes" if progress.reached else "no",
            f"{progress.seconds:.0f}",
            f"{progress.moves:,}",
            f"{progress.decisions:,}",
            f"{progress.episodes:,}",
            f"{progress.best_solve_rate:.3f}",
        )
        report[name] = {key: value for key, value in asdict(progress).items() if key != "settings"}
    console.print(view)
    if settings.out:
        result = {"settings": asdict(settings) | {"out": str(settings.out)}, "results": report}
        write_atomic(settings.out, json.dumps(result, indent=2).encode() + b"\n")
        console.print(f"{settings.out} written")


if __name__ == "__main__":
    main(tyro.cli(Settings, prog="python -m benchmarks.ppo_against_sb3", description=__doc__))
