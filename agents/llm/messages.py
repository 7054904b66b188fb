"""FIXED: a message of a conversation with a model."""

from typing import Literal, NamedTuple

Role = Literal["system", "user", "assistant"]


class Message(NamedTuple):
    """What one side said."""

    role: Role
    content: str
