"""FIXED: the file of everything that a model answered, `evidence.jsonl.xz`.

It is one xz stream of JSON lines with sorted keys. The first line says what was evaluated and how, see
`llm.track.evidence_header`; then comes one line a puzzle, in order, with all its completions:

    {"completions":[{"finish":"stop","text":"...","tokens":37},
        {"answer_tokens":40,"finish":"stop","interrupted":8123,"text":"...","tokens":9000},...],"puzzle":0}

`tokens` counts all of a completion, the end token and the interruption included. `finish` is "length" where
it was cut off before its end. Where it was interrupted, `interrupted` is the number of characters before
`llm.completion.INTERRUPTION`, and `answer_tokens` the number of tokens after it.

`checkpoint.json` stands for the checkpoint, see `llm.checkpoint`.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from harness.errors import Problem
from harness.files import STRICT, read_json, read_model, sha256_file, write_atomic
from harness.manifest import Sha256
from harness.packed import pack_lines, unpack_lines
from llm.completion import INTERRUPTION, Completion, Limits

LONGEST_LINE = 2**24  # bytes; eight completions of 12,288 tokens take less than a quarter
LONGEST_TOKEN = 256  # bytes; more than any token of the models from the hub has
WEIGHTS, TOKENIZER = ".safetensors", "tokenizer.json"


class Index(BaseModel):
    """The files of a checkpoint, which lie in one folder."""

    model_config = STRICT

    files: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")], Sha256]


def check_index(path: Path, start: Path | None) -> None:
    """Refuse an index without weights, or with those of the model in the folder `start`, which are untrained.

    Raises:
        Problem: so it is, or it is no index.
    """
    files = read_model(path, Index).files
    weights = {name: digest for name, digest in files.items() if name.endswith(WEIGHTS)}
    if not weights:
        raise Problem(f"names no weights, expected a file *{WEIGHTS}", file=path)
    untrained = {sha256_file(file, links=True) for file in start.glob(f"*{WEIGHTS}")} if start else set()
    for name, digest in weights.items():
        if digest in untrained:
            raise Problem(f"{name} is the file that training began with", file=path)


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
        return "it is not an object"
    text, tokens, finish = completion.get("text"), completion.get("tokens"), completion.get("finish")
    interrupted, answer = completion.get("interrupted"), completion.get("answer_tokens")
    keys = {"text", "tokens", "finish"}
    if completion.keys() not in (keys, keys | {"interrupted", "answer_tokens"}):
        return "it must have text, tokens and finish, and if interrupted also interrupted and answer_tokens"
    if not isinstance(text, str):
        return "text is not text"
    if type(tokens) is not int or not 1 <= tokens <= limits.max_tokens:
        return f"tokens is not a number from 1 to {limits.max_tokens}"
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
        return f"answer_tokens is not a number from 1 to {limits.answer_tokens}"
    if tokens != room + answer:
        return f"{tokens} tokens, not the {room} up to the interruption's end and {answer} after it"
    if finish == "length" and answer != limits.answer_tokens:
        return f"it was cut off after {answer} answer_tokens, not after {limits.answer_tokens}"
    if type(interrupted) is not int or not 0 <= interrupted <= len(text):
        return "interrupted is not a position in the text"
    if not text.startswith(INTERRUPTION, interrupted):
        return "the interruption is not where interrupted says"
    return None


def text_fault(completion: Mapping[str, Any], words: frozenset[str] | None) -> str | None:
    """Why a model with these tokens cannot have written a completion's text in its tokens, or None.

    `words` are the texts of its tokens, of which each but a few is one character; None = of any model. More
    tokens than a text needs are no fault: some are not shown, and a word can be spelled.
    """
    text, ended = completion["text"], completion["finish"] == "stop"
    if words is None:
        fewest = -(-len(text.encode(errors="replace")) // LONGEST_TOKEN)
    else:
        for word in words:
            text = text.replace(word, "\0") if len(word) > 1 else text
        if strange := set(text) - words - {"\0"}:
            return f"its text holds {min(strange)!r}, which the model cannot write"
        fewest = len(text)
    if completion["tokens"] < fewest + ended:
        return f"{completion['tokens']} tokens cannot be its text, which takes at least {fewest + ended}"
    return None


@cache
def words_of(folder: Path) -> frozenset[str]:
    """The texts of the tokens of the tokenizer in a folder, which knows whole words alone."""
    return frozenset(read_json(folder / TOKENIZER)["model"]["vocab"])


def write_evidence(path: Path, header: Mapping[str, object], rows: Iterable[Mapping[str, object]]) -> None:
    """Write the header and a line for each of `rows`, whole or not at all."""
    write_atomic(path, pack_lines([header, *rows]))


def read_evidence(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number from 1, object) for every line.

    Raises:
        Problem: it cannot be read, is not one whole xz stream, is too large, or a line is no strict JSON.
    """
    return unpack_lines(path, LONGEST_LINE)
