"""FIXED: a player that looks into the true world: walks to the nearest tree and takes its wood."""

from random import Random
from typing import Any

import numpy as np

from agents.benchmarks.base import Environment, Player


class Oracle(Player):
    """Collects wood, makes a table and wooden tools."""

    def act(self, environment: Environment, generator: Random) -> str:
        """The next action."""
        game: Any = environment.game  # type: ignore[attr-defined]
        player, world = game.player, game.world
        for action, wood in (("place table", 2), ("make wood pickaxe", 1), ("make wood sword", 1)):
            if action.replace(" ", "_") not in environment.details()["achievements"]:
                if player.inventory["wood"] >= wood:
                    return action
                break
        trees = np.argwhere(world._mat_map == world._mat_ids["tree"]) - player.pos
        if not len(trees) or generator.random() < 0.2:
            return generator.choice(environment.actions()[1:6])
        right, down = trees[np.abs(trees).sum(1).argmin()]
        if abs(right) + abs(down) == 1 and tuple(player.facing) == (right, down):
            return "do"
        if abs(right) > abs(down):
            return "move right" if right > 0 else "move left"
        return "move down" if down > 0 else "move up"
