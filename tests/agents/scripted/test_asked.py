"""Prompts are recognised by their own marks, and chance follows from the request alone."""

import re
from typing import Any

import pytest

from agents.llm.chat_app import ChatRequest, Refused
from agents.llm.messages import Message
from agents.methods import METHODS
from agents.prompts.prompts import FOLDER
from agents.scripted.asked import read_asked, section
from agents.scripted.demo import ANSWERS

SYSTEM = "You play.\n\n[kind: wake; benchmark: babyai]"


def request(*messages: tuple[Any, str], seed: int | None = None) -> ChatRequest:
    return ChatRequest("scripted", tuple(Message(*one) for one in messages), None, 1.0, 1.0, seed, {})


def test_a_prompt_of_ours() -> None:
    asked = read_asked(request(("system", SYSTEM), ("user", "one"), ("assistant", "two"), ("user", "three")))
    assert (asked.kind, asked.benchmark) == ("wake", "babyai")
    assert (asked.first, asked.last, asked.answers) == ("one", "three", ["two"])


@pytest.mark.parametrize(
    "messages",
    [
        [("user", SYSTEM)],
        [("system", SYSTEM)],
        [("system", "You play."), ("user", "one")],
        [("system", f"{SYSTEM}\nAnd more."), ("user", "one")],
        [("system", SYSTEM), ("user", "one"), ("assistant", "two")],
    ],
)
def test_other_prompts_are_refused(messages: list[tuple[Any, str]]) -> None:
    with pytest.raises(Refused):
        read_asked(request(*messages))


def test_every_kind_of_prompt_that_there_is_has_an_answer() -> None:
    kinds = set()
    for path in FOLDER.glob("*.md"):
        for kind in re.findall(r"^\[kind: (.*?);", path.read_text(), re.MULTILINE):
            runners = [name for name in METHODS if name.startswith("speedrunner")]
            kinds |= {kind.replace("{{ method }}", name) for name in runners}
    assert kinds == set(ANSWERS)


def test_chance_follows_from_the_request() -> None:
    def drawn(content: str, seed: int | None) -> float:
        return read_asked(request(("system", SYSTEM), ("user", content), seed=seed)).chance().random()

    assert drawn("a", None) == drawn("a", None)
    assert len({drawn("a", None), drawn("a", 1), drawn("a", 2), drawn("b", None)}) == 4
    asked = read_asked(request(("system", SYSTEM), ("user", "a")))
    other = read_asked(request(("system", SYSTEM), ("user", "b")))
    assert asked.chance("episode", 3).random() == other.chance("episode", 3).random()


def test_sections() -> None:
    text = "## A\n\none\n## B\ntwo\n### C\nthree\n"
    assert section(text, "A") == "one"
    assert section(text, "B") == "two\n### C\nthree"
    assert section(text, "C") == ""
