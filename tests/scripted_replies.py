"""Replies in a fixed order in place of a model, and real episodes of BabyAI, for tests of methods."""

import json
import random
from collections.abc import Sequence
from typing import Any

from agents.benchmarks.babyai import BENCHMARK
from agents.benchmarks.base import Benchmark, Episode
from agents.llm.messages import Message
from agents.llm.reply import Reply, Usage
from agents.memory.trajectory import Taken, Trajectory, Turn
from agents.methods.base import MethodSettings, Tools
from agents.sandbox.host import Limits, Sandbox

LIMITS = Limits(seconds=2.0, steps=40)


class Script:
    """Gives its replies in order, and keeps what it was asked."""

    def __init__(self, *replies: str | Reply | Exception) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[str, list[Message], int | None]] = []

    def ask(self, messages: Sequence[Message], *, label: str, max_tokens: int | None = None) -> Reply:
        self.asked.append((label, list(messages), max_tokens))
        assert self.replies, f"one question too many: {messages[-1].content}"
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, Reply) else answer(reply)

    @property
    def labels(self) -> list[str]:
        return [label for label, _, _ in self.asked]

    @property
    def last(self) -> str:
        """The last thing that it was told."""
        return self.asked[-1][1][-1].content

    @property
    def systems(self) -> list[str]:
        """The last lines of the system messages, which say what kind of question it is."""
        return [messages[0].content.splitlines()[-1] for _, messages, _ in self.asked]


def answer(text: str, finish: str = "stop", usage: Usage = Usage(100, 20)) -> Reply:  # noqa: B008 (frozen)
    return Reply(text, finish, usage, None, 0.0, "script")


def make_tools(script: Script, benchmark: Benchmark = BENCHMARK, **settings: Any) -> Tools:
    """Tools with the real sandbox; BabyAI where no other benchmark is given."""
    return Tools(benchmark, script, lambda: Sandbox(LIMITS), MethodSettings(**settings), 1, print)


def oracle_episode(task: str, seed: int) -> Trajectory:
    """An episode of BabyAI as the oracle plays it, a turn for each step."""
    environment, player = BENCHMARK.make(), BENCHMARK.oracle()
    first = environment.reset(Episode(task, seed))
    turns = []
    while not environment.done:
        action = player.act(environment, random.Random(0))
        step = environment.step(action)
        text = f"Thought: the bot says so\nAction: {action}"
        turns.append(Turn(text, action, (Taken(action, step.observation, step.reward),)))
    return Trajectory(
        environment.episode,
        seed,
        environment.goal,
        first,
        tuple(turns),
        environment.score,
        environment.total,
        environment.success,
        environment.steps,
        dict(environment.details()),
        "success" if environment.success else "step limit",
        {"prompt": 0, "completion": 0},
    )


def json_block(value: object) -> str:
    """An answer that holds a value as JSON."""
    return f"So be it.\n```json\n{json.dumps(value)}\n```"


def python_block(source: str) -> str:
    """An answer that holds a program."""
    return f"Let me see.\n```python\n{source}\n```"
