"""FIXED: what the agent sees, as words for models and as plain values for programs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

DIRECTIONS = ("east", "south", "west", "north")
"""By Minigrid's numbers; a turn to the right is one further."""

VIEW_SIZE = 7
"""Cells that are seen ahead, the agent's row among them, and from left to right, the agent in the middle."""

# Numbers of Minigrid's encoding (minigrid.core.constants; a test compares them).
TYPES = ("unseen", "empty", "wall", "floor", "door", "key", "ball", "box", "goal", "lava", "agent")
COLORS = ("red", "green", "blue", "purple", "yellow", "grey")
DOOR_STATES = ("open", "closed", "locked")

_SIDE = VIEW_SIZE // 2
_AHEAD = VIEW_SIZE - 1
_PATHS = (
    ("Forward", [(0, n) for n in range(1, _AHEAD + 1)]),
    ("Left", [(-n, 0) for n in range(1, _SIDE + 1)]),
    ("Right", [(n, 0) for n in range(1, _SIDE + 1)]),
)

Cell = tuple[int, int]
"""(right, forward) of the agent; left is negative."""


class Thing(NamedTuple):
    """An object: door, key, ball or box."""

    type: str
    color: str
    state: str | None
    """Of a door: open, closed or locked."""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.state, self.color, self.type)))


class View(NamedTuple):
    """One observation of Minigrid, taken apart. Cells that are hidden appear nowhere."""

    direction: str
    carrying: Thing | None
    things: dict[Cell, Thing]
    """Nearest first; those equally near by (right, forward)."""
    walls: list[Cell]
    free: list[Cell]


def plain(action: str) -> str:
    """An action as it is compared and shown: one line in small letters, at most 80 of them."""
    return " ".join(action.encode("utf-8", "replace").decode().lower().split())[:80].strip()


def read_view(image: Sequence[Sequence[Sequence[int]]], direction: int) -> View:
    """Take apart an observation: `image` is [left to right][far to near] (type, colour, state)."""
    things, walls, free = {}, [], []
    carrying = None
    for right in range(-_SIDE, _SIDE + 1):
        for forward in range(_AHEAD + 1):
            kind, color, state = image[right + _SIDE][_AHEAD - forward]
            name = TYPES[kind]
            if name == "unseen":
                continue
            thing = Thing(name, COLORS[color], DOOR_STATES[state] if name == "door" else None)
            if (right, forward) == (0, 0):  # the agent's own cell shows what it carries
                carrying = None if name == "empty" else thing
            elif name == "wall":
                walls.append((right, forward))
            elif name in ("empty", "floor"):
                free.append((right, forward))
            else:
                things[right, forward] = thing
    nearest = sorted(things, key=lambda cell: (abs(cell[0]) + cell[1], cell))
    return View(DIRECTIONS[direction], carrying, {cell: things[cell] for cell in nearest}, walls, free)


def describe(view: View) -> str:
    """Three lines: the agent itself, how far it could walk, and the objects that it sees."""
    carried = "nothing" if view.carrying is None else _with_article(view.carrying)
    things = "; ".join(f"{thing} {_place(cell)}" for cell, thing in view.things.items())
    return (
        f"You face {view.direction} and carry {carried}.\n"
        f"{' '.join(_path(view, name, cells) for name, cells in _PATHS)}\n"
        f"Objects in view: {things or 'none'}."
    )


def state_of(view: View) -> dict[str, Any]:
    """The same for programs: JSON values, cells as [right, forward]."""
    return {
        "direction": view.direction,
        "carrying": view.carrying and {"type": view.carrying.type, "color": view.carrying.color},
        "objects": [{**thing._asdict(), "position": list(cell)} for cell, thing in view.things.items()],
        "walls": [list(cell) for cell in view.walls],
        "free": [list(cell) for cell in view.free],
    }


def _path(view: View, name: str, cells: list[Cell]) -> str:
    free = set(view.free)
    count = next((place for place, cell in enumerate(cells) if cell not in free), len(cells))
    end = cells[count] if count < len(cells) else None
    if end in view.things:
        return f"{name}: {count} free, then {_with_article(view.things[end])}."
    return f"{name}: {count} free, then {'a wall' if end in view.walls else 'out of view'}."


def _place(cell: Cell) -> str:
    right, forward = cell
    parts = []
    if forward:
        parts.append(f"{forward} forward")
    if right:
        parts.append(f"{abs(right)} {'right' if right > 0 else 'left'}")
    return " ".join(parts)


def _with_article(thing: Thing) -> str:
    return f"an {thing}" if thing.state == "open" else f"a {thing}"
