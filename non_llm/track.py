"""FIXED: the task of the non_llm track, and how its evidence is scored.

An agent trained from scratch on unfiltered/train plays every level of unfiltered/test once, greedily, within
120 moves. The low end of the 95% Wilson interval of its solve rate must lie strictly above 0.70.

Evidence is a JSON-lines file. The first line names the levels and the checkpoint that played them; then comes
one line a level, in order, with the moves in LURD notation (see `sokoban.reference`):

    {"levels":"unfiltered/test","levels_sha256":"2729...","checkpoint_sha256":"..."}
    {"level":0,"moves":"dlluRdrUU"}
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.errors import Problem, Unavailable
from harness.files import parse_json, read_bytes, read_jsonl, sha256_bytes, sha256_file
from harness.intervals import wilson
from harness.rulesets import before_2
from harness.track import FIRST_LINE, HARNESS_FILES, HardwareClass, Score, Track
from non_llm.calibration import calibrate
from sokoban.boxoban import (
    FOLDER_VARIABLE,
    LevelsUnavailable,
    WrongChecksum,
    describe_levels,
    pinned_files,
    read_split,
)
from sokoban.generator import PRACTICE as PRACTICE_FILE
from sokoban.generator import generate, practice_levels
from sokoban.reference import IllegalMove, replay
from sokoban.table import LevelTable

TRAIN, VALID, TEST, PRACTICE = "unfiltered/train", "unfiltered/valid", "unfiltered/test", "practice"
GENERATED_FILE = 1000  # levels that stand in for one official file


def official_levels() -> bool:
    """Whether the official levels can be had here; raises as `prepare` does."""
    return not prepare()


@cache
def prepare() -> str:
    """Download the official levels if they are not here; says so plainly where they cannot be had.

    Raises:
        LevelsUnavailable: the folder that BOXOBAN_LEVELS names lacks some.
        WrongChecksum: some are here and damaged.
    """
    try:
        for split in (TEST, VALID, TRAIN):
            read_split(split)
    except LevelsUnavailable as error:
        if isinstance(error, WrongChecksum) or os.environ.get(FOLDER_VARIABLE):
            raise
        return f"No official levels: {error}\nGenerated levels stand in for them: this run ranks nowhere."
    return ""


def training_levels(files: int) -> LevelTable:
    """The first `files` files of TRAIN, 1,000 levels each, or as many generated levels."""
    if official_levels():
        return read_split(TRAIN, files)
    return replace(generate(files * GENERATED_FILE, seed=1), sources=(("generated", "0" * 64),))


def held_out(name: str) -> tuple[LevelTable, str]:
    """The levels of an evaluation, TEST, VALID or PRACTICE, and their SHA-256.

    Of several files it is the SHA-256 of their SHA-256s, joined.
    """
    if name == PRACTICE:
        return practice_levels(), sha256_file(PRACTICE_FILE)
    levels = read_split(name)
    digests = [digest for _, digest in levels.sources]
    return levels, digests[0] if len(digests) == 1 else sha256_bytes("".join(digests).encode())


def score(evidence: Path) -> Score:
    """Replay evidence on the official test levels.

    Raises:
        Problem: evidence of other levels, with a line missing, repeated, out of order or malformed, or with
            a move that the rules do not allow; or the levels are not at hand.
    """
    result = replay_evidence(evidence)
    levels = next(read_jsonl(evidence))[1]["levels"]
    if levels != TEST:
        raise Problem(f"evidence on {levels!r}, not on {TEST!r}", file=evidence, line=1)
    return result


def replay_evidence(evidence: Path) -> Score:
    """Replay evidence on the levels that it names; see `score`."""
    lines = read_jsonl(evidence)
    number, header = next(lines, (1, {}))
    if set(header) != {"levels", "levels_sha256", "checkpoint_sha256"}:
        raise Problem("the first line does not name levels and checkpoint", file=evidence, line=number)
    if header["levels"] not in (TEST, VALID, PRACTICE):
        raise Problem(f"levels is none of {TEST}, {VALID}, {PRACTICE}", file=evidence, line=number)
    try:
        table, digest = held_out(header["levels"])
    except LevelsUnavailable as error:
        raise Unavailable(error.reason, remedy=error.remedy) from error
    if header["levels_sha256"] != digest:
        raise Problem(f"levels_sha256 is not {digest}", file=evidence, line=number)
    outcomes: list[float] = []
    for number, line in lines:
        index = len(outcomes)
        if index == len(table):
            raise Problem(f"more than {len(table)} levels", file=evidence, line=number)
        moves = line.get("moves")
        if line != {"level": index, "moves": moves} or type(line["level"]) is not int:
            raise Problem(f"this must be level {index} with its moves", file=evidence, line=number)
        if not isinstance(moves, str):
            raise Problem(f"the moves of level {index} are not a string", file=evidence, line=number)
        try:
            outcomes.append(float(replay(table.level(index), moves).solved))
        except IllegalMove as error:
            raise Problem(f"level {index}, {error}", file=evidence, line=number) from error
    if len(outcomes) < len(table):
        raise Problem(f"{len(outcomes)} of {len(table)} levels, the rest is missing", file=evidence)
    solved, count = round(sum(outcomes)), len(outcomes)
    return Score(solved / count, *wilson(solved, count), solved, count, "levels", tuple(outcomes))


def _check_checkpoint(path: Path, recipe: Mapping[str, Any], seed: int) -> None:
    """The file is one of tensors in the form of safetensors: a header of JSON, then exactly its tensors."""
    content = read_bytes(path)
    start = 8 + int.from_bytes(content[:8], "little")
    header: Any = parse_json(content[8:start], path, None) if start <= len(content) else None
    try:
        ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        whole = start + max(ends) == len(content)
    except (AttributeError, LookupError, TypeError, ValueError):
        whole = False
    if not whole:
        raise Problem("is not a file of tensors in the form of safetensors and nothing else", file=path)


def _ready() -> list[str]:
    missing = [f"the {name} library" for name in ("torch", "safetensors") if find_spec(name) is None]
    if os.environ.get(FOLDER_VARIABLE):
        try:
            read_split(TEST)
        except LevelsUnavailable as error:
            missing.append(f"the official levels ({error})")
    return missing


_SINCE_2 = (
    "sokoban/__init__.py",
    "sokoban/files.py",
    "sokoban/generator.py",
    "sokoban/reverse_play.py",
    "sokoban/symmetry.py",
)

TRACK = Track(
    name="non_llm",
    title="Sokoban from scratch",
    metric="solve rate",
    target=0.70,
    ruleset="2",
    classes=(
        HardwareClass("1xH100", "one H100", cores=None, gpus=1, gpu_name="H100", warmup_limit_s=600),
        HardwareClass("cpu", "two CPU cores", cores=2, gpus=0, gpu_name="", warmup_limit_s=180),
    ),
    fixed_files=(
        "non_llm/__init__.py",
        "non_llm/track.py",
        "non_llm/eval_speedrun.py",
        "non_llm/calibration.py",
        "sokoban/reference.py",
        "sokoban/rules.py",
        "sokoban/levels.py",
        "sokoban/table.py",
        "sokoban/boxoban.py",
        "sokoban/data/boxoban.sha256",
        *_SINCE_2,
        *HARNESS_FILES,
    ),
    earlier={"1": before_2("non_llm/__init__.py", "harness/packed.py", *_SINCE_2)},
    evidence_name="evidence.jsonl",
    not_played=FIRST_LINE,
    checkpoint_name="checkpoint.safetensors",
    data_files=lambda: pinned_files(TRAIN),
    score=score,
    calibrate=calibrate,
    ready=_ready,
    assets=lambda: {"Boxoban levels": describe_levels()},
    prepare=prepare,
    check_checkpoint=_check_checkpoint,
)
