"""FIXED: how the scripted agent answers voyager: task after task, a program for each, and a verdict."""

import json
import re
from typing import Any, NamedTuple

from agents.scripted.asked import Asked
from agents.scripted.missions import read_mission
from agents.scripted.sources import sources

MISTAKES = 0.25
"""How often the first program for a task holds a mistake."""


class Task(NamedTuple):
    """Something to do in Crafter."""

    achievement: str
    task: str
    call: str


TASKS = (
    Task("collect wood", "Collect 5 wood", 'gather(env, "tree", "wood", 5)'),
    Task("place table", "Place a table", 'place(env, "place table")'),
    Task("make wood pickaxe", "Make a wood pickaxe", 'make(env, "make wood pickaxe")'),
    Task("make wood sword", "Make a wood sword", 'make(env, "make wood sword")'),
    Task("collect sapling", "Collect a sapling from grass", 'gather(env, "grass", "sapling", 1)'),
    Task("place plant", "Place a plant", 'place(env, "place plant")'),
    Task("collect drink", "Drink water until thirst is gone", 'gather(env, "water", "drink", 9)'),
    Task("collect stone", "Collect 5 stone", 'gather(env, "stone", "stone", 5)'),
    Task("place stone", "Place a stone", 'place(env, "place stone")'),
    Task("collect coal", "Collect 1 coal", 'gather(env, "coal", "coal", 1)'),
)


def set_task(asked: Asked) -> str:
    """The curriculum: of a mission its first part that is not done, of Crafter what is not unlocked."""
    completed, failed = (_listed(asked.first, name) for name in ("Completed", "Failed"))
    if asked.benchmark == "babyai":
        parts = [_sentence(part) for part in read_mission(_line(asked.first, "Goal"))]
        task = next((part for part in parts if part not in completed), parts[-1] if parts else "Look around")
    elif asked.benchmark == "crafter":
        unlocked = _state(asked.first, "State").get("achievements", [])
        left = [task for task in TASKS if task.achievement not in unlocked] or list(TASKS)
        fresh = [task for task in left if task.task not in failed] or left
        task = fresh[0].task
    else:
        task = "Try the first actions that are listed"
    return _json({"reasoning": "This is not done yet, and can be done now.", "task": task})


def write_program(asked: Asked) -> str:
    """The programmer: a function that calls ours, which stand before it."""
    task = _line(asked.first, "Task")
    mistaken = "## The last program" not in asked.first and asked.chance().random() < MISTAKES
    module, call = _call(asked, task)
    name = "_".join(re.findall(r"[a-z0-9]+", task.lower()))[:50] or "try_something"
    helpers = (
        [source for known, source in sources(module).items() if known != "_search_at_first"] if module else []
    )
    body = f"    return {'nonsense + ' if mistaken else ''}{call}"
    function = f'def {name}(env):\n    """{task}. Returns what came of it."""\n{body}'
    program = "\n\n\n".join([*helpers, function])
    return f"I call what does it.\n\n```python\n{program}\n```"


def judge(asked: Asked) -> str:
    """The critic: by what is unlocked, or by what the program says of itself and the end of the episode."""
    task = _line(asked.first, "Task")
    wanted = next((one.achievement for one in TASKS if one.task == task), None)
    if wanted is not None:
        success = wanted in _state(asked.first, "State after").get("achievements", [])
    else:
        success = "Done: " in asked.first or "The episode is over." in asked.first
    critique = "" if success else "Look around for longer before giving up."
    return _json({"reasoning": "I compared before and after.", "success": success, "critique": critique})


def _call(asked: Asked, task: str) -> tuple[str, str]:
    """(module of ours, expression) that does a task."""
    if asked.benchmark == "babyai" and (parts := read_mission(task)):
        name, arguments = parts[0].call.removeprefix("skill ").split("(", 1)
        return "babyai_skills", f"{name}(env, {arguments}".replace("(env, )", "(env)")
    if asked.benchmark == "babyai":
        return "babyai_skills", "look_around(env)"
    if asked.benchmark == "crafter":
        return "crafter_skills", next((one.call for one in TASKS if one.task == task), 'make(env, "noop")')
    return "", "[env.step(action) for action in list(env.actions)[:3]][-1]"


def _sentence(part: Any) -> str:
    """A part of a mission as a task, which reads as the same part."""
    things = [
        f"the {thing.color} {thing.kind}" if thing.color else f"a {thing.kind}" for thing in part.things
    ]
    return f"{part.verb.capitalize()} {' next to '.join(things)}"


def _line(text: str, name: str) -> str:
    found = re.search(rf"^{name}: (.*)$", text, re.MULTILINE)
    return found[1].strip() if found else ""


def _listed(text: str, name: str) -> list[str]:
    return _line(text, f"{name} in this episode").split("; ")


def _state(text: str, name: str) -> dict[str, Any]:
    try:
        value = json.loads(_line(text, name))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _json(value: dict[str, Any]) -> str:
    return f"```json\n{json.dumps(value)}\n```"
