"""FIXED: messages between host and worker: one JSON object a line, each with the nonce of its call.

The host sends `{"nonce", "seed", "do": "load", "source"}`, `{..., "do": "call", "name", "args", "kwargs",
"view"}` or `{..., "do": "run", "code", "data"}`. While a call is on, the worker may send `{"nonce", "step":
action}` any number of times and is answered `{"nonce", "view"}` or `{"nonce", "stop": reason}`; what a view
leaves out it asks for by `{"nonce", "look": name}` and is answered `{"nonce", "look": value}`. It ends the
call with `{"nonce", "end": {...}}`. Before each call the host sends `{"nonce", "do": "idle"}`, which a worker
that is done with the last one answers with `{"nonce", "idle": true}`. Nothing else is ever exchanged, and
nothing is pickled.
"""

import json
import math
from typing import Any

MESSAGE_CHARS = 2_000
"""Of an error's message, a trace, or an action, at most; what is longer is cut."""

DEEPEST = 100
"""Levels of lists and mappings in a value that a skill returns, so that whoever walks through it can."""

OVER = "over"
STEPS = "steps"
"""Why a call is stopped: its episode is over, or it has taken its steps."""


def encode(message: object) -> bytes:
    """A message as a line. Raises TypeError or ValueError on what JSON lacks, NaN among it."""
    return _encode(message).encode("utf-8", "replace") + b"\n"  # replaced: halves of surrogate pairs


def json_text(value: object) -> str:
    """The JSON text that `encode` would send for a value."""
    return _encode(value)


def decode(line: bytes) -> Any:
    """The value of a line. Raises ValueError on what is not strict JSON, or nested too deeply."""
    try:
        return _decode(line.decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None


def cut(text: str, chars: int = MESSAGE_CHARS) -> str:
    """A text of at most about `chars` characters that says where it was cut, all of it valid Unicode."""
    if len(text) > chars:
        text = f"{text[:chars]}… ({len(text) - chars} more characters)"
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def too_deep(value: object) -> bool:
    """Whether lists and mappings are nested more than DEEPEST levels."""
    level = [value]
    for _ in range(DEEPEST + 1):
        groups = [group for group in level if isinstance(group, list | tuple | dict)]
        if not groups:
            return False
        level = [item for group in groups for item in (group.values() if isinstance(group, dict) else group)]
    return True


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a finite number")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_decode = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse).decode
