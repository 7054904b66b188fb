"""FIXED: what is kept of an episode: its turns, the steps they led to, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from agents.benchmarks.base import Episode

Ending = Literal["success", "failure", "step limit", "turn limit", "tokens", "gave up"]
"""Why an episode ended.

"failure": by the environment, without the goal; "tokens": the episode's own were used up; "gave up": too many
answers in a row held no action, or a method could go no further.
"""


class Taken(NamedTuple):
    """A primitive step, as taken."""

    action: str
    observation: str
    """What it led to."""
    reward: float


@dataclass(frozen=True)
class Turn:
    """One answer of the model in an episode and what came of it. Holds no prompt."""

    text: str
    """The whole answer."""
    action: str
    """A primitive action, `skill name(arguments)`, or "" where none could be read."""
    steps: tuple[Taken, ...] = ()
    """The primitive steps it led to."""
    note: str = ""
    """What the model was told besides the observation: a skill's output or error, why nothing was read."""
    skill: str | None = None
    """Name of the skill that was called."""
    error: str | None = None
    """What went wrong: with reading the answer, or in the skill."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, which `from_json` reads back equal."""
        return {
            "text": self.text,
            "action": self.action,
            "steps": [list(step) for step in self.steps],
            "note": self.note,
            "skill": self.skill,
            "error": self.error,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Turn":
        return cls(**{**value, "steps": tuple(Taken(*step) for step in value["steps"])})


@dataclass(frozen=True)
class Trajectory:
    """An episode, played."""

    episode: Episode
    index: int
    """Of the episode in its run, from 0; evaluations count for themselves."""
    goal: str
    first_observation: str
    turns: tuple[Turn, ...]
    score: float
    total: float
    """The return: the sum of rewards, undiscounted."""
    success: bool
    steps: int
    """Primitive steps, skills' among them."""
    details: Mapping[str, Any]
    """What the benchmark reports besides: `Environment.details`."""
    ending: Ending
    tokens: Mapping[str, int]
    """"prompt" and "completion", as the server reports them; a call it says nothing of counts as none."""
    learned: Mapping[str, Any] = field(default_factory=dict)
    """What a method noted in the episode for its next sleep: plain JSON values."""

    @property
    def actions(self) -> list[str]:
        """Every primitive action, in order: taken again in the same episode they lead to the same end."""
        return [step.action for turn in self.turns for step in turn.steps]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, which `from_json` reads back equal."""
        return {
            "episode": list(self.episode),
            "index": self.index,
            "goal": self.goal,
            "first_observation": self.first_observation,
            "turns": [turn.to_json() for turn in self.turns],
            "score": self.score,
            "total": self.total,
            "success": self.success,
            "steps": self.steps,
            "details": dict(self.details),
            "ending": self.ending,
            "tokens": dict(self.tokens),
            "learned": dict(self.learned),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Trajectory":
        own = {
            "episode": Episode(*value["episode"]),
            "turns": tuple(Turn.from_json(turn) for turn in value["turns"]),
        }
        return cls(**{**value, **own})
