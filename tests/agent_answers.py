"""Answers of a model that is none, for tests of experiments: they follow from the request alone."""

import hashlib
import json
import re
from typing import Any

from chat_servers import completion
from starlette.responses import JSONResponse, Response

_ACTIONS = ("turn left", "turn right", "go forward", "go forward", "pick up", "toggle")
_WANDER = '''def wander(env, steps=4):
    """Walk about for some steps. Returns how many were taken."""
    for number in range(steps):
        if env.done:
            break
        env.step("turn left" if (number + {number}) % 3 == 0 else "go forward")
    return number
'''


def answers(body: dict[str, Any], count: int) -> Response:
    """A script for `chat_servers.serving`."""
    messages = body["messages"]
    chance = int.from_bytes(hashlib.sha256(json.dumps(messages).encode()).digest()[:6])
    text = _text(messages, chance)
    return JSONResponse(completion(text, len(json.dumps(messages)) // 4, len(text) // 4 + 1))


def _text(messages: list[dict[str, str]], chance: int) -> str:
    kind = re.search(r"\[kind: ([\w.]+)", messages[0]["content"])
    assert kind is not None
    if kind[1] == "wake":
        if "wander" in messages[0]["content"] and chance % 3 == 0:
            return f"Thought: a walk {chance % 99}.\nAction: skill wander(steps={chance % 5})"
        if chance % 41 == 0:
            return "I do not know."
        return f"Thought: so be it {chance % 99}.\nAction: {_ACTIONS[chance % len(_ACTIONS)]}"
    if kind[1] == "sleep.opo":
        return f"<reason>because of {chance % 99}</reason>\n<guide>\nWalk {chance % 99} times.\n</guide>"
    if len(messages) == 2 and kind[1] == "sleep.speedrunner":
        return "```python\nprint(sum(one['success'] for one in episodes))\nlen(episodes)\n```"
    op = "replace" if "wander" in messages[1]["content"] else "add"
    source = _WANDER.replace("{number}", str(chance % 9))
    edit = {"op": op, "name": "wander", "reason": "walks help", "source": source}
    return "```json\n" + json.dumps({"reason": f"see {chance % 99}", "edits": [edit]}) + "\n```"
