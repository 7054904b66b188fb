"""FIXED: how the scripted agent plays BabyAI: aimlessly by single actions, well by skills that it recalls."""

import re

from agents.scripted.asked import Asked, section
from agents.scripted.missions import Part, carries, fits, free_ahead, read_mission, read_view

FORGETS_EPISODE = 0.08
"""How often the skills are forgotten for a whole episode."""
FORGETS_TURN = 0.1
"""And for one answer."""
HEEDS_GUIDE = 0.5
"""How often an answer heeds the strategy guide."""

ADVICE = {
    "go to": "To go to a thing, turn until it is in view, then walk straight up to it.",
    "pick up": "To pick a thing up, walk up to it as if to go there, face it, then pick up.",
    "open": "To open a door, walk up to it as if to go there, face it, then toggle.",
    "put": "To put a thing next to another, pick it up, walk up to the other, turn aside and drop it.",
}
"""By the verb of a mission: what the scripted guide says, and what heeding it means."""


def play(asked: Asked) -> str:
    """The answer of a turn: a thought and an action."""
    if asked.benchmark != "babyai":
        return play_anything(asked)
    parts = read_mission(_goal(asked))
    observation = _observation(asked)
    done = sum(len(re.findall(r"returned .Done", message.content)) for message in asked.messages)
    part = parts[min(done, len(parts) - 1)] if parts else None
    if part is not None and (call := _skill(asked, part)):
        return _say(f"There is a skill to {part.verb} things.", call)
    guide = section(asked.system, "Strategy guide, from earlier episodes")
    if part is not None and ADVICE[part.verb] in guide and asked.chance().random() < HEEDS_GUIDE:
        return _say("The guide says how.", _heed(asked, part, observation))
    return _say("Something will turn up.", _wander(asked, part, observation))


def play_anything(asked: Asked) -> str:
    """Any of the listed actions, or one of the skills; for benchmarks that the script knows nothing of."""
    chance = asked.chance()
    listed = [
        m for message in asked.messages for m in re.findall(r"^Actions: (.*)$", message.content, re.MULTILINE)
    ]
    actions = listed[-1].split("; ") if listed else ["noop"]
    if "repeat" in known_skills(asked) and chance.random() < 0.3:
        return _say("Once more, with patience.", f"skill repeat({chance.choice(actions)!r}, 5)")
    return _say("Something will turn up.", chance.choice(actions))


def known_skills(asked: Asked) -> list[str]:
    """The skills that the prompt offers, by name."""
    return re.findall(r"^skill (\w+)\(", asked.system, re.MULTILINE)


def _skill(asked: Asked, part: Part) -> str:
    """The call that does a part of the mission; "" where there is none, or it is forgotten."""
    if part.skill not in known_skills(asked):
        return ""
    if asked.chance("episode", _goal(asked), _observation_at_first(asked)).random() < FORGETS_EPISODE:
        return ""
    if asked.chance().random() < FORGETS_TURN:
        return ""
    lately = "\n".join(asked.answers[-4:])
    return "" if f"skill {part.skill}(" in lately else part.call


def _wander(asked: Asked, part: Part | None, observation: str) -> str:
    """A step in any direction; what lies right ahead is used, most of the time, if the mission names it."""
    chance = asked.chance()
    ahead = next((seen for seen in read_view(observation) if (seen.right, seen.forward) == (0, 1)), None)
    if part is not None and chance.random() < 0.7:
        named = ahead is not None and fits(ahead, part.things[-1 if carries(observation) else 0])
        if named and part.verb == "open":
            return "toggle"
        if named and part.verb in ("pick up", "put") and not carries(observation):
            return "pick up"
        if part.verb == "put" and carries(observation) and chance.random() < 0.1:
            return "drop"
    if free_ahead(observation) and chance.random() < 0.5:
        return "go forward"
    return chance.choice(["turn left", "turn right", "turn left", "turn right", "toggle", "drop"])


def _heed(asked: Asked, part: Part, observation: str) -> str:
    """A step towards what the mission names, if it is in view; else a turn, or a step."""
    carrying = part.verb == "put" and carries(observation)
    found = [seen for seen in read_view(observation) if fits(seen, part.things[-1 if carrying else 0])]
    if not found:
        chance = asked.chance()
        return "go forward" if free_ahead(observation) and chance.random() < 0.3 else "turn right"
    right, forward = found[0].right, found[0].forward
    if carrying and abs(right) + forward <= 2 and free_ahead(observation):
        return "drop"
    if (right, forward) == (0, 1):
        return {"open": "toggle", "put": "turn left" if carrying else "pick up"}.get(part.verb, "pick up")
    if forward and free_ahead(observation) and (forward > 1 or right):
        return "go forward"
    return "turn right" if right > 0 else "turn left"


def _goal(asked: Asked) -> str:
    found = re.search(r"^Goal: (.*)$", asked.first, re.MULTILINE)
    return found[1] if found else ""


def _observation(asked: Asked) -> str:
    """The last observation; notes that stand above it are not part of it."""
    return next(
        message.content.rpartition("Observation: ")[2]
        for message in reversed(asked.messages)
        if "Observation: " in message.content
    )


def _observation_at_first(asked: Asked) -> str:
    return asked.first.partition("Observation: ")[2].partition("Actions:")[0]


def _say(thought: str, action: str) -> str:
    return f"Thought: {thought}\nAction: {action}"
