"""FIXED: what the scripted programmer writes for BabyAI; its answers carry the functions without their types.

A map is kept while a function runs: the agent's place and direction, and what has been seen where, in steps
from where the function began. Direction 0 is the way that the agent faced then; a turn to the right adds 1.
"""

from typing import Any

Cell = tuple[int, int]


def _look(env: Any, seen: dict[str, Any]) -> None:
    """Take what is in view over into the map."""
    right_x, right_y = [(1, 0), (0, 1), (-1, 0), (0, -1)][seen["turn"]]

    def place(position: Any) -> Any:
        right, forward = position
        return (
            seen["x"] + right * right_x + forward * right_y,
            seen["y"] + right * right_y - forward * right_x,
        )

    for position in env.state["free"]:
        seen["free"].add(place(position))
        seen["things"].pop(place(position), None)
    for position in env.state["walls"]:
        seen["walls"].add(place(position))
    for thing in env.state["objects"]:
        seen["free"].discard(place(thing["position"]))
        seen["things"][place(thing["position"])] = thing
    seen["free"].add((seen["x"], seen["y"]))


def _begin(env: Any) -> dict[str, Any]:
    """A new map."""
    seen: dict[str, Any] = {"x": 0, "y": 0, "turn": 0, "free": set(), "walls": set(), "things": {}}
    _look(env, seen)
    return seen


def _act(env: Any, seen: dict[str, Any], action: str) -> bool:
    """Take a step and keep the map up to date; returns whether it changed anything."""
    env.step(action)
    if not env.state["changed"]:
        return False
    if action == "turn right":
        seen["turn"] = (seen["turn"] + 1) % 4
    elif action == "turn left":
        seen["turn"] = (seen["turn"] - 1) % 4
    elif action == "go forward":
        step_x, step_y = [(0, -1), (1, 0), (0, 1), (-1, 0)][seen["turn"]]
        seen["x"] += step_x
        seen["y"] += step_y
    _look(env, seen)
    return True


def _route(seen: dict[str, Any], goals: Any) -> Any:
    """The shortest way to one of the cells, as a list of cells; None if none is known."""
    came: dict[Cell, Any] = {(seen["x"], seen["y"]): None}
    queue = list(came)
    for cell in queue:
        if cell in goals:
            way = []
            while came[cell] is not None:
                way.append(cell)
                cell = came[cell]
            return way[::-1]
        for step_x, step_y in ((0, -1), (1, 0), (0, 1), (-1, 0)):
            other = (cell[0] + step_x, cell[1] + step_y)
            thing = seen["things"].get(other)
            door = thing is not None and thing["type"] == "door" and thing["state"] != "locked"
            if other not in came and (door or other in seen["free"]):
                came[other] = cell
                queue.append(other)
    return None


def _turn_to(env: Any, seen: dict[str, Any], cell: Any) -> None:
    """Face a cell that is next to the agent."""
    wanted = [(0, -1), (1, 0), (0, 1), (-1, 0)].index((cell[0] - seen["x"], cell[1] - seen["y"]))
    while seen["turn"] != wanted:
        _act(env, seen, "turn left" if (seen["turn"] - wanted) % 4 == 1 else "turn right")


def _walk(env: Any, seen: dict[str, Any], way: Any) -> bool:
    """Follow a way, and open the doors on it; returns whether its end was reached."""
    for cell in way:
        _turn_to(env, seen, cell)
        thing = seen["things"].get(cell)
        if thing is not None and thing["state"] == "closed":
            _act(env, seen, "toggle")
        if not _act(env, seen, "go forward"):
            return False
    return True


def _approach(env: Any, seen: dict[str, Any], cells: Any) -> Any:
    """Stand before one of the cells and face it; returns which, or None if no way is known."""
    beside: dict[Cell, Any] = {}
    for cell in cells:
        for step_x, step_y in ((0, -1), (1, 0), (0, 1), (-1, 0)):
            beside.setdefault((cell[0] + step_x, cell[1] + step_y), cell)
    for cell in cells:
        beside.pop(cell, None)
    way = _route(seen, beside)
    if way is None or not _walk(env, seen, way):
        return None
    cell = beside[seen["x"], seen["y"]]
    _turn_to(env, seen, cell)
    return cell


def _matching(seen: dict[str, Any], kind: str, color: Any) -> Any:
    """Cells of all things of a kind ("object" = any) and a color (None = any) that have been seen."""
    return [
        cell
        for cell, thing in seen["things"].items()
        if kind in ("object", thing["type"]) and color in (None, thing["color"])
    ]


def _search_at_first(env: Any, seen: dict[str, Any], kind: str, color: Any) -> Any:
    """Cells of such things in view."""
    return _matching(seen, kind, color)


def _search(env: Any, seen: dict[str, Any], kind: str, color: Any) -> Any:
    """Cells of such things: looks around, then walks to where something is still unseen."""
    for _ in range(3):
        if _matching(seen, kind, color):
            return _matching(seen, kind, color)
        _act(env, seen, "turn right")
    tried: set[Any] = set()
    for _ in range(40):
        found = _matching(seen, kind, color)
        if found:
            return found
        edge = set()
        for cell in seen["free"] | {c for c, thing in seen["things"].items() if thing["type"] == "door"}:
            for step_x, step_y in ((0, -1), (1, 0), (0, 1), (-1, 0)):
                other = (cell[0] + step_x, cell[1] + step_y)
                if not (other in seen["free"] or other in seen["walls"] or other in seen["things"]):
                    edge.add(cell)
        way = _route(seen, edge - tried)
        if way is None:
            return []
        tried.add(way[-1] if way else (seen["x"], seen["y"]))
        if way:
            _walk(env, seen, way)
        for _ in range(4):
            if _matching(seen, kind, color):
                break
            _act(env, seen, "turn right")
    return []


def go_to(env: Any, kind: str, color: Any = None) -> str:
    """Walk up to a thing and face it. kind: "ball", "key", "box", "door" or "object" for any; color: a name,
    or None for any. Returns "Done: ..." or "Not done: ..." with the reason."""
    seen = _begin(env)
    found = _search(env, seen, kind, color)
    if not found:
        return f"Not done: no {color or ''} {kind} was found"
    if _approach(env, seen, found) is None:
        return f"Not done: no way to the {color or ''} {kind} is known"
    return f"Done: before the {color or ''} {kind}"


def pick_up(env: Any, kind: str, color: Any = None) -> str:
    """Walk up to a thing and pick it up; what is carried before is put down. kind and color: as for go_to.
    Returns "Done: ..." or "Not done: ..." with the reason."""
    seen = _begin(env)
    if env.state["carrying"]:
        room = [cell for cell in seen["free"] if cell != (seen["x"], seen["y"])]
        if _approach(env, seen, room) is None or not _act(env, seen, "drop"):
            return "Not done: there is no room to put down what is carried"
    found = [cell for cell in _search(env, seen, kind, color) if seen["things"][cell]["type"] != "door"]
    if not found:
        return f"Not done: no {color or ''} {kind} was found"
    if _approach(env, seen, found) is None:
        return f"Not done: no way to the {color or ''} {kind} is known"
    if not _act(env, seen, "pick up"):
        return "Not done: it cannot be picked up"
    return f"Done: the {color or ''} {kind} is carried"


def open_door(env: Any, color: Any = None) -> str:
    """Walk up to a door and open it; a door that is open is closed first. color: a name, or None for any.
    Returns "Done: ..." or "Not done: ..." with the reason."""
    seen = _begin(env)
    found = _search(env, seen, "door", color)
    if not found:
        return f"Not done: no {color or ''} door was found"
    cell = _approach(env, seen, found)
    if cell is None:
        return f"Not done: no way to the {color or ''} door is known"
    if seen["things"][cell]["state"] == "open":
        _act(env, seen, "toggle")
    if not _act(env, seen, "toggle"):
        return "Not done: the door is locked"
    return f"Done: the {color or ''} door is open"


def put_next(env: Any, kind: str, color: Any, other_kind: str, other_color: Any = None) -> str:
    """Pick up the first thing and put it down beside the second. kinds and colors: as for go_to.
    Returns "Done: ..." or "Not done: ..." with the reason."""
    told = pick_up(env, kind, color)
    if told.startswith("Not done"):
        return told
    seen = _begin(env)
    found = _search(env, seen, other_kind, other_color)
    if not found:
        return f"Not done: no {other_color or ''} {other_kind} was found"
    beside = set()
    for cell in found:
        for step_x, step_y in ((0, -1), (1, 0), (0, 1), (-1, 0)):
            beside.add((cell[0] + step_x, cell[1] + step_y))
    room = [cell for cell in beside if cell in seen["free"] and cell != (seen["x"], seen["y"])]
    if _approach(env, seen, room) is None or not _act(env, seen, "drop"):
        return f"Not done: there is no room beside the {other_color or ''} {other_kind}"
    return f"Done: the {kind} lies beside the {other_kind}"


def look_around(env: Any) -> str:
    """Turn once around on the spot. Returns how many things were seen."""
    seen = _begin(env)
    for _ in range(4):
        _act(env, seen, "turn right")
    return f"Done: {len(seen['things'])} things are about"
