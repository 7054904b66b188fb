"""FIXED: levels of Minigrid, made from a seed: quietly, in any thread, and never without end."""

from typing import Any

import gymnasium
import minigrid  # noqa: F401 (registers the levels)
import numpy as np
from minigrid.envs.babyai.core import roomgrid_level, verifier
from minigrid.envs.babyai.core.levelgen import LevelGen

from agents.benchmarks.babyai.tasks import FAMILIES
from agents.benchmarks.base import Episode
from harness.errors import Problem

DRAWS = 100_000
"""Random numbers that a level may take; those that were made took less than a tenth."""

# Minigrid prints each level that it rejects. A name in its module hides the builtin: sys.stdout, which all
# threads share, is left alone.
roomgrid_level.print = lambda *_: None
# An environment variable would make missions end by another action.
verifier.use_done_actions = False


class PickUpThenGoTo(LevelGen):  # type: ignore[misc]
    """One object is to be picked up and another, which the first cannot be taken for, to be gone to."""

    def rand_instr(self, action_kinds: Any, instr_kinds: Any, depth: int = 0) -> Any:
        picked = verifier.PickupInstr(self.rand_obj(types=verifier.OBJ_TYPES_NOT_DOOR))
        visited = verifier.GoToInstr(self.rand_obj(types=verifier.OBJ_TYPES_NOT_DOOR))
        # The verifier takes the place that an object was picked up from for the object.
        if any(thing is other for thing in picked.desc.obj_set for other in visited.desc.obj_set):
            raise roomgrid_level.RejectSampling("an object that matches both descriptions")
        if self._rand_bool():
            return verifier.BeforeInstr(picked, visited)
        return verifier.AfterInstr(visited, picked)


def make_level(episode: Episode) -> Any:
    """A new level of Minigrid, at its beginning: the one that its own `reset(seed=...)` makes.

    Raises:
        Problem: the seed leads to no level.
    """
    task, seed = episode
    level: Any
    if task == "pick_up_seq_go_to":
        level = PickUpThenGoTo(**FAMILIES[task])
    elif task in FAMILIES:
        level = LevelGen(**FAMILIES[task])
    else:
        level = gymnasium.make(task, disable_env_checker=True).unwrapped
    level.np_random = _Draws(np.random.PCG64(np.random.SeedSequence(seed)))
    try:
        level.reset()
    except _TooMany:
        raise Problem(f"{task} with seed {seed} makes no level", remedy="take another seed") from None
    level.max_steps = 1_000_000_000  # the environment counts by itself
    return level


class _TooMany(Exception):
    """A level took more random numbers than allowed."""


class _Draws(np.random.Generator):
    """Ends every search for a level: all its loops draw random numbers."""

    left = DRAWS

    def integers(self, *arguments: Any, **named: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise _TooMany
        return super().integers(*arguments, **named)
