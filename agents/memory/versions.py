"""FIXED: how a memory changed: numbered versions, each with its reason and a unified diff."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from difflib import unified_diff
from typing import Any


@dataclass(frozen=True)
class Version:
    """One change."""

    number: int
    """From 1; version 0 is the empty memory."""
    sleep: int
    """Of the sleep that made it, from 0."""
    reason: str
    diff: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Version":
        return cls(**value)


def diff_texts(before: str, after: str, name: str, number: int) -> str:
    """Unified diff that leads to version `number` of a text; "" where nothing changed."""
    lines = unified_diff(
        before.splitlines(), after.splitlines(), f"{name} {number - 1}", f"{name} {number}", lineterm=""
    )
    return "".join(f"{line}\n" for line in lines)
