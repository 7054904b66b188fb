"""FIXED: what a model's answers hold when it sleeps: JSON, programs and texts between tags, read strictly."""

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agents.core.actions import spoken
from agents.llm.reply import Reply
from agents.prompts.prompts import say

Model = TypeVar("Model", bound=BaseModel)
Value = TypeVar("Value")

_FENCE = re.compile(r"[ \t]*+(`{3,}+|~{3,}+)[ \t]*+([\w+-]*+)")


class Unusable(ValueError):
    """Why an answer cannot be used, in words for the model that wrote it."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def read_answer(reply: Reply, read: Callable[[str], Value]) -> Value:
    """What `read` makes of the words of a reply, which are without the model's thoughts.

    Raises:
        Unusable: `read` did, or the reply is a refusal or empty; what was cut off is read as far as it goes.
    """
    withheld = say("withheld", finish=reply.finish)
    text = spoken(reply.text)
    if not text or (withheld and reply.finish != "length"):
        raise Unusable(withheld or say("empty"))
    try:
        return read(text)
    except Unusable as fault:
        if withheld:
            raise Unusable(*fault.faults, withheld) from fault
        raise


def blocks(text: str, *languages: str) -> list[str]:
    """The contents of the fenced blocks of any of these languages, in order; "" = blocks that name none."""
    lines = text.replace("\r\n", "\n").split("\n")
    fences = [(number, match) for number, line in enumerate(lines) if (match := _FENCE.match(line))]
    closing: dict[str, list[int]] = {}  # mark -> lines that close what it opens, the next of them at the end
    for number, match in reversed(fences):
        if lines[number].strip(" \t") == match[1]:
            closing.setdefault(match[1], []).append(number)
    found, end = [], -1
    for number, match in fences:
        if number <= end:
            continue
        ends = closing.get(match[1], [])
        while ends and ends[-1] <= number:
            ends.pop()
        if ends:
            end = ends[-1]
            if match[2].lower() in languages:
                found.append("".join(f"{line}\n" for line in lines[number + 1 : end]))
    return found


def read_json(text: str, model: type[Model]) -> Model:
    """The last JSON block of an answer, or else the whole answer, checked against a schema.

    Raises:
        Unusable: there is none, it is no JSON, or it does not fit.
    """
    found = blocks(text, "json") or blocks(text, "")
    content = (found[-1] if found else text).strip()
    if not found and not content.startswith("{"):
        raise Unusable(say("no_block", language="json"))
    try:
        value: Any = json.loads(content, strict=False)  # so that strings may hold line breaks
    except json.JSONDecodeError as error:
        place = {"line": error.lineno, "column": error.colno}
        raise Unusable(say("no_json", fault=error.msg, **place)) from error
    except (ValueError, RecursionError) as error:
        raise Unusable(say("bad_json")) from error
    if not isinstance(value, dict):
        raise Unusable(say("no_object"))
    try:
        return model.model_validate(value)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()[:5]]
        raise Unusable(*faults) from error


def between(text: str, tag: str) -> str:
    """What stands between the last `<tag>` and the `</tag>` after it.

    Raises:
        Unusable: there is no such thing, or it is empty.
    """
    opens = [match.end() for match in re.finditer(f"<{tag}>", text, re.IGNORECASE)]
    closes = [match.start() for match in re.finditer(f"</{tag}>", text, re.IGNORECASE)]
    start = max((place for place in opens if closes and place <= closes[-1]), default=None)
    if start is None:
        raise Unusable(say("no_tag", tag=tag))
    found = text[start : min(place for place in closes if place >= start)].strip()
    if not found:
        raise Unusable(say("empty_tag", tag=tag))
    return found
