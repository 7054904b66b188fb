"""OPEN: what voyager asks: a curriculum for a task, a programmer for a program, a critic for a verdict."""

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import BaseModel, Field

from agents.benchmarks.base import Benchmark, Environment
from agents.llm.messages import Message
from agents.memory.library import Skill
from agents.prompts.prompts import render
from agents.sandbox.allowed import MODULES
from agents.sandbox.protocol import cut
from harness.files import STRICT, canonical_json

STATE_CHARS = 4_000
"""Of a state's JSON."""


class Proposal(BaseModel):
    """The curriculum's JSON."""

    model_config = STRICT

    reasoning: str = ""
    task: str = Field(min_length=1, max_length=500)


class Verdict(BaseModel):
    """The critic's JSON."""

    model_config = STRICT

    reasoning: str = ""
    success: bool
    critique: str = ""


class Attempt(NamedTuple):
    """A program and what came of it."""

    source: str
    """"" where none could be read."""
    feedback: str
    critique: str = ""


def state_text(environment: Environment) -> str:
    return cut(canonical_json(environment.state()), STATE_CHARS)


def ask_for_task(
    benchmark: Benchmark,
    environment: Environment,
    *,
    completed: Sequence[str],
    failed: Sequence[str],
    skills: Sequence[str],
) -> list[Message]:
    """`completed` and `failed` are tasks of the episode, `skills` names of the library."""
    system = render(
        "voyager_curriculum_system",
        benchmark=benchmark.name,
        title=benchmark.title,
        rules=benchmark.rules(),
    )
    content = render(
        "voyager_curriculum",
        goal=environment.goal,
        observation=environment.observation,
        state=state_text(environment),
        completed=completed,
        failed=failed,
        skills=skills,
        steps_left=_steps_left(benchmark, environment),
    )
    return [Message("system", system), Message("user", content)]


def ask_for_program(
    benchmark: Benchmark,
    environment: Environment,
    *,
    task: str,
    skills: Sequence[Skill],
    attempt: Attempt | None,
    longest: int,
    steps: int,
) -> list[Message]:
    """`attempt` is the last one at this task; `longest`: characters of a function, `steps`: of a call."""
    system = render(
        "voyager_code_system",
        benchmark=benchmark.name,
        title=benchmark.title,
        rules=benchmark.rules(),
        state_help=benchmark.state_help(),
        modules=MODULES,
        longest=longest,
        steps=steps,
    )
    content = render(
        "voyager_code",
        task=task,
        skills=[skill.function for skill in skills],
        goal=environment.goal,
        observation=environment.observation,
        state=state_text(environment),
        attempt=attempt,
        steps_left=_steps_left(benchmark, environment),
    )
    return [Message("system", system), Message("user", content)]


def ask_for_verdict(
    benchmark: Benchmark, environment: Environment, *, task: str, before: str, feedback: str
) -> list[Message]:
    """`before` is the state before the program, as `state_text`."""
    system = render(
        "voyager_critic_system",
        benchmark=benchmark.name,
        title=benchmark.title,
        rules=benchmark.rules(),
    )
    content = render(
        "voyager_critic",
        task=task,
        before=before,
        after=state_text(environment),
        observation=environment.observation,
        feedback=feedback,
    )
    return [Message("system", system), Message("user", content)]


def _steps_left(benchmark: Benchmark, environment: Environment) -> int:
    return max(0, benchmark.step_limit(environment.episode.task) - environment.steps)
