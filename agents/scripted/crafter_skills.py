"""FIXED: what the scripted programmer writes for Crafter; its answers carry functions without their types."""

import random
from typing import Any


def _step_towards(env: Any, wanted: Any) -> Any:
    """The first move on the way to the nearest cell in view of which `wanted(material)` holds, and how many
    moves lead there; None if there is none. A cell next to the agent takes 1 move, which only turns to it."""
    grid = env.state["grid"]
    taken = {(3 + thing["down"], 4 + thing["right"]) for thing in env.state["creatures"]}
    queue: list[Any] = [((3, 4), None, 0)]
    known = {(3, 4)}
    for (row, column), first, moves in queue:
        for name, down, right in (("up", -1, 0), ("left", 0, -1), ("right", 0, 1), ("down", 1, 0)):
            cell = (row + down, column + right)
            if cell in known or not (0 <= cell[0] < 7 and 0 <= cell[1] < 9):
                continue
            known.add(cell)
            way = first or f"move {name}"
            if wanted(grid[cell[0]][cell[1]]) and cell not in taken:
                return way, moves + 1
            if grid[cell[0]][cell[1]] in ("grass", "sand", "path") and cell not in taken:
                queue.append((cell, way, moves + 1))
    return None


def _roam(env: Any, steps: int) -> None:
    """Walk on, turning where something is in the way."""
    way = random.choice(["left", "right", "up", "down"])
    for _ in range(steps):
        facing = env.state["facing"]
        if facing["direction"] == way and facing["material"] not in ("grass", "sand", "path"):
            way = random.choice(["left", "right", "up", "down"])
        env.step(f"move {way}")


def gather(env: Any, material: str, thing: str, count: int) -> str:
    """Use cells of a material until so many of a thing are carried: gather("tree", "wood", 5). A drink counts
    by the status of its name. Returns "Done: ..." or "Not done: ..." with what is carried."""

    def carried() -> int:
        return int(env.state["inventory"].get(thing, env.state["status"].get(thing, 0)))

    for _ in range(60):
        if carried() >= count:
            return f"Done: {carried()} {thing}"
        found = _step_towards(env, lambda name: name == material)
        if found is None:
            _roam(env, 6)
            continue
        env.step(found[0])
        if found[1] == 1 and env.state["facing"]["material"] == material:
            for _ in range(12 if material == "grass" else 2):
                env.step("do")
                if env.state["facing"]["material"] != material or carried() >= count:
                    break
    return f"Not done: {carried()} {thing}"


def place(env: Any, action: str) -> str:
    """Turn to a free cell and take an action that places something: place("place table"). Returns whether
    it is there."""
    before = dict(env.state["inventory"])
    found = _step_towards(env, lambda name: name in ("grass", "sand", "path"))
    if found is not None:
        env.step(found[0])
    for _ in range(3):
        env.step(action)
        if env.state["inventory"] != before:
            return "Done: it is placed"
        _roam(env, 1)
    return "Not done: nothing was placed"


def make(env: Any, action: str) -> str:
    """Make something, at once: make("make wood pickaxe"). Returns whether it is carried."""
    env.step(action)
    name = action.partition(" ")[2]
    made = env.state["inventory"].get(name, 0)
    return f"Done: {made} {name}" if made else f"Not done: no {name}"
