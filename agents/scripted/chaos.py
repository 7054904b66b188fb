"""FIXED: a scripted agent that does wrong all that models and servers do, by turns with good answers."""

import json
import threading
import time
from collections.abc import Callable
from random import Random

from starlette.responses import JSONResponse, PlainTextResponse, Response

from agents.llm.chat_app import Refused
from agents.scripted import demo
from agents.scripted.asked import Asked
from agents.scripted.saying import Saying

SANE = 0.35
"""How often the answer is the demonstration's."""
IN_PASSING = 0.15
"""How often a request fails at first, and is answered when it comes again."""

_SKILLS = {
    "crash": "return [1, 2, 3][env.steps + 7]",
    "forever": "while True:\n        pass",
    "flood": 'return "x" * 10**7',
    "chatter": "while True:\n        print('and so on', env.steps)",
    "hoard": "return len([0] * 10**10)",
    "steps": "while True:\n        env.step(env.actions[0])",
    "recursive": "return recursive(env)",
    "object": "return env",
    "nowhere": "return env.step('fly to the moon')",
}
"""Bodies of functions that load and fail, each in its own way."""


class Chaos:
    """What to answer; remembers only which requests it let fail. Thread-safe."""

    def __init__(self) -> None:
        self._failed: set[str] = set()
        self._lock = threading.Lock()

    def failure(self, asked: Asked) -> Response | None:
        """A failure in passing, for a request's first coming; None = it is answered."""
        chance = asked.chance("in passing", asked.digest)
        with self._lock:
            if asked.digest in self._failed or chance.random() >= IN_PASSING:
                return None
            self._failed.add(asked.digest)
        again = {"retry-after": "0.05"}
        return chance.choice(
            [
                PlainTextResponse("slow down", 429, again),
                PlainTextResponse("out of order", 500, again),
                JSONResponse({"error": {"message": "overloaded"}}, 503, again),
                PlainTextResponse('{"choices": [{"mess', 200, media_type="application/json"),
                JSONResponse({"choices": []}),
            ]
        )

    def answer(self, asked: Asked) -> Saying:
        """The answer of a request that is answered.

        Raises:
            Refused: the prompt is too long, it says.
        """
        chance = asked.chance()
        if chance.random() < SANE:
            return Saying(demo.answer(asked))
        kinds: list[Callable[[Asked, Random], Saying]] = [
            _empty,
            _refusal,
            _cut,
            _chatty,
            _unmetered,
            _thinking,
        ]
        kinds += [_slow, _too_long, *[_wrong_action if asked.kind == "wake" else _wrong_work] * 6]
        return chance.choice(kinds)(asked, chance)


def _empty(asked: Asked, chance: Random) -> Saying:
    return Saying(None)


def _refusal(asked: Asked, chance: Random) -> Saying:
    if chance.random() < 0.5:
        return Saying(None, message={"refusal": "I would rather not play."})
    return Saying("", finish="content_filter")


def _cut(asked: Asked, chance: Random) -> Saying:
    text = demo.answer(asked)
    return Saying(text[: len(text) // 2], finish="length")


def _chatty(asked: Asked, chance: Random) -> Saying:
    return Saying("Let us think about this for a while. Everything is connected, after all.")


def _unmetered(asked: Asked, chance: Random) -> Saying:
    return Saying(demo.answer(asked), metered=False)


def _thinking(asked: Asked, chance: Random) -> Saying:
    text = demo.answer(asked)
    if chance.random() < 0.5:
        return Saying(text, message={"reasoning": "Action: jump\nNo, that is nonsense."})
    return Saying(f"<think>Action: jump\nNo, that is nonsense.</think>\n\n{text}")


def _slow(asked: Asked, chance: Random) -> Saying:
    time.sleep(0.2)
    return Saying(demo.answer(asked))


def _too_long(asked: Asked, chance: Random) -> Saying:
    if asked.kind == "wake" and len(asked.messages) > 3:
        raise Refused(400, "the maximum context length is 10 tokens", "context_length_exceeded")
    return Saying(None, finish="length")


def _wrong_action(asked: Asked, chance: Random) -> Saying:
    name = chance.choice(list(_SKILLS))
    actions = [
        "jump",
        "",
        "skill no_such_skill()",
        "skill go_to(",
        "skill go_to(kind=open('/etc/passwd'))",
        'skill go_to("ball", "red", "large", "round")',
        "go forward and then turn left",
        "\u65e5\u672c\u8a9e \U0001f600",
        "x" * 5000,
        *[f"skill {name}()"] * 5,
    ]
    return Saying(f"Thought: why not?\nAction: {chance.choice(actions)}")


def _wrong_work(asked: Asked, chance: Random) -> Saying:
    """A wrong answer of a sleep or of voyager."""
    name = chance.choice(list(_SKILLS))
    source = f'def {name}(env):\n    """Does what it can."""\n    {_SKILLS[name]}'
    edit = {"op": "add", "name": name, "reason": "why not", "source": source}
    skill = {"name": name, "source": source}
    texts = [
        '```json\n{"reason": "cut',
        "```json\n[]\n```",
        _json({"reason": "no edits", "edits": "none"}),
        _json({"reason": "op", "edits": [{**edit, "op": "improve"}]}),
        _json({"reason": "there is none", "edits": [{**edit, "op": "replace", "name": "no_such_skill"}]}),
        _json({"reason": "no Python", "edits": [{**edit, "source": "def f(env:\n  pass"}]}),
        _json({"reason": "forbidden", "edits": [{**edit, "source": _forbidden(name)}]}),
        _json({"reason": "no skills", "skills": [skill], "replay": ["jump", f"skill {name}()"], "task": ""}),
        "```python\nwhile True:\n    pass\n```",
        "```python\nprint(1 / 0)\n```",
        "```python\nprint('x' * 10**7)\n```",
        f"```python\n{source}\n```",
        f"<reason>longer</reason>\n<guide>\n{'word ' * 5000}\n</guide>",
        "<guide>there is no reason</guide>",
        '{"reasoning": 3, "task": ["a"], "success": "yes"}',
        *[_json({"reason": "a skill that fails", "edits": [edit], "skills": [skill]})] * 6,
    ]
    return Saying(chance.choice(texts))


def _forbidden(name: str) -> str:
    return f'def {name}(env):\n    """Reads a file."""\n    return open("/etc/passwd").read()'


def _json(value: object) -> str:
    return f"```json\n{json.dumps(value)}\n```"
