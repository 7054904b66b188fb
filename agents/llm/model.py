"""FIXED: a language model as the agents see it: asked by label, within budget, recorded and repeatable."""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tqdm import tqdm

from agents.llm.answers import Answer, clean
from agents.llm.cache import Cache, request_hash
from agents.llm.endpoint import Again, Endpoint
from agents.llm.ledger import NOTHING, Amount, BudgetSpent, Call, Ledger
from agents.llm.limits import LONGEST_PAUSE, Gate, backoff
from agents.llm.messages import Message
from agents.llm.prices import price_of
from agents.llm.providers import parameters_for, read_key, rules_for
from agents.llm.reply import Reply, Usage
from agents.llm.settings import ModelSettings
from harness.errors import Problem

__all__ = ["BudgetSpent", "Message", "Model", "Reply", "Usage"]

_TEMPLATE_TOKENS = 512  # what a chat template may put before a conversation
_MESSAGE_TOKENS = 16  # and around a message
_SHOWN_WAIT = 5.0  # seconds; a shorter wait is not worth a line


class Model:
    """A model at an endpoint. Thread-safe."""

    def __init__(self, settings: ModelSettings, ledger: Ledger, cache: Cache | None = None) -> None:
        """With a cache to replay, neither a server nor a key is needed.

        Raises:
            Problem: the settings ask for what the model does not take, its key is missing, or the budget is
                in dollars and the price unknown.
        """
        self.settings, self.ledger, self.cache = settings, ledger, cache
        self._rules = rules_for(settings)
        self._gate = Gate(settings.concurrency, settings.requests_per_minute)
        self._replays = cache is not None and cache.mode == "replay"
        self._key = None if self._replays else read_key(self._rules)
        held = {"model's settings": settings.model_dump_json(), "command line": str(sys.argv)}
        for place, text in held.items():
            if self._key and self._key in text:  # both are written down
                remedy = "leave it in its environment variable, which api_key_env names"
                raise Problem(f"the key itself is in the {place}", remedy=remedy)
        self._endpoint = None if self._replays else Endpoint(settings, self._rules, self._key)
        self._price = settings.price or price_of(settings.name, datetime.now(UTC).date())
        if ledger.budget.dollars is not None and self._price is None:
            raise Problem(
                f"the price of {settings.name} is unknown, so no budget in dollars can be kept",
                remedy="state `price` in the model's settings, or set the budget in tokens or calls",
            )

    @property
    def priced(self) -> bool:
        """Whether the price is known."""
        return self._price is not None

    def ask(self, messages: Sequence[Message], *, label: str, max_tokens: int | None = None) -> Reply:
        """The model's answer to a conversation.

        `label` names the call within the run ("wake/000012/3"): its first part is the phase that the ledger
        counts it in, and a rerun finds its reply by it. `max_tokens` caps this answer, reasoning included.

        Raises:
            BudgetSpent: the budget might not cover it; nothing was asked.
            Problem: the server cannot or will not answer, or the recording does not know the call.
        """
        messages = [Message(role, clean(content)) for role, content in messages]
        limit = max_tokens or self.settings.max_tokens
        parameters = parameters_for(self.settings, self._rules, limit, label)
        request = request_hash(label, messages, self.settings.name, parameters)
        known = self.cache.get(request) if self.cache is not None else None
        if known is not None and self.ledger.knows(request):
            return known  # the run that this one resumes has paid for it
        prompt = prompt_bound(messages)
        most = self._price.bound(prompt, limit) if self._price else 0.0
        reserved = self.ledger.reserve(prompt + limit, most)
        call = Call(
            label, request, self.settings.name, known, None, 0, NOTHING, self._shown(messages, parameters)
        )
        if known is not None:
            self.ledger.settle(reserved, replace(call, charged=_charge(known, reserved)))
            return known
        if self._replays:
            self.ledger.release(reserved)
            assert self.cache is not None
            raise self.cache.missing(label)
        return self._ask(messages, parameters, call, reserved)

    def close(self) -> None:
        """Give up: whoever waits for a place or a pause is sent home with a Problem."""
        self._gate.close()
        if self._endpoint is not None:
            self._endpoint.close()

    def _ask(
        self, messages: Sequence[Message], parameters: dict[str, Any], call: Call, reserved: Amount
    ) -> Reply:
        """Attempt until there is an answer, and settle what was reserved."""
        assert self._endpoint is not None
        most, lost, attempt, sent = reserved, NOTHING, 0, False
        try:
            while True:
                attempt += 1
                try:
                    with self._gate.passing():
                        start, sent = time.monotonic(), True
                        answer = self._endpoint.send(messages, parameters)
                        seconds = time.monotonic() - start
                    break
                except Again as again:
                    sent = False
                    if again.lost:
                        lost, reserved = lost.plus(self.ledger.lose(reserved)), NOTHING
                    self._wait(again, call.label, attempt)
                    if again.lost:
                        reserved = self.ledger.reserve(most.tokens, most.dollars)
        except BaseException as error:
            charged = lost
            if sent and not isinstance(error, Problem):  # interrupted, so it may be billed
                charged = lost.plus(most._replace(calls=0))
            reason = self._hide(f"{type(error).__name__}: {error}")
            self.ledger.settle(reserved, replace(call, error=reason, attempts=attempt, charged=charged), lost)
            raise
        reply = self._reply(answer, seconds)
        if self.cache is not None:
            self.cache.put(call.hash, call.label, call.model, reply)
        charged = _charge(reply, most).plus(lost)
        self.ledger.settle(reserved, replace(call, reply=reply, attempts=attempt, charged=charged), lost)
        return reply

    def _wait(self, again: Again, label: str, attempt: int) -> None:
        """Wait before the next attempt, or say that there is none."""
        host = self._rules.host
        if attempt > self.settings.retries:
            raise Problem(
                f"{host} did not answer {label!r} in {attempt} attempts, at last: {again}",
                remedy="see that the server runs and can be reached, then resume the run",
            ) from None
        if again.wait is not None and again.wait > LONGEST_PAUSE:
            raise Problem(
                f"{host} wants no request for {again.wait:.0f} s ({again})",
                remedy="wait as long, then resume the run",
            ) from None
        delay = backoff(label, attempt)
        if again.wait is not None:
            self._gate.pause(again.wait)
            delay = max(again.wait, delay / 10)
        if delay >= _SHOWN_WAIT:
            tqdm.write(f"{host}: {again}; next attempt in {delay:.0f} s")
        self._gate.sleep(delay)

    def _reply(self, answer: Answer, seconds: float) -> Reply:
        dollars = self._price.dollars(answer.usage) if self._price else None
        name = answer.model or self.settings.name
        return Reply(
            answer.text,
            answer.finish,
            answer.usage,
            dollars,
            seconds,
            name,
            False,
            answer.thinking,
            answer.refusal,
        )

    def _shown(self, messages: Sequence[Message], parameters: dict[str, Any]) -> dict[str, Any]:
        """The request as it is written down."""
        shown = [{"role": role, "content": self._hide(content)} for role, content in messages]
        return {"messages": shown, "parameters": parameters}

    def _hide(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


def prompt_bound(messages: Sequence[Message]) -> int:
    """The most tokens that a prompt can have: a token is at least a byte, and templates add theirs."""
    content = sum(len(message.content.encode("utf-8", "replace")) + _MESSAGE_TOKENS for message in messages)
    return content + _TEMPLATE_TOKENS


def _charge(reply: Reply, reserved: Amount) -> Amount:
    """What an answered call counts against the budget: what it took, or the most where that is unknown."""
    tokens = reply.usage.tokens
    return Amount(
        1,
        reserved.tokens if tokens is None else tokens,
        reserved.dollars if reply.dollars is None else reply.dollars,
    )
