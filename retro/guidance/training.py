"""The process that trains a policy beside a search, by Stable-Baselines3's PPO; see `retro.guidance.trainer`.

    python -m retro.guidance.training

It reads lines of JSON. The first is a `Job`; each other is where a segment starts, with the number of rounds
to train there, null for no end. It trains from the newest start, and after each round writes policy.npz into
the job's folder; after the last of a number of rounds it writes a line. It ends with its standard input. Its
environments have processes of their own, with an emulator each.
"""

import base64
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor, VecNormalize

from retro.guidance.environment import SegmentEnv, frames_of, hold_of
from retro.guidance.policy import CLIP, POLICY, Export, Policy, write_policy
from retro.packages import load_package
from retro.search.archive import Runs
from retro.search.world import Beginning

STEPS = 128  # decisions of each environment in a round
BATCH, EPOCHS, RATE = 64, 10, 1e-3
GAMMA, ENTROPY = 0.99, 0.01
WIDTHS = [64, 64]
EPSILON = 1.0  # added to variances: RAM values are whole numbers, and one that never changed yet may


@dataclass(frozen=True)
class Job:
    """What a training is told once."""

    package: str
    folder: str
    environments: int
    """Processes with one each; 0 = one in the process that trains."""
    seed: int


class Learner:
    """A policy, which goes on learning when the start changes: what it knows of the game may help there."""

    def __init__(self, spec: str, environments: int, seed: int) -> None:
        torch.set_num_threads(1)
        package = load_package(spec)
        self._hold = hold_of(package)
        make: list[Callable[[], SegmentEnv]] = [lambda: SegmentEnv(spec)] * max(1, environments)
        several = SubprocVecEnv(make, start_method="spawn") if environments else DummyVecEnv(make)
        self._environments = VecNormalize(VecMonitor(several), clip_obs=CLIP, gamma=GAMMA, epsilon=EPSILON)
        self._model = PPO(
            "MlpPolicy",
            self._environments,
            learning_rate=RATE,
            n_steps=STEPS,
            batch_size=BATCH,
            n_epochs=EPOCHS,
            gamma=GAMMA,
            ent_coef=ENTROPY,
            policy_kwargs={"net_arch": WIDTHS},
            seed=seed,
            device="cpu",
        )

    def turn(self, beginning: Beginning) -> None:
        """Go to another start."""
        self._start = beginning.segment, beginning.ram_hash
        self._masks: list[int] = self._environments.env_method("turn", beginning)[0]
        self._model._last_obs = None  # so that the next round begins with a reset
        self._watch = _Watch()
        self._rounds = self._exits = 0
        self._exit: Runs = ()

    def round(self) -> Export:
        """Play and learn once."""
        watch = self._watch = _Watch()
        decisions = STEPS * self._environments.num_envs
        self._model.learn(decisions, callback=watch, log_interval=None, reset_num_timesteps=False)
        self._rounds += 1
        self._exits += len(watch.exits)
        found = [runs for runs in (self._exit, *watch.exits) if runs]
        self._exit = min(found, key=frames_of, default=())
        said = self._model.logger.name_to_value
        figures = {
            "rounds": self._rounds,
            "decisions": self._rounds * decisions,
            "exits": self._exits,
            "exit_frames": frames_of(self._exit),
            "reward": float(np.mean(watch.returns)) if watch.returns else 0.0,
            "exit_rate": len(watch.exits) / max(1, len(watch.returns)),
            "entropy": -float(said["train/entropy_loss"]),
            "explained_variance": float(np.nan_to_num(said["train/explained_variance"])),
        }
        return Export(self._start, self.policy(), self._exit, figures)

    def policy(self) -> Policy:
        """The present policy, for numpy."""
        statistics = self._environments.obs_rms
        return policy_of(self._model.policy, statistics.mean, statistics.var, self._masks, self._hold)

    def close(self) -> None:
        self._environments.close()


def policy_of(network: Any, mean: Any, variance: Any, masks: list[int], hold: int) -> Policy:
    """Stable-Baselines3's actor in numpy."""
    linear = [*network.mlp_extractor.policy_net, network.action_net]
    layers = tuple(
        (
            layer.weight.detach().numpy().T.astype(np.float32).copy(),
            layer.bias.detach().numpy().astype(np.float32).copy(),
        )
        for layer in linear
        if isinstance(layer, torch.nn.Linear)
    )
    scale = 1 / np.sqrt(np.asarray(variance) + EPSILON)
    return Policy(np.float32(mean), np.float32(scale), layers, tuple(masks), hold)  # type: ignore[arg-type]


class _Watch(BaseCallback):  # type: ignore[misc]
    """Keeps what the episodes of a round came to."""

    def __init__(self) -> None:
        super().__init__()
        self.exits: list[Runs] = []
        self.returns: list[float] = []

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "exit" in info:
                self.exits.append(info["exit"])
            if "episode" in info:
                self.returns.append(float(info["episode"]["r"]))
        return True


# ---- the process -------------------------------------------------------------------------------------------


def main() -> None:
    os.nice(19)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the search, which ends this process
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a core may write to standard output
    first = json.loads(sys.stdin.readline())
    sys.path.extend(entry for entry in first.pop("path") if entry not in sys.path)
    job = Job(**first)
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=[lines], daemon=True).start()
    learner = Learner(job.package, job.environments, job.seed)
    rounds: int | None = 0
    while True:
        if not lines.empty() or rounds == 0:
            line = lines.get()
            while not lines.empty():
                line = lines.get()
            told = json.loads(line)
            rounds = told.pop("rounds")
            learner.turn(beginning_of(told))
        write_policy(Path(job.folder) / POLICY, learner.round())
        if rounds is not None:
            rounds -= 1
            if rounds == 0:
                print("done", file=answers, flush=True)


def beginning_of(told: dict[str, Any]) -> Beginning:
    """A segment's start from plain values."""
    state, cell = base64.b64decode(told.pop("state")), tuple(told.pop("cell"))
    return Beginning(**told, state=state, cell=cell)


def _read(lines: "queue.Queue[str]") -> None:
    """Pass lines on, and end the process with the last; its environments end with their pipes."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
