"""OPEN: a strategy guide in prose."""

from collections.abc import Mapping
from typing import Any

from agents.memory.versions import Version, diff_texts


class StrategyGuide:
    """A text that is written anew as a whole."""

    def __init__(self) -> None:
        self.text = ""
        self.versions: list[Version] = []

    def rewrite(self, text: str, reason: str, sleep: int) -> str:
        """Replace the text; returns the diff, "" where it is what it was and no version is made."""
        text = "\n".join(line.rstrip() for line in text.strip().splitlines())
        number = len(self.versions) + 1
        diff = diff_texts(self.text, text, "guide", number)
        if diff:
            self.versions.append(Version(number, sleep, reason, diff))
            self.text = text
        return diff

    def to_json(self) -> dict[str, Any]:
        return {"text": self.text, "versions": [version.to_json() for version in self.versions]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "StrategyGuide":
        guide = cls()
        guide.text = value["text"]
        guide.versions = [Version.from_json(version) for version in value["versions"]]
        return guide
