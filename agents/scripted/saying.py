"""FIXED: what a script says, before it is an HTTP answer."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Saying:
    """An answer of a script."""

    text: str | None
    """None = no content, as servers send it."""
    finish: str = "stop"
    message: dict[str, Any] = field(default_factory=dict)
    """Further keys of the message."""
    metered: bool = True
    """Whether the answer tells its usage."""
