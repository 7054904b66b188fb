"""FIXED: Crafter as an environment in words. The game is the package's, made reproducible by `repair`."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.benchmarks.base import Environment, Episode, Step
from agents.benchmarks.crafter.repair import Game
from agents.benchmarks.crafter.text import (
    ACHIEVEMENTS,
    ACTIONS,
    GOAL,
    STATUS,
    describe_change,
    describe_status,
    describe_view,
    inventory_of,
    plain,
)
from agents.benchmarks.crafter.view import View, look

NUMBERS = {action: number for number, action in enumerate(ACTIONS)}


class CrafterEnvironment(Environment):
    """Task `survive`: stay alive and unlock achievements; the world is that of the episode's seed.

    An episode ends with the player's death, with the last achievement, or after `step_limit` steps. The
    score is the share of achievements unlocked. Rewards are the package's: 1 for a step that unlocks
    something, and 0.1 for each point of health won or lost.
    """

    def __init__(self, step_limit: int) -> None:
        self.step_limit = step_limit
        self.game = Game()
        """The true world, for oracles."""

    def reset(self, episode: Episode) -> str:
        """Begin an episode; returns the first observation."""
        self.episode = episode
        self.goal = GOAL
        self.game.begin(episode.seed)
        self.steps = 0
        self.score = 0.0
        self.total = 0.0
        self.done = False
        self._look()
        self.observation = self._describe([])
        return self.observation

    def step(self, action: str) -> Step:
        """Take one of the 17 actions, with spaces or underscores. What is no action takes a step of the
        limit, but no time in the world.

        Raises:
            RuntimeError: the episode is over.
        """
        if self.done:
            raise RuntimeError("the episode is over: call reset")
        self.steps += 1
        name = plain(action)
        reward = 0.0
        if name in NUMBERS:
            reward, events = self._play(name)
        else:
            events = [f'There is no action "{name[:60]}"; nothing was done']
        self.total += reward
        self.score = len(self.unlocked) / len(ACHIEVEMENTS)
        self.done = self.died or self.success or self.steps >= self.step_limit
        self.observation = self._describe(events)
        return Step(self.observation, reward, self.done)

    def actions(self) -> Sequence[str]:
        """All 17, always, as in the original."""
        return ACTIONS

    def state(self) -> dict[str, Any]:
        """What is seen now; `text.STATE_HELP` says what it holds."""
        view, player = self._view, self.game.player
        right, down = (int(value) for value in player.facing)
        status: dict[str, Any] = {name: int(player.inventory[name]) for name in STATUS}
        return {
            "grid": [list(row) for row in view.grid],
            "creatures": [creature._asdict() for creature in view.creatures],
            "facing": {
                "direction": view.facing,
                "right": right,
                "down": down,
                "material": view.material,
                "creature": view.creature,
            },
            "status": status
            | {"sleeping": bool(player.sleeping), "daylight": round(float(self.game.world.daylight), 1)},
            "inventory": inventory_of(player.inventory),
            "achievements": [plain(name) for name in self.unlocked],
        }

    def details(self) -> Mapping[str, Any]:
        """`achievements` unlocked, by the package's names; `died`; `return`; `steps`."""
        return {
            "achievements": self.unlocked,
            "died": self.died,
            "return": self.total,
            "steps": self.steps,
        }

    @property
    def unlocked(self) -> list[str]:
        """Achievements unlocked so far, by the package's names."""
        counts = self.game.player.achievements
        return [name for name in ACHIEVEMENTS if counts[name]]

    @property
    def died(self) -> bool:
        """Whether the player's health is gone."""
        return int(self.game.player.health) <= 0

    @property
    def success(self) -> bool:
        """Whether every achievement is unlocked."""
        return len(self.unlocked) == len(ACHIEVEMENTS)

    def _look(self) -> None:
        self._view: View = look(self.game.world, self.game.player)

    def _play(self, name: str) -> tuple[float, list[str]]:
        """One step of the game: its reward, and what is to be seen of its effects, a sentence each."""
        player, before = self.game.player, self._view
        things, place, slept = dict(player.inventory), tuple(player.pos), player.sleeping
        known = set(self.unlocked)
        _, reward, _, _ = self.game.step(NUMBERS[name])
        self._look()
        changes = describe_change(things, player.inventory)
        events = []
        if slept:
            events.append("You sleep on" if player.sleeping else "You woke up")
        elif name == "sleep":
            events.append("You fell asleep" if player.sleeping else "You cannot sleep now")
        elif name.startswith("move "):
            moved = tuple(player.pos) != place
            events.append(f"You {'moved' if moved else 'turned'} {self._view.facing}")
        elif name == "do" and before.creature in ("cow", "zombie", "skeleton"):
            events.append(f"You hit the {before.creature}")
        elif name != "noop" and not changes:
            events.append("That had no effect")
        if changes:
            events.append(", ".join(changes))
        events += [f"Achievement unlocked: {plain(new)}" for new in self.unlocked if new not in known]
        return float(reward), events

    def _describe(self, events: Sequence[str]) -> str:
        """The observation, which begins with what the last step led to."""
        player = self.game.player
        lines = [f"Last step: {'. '.join(events)}."] if events else []
        if self.died:
            return "\n".join([*lines, "You died."])
        daylight = float(self.game.world.daylight)
        lines += describe_status(player.inventory, bool(player.sleeping), daylight)
        return "\n".join([*lines, *describe_view(self._view)])
