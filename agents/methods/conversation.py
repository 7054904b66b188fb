"""FIXED: conversations with the model asleep, within the tokens of a sleep."""

from collections.abc import Callable
from typing import TypeVar

from agents.llm.messages import Message
from agents.llm.reply import Reply
from agents.methods.answers import Unusable, read_answer
from agents.methods.base import Exchange, Tools
from agents.prompts.prompts import render, say

Value = TypeVar("Value")

LEAST_ANSWER = 256
"""Tokens; a call that leaves less for its answer is not made."""

_CHARS_PER_TOKEN = 3.0  # until the server says how many there are; English has about four


class SleepSpent(Exception):
    """The next call does not fit into the tokens of the sleep, so it is not made."""


class Allowance:
    """The tokens of one sleep, whatever it asks; what a server does not count is estimated."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0
        self._ratio = 1 / _CHARS_PER_TOKEN

    def prompt_tokens(self, characters: int) -> int:
        """What a prompt of so many characters will take, judged by the last."""
        return int(characters * self._ratio) + 1

    def count(self, characters: int, reply: Reply) -> None:
        """Count a call whose prompt had so many characters."""
        if reply.usage.prompt:
            self._ratio = reply.usage.prompt / max(1, characters)
        prompt, completion = reply.usage.prompt, reply.usage.completion
        self.used += self.prompt_tokens(characters) if prompt is None else prompt
        self.used += self.prompt_tokens(len(reply.text)) if completion is None else completion


class Conversation:
    """Messages back and forth, each call labelled `<label>/<number>`."""

    def __init__(self, tools: Tools, label: str, system: str, allowance: Allowance) -> None:
        self._tools, self._label, self._allowance = tools, label, allowance
        self._messages = [Message("system", system)]
        self._shown = 0
        self.exchanges: list[Exchange] = []

    def ask(self, content: str) -> Reply:
        """Say something, and have it answered.

        Raises:
            SleepSpent: the call does not fit into the allowance any more.
            agents.llm.ledger.BudgetSpent: nor into the budget of the run.
        """
        self._messages.append(Message("user", content))
        characters = self._characters()
        room = self._room(characters)
        if room < LEAST_ANSWER:
            most, used = self._allowance.most, self._allowance.used
            prompt = self._allowance.prompt_tokens(characters)
            raise SleepSpent(
                f"{used} of the sleep's {most} tokens are used, and the next prompt would take {prompt}"
            )
        label = f"{self._label}/{len(self.exchanges)}"
        most = min(room, self._tools.settings.answer_tokens)
        reply = self._tools.model.ask(self._messages, label=label, max_tokens=most)
        self._allowance.count(characters, reply)
        asked = tuple((message.role, message.content) for message in self._messages[self._shown :])
        self.exchanges.append(Exchange(label, asked, reply.text, reply.finish))
        self._messages.append(Message("assistant", reply.text or say("no_answer")))
        self._shown = len(self._messages)
        return reply

    def fits(self, answers: int, characters: int = 0) -> bool:
        """Whether so many more answers of full length fit, after a message of so many characters."""
        most = self._tools.settings.answer_tokens
        characters += self._characters()
        taken = sum(self._allowance.prompt_tokens(characters) + turn * most + most for turn in range(answers))
        return self._allowance.used + taken <= self._allowance.most

    def _characters(self) -> int:
        return sum(len(message.content) for message in self._messages)

    def _room(self, characters: int) -> int:
        """Tokens that a prompt of so many characters leaves for its answer."""
        return self._allowance.most - self._allowance.used - self._allowance.prompt_tokens(characters)


def settle(
    conversation: Conversation, content: str, read: Callable[[str], Value], errors: list[str]
) -> Value | None:
    """Ask for something, and once more where the answer cannot be used; None = nor can the second.

    What was wrong is told to the model and appended to `errors`.

    Raises:
        SleepSpent, agents.llm.ledger.BudgetSpent: as `Conversation.ask`.
    """
    for _ in range(2):
        reply = conversation.ask(content)
        try:
            return read_answer(reply, read)
        except Unusable as fault:
            errors += fault.faults
            content = render("faulty", faults=fault.faults)
    return None
