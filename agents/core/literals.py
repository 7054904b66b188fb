"""FIXED: the arguments of a skill call, read from text that a model wrote. Nothing is ever evaluated."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

Json = Any
"""None, bool, int, float, str, list or dict with text keys, nested."""

DEEPEST = 20
LONGEST_NUMBER = 40  # characters

_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])", re.ASCII)
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]+")
_WORDS = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", "'": "'", '"': '"', "\n": "",
}  # fmt: skip
_CODES = {"x": 2, "u": 4, "U": 8}


class Malformed(ValueError):
    """What is wrong with the text, in words for the model that wrote it."""


class Arguments(NamedTuple):
    """The arguments of a call."""

    args: tuple[Json, ...]
    kwargs: dict[str, Json]
    end: int
    """Where the text goes on after the closing parenthesis."""


def read_arguments(text: str, start: int) -> Arguments:
    """Read `("ball", color="red")` from the opening parenthesis at `start` on.

    Literals are those that Python and JSON share, in either's spelling; a tuple becomes a list.

    Raises:
        Malformed: something else stands there.
    """
    reader = _Reader(text, start)
    reader.expect("(", "an opening parenthesis")
    args: list[Json] = []
    kwargs: dict[str, Json] = {}
    while not reader.take(")"):
        keyword = reader.keyword()
        value = reader.value(0)
        if keyword is None and kwargs:
            raise Malformed("an argument without a name follows one with a name")
        if keyword is None:
            args.append(value)
        elif keyword in kwargs:
            raise Malformed(f"the argument {keyword} is given twice")
        else:
            kwargs[keyword] = value
        if not reader.take(","):
            reader.expect(")", "a comma or a closing parenthesis")
            break
    return Arguments(tuple(args), kwargs, reader.place)


def write_arguments(args: Sequence[Json], kwargs: Mapping[str, Json]) -> str:
    """The text, with parentheses, that `read_arguments` reads back equal."""
    positional = [write_literal(value) for value in args]
    named = [f"{name}={write_literal(value)}" for name, value in kwargs.items()]
    return f"({', '.join([*positional, *named])})"


def write_literal(value: Json) -> str:
    """A literal in Python's spelling, with double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(write_literal, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{write_literal(k)}: {write_literal(v)}" for k, v in value.items()) + "}"
    return repr(value)


class _Reader:
    """Reads from left to right; `place` is where it stands."""

    def __init__(self, text: str, place: int) -> None:
        self.text = text
        self.place = place

    def skip_space(self) -> None:
        match = _SPACE.match(self.text, self.place)
        assert match is not None
        self.place = match.end()

    def take(self, sign: str) -> bool:
        self.skip_space()
        if self.text.startswith(sign, self.place):
            self.place += len(sign)
            return True
        return False

    def expect(self, sign: str, wanted: str) -> None:
        if not self.take(sign):
            self.refuse(wanted)

    def refuse(self, wanted: str) -> NoReturn:
        found = self.text[self.place : self.place + 30].split("\n", 1)[0]
        raise Malformed(f"expected {wanted}, found {f'`{found}`' if found else 'the end'}")

    def keyword(self) -> str | None:
        """The name of `name=`, or None where no such thing stands here."""
        self.skip_space()
        match = _NAME.match(self.text, self.place)
        if match is None:
            return None
        before, self.place = self.place, match.end()
        if self.take("=") and not self.text.startswith("=", self.place):
            return match[0]
        self.place = before
        return None

    def value(self, depth: int) -> Json:
        self.skip_space()
        if depth > DEEPEST:
            raise Malformed(f"values are nested more than {DEEPEST} deep")
        sign = self.text[self.place : self.place + 1]
        if sign and sign in "\"'":
            return self.string(sign)
        if sign and sign in "[(":
            return self.items("]" if sign == "[" else ")", depth)
        if sign == "{":
            return self.pairs(depth)
        if match := _NUMBER.match(self.text, self.place):
            self.place = match.end()
            return _number(match[0])
        if (match := _NAME.match(self.text, self.place)) and match[0] in _WORDS:
            self.place = match.end()
            return _WORDS[match[0]]
        self.refuse('a literal such as "red", 3, True, None, [1, 2] or {"a": 1}')

    def items(self, closing: str, depth: int) -> list[Json]:
        self.place += 1
        found: list[Json] = []
        while not self.take(closing):
            found.append(self.value(depth + 1))
            if not self.take(","):
                self.expect(closing, f"a comma or `{closing}`")
                break
        return found

    def pairs(self, depth: int) -> dict[str, Json]:
        self.place += 1
        found: dict[str, Json] = {}
        while not self.take("}"):
            self.skip_space()
            quote = self.text[self.place : self.place + 1]
            if not quote or quote not in "\"'":
                self.refuse("a quoted key")
            key = self.string(quote)
            self.expect(":", "a colon after the key")
            found[key] = self.value(depth + 1)
            if not self.take(","):
                self.expect("}", "a comma or `}`")
                break
        return found

    def string(self, quote: str) -> str:
        self.place += 1
        parts: list[str] = []
        while True:
            sign = self.text[self.place : self.place + 1]
            self.place += 1
            if not sign:
                raise Malformed(f"a text is not closed with {quote}")
            if sign == quote:
                break
            parts.append(self.escape() if sign == "\\" else sign)
        # Two escapes may be the halves of one character, as JSON writes those beyond 16 bits.
        return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def escape(self) -> str:
        sign = self.text[self.place : self.place + 1]
        self.place += 1
        if sign in _CODES:
            digits = self.text[self.place : self.place + _CODES[sign]]
            whole = len(digits) == _CODES[sign] and _HEXADECIMAL.fullmatch(digits)
            if not whole or int(digits, 16) > 0x10FFFF:
                raise Malformed(f"\\{sign} is not followed by the number of a character")
            self.place += len(digits)
            return chr(int(digits, 16))
        return _ESCAPES.get(sign, "\\" + sign)


def _number(text: str) -> int | float:
    if len(text) > LONGEST_NUMBER:
        raise Malformed(f"a number has more than {LONGEST_NUMBER} characters")
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    number = float(text)
    if not math.isfinite(number):
        raise Malformed(f"{text} is too large")
    return number
