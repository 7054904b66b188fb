"""FIXED: one attempt to get an answer over HTTP, and what each way to fail means."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai

from agents.llm.answers import Answer, Malformed, clean, read_answer
from agents.llm.limits import retry_after
from agents.llm.messages import Message
from agents.llm.providers import Rules
from agents.llm.reply import Usage
from agents.llm.settings import ModelSettings
from harness.errors import Problem

CONNECT_SECONDS = 15.0
LARGEST_ANSWER = 2**24  # bytes
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# OpenAI and vLLM; Gemini. vLLM's legacy wording: "maximum model length".
_TOO_LONG = re.compile(r"context length|maximum model length|input token count .* exceeds", re.IGNORECASE)
_IN_PASSING = (408, 409, 425, 429)  # and all from 500


class Again(Exception):
    """The attempt failed in passing; str() says why."""

    def __init__(self, reason: str, *, wait: float | None = None, lost: bool = False) -> None:
        super().__init__(reason)
        self.wait = wait
        """Seconds that the server wants to be left alone."""
        self.lost = lost
        """Whether the server may have answered, and bill what never arrived."""


class Endpoint:
    """A server that speaks OpenAI's chat completions. Thread-safe. What it says never shows the key."""

    def __init__(self, settings: ModelSettings, rules: Rules, key: str | None) -> None:
        self._settings, self._rules, self._key = settings, rules, key
        local = urlsplit(rules.base_url).hostname in _LOOPBACK
        headers: dict[str, Any] = {}
        if settings.provider != "openai":  # an account's names are for its own provider
            headers = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
        self._client = openai.OpenAI(
            api_key=key or "none",
            base_url=rules.base_url,
            timeout=httpx2.Timeout(settings.timeout_s, connect=min(CONNECT_SECONDS, settings.timeout_s)),
            max_retries=0,
            default_headers=headers,
            http_client=openai.DefaultHttpxClient(trust_env=False) if local else None,
        )

    def send(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> Answer:
        """Ask once.

        Raises:
            Again: another attempt may succeed.
            Problem: none will.
        """
        end = time.monotonic() + self._settings.timeout_s
        try:
            body = self._post(messages, parameters, end)
            answer = read_answer(body)
        except openai.APIStatusError as error:
            return self._refused(error)
        except RuntimeError:
            raise Problem("the connection was closed while the model was asked") from None
        except (openai.APIConnectionError, httpx2.HTTPError, openai.APIError) as error:
            raise self._broken(error) from None
        except Malformed as error:
            raise Again(self._hide(str(error)), lost=True) from None
        return replace(
            answer,
            text=self._hide(answer.text),
            thinking=self._hide(answer.thinking),
            refusal=self._hide(answer.refusal),
            finish=self._hide(answer.finish),
            model=self._hide(answer.model),
        )

    def close(self) -> None:
        self._client.close()

    def _post(self, messages: Sequence[Message], parameters: Mapping[str, Any], end: float) -> bytes:
        """The body of the answer; the whole of it must be here in time, however slowly it drips."""
        request = self._client.chat.completions.with_streaming_response.create(
            model=self._settings.name,
            messages=[{"role": role, "content": content} for role, content in messages],  # type: ignore[misc]
            extra_body=dict(parameters),
        )
        body = b""
        with request as response:
            for part in response.iter_bytes():
                body += part
                if len(body) > LARGEST_ANSWER:
                    raise Malformed("the answer is too large")
                if time.monotonic() > end:
                    raise httpx2.ReadTimeout("")
        return body

    def _refused(self, error: openai.APIStatusError) -> Answer:
        """What a status other than 200 means: an empty answer, another attempt, or the end."""
        status, said = error.status_code, self._said(error)
        code = _error(error).get("code")
        host, name = self._rules.host, self._settings.name
        if status in (401, 403):
            where = f"the key in {self._rules.key_env}" if self._rules.key_env else "a request without a key"
            why = said if status == 403 else ""  # servers repeat parts of a wrong key
            raise Problem(
                f"{host} refuses {where} (status {status}{why})", remedy="set a valid key"
            ) from None
        if status == 404:
            raise Problem(
                f"{host} has no model {name!r} (status 404{said})",
                remedy=f"check the model's name and base_url{self._models()}",
            ) from None
        if status == 402 or code == "insufficient_quota":
            raise Problem(f"the account at {host} is out of credit ({status}{said})") from None
        if status in _IN_PASSING or status >= 500:
            wait = retry_after(error.response.headers, time.time())
            raise Again(f"status {status}{said}", wait=wait) from None
        if code == "context_length_exceeded" or _TOO_LONG.search(said):
            return Answer("", "", "", "context", Usage(0, 0), name)
        if code in ("content_filter", "content_policy_violation"):
            return Answer("", "", said.removeprefix(": "), "content_filter", Usage(0, 0), name)
        raise Problem(f"{host} does not take the request (status {status}{said})") from None

    def _broken(self, error: Exception) -> Again:
        """What became of a connection."""
        cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
        if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
            return Again(f"no connection to {self._rules.host}")
        if isinstance(error, openai.APITimeoutError) or isinstance(cause, httpx2.TimeoutException):
            return Again(f"no answer within {self._settings.timeout_s:g} s", lost=True)
        return Again(f"the connection broke ({type(cause or error).__name__})", lost=True)

    def _said(self, error: openai.APIStatusError) -> str:
        """ ": " and what the server wrote, or ""."""
        text = clean(_error(error).get("message") or error.body)
        text = " ".join(self._hide(text).split())
        return f": {text[:500]}" if text else ""

    def _models(self) -> str:
        """What the server does have, as an addition to a remedy; "" where it will not say."""
        try:
            names = [self._hide(model.id) for model in self._client.models.list().data]
        except (openai.OpenAIError, httpx2.HTTPError, AttributeError, TypeError, ValueError):
            return ""
        return f"; it has {', '.join(names[:20])}" if names else ""

    def _hide(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


def _error(error: openai.APIStatusError) -> dict[str, Any]:
    """The error object in a body; Gemini puts it into a list."""
    body = error.body
    if isinstance(body, list) and body and isinstance(body[0], dict):
        body = body[0].get("error")
    return body if isinstance(body, dict) else {}
