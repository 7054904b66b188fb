"""FIXED: what a prompt asks for, found by its own marks, and the chance that is drawn from it alone."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from agents.llm.chat_app import ChatRequest, Refused
from agents.llm.messages import Message
from harness.files import canonical_json

_KIND = re.compile(r"^\[kind: ([a-z_.]+); benchmark: (\w+)\]\s*\Z", re.MULTILINE)


@dataclass(frozen=True)
class Asked:
    """A prompt of one of the methods."""

    kind: str
    """"wake", "sleep.opo", "voyager.code" and so on, as the last line of the system message says."""
    benchmark: str
    system: str
    messages: Sequence[Message]
    """After the system message: the user's first, then answers and what followed on them."""
    digest: str
    """Of the whole request: its messages and its seed."""

    @property
    def first(self) -> str:
        """The first message of the user."""
        return self.messages[0].content

    @property
    def last(self) -> str:
        """The last message of the user."""
        return self.messages[-1].content

    @property
    def answers(self) -> list[str]:
        """What was answered so far."""
        return [message.content for message in self.messages if message.role == "assistant"]

    def chance(self, *about: object) -> Random:
        """Chance that depends on what is given; of nothing given, on the whole request."""
        text = canonical_json([str(part) for part in about]) if about else self.digest
        return Random(hashlib.sha256(f"{self.kind} {text}".encode()).hexdigest())


def read_asked(request: ChatRequest) -> Asked:
    """Find out what is asked.

    Raises:
        Refused: the prompt is none of ours.
    """
    system, *rest = request.messages
    mark = _KIND.search(system.content)
    if system.role != "system" or mark is None:
        raise Refused(400, "the system message ends in no line `[kind: ...; benchmark: ...]`")
    if not rest or rest[-1].role != "user":
        raise Refused(400, "the last message is not the user's")
    body = [[list(message) for message in request.messages], request.seed]
    digest = hashlib.sha256(canonical_json(body).encode()).hexdigest()
    return Asked(mark[1], mark[2], system.content, rest, digest)


def section(text: str, title: str) -> str:
    """What stands under a heading "## title", up to the next of its rank; "" if there is none."""
    found = re.search(rf"^## {re.escape(title)}\s*$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""
