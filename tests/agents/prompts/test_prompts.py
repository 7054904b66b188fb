"""Prompts: every template explains its values, says its kind, and is known by its hash."""

import ast
import hashlib
import re

import pytest
from jinja2 import Environment, TemplateNotFound, UndefinedError, meta

from agents.memory.trajectory import Taken
from agents.prompts.prompts import FOLDER, prompt_hashes, render, say

NAMES = sorted(path.stem for path in FOLDER.glob("*.md"))
COMMON = {"benchmark": "babyai", "title": "BabyAI", "rules": "RULES"}


@pytest.mark.parametrize("name", NAMES)
def test_every_value_of_a_prompt_is_explained(name: str) -> None:
    source = (FOLDER / f"{name}.md").read_text()
    comment = source[: source.index("#}")]
    assert source.startswith("{#\n")
    for value in meta.find_undeclared_variables(Environment().parse(source)):
        assert re.search(rf"\b{value}\b", comment), value


def test_hashes_are_those_of_the_files() -> None:
    hashes = prompt_hashes()
    assert sorted(hashes) == NAMES
    for name, digest in hashes.items():
        assert hashlib.sha256((FOLDER / f"{name}.md").read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("system")])
def test_every_system_message_says_its_kind_in_the_last_line(name: str) -> None:
    last = (FOLDER / f"{name}.md").read_text().splitlines()[-1]
    assert re.fullmatch(r"\[kind: [\w.{} ]+; benchmark: \{\{ benchmark \}\}\]", last)


def test_the_wake_prompt_tells_of_skills_only_where_there_are_some() -> None:
    with_skills = render("system", **COMMON, memory="MEMORY", skills=True, turn_limit=9)
    without = render("system", **COMMON, memory="", skills=False, turn_limit=9)
    assert "Action: skill name(" in with_skills
    assert "MEMORY\n\n[kind: wake; benchmark: babyai]" in with_skills
    assert "skill" not in without
    assert "\n\n\n" not in without + with_skills


def test_what_a_turn_led_to() -> None:
    told = render(
        "wake_next",
        skill="go",
        steps=[Taken("go forward", "x", 0.0)] * 22,
        note="It returned 3.",
        observation="a wall",
        actions=["turn left"],
        steps_left=9,
        turns_left=30,
    )
    assert told == (
        "go took 22 steps: " + "; ".join(["go forward"] * 20) + "; and 2 more\n"
        "It returned 3.\nObservation: a wall\nActions: turn left\n30 answers and 9 steps are left."
    )
    plain = render(
        "wake_next", skill=None, steps=[], note="", observation="a", actions=[], steps_left=99, turns_left=9
    )
    assert plain == "Observation: a"


def test_values_are_text_and_no_template() -> None:
    assert render("guide", guide="{{ 1 + 1 }} <b> {% if %}").endswith("{{ 1 + 1 }} <b> {% if %}")


def test_a_missing_value_or_prompt_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="guide"):
        render("guide")
    with pytest.raises(TemplateNotFound):
        render("nothing")


def test_phrases() -> None:
    assert say("no_answer") == "(no answer)"
    assert say("withheld", finish="stop") == ""
    assert say("withheld", finish="content_filter") == "the server withheld it"
    assert say("no_tag", tag="guide") == "there is no <guide>...</guide> in it"
    assert say("unknown_function", names=[]) == "there is no such function; there are none"


def test_the_code_says_the_phrases_there_are_with_the_values_they_take() -> None:
    source = (FOLDER / "phrases.md").read_text()
    found = re.findall(r"\{% macro (\w+)\((.*?)\) %\}", source)
    phrases = {name: set(filter(None, values.split(", "))) for name, values in found}
    said: set[str] = set()
    for path in FOLDER.parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say":
                assert isinstance(node.args[0], ast.Constant)
                name = str(node.args[0].value)
                said.add(name)
                values = {keyword.arg for keyword in node.keywords}
                assert None in values or values == phrases[name], name
    assert said == phrases.keys()


def test_the_note_after_a_skill() -> None:
    assert render("skill_note", value="3", output="a\nb", error="") == "It returned 3\nIt printed: a\nb"
    assert render("skill_note", value="", output="b", error="crash") == "It printed: b\nIt failed: crash"
    assert render("skill_note", value="", output="", error="") == ""
