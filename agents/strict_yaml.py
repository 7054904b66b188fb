"""FIXED: YAML read strictly into a schema: faults are named with their line, misspelt keys with a hint."""

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.errors import Problem
from harness.files import canonical_json, read_bytes

Model = TypeVar("Model", bound=BaseModel)
Place = tuple[str | int, ...]
"""Keys and list indices that lead to a value: ("phases", 0, "tasks")."""


class Document(NamedTuple):
    """A YAML file that holds a mapping."""

    path: Path
    value: dict[str, Any]
    lines: Mapping[Place, int]
    """Line of every key and list item, from 1."""

    def line(self, place: Place) -> int | None:
        """The line of a value, or of what it should stand in."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place)

    def problem(self, place: Place, reason: str, remedy: str | None = None) -> Problem:
        return Problem(reason, file=self.path, line=self.line(place), remedy=remedy)


class _Loader(yaml.SafeLoader):
    """Knows the types of JSON alone: what looks like a date is a text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":merge"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(path: Path) -> Document:
    """Read a file.

    Raises:
        Problem: with file and line: no YAML, no mapping, a repeated key, an anchor, or a value JSON lacks.
    """
    try:
        text = read_bytes(path, links=True).decode()
    except UnicodeDecodeError as error:
        raise Problem(f"no UTF-8 text: {error.reason}", file=path) from error
    try:
        for event in yaml.parse(text, _Loader):
            if isinstance(event, yaml.AliasEvent):  # might refer to itself
                line = text[: event.start_mark.index].count("\n") + 1 if event.start_mark else None
                raise Problem("refers to an anchor; write the value out", file=path, line=line)
        loader = _Loader(text)
        node = loader.get_single_node()
        lines: dict[Place, int] = {}
        value = None if node is None else _construct(loader, node, (), lines, path)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise Problem(f"no YAML: {reason}", file=path, line=mark.line + 1 if mark else None) from error
    if not isinstance(value, dict):
        raise Problem("holds no keys with values", file=path, line=1)
    return Document(path, value, lines)


def check(document: Document, model: type[Model]) -> Model:
    """The document's value in a schema.

    Raises:
        Problem: with file and line: all that is wrong, the first fault first.
    """
    try:
        return model.model_validate_json(canonical_json(document.value))
    except ValidationError as error:
        details = error.errors()
        places = [tuple(detail["loc"]) for detail in details]
        # What is wrong within a list makes pydantic call the list too short as well.
        faults = [
            _fault(document, model, detail)
            for detail, place in zip(details, places, strict=True)
            if not any(other[: len(place)] == place and len(other) > len(place) for other in places)
        ]
    faults.sort(key=lambda fault: fault.line or 0)
    first, *others = faults
    more = "".join(
        f"; line {other.line}: {other.reason}" if other.line else f"; {other.reason}" for other in others
    )
    raise Problem(first.reason + more, file=document.path, line=first.line, remedy=first.remedy)


def suggestion(word: str, known: list[str]) -> str:
    """A remedy for a misspelt word."""
    close = difflib.get_close_matches(word, known, 1)
    return f"did you mean {close[0]!r}?" if close else f"choose one of: {', '.join(known)}"


def _construct(loader: _Loader, node: yaml.Node, place: Place, lines: dict[Place, int], path: Path) -> Any:
    """The value of a node, noting the lines of what is in it."""
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*place, index)] = item.start_mark.line + 1
        return [
            _construct(loader, item, (*place, index), lines, path) for index, item in enumerate(node.value)
        ]
    if not isinstance(node, yaml.MappingNode):
        return _plain(_scalar(loader, node, path), path, node)
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _scalar(loader, key_node, path)
        line = key_node.start_mark.line + 1
        if not isinstance(key, str):
            raise Problem(f"the key {key!r} is not text", file=path, line=line)
        if key in found:
            raise Problem(f"the key {key!r} stands here a second time", file=path, line=line)
        lines[(*place, key)] = line
        found[key] = _construct(loader, value_node, (*place, key), lines, path)
    return found


def _scalar(loader: _Loader, node: yaml.Node, path: Path) -> Any:
    """The value of a node that holds no others; those that YAML only seems to read are refused."""
    try:
        value = loader.construct_object(node)
        repr(value)  # a whole number may be too long to be shown
    except (ValueError, LookupError, AttributeError, OverflowError):
        kind = node.tag.rpartition(":")[2]
        raise Problem(f"this cannot be read as {kind}", file=path, line=node.start_mark.line + 1) from None
    return value


def _plain(value: Any, path: Path, node: yaml.Node) -> Any:
    """The value, which JSON must have too."""
    try:
        canonical_json(value)
    except (TypeError, ValueError):
        raise Problem(
            f"{value!r:.40} is neither text nor a finite number", file=path, line=node.start_mark.line + 1
        ) from None
    return value


def _fault(document: Document, model: type[BaseModel], detail: ErrorDetails) -> Problem:
    """A pydantic error in words. Values are not repeated: a key might have been pasted into the file."""
    place = tuple(detail["loc"])
    name = ".".join(map(str, place))
    if detail["type"] == "missing":
        return document.problem(place, f"the key {name!r} is missing")
    if detail["type"] == "extra_forbidden":
        known = _keys(model, place[:-1])
        return document.problem(place, f"unknown key {name!r}", suggestion(str(place[-1]), known))
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    message = message.removeprefix("Tuple ").removeprefix("String ").removesuffix(" after validation, not 0")
    expected = "expected " if detail["msg"].startswith("Input should be ") else ""
    return document.problem(place, f"{name}: {expected}{message}")


def _keys(model: type[BaseModel], place: Place) -> list[str]:
    """The keys that the schema knows at a place."""
    annotation: Any = model
    for part in place:
        if isinstance(part, str):
            found = _model_in(annotation)
            annotation = found.model_fields[part].annotation if found and part in found.model_fields else None
    found = _model_in(annotation)
    return list(found.model_fields) if found else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The schema in an annotation such as `tuple[Phase, ...]` or `Phase | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    search: Callable[[Any], type[BaseModel] | None] = _model_in
    return next((found for part in get_args(annotation) if (found := search(part))), None)
