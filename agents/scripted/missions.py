"""FIXED: BabyAI's missions and observations as the scripted agent reads them: their words, and no more."""

import re
from typing import NamedTuple

VERBS = {"go to": "go_to", "pick up": "pick_up", "open": "open_door", "put": "put_next"}
"""What a mission asks for -> the skill that does it."""

_LOCATION = re.compile(r" (?:on your left|on your right|behind you|in front of you)\b")
_OBJECT = re.compile(r"(?:a|an|the) (?:(red|green|blue|purple|yellow|grey) )?(ball|key|box|door|object)")
_SEEN = re.compile(
    r"(?:(open|closed|locked) )?(red|green|blue|purple|yellow|grey) (ball|key|box|door)"
    r"(?: (\d+) forward)?(?: (\d+) (left|right))?(?=;|\.|$)"
)


class Thing(NamedTuple):
    """What a mission names."""

    kind: str
    """"object" = any."""
    color: str | None


class Part(NamedTuple):
    """One thing to be done."""

    verb: str
    """A key of VERBS."""
    things: tuple[Thing, ...]

    @property
    def skill(self) -> str:
        return VERBS[self.verb]

    @property
    def call(self) -> str:
        """The call of the skill that does it."""
        values: list[str | None] = [value for thing in self.things for value in thing]
        if self.verb == "open":
            values = [self.things[0].color]
        while values and values[-1] is None:
            values.pop()
        return f"skill {self.skill}({', '.join('None' if v is None else f'{v!r}' for v in values)})"


class Seen(NamedTuple):
    """A thing in view; `right` is negative to the left."""

    kind: str
    color: str
    right: int
    forward: int


def read_mission(goal: str) -> list[Part]:
    """The parts of a mission in the order in which to do them; none where it is not understood."""
    goal = _LOCATION.sub("", goal.strip().lower())
    first, after, then = goal.partition(" after you ")
    texts = [then, first] if after else [goal]
    texts = [part for text in texts for part in re.split(r",? then |,? and ", text)]
    parts = []
    for text in texts:
        verb = next((verb for verb in VERBS if text.startswith(f"{verb} ")), None)
        things = tuple(Thing(match[2], match[1]) for match in _OBJECT.finditer(text))
        if verb is None or len(things) != (2 if verb == "put" else 1):
            return []
        parts.append(Part(verb, things))
    return parts


def read_view(observation: str) -> list[Seen]:
    """The things in view, nearest first."""
    listed = observation.rpartition("Objects in view:")[2].split("\n")[0]
    found = []
    for _, color, kind, forward, side, way in _SEEN.findall(listed):
        right = int(side or 0) * (-1 if way == "left" else 1)
        found.append(Seen(kind, color, right, int(forward or 0)))
    return found


def free_ahead(observation: str) -> int:
    """Cells that are free straight ahead."""
    found = re.search(r"Forward: (\d+) free", observation)
    return int(found[1]) if found else 0


def carries(observation: str) -> bool:
    """Whether the agent carries something."""
    return "carry nothing" not in observation


def fits(seen: Seen, thing: Thing) -> bool:
    """Whether something in view is what a mission names."""
    return thing.kind in ("object", seen.kind) and thing.color in (None, seen.color)
