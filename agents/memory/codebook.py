"""OPEN: a codebook: functions that a model adds, replaces and deletes, each edit with its reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.memory.functions import Function, NoFunction, module_source, read_functions
from agents.memory.versions import Version, diff_texts
from agents.prompts.prompts import say


class Edit(BaseModel):
    """One change, as a model writes it in JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    op: Literal["add", "replace", "delete"]
    name: str
    reason: str = Field(min_length=1)
    source: str | list[str] | None = None
    """Of the whole function, as one text or as its lines; none where it is deleted."""

    @property
    def text(self) -> str:
        return "\n".join(self.source) if isinstance(self.source, list) else self.source or ""


@dataclass(frozen=True)
class Draft:
    """A codebook as edits would leave it."""

    functions: Mapping[str, Function]
    faults: tuple[str, ...]
    """Why the edits cannot be made, in words for the model that wrote them; none = they can."""

    @property
    def source(self) -> str:
        return module_source(self.functions.values())


class Codebook:
    """Functions by name, in the order in which they came."""

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}
        self.versions: list[Version] = []

    def draft(self, edits: Sequence[Edit], most: int, longest: int) -> Draft:
        """What the edits lead to; `most` functions besides helpers may be, each of `longest` characters."""
        functions = dict(self.functions)
        faults = []
        for number, edit in enumerate(edits, 1):
            fault = _apply(functions, edit, longest)
            if fault:
                faults.append(say("faulty_edit", number=number, edit=edit, fault=fault))
        count = sum(function.public for function in functions.values())
        if not faults and count > most:
            faults.append(say("full_codebook", count=count, most=most))
        return Draft(functions, tuple(faults))

    def commit(self, draft: Draft, reason: str, sleep: int) -> str:
        """Take over a draft without faults; returns the diff, "" if nothing changed: no version is made."""
        number = len(self.versions) + 1
        before = module_source(self.functions.values())
        diff = diff_texts(before, draft.source, "codebook", number)
        if diff:
            self.versions.append(Version(number, sleep, reason, diff))
            self.functions = dict(draft.functions)
        return diff

    def source(self) -> str:
        """The module of all functions, "" if there are none."""
        return module_source(self.functions.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "functions": [function._asdict() for function in self.functions.values()],
            "versions": [version.to_json() for version in self.versions],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Codebook":
        codebook = cls()
        functions = [Function(**function) for function in value["functions"]]
        codebook.functions = {function.name: function for function in functions}
        codebook.versions = [Version.from_json(version) for version in value["versions"]]
        return codebook


def _apply(functions: dict[str, Function], edit: Edit, longest: int) -> str:
    """Make an edit in place; returns why it cannot be made, "" where it was."""
    known = edit.name in functions
    if edit.op == "add" and known:
        return say("known_function")
    if edit.op != "add" and not known:
        return say("unknown_function", names=list(functions))
    if edit.op == "delete":
        if edit.text.strip():
            return say("deleted_source")
        del functions[edit.name]
        return ""
    if len(edit.text) > longest:
        return say("long_source", characters=len(edit.text), most=longest)
    try:
        found = read_functions(edit.text)
    except NoFunction as fault:
        return str(fault)
    names = [function.name for function in found]
    if names != [edit.name]:
        return say("other_functions", names=names, expected=edit.name)
    functions[edit.name] = found[0]
    return ""
