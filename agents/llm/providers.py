"""FIXED: where each provider answers, where its key lies, and which parameters its models take."""

import hashlib
import os
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from agents.llm.settings import ModelSettings
from harness.errors import Problem


@dataclass(frozen=True)
class Rules:
    """How a model is asked."""

    base_url: str
    key_env: str | None
    """None = no key is sent."""
    limit: str
    """Name of the parameter that caps the completion."""
    sampling: bool
    """Whether it takes temperature and top_p."""
    seed: bool
    """Whether it takes a seed."""

    @property
    def host(self) -> str:
        """Host and port of the endpoint, for messages."""
        return urlsplit(self.base_url).netloc


_ADDRESS = {
    "openai": "https://api.openai.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/openai",
    "local": "http://127.0.0.1:5012/v1",
}
_KEY = {"openai": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY"}

# OpenAI's reasoning models, also as routers name them ("openai/gpt-5-mini"); the chat variants sample freely.
_REASONING = re.compile(r"(?:openai/)?(?:o\d|gpt-[5-9])(?!.*chat).*")


def rules_for(settings: ModelSettings) -> Rules:
    """The rules of a model.

    Raises:
        Problem: the settings ask for what the model does not take.
    """
    reasoning = settings.provider != "local" and _REASONING.fullmatch(settings.name) is not None
    rules = Rules(
        base_url=settings.base_url or _ADDRESS[settings.provider],
        key_env=settings.api_key_env or _KEY.get(settings.provider),
        limit="max_completion_tokens" if reasoning or settings.provider == "openai" else "max_tokens",
        sampling=not reasoning,
        seed=settings.provider != "gemini",
    )
    for name, value in (("temperature", settings.temperature), ("top_p", settings.top_p)):
        if not rules.sampling and value not in (None, 1):
            raise Problem(
                f"{settings.name} takes no {name}", remedy=f"leave {name} out of the model's settings"
            )
    if not rules.seed and settings.seed is not None:
        raise Problem(
            "Gemini takes no seed at this endpoint", remedy="leave seed out of the model's settings"
        )
    return rules


def parameters_for(settings: ModelSettings, rules: Rules, max_tokens: int, label: str) -> dict[str, Any]:
    """The request's keys besides `model` and `messages`."""
    parameters: dict[str, Any] = dict(settings.extra_body)
    parameters[rules.limit] = max_tokens
    if rules.sampling and settings.temperature is not None:
        parameters["temperature"] = settings.temperature
    if rules.sampling and settings.top_p is not None:
        parameters["top_p"] = settings.top_p
    if settings.seed is not None:
        digest = hashlib.sha256(f"{settings.seed} {label}".encode()).digest()
        parameters["seed"] = int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
    return parameters


def read_key(rules: Rules) -> str | None:
    """The key from the environment; None where none is needed.

    Raises:
        Problem: it is missing or cannot be one. It says nothing of the value.
    """
    if rules.key_env is None:
        return None
    key = os.environ.get(rules.key_env, "").strip()
    remedy = f"export {rules.key_env}=<the key of {rules.host}>"
    if not key:
        raise Problem(f"the environment variable {rules.key_env} is not set", remedy=remedy)
    if len(key) < 8 or not re.fullmatch(r"[!-~]+", key):
        raise Problem(f"the environment variable {rules.key_env} holds no key", remedy=remedy)
    return key
