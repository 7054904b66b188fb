"""Text of JSON taken apart so that one place of it can be made hostile, even in ways that are no JSON.

Objects are lists of pairs, so that keys may come twice, and every scalar is the text that stands for it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks.fuzzing.texts import hostile_value, other_number, other_text


@dataclass
class Scalar:
    """A number, text, truth value or null, or anything else, as written."""

    text: str


@dataclass
class Object:
    """Keys, as written with their quotes, and values."""

    pairs: list[tuple[str, Any]]


@dataclass(frozen=True)
class Style:
    """How a file of ours writes JSON."""

    indent: int | None = None
    comma: str = ", "
    colon: str = ": "


COMPACT = Style(comma=",", colon=":")
PLAIN = Style()
INDENTED = Style(indent=2, comma=",", colon=": ")


def parse(text: str) -> Any:
    """Objects, lists and scalars of strict JSON; ValueError or RecursionError where it is none.

    Numbers keep their spelling; texts are written with as few escapes as there can be.
    """
    return _take(
        json.loads(
            text,
            object_pairs_hook=lambda pairs: Object([(_quoted(key), value) for key, value in pairs]),
            parse_int=Scalar,
            parse_float=Scalar,
            parse_constant=Scalar,
        )
    )


def write(tree: Any, style: Style, depth: int = 0) -> str:
    """The text of a tree."""
    if isinstance(tree, Scalar):
        return tree.text
    if isinstance(tree, Object):
        parts = [f"{key}{style.colon}{write(value, style, depth + 1)}" for key, value in tree.pairs]
        opening, closing = "{", "}"
    else:
        parts = [write(value, style, depth + 1) for value in tree]
        opening, closing = "[", "]"
    if style.indent is None or not parts:
        return f"{opening}{style.comma.join(parts)}{closing}"
    line = "\n" + " " * style.indent * (depth + 1)
    return f"{opening}{line}{f',{line}'.join(parts)}{line[: -style.indent]}{closing}"


def mutate(tree: Any, random: Random) -> Any:
    """The tree with one or two places changed."""
    for _ in range(random.choice((1, 1, 1, 2))):
        holders = list(_holders(tree))
        if not holders:
            return Scalar(hostile_value(random))
        _change(random.choice(holders), random, tree)
    return tree


def _change(holder: "Object | list[Any]", random: Random, root: Any) -> None:
    """Change one member of an object or list in place."""
    if isinstance(holder, Object):
        place = random.randrange(len(holder.pairs))
        key, value = holder.pairs[place]
        kind = random.randrange(10)
        if kind == 0:
            del holder.pairs[place]
        elif kind == 1:
            holder.pairs.insert(random.randint(0, len(holder.pairs)), (key, _other(value, random)))
        elif kind == 2:
            holder.pairs.insert(place, (_key(key, random), value))
        elif kind == 3:
            holder.pairs[place] = (_key(key, random), value)
        elif kind == 4:
            random.shuffle(holder.pairs)
        elif kind == 5:
            other = random.randrange(len(holder.pairs))
            (a, one), (b, two) = holder.pairs[place], holder.pairs[other]
            holder.pairs[place], holder.pairs[other] = (a, two), (b, one)
        else:
            holder.pairs[place] = (key, _other(value, random))
        return
    place = random.randrange(len(holder))
    kind = random.randrange(7)
    if kind == 0:
        del holder[place]
    elif kind == 1:
        holder.insert(random.randint(0, len(holder)), holder[place])
    elif kind == 2:
        random.shuffle(holder)
    elif kind == 3:
        holder.append(Scalar(hostile_value(random)))
    else:
        holder[place] = _other(holder[place], random)


def _other(value: Any, random: Random) -> Any:
    """Another value in the place of one."""
    if random.randrange(3) == 0:
        return Scalar(hostile_value(random))
    if isinstance(value, Object):
        return random.choice(([value], Scalar("null"), Object([]), [], Object([('"a"', value)])))
    if isinstance(value, list):
        return random.choice(([*value, *value], [value], Scalar("null"), [], value[:-1]))
    if value.text.startswith('"'):
        changed = json.dumps(other_text(json.loads(value.text), random), ensure_ascii=False)
        return random.choice((Scalar(changed), Scalar(changed), Scalar(changed), [value]))
    if value.text in ("true", "false", "null"):
        return Scalar(random.choice(("true", "false", "null", "0", "1", '""', '"true"', "[]")))
    return Scalar(other_number(value.text, random))


def _key(key: str, random: Random) -> str:
    """A key that is nearly another, or unheard of."""
    unknown = ("", "__proto__", "__class__", "x", "\x00", "\ud800", "k" * 5000, "a.b", "source", "files")
    text = random.choice((other_text(json.loads(key), random), random.choice(unknown)))
    return json.dumps(text)


def _holders(tree: Any) -> Iterator["Object | list[Any]"]:
    """Every object and list with something in it."""
    if isinstance(tree, Object):
        if tree.pairs:
            yield tree
        for _, value in tree.pairs:
            yield from _holders(value)
    elif isinstance(tree, list):
        if tree:
            yield tree
        for value in tree:
            yield from _holders(value)


def _take(value: Any) -> Any:
    """What json.loads gives, with scalars for texts, truth values and null."""
    if isinstance(value, Object):
        return Object([(key, _take(inner)) for key, inner in value.pairs])
    if isinstance(value, list):
        return [_take(inner) for inner in value]
    if isinstance(value, Scalar):
        return value
    return Scalar(_quoted(value) if isinstance(value, str) else json.dumps(value))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
