"""FIXED: ScienceWorld as an environment in words (arXiv 2203.07540)."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from agents.benchmarks.base import Environment, Episode, Step
from agents.benchmarks.scienceworld.simulator import Moment, Simulator
from agents.benchmarks.scienceworld.tasks import SIMPLIFICATIONS, find_task
from agents.benchmarks.scienceworld.text import exits_of, items_of, plain, room_of

CHOICES = 20
"""Meanings that are offered at most where an action fits several things."""

_NUMBER = re.compile(r"(\d{1,3})\b")
_REFUSED = {"reset task": "The task cannot be reset.", "help": "", "objects": ""}
_UNKNOWN = "No known action matches that input."


class ScienceWorldEnvironment(Environment):
    """A task of ScienceWorld in one variation, the episode's seed.

    The episode's score is the game's, as a share of 100, and 0 where the task has failed. The reward is the
    change of the game's score, of which failing takes all and 1 more. Where the beginning is worth points
    already, they are in the score and in no reward. An episode ends with the task done or failed, and after
    the task's limit of steps, of which every action takes one, however long the world runs.
    """

    def __init__(self) -> None:
        self.simulator = Simulator()
        """The true world, for oracles."""
        self.done = True
        self._now: Moment
        self._menu: Sequence[str] | None
        self._things: Sequence[str] | None

    def reset(self, episode: Episode) -> str:
        """Begin an episode; returns the first observation. The first one starts Java, in about a second.

        Raises:
            Problem: no such task or variation, no Java, or too many environments.
        """
        self._limit = find_task(episode.task).limit
        self._now = self.simulator.begin(episode)
        self._first = self._now.score
        self.episode = episode
        self.goal = self.simulator.goal()
        self.steps = 0
        self.total = 0.0
        self._ending = ""
        self._tell()
        self.observation = f"{self._now.look}\n{self._now.inventory}"
        return self.observation

    def step(self, action: str) -> Step:
        """Take an action; `reset task` is none, and an answer to a question is one.

        Raises:
            RuntimeError: the episode is over.
            Problem: the Java process ended.
        """
        if self.done:
            raise RuntimeError("the episode is over")
        self.steps += 1
        before, room = self._now.score, room_of(self._now.look)
        text = self._act(plain(action))
        self._tell()
        lines = [text]
        if room_of(self._now.look) != room:
            lines.append(self._now.look)
        if self._ending:
            lines.append(self._ending)
        self.observation = "\n".join(line for line in lines if line)
        self.total = (self._now.score - self._first) / 100
        return Step(self.observation, (self._now.score - before) / 100, self.done)

    def actions(self) -> Sequence[str]:
        """Every command that the game takes as valid, sorted; asked for when called, which takes 20 to 30 ms.

        While a question is open, the numbers of its answers; none where the episode is over.
        """
        if self.done:
            return ()
        if self._now.choices:
            return [str(number) for number in self._now.choices]
        if self._menu is None:
            self._menu = [command for command in self.simulator.commands() if command not in _REFUSED]
        return self._menu

    def state(self) -> dict[str, Any]:
        """What is seen now; `text.STATE_HELP` says what it holds."""
        if self._things is None:
            self._things = [] if self._now.error else self.simulator.things()
        return {
            "room": room_of(self._now.look),
            "look": self._now.look,
            "exits": exits_of(self._now.look),
            "inventory": items_of(self._now.inventory),
            "things": list(self._things),
            "choices": {str(number): choice for number, choice in self._now.choices.items()},
            "score": max(0, self._now.score),
        }

    def details(self) -> Mapping[str, Any]:
        """`raw_score` -100 to 100; `clipped_score` 0 to 100; `failed`, as by a wrong focus; `moves` of the
        world's clock; `simplifications`; `error` of the simulator, or ""."""
        return {
            "raw_score": self._now.score,
            "clipped_score": max(0, self._now.score),
            "failed": self._now.score < 0,
            "moves": self._now.moves,
            "simplifications": SIMPLIFICATIONS,
            "error": self._now.error,
        }

    @property
    def success(self) -> bool:
        """Whether the game's score is 100."""
        return self._now.score >= 100

    def close(self) -> None:
        self.simulator.close()
        self.done = True

    def _act(self, command: str) -> str:
        """Have the game do what a command says; returns what it answers."""
        asked = self._now.choices
        if asked:
            number = _NUMBER.match(command)
            if number and int(number[1]) in asked:
                return self._send(number[1])
            self.simulator.drop_question()
            self._now = self._now._replace(choices={})
        if command in _REFUSED or not command:
            return _REFUSED.get(command) or _UNKNOWN
        text = self._send(command)
        choices = _different(self._now.choices)
        if len(choices) == 1:  # things that no word tells apart: the first is as good as any
            return self._send(str(next(iter(choices))))
        if choices:
            self._now = self._now._replace(choices=dict(islice(choices.items(), CHOICES)))
            answers = [f"{number}: {choice}" for number, choice in self._now.choices.items()]
            question = "Which one is meant? Answer with its number."
            if len(choices) > CHOICES:
                question += f" These are {CHOICES} of {len(choices)}; a longer name tells the others apart."
            text = "\n".join([question, *answers])
        return text

    def _send(self, command: str) -> str:
        self._now = self.simulator.send(command)
        return self._now.text

    def _tell(self) -> None:
        """Bring up to date what follows from the game's situation."""
        now = self._now
        self._menu = None
        self._things = None
        self.score = max(0, now.score) / 100
        if now.score < 0:
            self._ending = "The task has failed."
        elif self.success:
            self._ending = "The task is done."
        elif now.completed or now.error:
            self._ending = "The episode is over."
        elif self.steps >= self._limit:
            self._ending = f"The episode is over: all {self._limit} steps are taken."
        self.done = bool(self._ending)


def _different(choices: Mapping[int, str]) -> dict[int, str]:
    """Of choices that read the same, the first."""
    first: dict[str, int] = {}
    for number, choice in choices.items():
        first.setdefault(choice, number)
    return {number: choice for choice, number in first.items()}
