"""FIXED: players of BabyAI without a model: Minigrid's bot, which plans on the true map, and chance."""

from random import Random
from typing import Any

from minigrid.utils.baby_ai_bot import BabyAIBot

from agents.benchmarks.babyai.environment import ACTIONS, BabyAIEnvironment
from agents.benchmarks.base import Environment, Player
from harness.errors import Problem

SEARCHES = 60
"""Path searches that the bot may make for one action; it needs fewer than ten."""


class RandomPlayer(Player):
    """Any of the six actions, equally likely."""

    def act(self, environment: Environment, generator: Random) -> str:
        return generator.choice(environment.actions())


class Oracle(Player):
    """The bot of BabyAI (arXiv 1810.08272): it knows the map as far as it has been in view.

    Where it gives up, an action is random, and a new bot takes over.
    """

    def __init__(self) -> None:
        self._environment: Environment | None = None
        self._bot: _Bot | None = None

    def act(self, environment: Environment, generator: Random) -> str:
        """The next action.

        Raises:
            Problem: the environment is no level of this process.
        """
        if not isinstance(environment, BabyAIEnvironment):
            raise Problem(
                "the oracle looks into a level, and cannot into a server's", remedy="play without a server"
            )
        if environment.steps == 0 or environment is not self._environment:
            self._environment, self._bot = environment, None
        try:
            self._bot = self._bot or _Bot(environment.level)
            return ACTIONS[int(self._bot.replan())]
        except Exception:  # the bot fails in many ways where it was not made for a level
            self._bot = None
            return generator.choice(ACTIONS)


class _GivesUp(Exception):
    """The bot turns in circles."""


class _Bot(BabyAIBot):  # type: ignore[misc]
    """Minigrid's bot, which would search for ever in a few situations."""

    def replan(self, action_taken: Any = None) -> Any:
        self._until = self.bfs_counter + SEARCHES
        return super().replan(action_taken)

    def _breadth_first_search(self, *arguments: Any, **named: Any) -> Any:
        if self.bfs_counter >= self._until:
            raise _GivesUp
        return super()._breadth_first_search(*arguments, **named)
