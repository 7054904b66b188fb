"""FIXED: the file of everything that a model answered, `evidence.jsonl.xz`.

It is one xz stream of JSON lines with sorted keys. The first line says what was evaluated and how, see
`llm.track.evidence_header`; then comes one line a puzzle, in order, with all its completions:

    {"completions":[{"finish":"stop","text":"...","tokens":37},
        {"answer_tokens":40,"finish":"stop","interrupted":8123,"text":"...","tokens":9000},...],"puzzle":0}

`tokens` counts all of a completion, the end token and the interruption included. `finish` is "length" where
it was cut off before its end. Where it was interrupted, `interrupted` is the number of characters before
`llm.completion.INTERRUPTION`, and `answer_tokens` the number of tokens after it.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.files import write_atomic
from harness.packed import pack_lines, unpack_lines
from llm.completion import INTERRUPTION, Completion, Limits

LONGEST_LINE = 2**24  # bytes; eight completions of 12,288 tokens take less than a quarter


def completion_row(completion: Completion, text: str, interrupted: int | None) -> dict[str, object]:
    """A completion as it stands in evidence; `text` and `interrupted` are what `completion_text` gives."""
    row: dict[str, object] = {
        "text": text,
        "tokens": len(completion.tokens),
        "finish": "stop" if completion.stopped else "length",
    }
    if completion.interrupted is not None:
        row |= {"interrupted": interrupted, "answer_tokens": sum(completion.sampled) - completion.interrupted}
    return row


def completion_fault(completion: object, limits: Limits) -> str | None:
    """Why `llm.completion.complete` cannot have written this completion, or None.

    It first draws what leaves room for the interruption and the answer. Only what has not ended there is
    interrupted, and then has, up to the answer, exactly the tokens that leave room for it.
    """
    if not isinstance(completion, dict):
        return "it is no object"
    text, tokens, finish = completion.get("text"), completion.get("tokens"), completion.get("finish")
    interrupted, answer = completion.get("interrupted"), completion.get("answer_tokens")
    keys = {"text", "tokens", "finish"}
    if completion.keys() not in (keys, keys | {"interrupted", "answer_tokens"}):
        return "it must have text, tokens and finish, and if interrupted also interrupted and answer_tokens"
    if not isinstance(text, str):
        return "text is no text"
    if type(tokens) is not int or not 1 <= tokens <= limits.max_tokens:
        return f"tokens is no number from 1 to {limits.max_tokens}"
    if finish not in ("stop", "length"):
        return "finish is neither 'stop' nor 'length'"
    room = limits.max_tokens - limits.answer_tokens
    if completion.keys() == keys:
        if finish == "length":
            return "it was cut off without having been interrupted"
        if tokens >= room:
            return f"{tokens} tokens without an interruption, which comes before {room}"
        return None
    if type(answer) is not int or not 1 <= answer <= limits.answer_tokens:
        return f"answer_tokens is no number from 1 to {limits.answer_tokens}"
    if tokens != room + answer:
        return f"{tokens} tokens, not the {room} up to the interruption's end and {answer} after it"
    if finish == "length" and answer != limits.answer_tokens:
        return f"it was cut off after {answer} answer_tokens, not after {limits.answer_tokens}"
    if type(interrupted) is not int or not 0 <= interrupted <= len(text):
        return "interrupted is no position in the text"
    if not text.startswith(INTERRUPTION, interrupted):
        return "the interruption is not where interrupted says"
    return None


def write_evidence(path: Path, header: Mapping[str, object], rows: Iterable[Mapping[str, object]]) -> None:
    """Write the header and a line for each of `rows`, whole or not at all."""
    write_atomic(path, pack_lines([header, *rows]))


def read_evidence(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number from 1, object) for every line.

    Raises:
        Problem: it cannot be read, is not one whole xz stream, is too large, or a line is no strict JSON.
    """
    return unpack_lines(path, LONGEST_LINE)
