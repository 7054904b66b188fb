"""OPEN: what a method offers to the wake-sleep loop: prompt text and skills when awake, an update asleep."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pydantic import BaseModel, Field

from agents.benchmarks.base import Benchmark, Environment, Episode
from agents.memory.trajectory import Ending, Taken, Trajectory, Turn
from harness.files import STRICT

if TYPE_CHECKING:
    from agents.llm.messages import Message
    from agents.llm.reply import Reply
    from agents.sandbox.host import Sandbox

__all__ = [
    "Asks",
    "Ending",
    "Exchange",
    "Method",
    "MethodSettings",
    "Seat",
    "Sleep",
    "Taken",
    "Tools",
    "Trajectory",
    "Turn",
]


class MethodSettings(BaseModel):
    """What a config may set of the methods; each uses what concerns it."""

    model_config = STRICT

    sleep_tokens: int = Field(80_000, ge=1_000)
    """Prompt and completion tokens of one sleep. A call that would not fit by its estimate is not made."""
    sleep_turns: int = Field(8, ge=2, le=50)
    """Answers of one sleep."""
    answer_tokens: int = Field(8_000, ge=64)
    """Completion tokens of one answer in a sleep, and of one of Voyager's."""
    functions: int = Field(60, ge=1, le=200)
    """Functions that a codebook or a skill library holds at most, helpers not counted."""
    function_chars: int = Field(6_000, ge=100)
    """Characters of one function's source."""
    guide_chars: int = Field(6_000, ge=100)
    """Characters of the strategy guide."""
    experience: int = Field(60, ge=1)
    """Episodes that the experience buffer keeps, the latest."""
    experience_chars: int = Field(30_000, ge=1_000)
    """Characters of experience that a sleep's prompt shows."""
    verify: bool = True
    """asi: whether a new skill must reach the goal when its episode is played again."""
    retrieve: int = Field(5, ge=1, le=50)
    """Skills that a query of the skill library returns."""
    refinements: int = Field(4, ge=1, le=20)
    """voyager: programs written for one task before it is given up."""


class Asks(Protocol):
    """The part of `agents.llm.model.Model` that methods use."""

    def ask(self, messages: "Sequence[Message]", *, label: str, max_tokens: int | None = None) -> "Reply": ...


@dataclass(frozen=True)
class Tools:
    """What a method is made with."""

    benchmark: Benchmark
    model: Asks
    sandbox: "Callable[[], Sandbox]"
    """A new sandbox, to be closed by whoever asked for it."""
    settings: MethodSettings
    seed: int
    log: Callable[[str], None]
    """Shows a line to whoever watches the run."""


@dataclass(frozen=True)
class Seat:
    """What one episode is played with; each is used by one thread."""

    environment: Environment
    """The episode's own, not yet reset."""
    sandbox: "Sandbox"
    """The episode's own, with nothing loaded."""
    episode: Episode
    index: int
    label: str
    """How the labels of its calls begin: "wake/000012" or "eval/000003"."""
    turn_limit: int
    history: int
    """Latest turns that prompts repeat word for word."""
    learning: bool
    """False: the memory is frozen, and nothing is noted in `Trajectory.learned`."""
    token_limit: int | None = None
    """Tokens of the episode; None = no limit but the run's."""


@dataclass(frozen=True)
class Exchange:
    """One call of a sleep: what was added to the conversation since the last, and what was answered."""

    label: str
    asked: tuple[tuple[str, str], ...]
    """(role, content) of the messages that are new."""
    reply: str
    finish: str

    def to_json(self) -> dict[str, Any]:
        asked = [{"role": role, "content": content} for role, content in self.asked]
        return {"label": self.label, "asked": asked, "reply": self.reply, "finish": self.finish}


@dataclass(frozen=True)
class Sleep:
    """What a sleep did."""

    changed: bool
    reason: str
    """Why the memory is changed, or why it is kept as it was."""
    diff: str = ""
    """Unified diff of the memory as text."""
    errors: tuple[str, ...] = ()
    """Everything that was wrong with answers, as told to the model."""
    exchanges: tuple[Exchange, ...] = ()
    steps: int = 0
    """Environment steps taken asleep: replays of asi."""

    def to_json(self) -> dict[str, Any]:
        return {
            "changed": self.changed,
            "reason": self.reason,
            "diff": self.diff,
            "errors": list(self.errors),
            "exchanges": [exchange.to_json() for exchange in self.exchanges],
            "steps": self.steps,
        }


class Method(ABC):
    """An agent's way to learn. Its name alone decides what it does.

    While a batch is played nothing of it changes, so that episodes may run in threads: it changes in `sleep`
    and `load` alone.
    """

    name: ClassVar[str]
    parallel: ClassVar[bool] = True
    """False: every episode builds on the one before, so the loop sleeps after each."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    def play(self, seat: Seat) -> Trajectory:
        """Play an episode from its reset to its end."""
        from agents.core.wake import play_episode

        return play_episode(self, seat)

    @abstractmethod
    def memory_text(self, episode: Episode, observation: str) -> str:
        """What the memory adds to the wake prompt of an episode; "" = nothing."""

    @abstractmethod
    def skills_source(self) -> str:
        """The module of the skills that may be called when awake; "" = none."""

    @abstractmethod
    def sleep(self, batch: Sequence[Trajectory], index: int) -> Sleep:
        """Update the memory from the episodes since the last sleep, in their order. `index` counts from 0.

        Raises:
            agents.llm.ledger.BudgetSpent: the memory is then as it was before.
        """

    @abstractmethod
    def dump(self) -> dict[str, Any]:
        """Everything it has learned: plain JSON values."""

    @abstractmethod
    def load(self, state: Mapping[str, Any]) -> None:
        """Take over what `dump` gave.

        Raises:
            ValueError, KeyError, TypeError: it is something else; the memory is then as it was.
        """
