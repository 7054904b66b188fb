"""FIXED: an endpoint's answer, read with care: servers differ in what they leave out."""

import json
from dataclasses import dataclass
from typing import Any

from agents.llm.reply import Usage


class Malformed(Exception):
    """The bytes hold no answer; str() says why."""


@dataclass(frozen=True)
class Answer:
    """What a server said."""

    text: str
    thinking: str
    refusal: str
    finish: str
    usage: Usage
    model: str


def read_answer(body: bytes) -> Answer:
    """Read the body of a chat completion.

    Raises:
        Malformed: it is no JSON, tells of an error, or holds no message.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise Malformed("the answer is not JSON") from None
    if not isinstance(value, dict):
        raise Malformed("the answer is not a JSON object")
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        error = value.get("error")
        said = error.get("message") if isinstance(error, dict) else error
        raise Malformed(f"the server says: {clean(said)}" if said else "the answer holds no choice")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise Malformed("the answer holds no message")
    text, thought = _split(_content(message.get("content")))
    thinking = clean(message.get("reasoning") or message.get("reasoning_content")) or thought
    refusal = clean(message.get("refusal"))
    finish = "refusal" if refusal else clean(choices[0].get("finish_reason")) or "unknown"
    return Answer(text, thinking, refusal, finish, _usage(value.get("usage")), clean(value.get("model")))


def clean(value: object) -> str:
    """The value as text that UTF-8 can hold; "" unless it is text."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _content(value: object) -> str:
    """The text of a message, which some servers give in parts."""
    if isinstance(value, list):
        return "".join(clean(part.get("text")) for part in value if isinstance(part, dict))
    return clean(value)


def _split(text: str) -> tuple[str, str]:
    """(answer, thinking) of a text in which a server left its model's thinking."""
    head, closed, tail = text.partition("</think>")
    if closed:
        return tail.lstrip(), head.strip().removeprefix("<think>").strip()
    if text.lstrip().startswith("<think>"):  # cut off while it thought
        return "", text.lstrip().removeprefix("<think>").strip()
    return text, ""


def _usage(value: object) -> Usage:
    if not isinstance(value, dict):
        return Usage()
    prompt, completion = _count(value.get("prompt_tokens")), _count(value.get("completion_tokens"))
    total = _count(value.get("total_tokens"))
    if prompt is not None and total is not None:
        # Gemini leaves thinking out of completion_tokens but bills it, and has it in the total.
        completion = max(completion or 0, total - prompt)
    return Usage(
        prompt,
        completion,
        _count(_part(value.get("completion_tokens_details"), "reasoning_tokens")),
        _count(_part(value.get("prompt_tokens_details"), "cached_tokens")),
    )


def _part(value: Any, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
