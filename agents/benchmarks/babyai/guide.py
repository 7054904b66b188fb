"""FIXED: what a newcomer is told of BabyAI; prompts carry it."""

RULES = """\
You are in a gridworld of rooms, seen from above, and have a mission, such as "pick up the red ball". You see
a square of 7 by 7 cells: your own row, the six rows ahead of you, and three columns to either side. Walls and
closed doors hide what is behind them, and what is behind you is out of view.

Actions, one a step:
- turn left, turn right: turn by a quarter on the spot.
- go forward: move one cell ahead, if it is free or an open door. Nothing else can be walked on.
- pick up: take the object in the cell right ahead. You carry one object at most. Doors cannot be taken.
- drop: put what you carry into the cell right ahead, which must be free.
- toggle: open or close the door right ahead. A locked door opens only while you carry a key of its color.
  Toggling a box destroys it, and leaves what was in it.

Observations:
- "Forward: 3 free, then a wall." tells how many free cells lie in a straight line, and what ends them.
- "red ball 2 forward 1 left" is two cells ahead and one to the left of you. What is "1 forward" is right
  ahead: it can be picked up or toggled.
- "Nothing happens." means that the last action changed nothing.

Missions:
- "go to X": stand next to X and face it.
- "open X": open that door yourself. If it is open already, close it first.
- "put X next to Y": drop X on a cell beside Y, not diagonally.
- "A, then B": A first. "A after you B": B first. "A and B": in any order.
- "a red ball" is any red ball, "the red ball" the only one. "on your left", "behind you" and the like mean
  where the object is as the episode begins, in the same room.
The episode ends when the mission is done, or when no steps are left. In levels named Debug it also ends, in
failure, when a wrong door is opened or a wrong object picked up.
"""

STATE_HELP = """\
A dict with what is in view now. A cell is [right, forward] of the agent: [0, 1] is right ahead, [-2, 3] two
to the left and three ahead. In view are right -3 to 3 and forward 0 to 6; hidden cells appear nowhere.
- "mission": str
- "changed": bool, whether the last action changed anything; true at the beginning
- "direction": "north", "east", "south" or "west", where the agent faces
- "carrying": None or {"type": "key", "color": "red"}
- "objects": list, nearest first, of {"type": "door" | "key" | "ball" | "box",
  "color": "red" | "green" | "blue" | "purple" | "yellow" | "grey",
  "state": "open" | "closed" | "locked" for doors, else None, "position": [right, forward]}
- "walls": list of cells that are walls
- "free": list of cells that can be walked on; those with an open door are not among them but can be too
"""
