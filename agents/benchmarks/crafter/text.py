"""FIXED: Crafter in words: its actions, its achievements, and what is seen."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agents.benchmarks.crafter.view import DOWN, OUTSIDE, RIGHT, UNSEEN, View

ACTIONS = (
    "noop",
    "move left",
    "move right",
    "move up",
    "move down",
    "do",
    "sleep",
    "place stone",
    "place table",
    "place furnace",
    "place plant",
    "make wood pickaxe",
    "make stone pickaxe",
    "make iron pickaxe",
    "make wood sword",
    "make stone sword",
    "make iron sword",
)
"""In the package's order; its names have underscores."""

ACHIEVEMENTS = (
    "collect_coal",
    "collect_diamond",
    "collect_drink",
    "collect_iron",
    "collect_sapling",
    "collect_stone",
    "collect_wood",
    "defeat_skeleton",
    "defeat_zombie",
    "eat_cow",
    "eat_plant",
    "make_iron_pickaxe",
    "make_iron_sword",
    "make_stone_pickaxe",
    "make_stone_sword",
    "make_wood_pickaxe",
    "make_wood_sword",
    "place_furnace",
    "place_plant",
    "place_stone",
    "place_table",
    "wake_up",
)
STATUS = ("health", "food", "drink", "energy")
MOST = 9  # of anything that is counted

GOAL = (
    f"Stay alive and unlock as many of the {len(ACHIEVEMENTS)} achievements as you can, each once: "
    + ", ".join(name.replace("_", " ") for name in ACHIEVEMENTS)
    + "."
)

RULES = """\
You are in a world of 64 by 64 cells and see 9 by 7 of them, with yourself in the middle: 4 steps to the \
left and right, 3 up and down. Each action takes one step of time:
- noop: wait.
- move left, move right, move up, move down: turn to that side and take one step, unless something is in the \
way. You can walk on grass, sand and path. Walking into lava kills.
- do: use the cell that you face. It takes the wood of a tree, which is gone then; drinks water; hits a \
creature; eats a ripe plant; finds a sapling on grass one time in ten; mines stone and coal with a wood \
pickaxe, iron with a stone pickaxe, diamond with an iron pickaxe, and leaves a path there. A cow is eaten \
after a few hits. The better the sword, the fewer hits it takes.
- sleep: fall asleep, if energy is below 9. You wake when energy is 9 or when you are hurt; until then other \
actions are not taken, though each takes a step. Zombies hurt a sleeper badly.
- place stone: needs 1 stone; on grass, sand, path, water or lava.
- place table: needs 2 wood; on grass, sand or path.
- place furnace: needs 4 stone; on grass, sand or path.
- place plant: needs 1 sapling; on grass. It takes hundreds of steps to ripen, and only while you are not \
far away; zombies, skeletons and cows beside it eat it.
- make wood pickaxe, make wood sword: each needs 1 wood, and a table next to you (diagonally will do).
- make stone pickaxe, make stone sword: each needs 1 wood, 1 stone, and a table next to you.
- make iron pickaxe, make iron sword: each needs 1 wood, 1 coal, 1 iron, and both a table and a furnace next \
to you.
What is placed goes onto the cell that you face, which must be free.
Food, drink and energy fall with time. While one of them is 0 health falls, otherwise it slowly returns; \
with health 0 the game is over. Nothing is counted beyond 9. A day has 300 steps; in about 60 of them it is \
so dark that only what is near is seen. Zombies appear on grass, more of them in the dark; skeletons live in \
tunnels and shoot arrows.
Positions are steps from you, such as "2 left 1 up". Of each kind in view the observation names the \
nearest."""

STATE_HELP = """\
A dict with what is seen now. Names are those of the observation.
- grid: 7 rows of 9 names of materials, the upper row first. You stand on grid[3][4]; the cell that is \
`right` steps right and `down` steps down from you is grid[3 + down][4 + right]. Materials: water, grass, \
stone, path, sand, tree, lava, coal, iron, diamond, table, furnace; "unseen" where it is too dark, "outside" \
beyond the world's edge.
- creatures: a list, the nearest first, of {"kind", "right", "down", "flies"}: kind is cow, zombie, \
skeleton, arrow, sapling or ripe plant; right and down are steps from you, negative for left and up; flies \
is where an arrow flies to (left, right, up, down), None for the others.
- facing: {"direction": left, right, up or down; "right", "down": the cell that you face; "material": on it; \
"creature": the kind of what stands on it, or None}.
- status: {"health", "food", "drink", "energy": 0 to 9; "sleeping": True or False; "daylight": 0.0 to 1.0}.
- inventory: counts by name: sapling, wood, stone, coal, iron, diamond, wood pickaxe, stone pickaxe, iron \
pickaxe, wood sword, stone sword, iron sword.
- achievements: names of those unlocked so far.
Where you are in the world is not given. A move succeeds exactly if the cell that you turn to is grass, \
sand, path or lava and no creature was seen on it before, so that a program can keep count."""


def plain(name: str) -> str:
    """A name as a model may write it, in words: `Move_Left` is "move left"."""
    return re.sub(r"[\s_]+", " ", name).strip().lower()


def brightness(daylight: float) -> str:
    """Daylight, 0 to 1, in a word."""
    for least, word in ((0.75, "bright"), (0.4, "dim"), (0.15, "dark")):
        if daylight >= least:
            return word
    return "very dark"


def way(right: int, down: int) -> str:
    """Steps from the player: "2 left 1 up"."""
    parts = []
    if right:
        parts.append(f"{abs(right)} {'right' if right > 0 else 'left'}")
    if down:
        parts.append(f"{abs(down)} {'down' if down > 0 else 'up'}")
    return " ".join(parts) or "here"


def inventory_of(things: Mapping[str, int]) -> dict[str, int]:
    """What is carried, without the status, from the package's inventory."""
    return {plain(name): int(count) for name, count in things.items() if name not in STATUS}


def describe_view(view: View) -> list[str]:
    """Lines on what is faced and on the nearest of each kind, creatures first."""
    ahead = "the edge of the world" if view.material == OUTSIDE else view.material
    if view.creature is not None:
        ahead = f"{view.creature}, on {ahead}"
    lines = [f"Facing {view.facing}: {ahead}.", f"Standing on: {view.grid[DOWN][RIGHT]}.", "In view:"]
    places: dict[str, list[tuple[int, int]]] = {}
    for creature in view.creatures:
        name = creature.kind if creature.flies is None else f"arrow flying {creature.flies}"
        places.setdefault(name, []).append((creature.right, creature.down))
    cells: dict[str, list[tuple[int, int]]] = {}
    for row, materials in enumerate(view.grid):
        for column, material in enumerate(materials):
            if (row, column) != (DOWN, RIGHT):
                cells.setdefault(material, []).append((column - RIGHT, row - DOWN))
    unseen = len(cells.pop(UNSEEN, ()))
    outside = cells.pop(OUTSIDE, None)
    for kinds in (places, dict(sorted(cells.items()))):
        for name, found in kinds.items():
            lines.append(
                f"- {name}: {_nearest(found)}" + (f" ({len(found)} in view)" if len(found) > 1 else "")
            )
    if outside:
        lines.append(f"- the edge of the world: {_nearest(outside)}")
    if unseen:
        lines.append(f"It is too dark to see {unseen} of the 63 cells in view.")
    return lines


def _nearest(places: Sequence[tuple[int, int]]) -> str:
    """The place with the fewest steps; of equal ones the upper, then the left."""
    return way(*min(places, key=lambda place: (abs(place[0]) + abs(place[1]), place[1], place[0])))


def describe_status(things: Mapping[str, int], sleeping: bool, daylight: float) -> list[str]:
    """Lines on how the player is and on what is carried; `things` is the package's inventory."""
    levels = ", ".join(f"{name} {things[name]}/{MOST}" for name in STATUS)
    carried = ", ".join(f"{count} {name}" for name, count in inventory_of(things).items() if count)
    return [
        f"Status: {levels}; {'asleep' if sleeping else 'awake'}; daylight: {brightness(daylight)}.",
        f"Inventory: {carried or 'empty'}.",
    ]


def describe_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What became more or less, from the package's inventories: ["wood +1", "drink -1"]."""
    return [f"{plain(name)} {after[name] - before[name]:+d}" for name in after if after[name] != before[name]]
