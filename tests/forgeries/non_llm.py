"""The faster of the standing records of the non_llm track made untrue in what is the track's own."""

import json
from collections.abc import Callable
from typing import Any

from forgeries.table import EITHER, Forgery
from harness.checks.folder import SIZE_LIMIT
from sokoban.reference import STEP_LIMIT
from toy_track.forging import (
    Forged,
    Row,
    Step,
    both,
    copy_play,
    play,
    shorten,
    sibling,
    then,
    update,
    write,
)

ORIGINAL, OTHER = "2026-11-30_01_push-ppo", "2026-11-30_02_faster-muon"
SECOND = ("verification",)
TEST_SHA256 = "272928a4e7c185fdf84daa523b298750b6ff08703cb0c20d3be7eff93acc5256"
TEST, VALID = "unfiltered/test/000.txt", "unfiltered/valid/000.txt"


def moves(change: Callable[[str], object], choose: Callable[[str], bool] = bool) -> Step:
    """Other moves in the first level whose moves are of the right kind."""

    def forge(rows: list[Row]) -> None:
        row = next(row for row in rows[1:] if choose(row["moves"]))
        row["moves"] = change(row["moves"])

    return play(forge)


def easier(rows: list[Row]) -> None:
    """The shortest solution of any level as that of the last one."""
    rows[-1]["moves"] = min((row["moves"] for row in rows[1:-1]), key=len)


def swap(rows: list[Row]) -> None:
    """Two lines in each other's place."""
    rows[10], rows[11] = rows[11], rows[10]


def data(**changes: str) -> Step:
    """Both runs say that they read other files too."""

    def forge(f: Forged) -> None:
        f.manifest(data=f.read_manifest()["data"] | changes)

    return both(forge)


def machine(**changes: Any) -> Step:
    """Another machine in the manifest."""
    return lambda f: f.manifest(machine=f.read_manifest()["machine"] | changes)


def pause(f: Forged) -> None:
    """A fifth of the time, and more, spent between two steps, told by both clocks."""
    f.shift("train_stop", 60.0, "monotonic", "utc")
    f.retime()


def copy_checkpoint(f: Forged) -> None:
    """The first run's checkpoint in the second, which says that it played."""
    f.save((f.path / "checkpoint.safetensors").read_bytes())


def note_in_weights(f: Forged) -> None:
    """A remark beside the tensors of the checkpoint."""
    content = (f / "checkpoint.safetensors").read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:start]) | {"__metadata__": {"note": "7"}}).encode()
    f.save(len(header).to_bytes(8, "little") + header + content[start:])


SAME_SEED: dict[str, Step] = {"a note in the checkpoint": note_in_weights}
_DATA = ("data", "verification/data")
FORGERIES: list[Forgery] = [
    # ---- levels ----
    Forgery("last level missing", play(list.pop), ("evidence",), "999 of 1000 levels", SECOND),
    Forgery("level left out", play(lambda rows: rows.pop(500)), ("evidence",), "must be level 499", SECOND),
    Forgery(
        "level repeated", play(lambda rows: rows.insert(7, rows[7])), ("evidence",), "must be level 7",
        SECOND,
    ),
    Forgery("levels reordered", play(swap), ("evidence",), "must be level 9 with", SECOND),
    Forgery(
        "a level more", play(lambda rows: rows.append({"level": 1000, "moves": ""})), ("evidence",),
        "more than 1000", SECOND,
    ),
    Forgery("level replaced by an easier one", play(easier), ("evidence",), "level 999, move", SECOND),
    Forgery("level a text", update(5, level="4"), ("evidence",), "must be level 4", SECOND),
    Forgery("level true", update(2, level=True), ("evidence",), "must be level 1", SECOND),
    Forgery("level with a score", update(5, solved=True), ("evidence",), "must be level 4", SECOND),
    Forgery(
        "levels that are there to tune on", update(0, levels="unfiltered/valid"), ("evidence",),
        "levels_sha256 is not", SECOND,
    ),
    Forgery(
        "levels of another file", update(0, levels_sha256="0" * 64), ("evidence",), "is not 2729", SECOND,
    ),
    Forgery("levels elsewhere", update(0, levels="../test"), ("evidence",), "levels is none of", SECOND),
    Forgery("header with more", update(0, note="fast"), ("evidence",), "the first line does", SECOND),
    # ---- moves ----
    Forgery("illegal move", moves(lambda text: text[:-1] + "x"), ("evidence",), "not one of u d l r", SECOND),
    Forgery("a push told as a step", moves(str.lower), ("evidence",), "this move pushes a box", SECOND),
    Forgery(
        "a step told as a push", moves(str.upper, lambda text: text[0].islower()), ("evidence",),
        "this move pushes no box", SECOND,
    ),
    Forgery(
        "moves after the step limit", moves(lambda text: text + "u", lambda text: len(text) == STEP_LIMIT),
        ("evidence",), "past the limit of 120", SECOND,
    ),
    Forgery(
        "moves after the solve", moves(lambda text: text + "u", lambda text: len(text) < STEP_LIMIT // 2),
        ("evidence",), "already solved", SECOND,
    ),
    Forgery(
        "letters that look alike", moves(lambda text: text.replace("u", "\u057d"), lambda text: "u" in text),
        ("evidence",), "not one of u d l r", SECOND,
    ),
    Forgery("moves as a list", moves(list), ("evidence",), "are not a string", SECOND),
    Forgery("moves as a number", moves(len), ("evidence",), "are not a string", SECOND),
    # ---- whose play it is ----
    Forgery(
        "evidence of another checkpoint", update(0, checkpoint_sha256="0" * 64), ("checkpoint",),
        "sha256 is", SECOND,
    ),
    Forgery(
        "another checkpoint in place", write("checkpoint.safetensors", b"\0" * 100),
        ("checkpoint", "checkpoint_form"), "sha256 is", EITHER,
    ),
    Forgery(
        "the first run's checkpoint again", copy_checkpoint, ("evidence_distinct",), "holds the same",
        SECOND,
    ),
    Forgery(
        "the first run's play again", copy_play("*/evidence.jsonl"), ("evidence_distinct",),
        "holds the same as evidence.jsonl", SECOND,
    ),
    Forgery(
        "play of a standing record", then(sibling("non_llm", OTHER), copy_play(f"{OTHER}/evidence.jsonl")),
        ("evidence_distinct",), f"the same as {OTHER}/evidence.jsonl", SECOND,
    ),
    Forgery(
        "a checkpoint that unpacks as code", lambda f: f.save(b"\x80\x04N."), ("checkpoint_form",),
        "safetensors", SECOND,
    ),
    Forgery(
        "a checkpoint with more behind its tensors",
        lambda f: f.save((f / "checkpoint.safetensors").read_bytes() + b"\0"), ("checkpoint_form",),
        "safetensors", SECOND,
    ),
    Forgery(
        "checkpoint over the size limit", write("checkpoint.safetensors", b"\0" * (SIZE_LIMIT + 1)),
        ("plain_files", "checkpoint", "checkpoint_form", "evidence", "file_hashes"),
        "at most 8,388,608", EITHER,
    ),
    # ---- what training read ----
    Forgery("trained on the held-out levels", data(**{TEST: "0" * 64}), _DATA, f"names '{TEST}'"),
    Forgery("trained on levels to tune on", data(**{VALID: "0" * 64}), _DATA, f"names '{VALID}'"),
    Forgery(
        "a symmetric copy of a held-out level among those to train on",
        data(**{"unfiltered/train/000.txt": "0" * 64}), _DATA, "unfiltered/train/000.txt is '000",
    ),
    Forgery(
        "held-out levels under the name of others",
        data(**{"unfiltered/train/000.txt": TEST_SHA256}),
        _DATA, "unfiltered/train/000.txt is '2729",
    ),
    # ---- machine, clock and rules ----
    Forgery("four cores", machine(available_cores=4), ("class",), "the machine is of no class", SECOND),
    Forgery("a GPU in sight", machine(gpus=["NVIDIA T4"]), ("class",), "the machine is of no class", SECOND),
    Forgery(
        "a run of one H100 on the board of two cores", machine(gpus=["NVIDIA H100 80GB HBM3"]), ("class",),
        "the machine is of class 1xH100", SECOND,
    ),
    Forgery(
        "more warm-up than a class may have", lambda f: f.shift("warmup_stop", 180.0, "monotonic", "utc"),
        ("warmup_bound",), "expected at most 180 s", SECOND,
    ),
    Forgery("a pause", pause, ("no_pause",), "train_stop comes 60.", SECOND),
    Forgery(
        "half of the steps out of the log", lambda f: f.log(shorten), ("no_pause",), "train_stop", SECOND,
    ),
    Forgery(
        "the rules of Sokoban changed",
        lambda f: f.fixed("sokoban/reference.py").write_text("STEP_LIMIT=999"),
        ("fixed_files", "verification/fixed_files"), "sokoban/reference.py is",
    ),
    Forgery(
        "the held-out levels changed", lambda f: f.fixed("sokoban/data/boxoban.sha256").write_text(""),
        ("fixed_files", "verification/fixed_files"), "sokoban/data/boxoban.sha256 is",
    ),
    Forgery(
        "a library put in front",
        lambda f: f.manifest(
            environment={"LD_PRELOAD": "/tmp/fast.so"}, overriding_environment=["LD_PRELOAD"]
        ),
        ("eligible",), "overrides it: LD_PRELOAD", SECOND,
    ),
    Forgery(
        "other flags of the recipe", lambda f: f.manifest(flags=["--recipe.pushes"]), ("eligible",),
        "--recipe.pushes", SECOND,
    ),
    Forgery(
        "fewer pushes", lambda f: f.recipe(pushes=1), ("recipe_in_source", "same_recipe"), "pushes is 1",
        SECOND,
    ),
]  # fmt: skip
