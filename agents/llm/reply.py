"""FIXED: what a model answered, and what the answer took."""

from dataclasses import dataclass
from typing import Any

from harness.files import canonical_json, sha256_bytes


@dataclass(frozen=True)
class Usage:
    """Tokens as the server reports them; None = it did not say."""

    prompt: int | None = None
    completion: int | None = None
    """Reasoning among them."""
    reasoning: int | None = None
    cached: int | None = None
    """Tokens of the prompt that the server still knew and bills for less."""

    @property
    def tokens(self) -> int | None:
        """Prompt and completion; None where either is unknown."""
        if self.prompt is None or self.completion is None:
            return None
        return self.prompt + self.completion


@dataclass(frozen=True)
class Reply:
    """A model's answer."""

    text: str
    """Empty where the server gave no content."""
    finish: str
    """One of "stop", "length", "refusal", "content_filter", "context" (the prompt is too long for the model),
    or what else the server calls it."""
    usage: Usage
    dollars: float | None
    """None = the price or the usage is unknown."""
    seconds: float
    """From the request to the end of the answer; waiting and failed attempts do not count."""
    model: str
    """As the server names it."""
    cached: bool = False
    """Answered by the cache."""
    thinking: str = ""
    """What a reasoning model wrote before its answer, where the server shows it."""
    refusal: str = ""
    """The words of a refusal that came apart from the text."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, which `from_json` reads back equal but for `cached`."""
        return {
            "text": self.text,
            "finish": self.finish,
            "usage": vars(self.usage),
            "dollars": self.dollars,
            "seconds": self.seconds,
            "model": self.model,
            "thinking": self.thinking,
            "refusal": self.refusal,
        }

    @property
    def sha256(self) -> str:
        """Of what `to_json` gives, in hex."""
        return sha256_bytes(canonical_json(self.to_json()).encode())

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Reply":
        """TypeError where a field is missing or unknown."""
        return cls(**{**value, "usage": Usage(**value["usage"])})
