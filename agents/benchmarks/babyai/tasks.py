"""FIXED: the tasks by name, how many steps each allows, and which seeds belong to which split.

Five families are played in the manner of BALROG (arXiv 2411.13543); the other tasks are the levels of BabyAI
(arXiv 1810.08272) under the names that Minigrid registers.
"""

from difflib import get_close_matches
from typing import Any

from agents.benchmarks.base import Split
from harness.errors import Problem

# ---- families ------------------------------------------------------------------------------------------

_ONE_ROOM: dict[str, Any] = {
    "room_size": 8,
    "num_rows": 1,
    "num_cols": 1,
    "num_dists": 8,
    "locked_room_prob": 0.0,
    "locations": False,
    "unblocking": False,
    "instr_kinds": ("action",),
}

FAMILIES: dict[str, dict[str, Any]] = {
    "goto": {**_ONE_ROOM, "action_kinds": ("goto",)},
    "pickup": {**_ONE_ROOM, "action_kinds": ("pickup",)},
    "open": {**_ONE_ROOM, "action_kinds": ("open",), "num_cols": 2},
    "putnext": {**_ONE_ROOM, "action_kinds": ("putnext",)},
    "pick_up_seq_go_to": {**_ONE_ROOM, "action_kinds": ("pickup", "goto"), "instr_kinds": ("seq",)},
}
"""Arguments of Minigrid's LevelGen: rooms of 6 by 6 cells, eight objects among which the mission chooses."""

_FAMILY_STEPS = 128

# ---- named levels --------------------------------------------------------------------------------------

# Steps allowed -> names without "BabyAI-": as many as the level has cells, room_size ** 2 * rooms, and at
# least 128. Minigrid itself allows that many for each part of the mission, so that its limit varies by seed.
# BabyAI-OpenDoorsOrderN2Debug-v0 and N4Debug are left out: what opens the first of two doors counts in them
# as opening a wrong second one, so missions with two doors cannot be fulfilled.
_LEVELS = {
    128: """
        GoToRedBallGrey-v0 GoToRedBall-v0 GoToRedBallNoDists-v0 GoToObj-v0 GoToObjS4-v0 GoToObjS6-v1
        GoToLocal-v0 GoToLocalS5N2-v0 GoToLocalS6N2-v0 GoToLocalS6N3-v0 GoToLocalS6N4-v0
        GoToLocalS7N4-v0 GoToLocalS7N5-v0 GoToLocalS8N2-v0 GoToLocalS8N3-v0 GoToLocalS8N4-v0
        GoToLocalS8N5-v0 GoToLocalS8N6-v0 GoToLocalS8N7-v0 GoToObjMazeS4R2-v0 GoToSeqS5R2-v0
        GoToRedBlueBall-v0 OpenRedDoor-v0 PickupLoc-v0 PickupDist-v0 PickupDistDebug-v0 PutNextLocal-v0
        PutNextLocalS5N3-v0 PutNextLocalS6N4-v0 PutNextS4N1-v0 PutNextS5N2-v0 PutNextS5N1-v0
        PutNextS6N3-v0 PutNextS7N4-v0 PutNextS5N2Carrying-v0 PutNextS6N3Carrying-v0
        PutNextS7N4Carrying-v0 UnlockPickup-v0 UnlockPickupDist-v0 BlockedUnlockPickup-v0
        UnlockToUnlock-v0 KeyCorridorS3R1-v0 KeyCorridorS3R2-v0 KeyCorridorS3R3-v0 OneRoomS8-v0
        MoveTwoAcrossS5N2-v0 MoveTwoAcrossS8N9-v0 MiniBossLevel-v0
    """,
    144: """
        GoToObjMazeS4-v0 KeyCorridorS4R3-v0 OneRoomS12-v0
    """,
    150: """
        SynthS5R2-v0
    """,
    225: """
        GoToObjMazeS5-v0 FindObjS5-v0 KeyCorridorS5R3-v0
    """,
    256: """
        OneRoomS16-v0
    """,
    324: """
        GoToObjMazeS6-v0 OpenTwoDoors-v0 OpenRedBlueDoors-v0 OpenRedBlueDoorsDebug-v0
        OpenDoorsOrderN2-v0 OpenDoorsOrderN4-v0 PickupAbove-v0 FindObjS6-v0 KeyCorridor-v0
        KeyCorridorS6R3-v0
    """,
    400: """
        OneRoomS20-v0
    """,
    441: """
        GoToObjMazeS7-v0 GoToDoor-v0 ActionObjDoor-v0 FindObjS7-v0
    """,
    576: """
        GoTo-v0 GoToOpen-v0 GoToObjMaze-v0 GoToObjMazeOpen-v0 GoToImpUnlock-v0 GoToSeq-v0 GoToObjDoor-v0
        Open-v0 OpenDoor-v0 OpenDoorDebug-v0 OpenDoorColor-v0 OpenDoorLoc-v0 Pickup-v0 UnblockPickup-v0
        Unlock-v0 UnlockLocal-v0 UnlockLocalDist-v0 KeyInBox-v0 Synth-v0 SynthLoc-v0 SynthSeq-v0
        BossLevel-v0 BossLevelNoUnlock-v0
    """,
}

LEVELS: dict[str, int] = {
    f"BabyAI-{name}": steps for steps, names in _LEVELS.items() for name in names.split()
}
"""Every level that Minigrid registers and that can be solved -> steps allowed."""

TASKS: tuple[str, ...] = (*FAMILIES, *LEVELS)

# ---- what holds for a task -----------------------------------------------------------------------------

_SEEDS: dict[Split, range] = {
    "train": range(1_000_000),
    "valid": range(1_000_000, 1_100_000),
    "test": range(2_000_000, 2_100_000),
}


def check_task(task: str) -> None:
    """Raise a Problem unless there is such a task."""
    if task not in TASKS:
        near = get_close_matches(task, TASKS, 1, 0.5)
        hint = f"did you mean {near[0]}?" if near else f"the families are {', '.join(FAMILIES)}"
        raise Problem(f"BabyAI has no task {task!r}", remedy=hint)


def step_limit(task: str) -> int:
    """Steps after which an episode of the task is over."""
    check_task(task)
    return LEVELS.get(task, _FAMILY_STEPS)


def seeds(task: str, split: Split) -> range:
    """Seeds of a split; small levels are the same for many seeds."""
    check_task(task)
    return _SEEDS[split]
