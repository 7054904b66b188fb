"""FIXED: what tokens cost, by a dated table or as a user states it. An unknown price is None, not 0."""

import re
import tomllib
from datetime import date
from functools import cache
from pathlib import Path

from pydantic import BaseModel, Field

from agents.llm.reply import Usage
from harness.files import STRICT

TABLE = Path(__file__).with_name("prices.toml")


class Price(BaseModel):
    """US dollars for a million tokens."""

    model_config = STRICT

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(None, ge=0)
    """Of prompt tokens that the server still knew; None = they cost as much as any."""

    def dollars(self, usage: Usage) -> float | None:
        """What a call cost; None where its tokens are unknown."""
        if usage.prompt is None or usage.completion is None:
            return None
        cached = min(usage.cached or 0, usage.prompt)
        known = self.input if self.cached is None else self.cached
        fresh = usage.prompt - cached
        return (fresh * self.input + cached * known + usage.completion * self.output) / 1e6

    def bound(self, prompt: int, completion: int) -> float:
        """The most that a call of so many tokens can cost."""
        return (prompt * max(self.input, self.cached or 0.0) + completion * self.output) / 1e6


class Entry(BaseModel):
    """A line of the table."""

    model_config = STRICT

    model: str
    since: date
    """The price held on this day."""
    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(None, ge=0)
    source: str


@cache
def price_table() -> tuple[Entry, ...]:
    """The lines of prices.toml."""
    return tuple(Entry(**line) for line in tomllib.loads(TABLE.read_text())["price"])


def price_of(model: str, on: date) -> Price | None:
    """The price of a model, or of its dated snapshot ("gpt-5-mini-2025-08-07"), on a day; None = unknown."""
    alias = re.sub(r"-\d{4}-\d\d-\d\d$", "", model)
    lines = [line for line in price_table() if line.model == alias and line.since <= on]
    if not lines:
        return None
    line = max(lines, key=lambda line: line.since)
    return Price(input=line.input, output=line.output, cached=line.cached)
