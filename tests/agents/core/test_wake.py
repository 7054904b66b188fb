"""An episode is played turn by turn: what the model is shown, what its answers do, and how it ends."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from corridor import Corridor

from agents.benchmarks.base import Episode
from agents.core.wake import PATIENCE, play_episode
from agents.llm.messages import Message
from agents.llm.reply import Reply, Usage
from agents.memory.trajectory import Taken, Trajectory
from agents.methods.base import MethodSettings, Seat, Tools
from agents.methods.react import React
from agents.sandbox.host import Limits, Sandbox

SKILLS = '''
def walk(env, steps, way="right"):
    """Walk some steps."""
    for _ in range(steps):
        env.step(way)
    print("from", env.steps)
    return {"place": env.state["place"]}

def stumble(env):
    """Take a step and fall."""
    env.step("right")
    print("ouch")
    raise ValueError("a stone")

def rest(env):
    """Do nothing."""
'''


class Skilled(React):
    """Has skills and a memory, and learns nothing."""

    source = SKILLS

    def memory_text(self, episode: Episode, observation: str) -> str:
        return f"Remember {episode.task} and {observation}"

    def skills_source(self) -> str:
        return self.source


class Voice:
    """Says one thing after another, the last for ever."""

    def __init__(self, *replies: str | Reply) -> None:
        self.replies = replies
        self.asked: list[list[Message]] = []
        self.labels: list[str] = []

    def ask(self, messages: Sequence[Message], *, label: str, max_tokens: int | None = None) -> Reply:
        reply = self.replies[min(len(self.asked), len(self.replies) - 1)]
        self.asked.append(list(messages))
        self.labels.append(label)
        return reply if isinstance(reply, Reply) else answer(reply)


def answer(text: str, finish: str = "stop", prompt: int | None = 10, completion: int | None = 2) -> Reply:
    return Reply(text, finish, Usage(prompt, completion), None, 0.0, "voice")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(Limits()) as sandbox:
        yield sandbox


def play(
    sandbox: Sandbox,
    voice: Voice,
    method: type[React] = React,
    length: int = 4,
    task: str = "short",
    log: list[str] | None = None,
    **changes: Any,
) -> Trajectory:
    benchmark = Corridor()
    said = [] if log is None else log
    tools = Tools(benchmark, voice, Sandbox, MethodSettings.model_validate({}), 0, said.append)
    given = {"turn_limit": 50, "history": 8, "learning": True, **changes}
    seat = Seat(benchmark.make(), sandbox, Episode(task, length), 7, "wake/000007", **given)
    return play_episode(method(tools), seat)


def test_an_episode_is_played_to_its_goal(sandbox: Sandbox) -> None:
    voice = Voice(
        "Thought: go.\nAction: RIGHT", "Action: jump", "Action: right\nObservation: done", "Action: right"
    )
    trajectory = play(sandbox, voice)
    assert trajectory.success
    assert (trajectory.ending, trajectory.score, trajectory.total, trajectory.steps) == (
        "success",
        1.0,
        1.0,
        4,
    )
    assert trajectory.actions == ["RIGHT", "jump", "right", "right"]
    assert (trajectory.episode, trajectory.index) == (Episode("short", 4), 7)
    assert (trajectory.goal, trajectory.first_observation) == ("reach cell 4", "You are in cell 1.")
    assert trajectory.details == {"place": 4}
    assert trajectory.tokens == {"prompt": 40, "completion": 8}
    assert trajectory.turns[0].steps == (Taken("RIGHT", "You are in cell 2.", 0.0),)
    assert trajectory.turns[2].text == "Action: right\nObservation: done"
    assert trajectory.turns[3].steps == (Taken("right", "You are in cell 4.", 1.0),)
    assert voice.labels == [f"wake/000007/{number:03d}" for number in range(4)]
    assert Trajectory.from_json(trajectory.to_json()) == trajectory


def test_what_the_model_is_shown(sandbox: Sandbox) -> None:
    voice = Voice("**Thought:** go.\nAction: right\nObservation: You fly.\nAction: left", "Action: right")
    play(sandbox, voice, Skilled)
    system, first = voice.asked[0]
    assert system.role == "system"
    assert "left and right move you" in system.content
    assert "Remember short and You are in cell 1." in system.content
    assert system.content.endswith("[kind: wake; benchmark: corridor]")
    assert first.role == "user"
    assert "reach cell 4" in first.content
    assert "You are in cell 1." in first.content
    assert "left; right" in first.content
    again, first_again, said, told = voice.asked[1]
    assert (again, first_again) == (system, first)
    assert said == Message("assistant", "Thought: go.\nAction: right")
    assert told.role == "user"
    assert "You are in cell 2." in told.content
    assert "left; right" not in told.content


def test_earlier_turns_are_shown_as_actions_alone_and_prompts_begin_alike(sandbox: Sandbox) -> None:
    voice = Voice(
        *[f"Thought: turn {number}.\nAction: {'right' if number % 2 else 'left'}" for number in range(60)]
    )
    voice.replies = ("Action: right", *voice.replies[1:])
    play(sandbox, voice, length=100, task="long", turn_limit=40, history=8)
    for number, messages in enumerate(voice.asked):
        shown = (len(messages) - 2) // 2
        assert shown == number if number <= 8 else 5 <= shown <= 8
        assert messages[-1].content.count("Observation") == 1
        assert ("You have since taken" in messages[1].content) == (number > 8)
        if number > shown:
            assert f"taken {number - shown} turns" in messages[1].content
    alike = [
        before == after[: len(before)] for before, after in zip(voice.asked, voice.asked[1:], strict=False)
    ]
    assert sum(alike) >= 0.7 * len(alike)


def test_answers_without_an_action_take_no_step_and_end_the_episode_in_the_end(sandbox: Sandbox) -> None:
    voice = Voice("Hm.", "Action: right", "What?", "", "no", "Action: right")
    trajectory = play(sandbox, voice)
    assert trajectory.ending == "gave up"
    assert len(trajectory.turns) == 2 + PATIENCE
    assert (trajectory.steps, trajectory.success) == (1, False)
    assert [turn.action for turn in trajectory.turns] == ["", "right", "", "", ""]
    assert trajectory.turns[0].error == "no line begins with `Action:`"
    assert "no line begins with `Action:`" in voice.asked[1][-1].content
    assert voice.asked[1][-2] == Message("assistant", "Hm.")
    assert voice.asked[4][-2].content


@pytest.mark.parametrize(
    ("finish", "words"), [("length", "cut off"), ("refusal", "refusal"), ("content_filter", "withheld")]
)
def test_why_an_answer_is_empty_is_told(sandbox: Sandbox, finish: str, words: str) -> None:
    voice = Voice(answer("", finish), "Action: right")
    assert words in str(play(sandbox, voice).turns[0].error)
    assert words in voice.asked[1][-1].content


def test_a_cut_off_answer_with_an_action_counts(sandbox: Sandbox) -> None:
    assert play(sandbox, Voice(answer("Action: right\nObs", "length"))).success


def test_a_conversation_that_is_too_long_is_shortened(sandbox: Sandbox) -> None:
    said = ["Action: left" if number % 2 else "Action: right" for number in range(8)]
    voice = Voice(*said, answer("", "context"), "Action: right")
    play(sandbox, voice, length=90, task="long", turn_limit=12)
    assert len(voice.asked[8]) == 2 + 16
    assert len(voice.asked[9]) <= 2 + 8


@pytest.mark.parametrize(
    ("changes", "ending", "turns"),
    [
        ({"turn_limit": 2}, "turn limit", 2),
        ({"token_limit": 20}, "tokens", 2),
        ({"token_limit": 12}, "tokens", 1),
        ({"length": 90}, "step limit", 20),
    ],
)
def test_limits_end_an_episode(sandbox: Sandbox, changes: dict[str, Any], ending: str, turns: int) -> None:
    trajectory = play(sandbox, Voice("Action: right"), **{"length": 9, **changes})
    assert (trajectory.ending, len(trajectory.turns), trajectory.success) == (ending, turns, False)


def test_an_episode_that_the_environment_ends_is_a_failure(sandbox: Sandbox) -> None:
    trajectory = play(sandbox, Voice("Action: left"))
    assert (trajectory.ending, trajectory.steps, trajectory.score) == ("failure", 1, 0.0)


def test_tokens_that_the_server_does_not_tell_count_as_none(sandbox: Sandbox) -> None:
    assert play(sandbox, Voice(answer("Action: left", prompt=None))).tokens == {"prompt": 0, "completion": 2}


def test_a_skill_takes_steps_and_tells_what_it_did(sandbox: Sandbox) -> None:
    voice = Voice('Thought: far.\nAction: skill walk(3, way="right")', "Action: walk(2)")
    trajectory = play(sandbox, voice, Skilled, length=6)
    assert (trajectory.ending, trajectory.steps) == ("success", 5)
    first, second = trajectory.turns
    assert (first.action, first.skill, first.error) == ('skill walk(3, way="right")', "walk", None)
    assert first.steps == tuple(Taken("right", f"You are in cell {cell}.", 0.0) for cell in (2, 3, 4))
    assert first.note == 'It returned {"place": 4}\nIt printed: from 3'
    assert second.action == "skill walk(2)"
    assert second.steps[-1] == Taken("right", "You are in cell 6.", 1.0)
    told = voice.asked[1][-1].content
    assert "walk took 3 steps" in told
    assert first.note in told
    assert "You are in cell 4." in told


def test_a_skill_ends_with_its_episode(sandbox: Sandbox) -> None:
    trajectory = play(sandbox, Voice("Action: skill walk(50)"), Skilled)
    assert (trajectory.ending, trajectory.steps, len(trajectory.turns[0].steps)) == ("success", 3, 3)
    assert trajectory.turns[0].error is None


@pytest.mark.parametrize(
    ("call", "words", "steps"),
    [
        ("stumble()", "a stone", 1),
        ("walk()", "steps", 0),
        ("wolk(1)", "walk", 0),
        ("walk(1, 2, 3)", "argument", 0),
        ('walk("x")', "str", 0),
    ],
)
def test_a_skill_that_fails_says_how_and_its_steps_count(
    sandbox: Sandbox, call: str, words: str, steps: int
) -> None:
    voice = Voice(f"Action: skill {call}", "Action: right")
    trajectory = play(sandbox, voice, Skilled)
    turn = trajectory.turns[0]
    assert turn.error is not None
    assert words in turn.error
    assert len(turn.steps) == steps
    assert turn.error.splitlines()[0] in voice.asked[1][-1].content
    assert ("ouch" in turn.note) == (call == "stumble()")
    assert trajectory.success


def test_a_skill_that_says_nothing(sandbox: Sandbox) -> None:
    voice = Voice("Action: skill rest()", "Action: right")
    assert play(sandbox, voice, Skilled).turns[0].note == ""
    assert "rest took no step" in voice.asked[1][-1].content


def test_without_skills_a_call_finds_none(sandbox: Sandbox) -> None:
    sandbox.load("x = 1")
    voice = Voice("Action: skill walk(3)", "Action: walk(3)", "Action: right")
    trajectory = play(sandbox, voice)
    assert "missing" in str(trajectory.turns[0].error)
    assert trajectory.turns[1].steps[0].observation.startswith("walk(3) is no action")


def test_skills_that_do_not_load_are_done_without(sandbox: Sandbox) -> None:
    class Broken(Skilled):
        source = "raise ValueError('no')"

    log: list[str] = []
    trajectory = play(sandbox, Voice("Action: right"), Broken, log=log)
    assert trajectory.success
    assert "no skill could be loaded" in log[0]


def test_skills_know_nothing_of_the_episode_before(sandbox: Sandbox) -> None:
    class Counting(Skilled):
        source = "seen = []\ndef count(env):\n    seen.append(1)\n    return len(seen)\n"

    voice = Voice("Action: skill count()", "Action: skill count()", "Action: left")
    for _ in range(2):
        notes = [turn.note for turn in play(sandbox, voice, Counting).turns]
        assert notes[:2] == ["It returned 1", "It returned 2"]
        voice.asked.clear()
