"""FIXED: the game's text taken apart, and what a newcomer is told."""

import re

STOP_WORDS = frozenset(("a", "an", "the"))
"""The game reads over them."""

_ROOM = re.compile(r"^This (?:room|outside location) is called the ([^.\n]+)\.")
_EXIT = re.compile(r"^\t?A door to the (.+?) \(that is (open|closed)\)", re.MULTILINE)
_LENGTH = 200

RULES = """\
You are in a house with a garden: hallway, kitchen, living room, bedroom, bathroom, art studio, workshop, \
greenhouse, foundry and outside. You are given a task from a school's science lessons and work on it in the \
game's words.

An action is one line: a verb and the things it is about, named as the game names them. Where two things \
have one name, say where they are: "apple in fridge".
- look around; look at X; look in X (an open container); inventory; task (the task again); read X
- go to X (a room next door); teleport to X (any room)
- open X; close X; pick up X; put down X; move X to Y; pour X in Y; dunk X in Y; mix X (all that is in \
container X)
- activate X; deactivate X (stoves, taps and the like); use X on Y (instruments and tools: thermometer, \
lighter, axe, shovel)
- connect X to Y; disconnect X (in tasks about electricity, where things have terminals: "connect battery \
anode to orange wire terminal 1")
- eat X; flush X
- wait (eleven moves of the world's clock, for what grows, heats or cools); wait1 (two moves)
- focus on X (tells the game that X is what the task asks for)

Focus only on what the task says, and when it says so: a focus on a wrong thing ends the episode with a \
score of 0. Elsewhere points come for steps towards the goal, some of them small; 100 is a task done. Where \
an action fits several different things, you are asked which one: answer with the number, or with any other \
action to leave it. An action that is not understood takes a step, and no time in the world.

When you enter a room you see what is in it. Closed containers show nothing of what they hold. Things keep \
happening while you act: substances heat and cool, plants grow, animals wander."""

STATE_HELP = """\
A dict:
- "room": name of the place where you are, as "kitchen"
- "look": what `look around` says, a text with one thing a line
- "exits": dict from the place that a door leads to, to whether the door is open
- "inventory": list of what you carry, one text a thing
- "things": list of the names of what is in the place, as actions may use them, sorted
- "choices": dict from number to meaning, while you are asked which of several things is meant; else empty
- "score": points so far, of 100"""


def plain(action: str) -> str:
    """An action as the game gets it: one line of ASCII in small letters, without articles, at most 200."""
    written = action.encode("ascii", "replace").decode().lower()[:_LENGTH]
    words = "".join(sign if sign.isprintable() else " " for sign in written).split()
    return " ".join(word for word in words if word not in STOP_WORDS)


def room_of(look: str) -> str:
    """The name of the place that a look describes, "" where it has none."""
    found = _ROOM.match(look)
    return found[1] if found else ""


def exits_of(look: str) -> dict[str, bool]:
    """Where doors lead, and whether they are open."""
    return {place: state == "open" for place, state in _EXIT.findall(look)}


def items_of(inventory: str) -> list[str]:
    """What is carried, one text a thing."""
    return [line.strip() for line in inventory.splitlines()[1:] if line.strip()]
