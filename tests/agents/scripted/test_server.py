"""The scripted server over HTTP: the same answer to the same request, refusals of what it does not know."""

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from chat_servers import model

from agents.llm.chat_app import background
from agents.llm.messages import Message
from agents.llm.reply import Usage
from agents.scripted.server import scripted_app, tokens_of
from harness.errors import Problem
from harness.track import ROOT

SYSTEM = "You play BabyAI.\n\n[kind: wake; benchmark: babyai]"
FIRST = (
    "Goal: pick up the red ball\n\nObservation: You face north and carry nothing.\n"
    "Forward: 0 free, then a red ball. Left: 3 free, then out of view. Right: 2 free, then a wall.\n"
    "Objects in view: red ball 1 forward; blue key 3 forward 2 left.\n\nActions: turn left; pick up"
)
TURN = [Message("system", SYSTEM), Message("user", FIRST)]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with background(scripted_app("demo")) as address:
        yield address


def test_an_answer_is_counted(url: str) -> None:
    with model(url, name="scripted") as asked:
        reply = asked.ask(TURN, label="wake/0")
    assert re.fullmatch(r"Thought: .+\nAction: [a-z ]+", reply.text)
    prompt = tokens_of(SYSTEM) + tokens_of(FIRST) + 8
    assert reply.usage == Usage(prompt, tokens_of(reply.text), None, 0)


def test_the_same_request_gets_the_same_answer(url: str) -> None:
    for seed in (None, 3):
        with model(url, name="scripted", seed=seed) as asked:
            first = [asked.ask(TURN, label=f"wake/{place}").text for place in range(12)]
            again = [asked.ask(TURN, label=f"wake/{place}").text for place in range(12)]
        assert first == again
        assert len(set(first)) > 1 if seed else len(set(first)) == 1
        assert seed is None or "Thought: Something will turn up.\nAction: pick up" in first


def test_a_skill_is_called_unless_it_is_forgotten(url: str) -> None:
    offered = SYSTEM.replace("\n\n[", '\n\nskill pick_up(kind, color=None)\n    """Picks up."""\n\n[')
    with model(url, name="scripted", seed=1) as asked:
        texts = [
            asked.ask([Message("system", offered), TURN[1]], label=f"wake/{place}").text
            for place in range(40)
        ]
    called = sum("Action: skill pick_up('ball', 'red')" in text for text in texts)
    assert 28 <= called < 40


def test_answers_are_cut_at_their_tokens(url: str) -> None:
    with model(url, name="scripted") as asked:
        reply = asked.ask(TURN, label="wake/0", max_tokens=2)
    assert reply.finish == "length" and reply.text == "Thought:" and reply.usage.completion == 2


def test_what_it_does_not_know_is_refused(url: str) -> None:
    with model(url, name="gpt-5-mini") as asked, pytest.raises(Problem, match="it has scripted"):
        asked.ask(TURN, label="wake/0")
    with model(url, name="scripted") as asked:
        with pytest.raises(Problem, match=r"ends in no line `\[kind"):
            asked.ask(TURN[1:], label="wake/0")
        dreaming = [Message("system", "[kind: sleep.dream; benchmark: babyai]"), TURN[1]]
        with pytest.raises(Problem, match=r"knows no prompts of the kind 'sleep.dream'"):
            asked.ask(dreaming, label="wake/0")


@pytest.mark.parametrize("script", ["demo", "chaos"])
def test_the_command_starts_it(script: str) -> None:
    command = [sys.executable, "-m", "agents.scripted.server", "--port", "0", "--script", script]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/v1", line)
        try:
            assert found is not None and f"The script {script} at " in line
            with model(found[0], name="scripted", retries=3) as asked:
                assert asked.ask(TURN, label="wake/1").finish in (
                    "stop",
                    "length",
                    "refusal",
                    "content_filter",
                )
        finally:
            process.terminate()
            process.wait(10)
