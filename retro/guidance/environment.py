"""One segment of a game as a Gymnasium environment: RAM values in, a combination of buttons out.

Episodes begin where the segment does, and end with a way out of it, a death, an earlier state, which counts
as a death, or after `DECISIONS`. The search's World plays here too, so transit is waited out.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from retro.packages import GamePackage, load_package
from retro.search.archive import Runs
from retro.search.world import NEVER, Beginning, Fate, Knowledge, Start, World

DECISIONS = 128  # of an episode, at most
SETTLE = 3  # frames for which a new state must hold
EXIT, DEATH, NEW = 2.0, -1.0, 0.01  # rewards; NEW is for each RAM value, a way through the segment earns 1


def hold_of(package: GamePackage) -> int:
    """Frames for which the policy's decisions are held: the middle one of the package's lengths."""
    return package.holds[len(package.holds) // 2]


class SegmentEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """Observation: the package's variables, (V,). Action: which of the state's combinations of buttons; one
    space serves all states, and a number past a state's last counts on from its first.

    Reward: the change of the state's reward, over the widest range that it has had here; `NEW` for each value
    of a variable that was not seen before; `EXIT` or `DEATH`. With a seed, `reset` forgets what was seen.
    A step that leaves the segment tells its inputs, button masks and frames, as `info["exit"]`.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, spec: str) -> None:
        """`spec` is a package's name as `load_package` takes it. Begins with the package's first state."""
        package = load_package(spec)
        self._world = World(package)
        low, high = zip(*(_range(variable.type) for variable in package.variables.values()), strict=True)
        self.observation_space = spaces.Box(
            np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32
        )
        most = max(len(state.buttons or package.buttons) for state in package.states)
        self.action_space = spaces.Discrete(most)
        self._hold = hold_of(package)
        self._seen: set[tuple[int, int]] = set()
        self._range = 1.0  # of the state's reward so far
        beginning, _ = self._world.arrive(((0, 1),))
        self.turn(beginning)

    def turn(self, beginning: Beginning) -> list[int]:
        """Go to another segment, from the next `reset` on; returns the state's button masks."""
        self._knowledge = Knowledge(beginning.segment, SETTLE, 0)
        self._start = Start(0, 0, beginning.state, beginning.reward)
        self._forget()
        self._world.begin(self._knowledge, NEVER)
        return self._world.masks

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._forget()
        self._world.begin(self._knowledge, NEVER)
        self._world.go(self._start)
        self._decisions = 0
        return self._look()[0], {}

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        world, before = self._world, self._world.reward
        masks = world.masks
        fate = world.act(masks[int(action) % len(masks)], self._hold)
        self._decisions += 1
        seen, new = self._look()
        info: dict[str, Any] = {}
        reward = NEW * new
        if fate is Fate.CROSSED:
            reward += EXIT
            info["exit"] = world.crossings[-1].runs
        elif fate is Fate.DEAD:
            reward += DEATH
        else:
            self._range = max(self._range, abs(world.reward - self._start.reward))
            reward += (world.reward - before) / self._range
        over = self._decisions >= DECISIONS
        return seen, reward, fate is not Fate.ALIVE, over and fate is Fate.ALIVE, info

    def close(self) -> None:
        self._world.emulator.close()

    def _look(self) -> tuple[NDArray[np.float32], int]:
        """The variables, and how many of their values are new."""
        ram = self._world.emulator.values()
        pairs = set(enumerate(ram)) - self._seen
        self._seen |= pairs
        return np.array(ram, np.float32), len(pairs)

    def _forget(self) -> None:
        self._seen.clear()
        self._range = 1.0


def frames_of(runs: Runs) -> int:
    """How many frames inputs take."""
    return sum(frames for _, frames in runs)


def _range(kind: str) -> tuple[int, int]:
    """The least and the greatest value of a variable's type, see `retro.packages.Variable`."""
    size = int(kind[2:])
    digits = {"d": (100, 165), "n": (10, 15), "u": (256, 255), "i": (256, 255)}
    base, most = digits[kind[1]]
    greatest = sum(most * base**place for place in range(size))
    return (-(greatest + 1) // 2, greatest // 2) if kind[1] == "i" else (0, greatest)
