"""FIXED: what a config says of the model: where it is, how it is asked, and how hard."""

import re
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from agents.llm.prices import Price
from harness.files import STRICT

Provider = Literal["openai", "gemini", "local", "compatible"]

RESERVED = frozenset(
    {
        "model",
        "messages",
        "stream",
        "stream_options",
        "n",
        "tools",
        "temperature",
        "top_p",
        "seed",
        "max_tokens",
    }
    | {"max_completion_tokens"}
)
"""What `extra_body` may not set."""


class ModelSettings(BaseModel):
    """One model at one endpoint. Holds no key: only the name of the environment variable that does."""

    # A key that was pasted into a wrong field is not shown.
    model_config = ConfigDict(**STRICT, hide_input_in_errors=True)

    name: str = Field(min_length=1)
    """As the server knows it."""
    provider: Provider
    """Among them "local" (a server on this machine or near it, without a key), or "compatible" (any
    other server that speaks the protocol; needs `base_url`)."""
    base_url: str | None = None
    """None = the provider's own; of "local" http://127.0.0.1:5012/v1."""
    api_key_env: str | None = None
    """Environment variable that holds the key. None = the provider's own: OPENAI_API_KEY, GEMINI_API_KEY,
    none for "local"."""
    temperature: float | None = Field(None, ge=0, le=2)
    """None = the server's."""
    top_p: float | None = Field(None, gt=0, le=1)
    """None = the server's."""
    max_tokens: int = Field(1024, ge=1)
    """Completion tokens of one answer, reasoning among them, where the caller asks for no other number."""
    timeout_s: float = Field(120.0, gt=0)
    """For one attempt, from the request to the end of the answer."""
    retries: int = Field(5, ge=0, le=100)
    """Further attempts after one that failed in passing."""
    concurrency: int = Field(4, ge=1, le=1000)
    """Requests under way at a time."""
    requests_per_minute: int | None = Field(None, ge=1, le=1_000_000)
    seed: int | None = Field(None, ge=0, lt=2**31)
    """Every call is sent a seed of its own that follows from this one and its label; None = none is sent."""
    extra_body: dict[str, JsonValue] = {}
    """Further keys of every request: {"reasoning_effort": "low"}."""
    price: Price | None = None
    """None = that of the table, where it lists the model."""

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            parts = urlsplit(value)
            parts.port  # noqa: B018 (raises where it is no number)
        except ValueError:
            raise ValueError("no http:// or https:// address") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("no http:// or https:// address")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("an address without a user, a password or a query; keys go into the environment")
        return value.rstrip("/")

    @field_validator("api_key_env")
    @classmethod
    def _name_of_a_variable(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Z][A-Z0-9_]{0,63}", value):
            raise ValueError(
                "expected the name of an environment variable, in capitals, and never a key itself"
            )
        return value

    @field_validator("extra_body")
    @classmethod
    def _nothing_of_ours(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        taken = ", ".join(sorted(RESERVED & value.keys()))
        if taken:
            raise ValueError(f"sets {taken}, which is set elsewhere")
        return value

    @model_validator(mode="after")
    def _address_where_needed(self) -> "ModelSettings":
        if self.provider == "compatible" and self.base_url is None:
            raise ValueError("provider compatible needs a base_url")
        return self
