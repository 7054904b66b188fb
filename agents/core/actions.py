"""FIXED: what a model's answer does: the grammar of `Action:` lines.

An answer is free text with one line of its own for what to do:

    Thought: the ball is two steps ahead.
    Action: go forward

or, to call a function of the skills,

    Action: skill go_to(kind="ball", color="red")

Arguments are literals, and the call may go on over several lines. Marks of Markdown around the line, another
case, a number ("Action 3:"), and the action on the line below are all understood. The first such line counts:
what follows it, a model often only imagines. What stands between <think> and </think> is no part of it.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from agents.core.literals import Json, Malformed, read_arguments, write_arguments

LONGEST_ACTION = 300  # characters of a primitive action

_MARKS = r"[ \t>*_#`-]*"
_ACTION = re.compile(rf"^{_MARKS}action(?:[ \t]*\d+)?[*_`]*[ \t]*:[*_`]*", re.IGNORECASE | re.MULTILINE)
_THOUGHT = re.compile(rf"^{_MARKS}thoughts?[*_`]*[ \t]*:[*_`]*", re.IGNORECASE)
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_SKILL = re.compile(rf"{_MARKS}skills?(?:[ \t]*:[ \t]*|[ \t]+)(?:skills\.)?({_NAME})[ \t]*", re.IGNORECASE)
_CALL = re.compile(rf"{_MARKS}({_NAME})[ \t]*(?=\()")
_AFTER_CALL = re.compile(r"[ \t]*+[;.,`*_]*+[ \t]*+(?:#.*)?$", re.MULTILINE)
_QUOTES = (("'", "'"), ('"', '"'), ("“", "”"), ("__", "__"), ("<", ">"), ("[", "]"))


class Primitive(NamedTuple):
    """An action of the environment."""

    thought: str
    text: str
    ignored: int
    """Further action lines of the answer, which count for nothing."""


class SkillCall(NamedTuple):
    """A call of a function of the skills, whether or not there is one of that name."""

    thought: str
    name: str
    args: tuple[Json, ...]
    kwargs: Mapping[str, Json]
    ignored: int

    @property
    def text(self) -> str:
        """The call in its one form."""
        return format_call(self.name, self.args, self.kwargs)


class Unparsed(NamedTuple):
    """An answer that says nothing to do."""

    thought: str
    reason: str
    """For the model that wrote it."""


Action = Primitive | SkillCall | Unparsed


def format_call(name: str, args: Sequence[Json], kwargs: Mapping[str, Json]) -> str:
    """`skill go_to("ball", color="red")`; behind `Action: ` it is read back as the same call."""
    return f"skill {name}{write_arguments(args, kwargs)}"


def parse_action(answer: str, skills: Collection[str] = ()) -> Action:
    """What an answer does; never raises. A call without the word `skill` must name one of `skills`."""
    answer = spoken(answer)
    found = list(_ACTION.finditer(answer))
    if not found:
        return Unparsed(_thought(answer), "no line begins with `Action:`")
    thought = _thought(answer[: found[0].start()])
    start = _content(answer, found[0].end())
    ignored = len(found) - 1
    call = _SKILL.match(answer, start)
    if call is None:
        named = _CALL.match(answer, start)
        call = named if named is not None and named[1] in skills else None
    if call is not None:
        return _read_call(answer, call[1], call.end(), thought, ignored)
    text = answer[start:].split("\n", 1)[0].strip()
    if len(text) <= 10 * LONGEST_ACTION:  # peeling a longer one would take long, and it is none
        text = _bare(text)
    if not text:
        return Unparsed(thought, "nothing stands behind `Action:`")
    if len(text) > LONGEST_ACTION:
        return Unparsed(thought, f"the action has more than {LONGEST_ACTION} characters")
    return Primitive(thought, text, ignored)


def spoken(answer: str) -> str:
    """An answer without what a reasoning model thought aloud, and without halves of characters."""
    answer = answer.encode("utf-8", "replace").decode()
    before, mark, after = answer.rpartition("</think>")
    if mark:
        return after.strip()
    before, mark, _ = answer.partition("<think>")  # cut off while it thought
    return (before if mark else answer).strip()


def _read_call(answer: str, name: str, place: int, thought: str, ignored: int) -> Action:
    if not answer.startswith("(", place):
        if _AFTER_CALL.match(answer, place):
            return SkillCall(thought, name, (), {}, ignored)
        return Unparsed(thought, f"`skill {name}` is not followed by arguments in parentheses")
    try:
        args, kwargs, end = read_arguments(answer, place)
    except Malformed as error:
        return Unparsed(thought, f"the arguments of {name}: {error}")
    if not _AFTER_CALL.match(answer, end):
        return Unparsed(thought, f"something follows the call of {name}: an action is one call")
    return SkillCall(thought, name, args, kwargs, ignored)


def _thought(text: str) -> str:
    return _THOUGHT.sub("", text.strip(), count=1).strip()


def _content(answer: str, start: int) -> int:
    """Where the first line begins, from `start` on, that holds more than marks."""
    while start < len(answer):
        end = answer.find("\n", start)
        line = answer[start:] if end < 0 else answer[start:end]
        if not line.strip().startswith("```") and line.strip(" \t\r*_`>"):
            return start
        start += len(line) + 1
    return len(answer)


def _bare(line: str) -> str:
    """A line without the marks around it and the full stop behind it."""
    text = line.strip()
    while True:
        before = text
        text = text.strip("*`").strip()
        for opening, closing in _QUOTES:
            if text.startswith(opening) and text.endswith(closing) and len(text) > 2 * len(opening):
                text = text[len(opening) : -len(closing)].strip()
        text = text.removesuffix(".").strip()
        if text == before:
            return text
