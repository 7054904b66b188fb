"""FIXED: play every held-out level once, greedily, and write what was played as evidence.

    python -m non_llm.eval_speedrun outputs/<run>

The policy comes from the run's own snapshot of speedrun.py and from its checkpoint. It sees one position at a
time and answers with primitive moves, or with pushes, which unroll into primitive moves by the shortest walk.
"""

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from harness.errors import Problem, run_command
from harness.files import sha256_file, write_atomic
from harness.progress import progress_bar
from harness.run import SOURCE_NAME, Run
from harness.track import Score
from non_llm.track import PRACTICE, TEST, TRACK, VALID, held_out, official_levels, replay_evidence
from sokoban.boxoban import LevelsUnavailable
from sokoban.levels import Level
from sokoban.reference import LETTERS, STEP_LIMIT, Game, neighbour, walk
from sokoban.rules import Boards, SokobanBatch, Walks
from sokoban.table import LevelTable


class Position(NamedTuple):
    """What a policy sees of B boards; `moves` made (B,), `legal` pushes as words (B, 4)."""

    boards: Boards
    moves: Tensor
    walks: Walks
    legal: Tensor


class Policy(Protocol):
    """What `load_policy(checkpoint: bytes, device: torch.device)` of a speedrun.py must return."""

    acts_by_pushing: bool
    """Whether the actions are those of SokobanBatch.push; otherwise those of SokobanBatch.move."""

    def act(self, position: Position) -> Tensor:
        """Greedy actions (B,) int64. The boards are the same in every call, in play or over."""


def evaluate(run: Run) -> Score:
    """Play held-out levels, write the evidence, log the score that its replay gives, end the run.

    The test levels are for the pinned recipe; an experiment, whose flags change it, plays VALID.
    """
    experiment = run.manifest.flags or run.manifest.smoke
    name = PRACTICE if not official_levels() else VALID if experiment else TEST
    print(f"Evaluation on {name}", flush=True)
    levels, digest = held_out(name)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    run.eval_start()
    checkpoint = run.path / TRACK.checkpoint_name
    policy: Policy = snapshot(run.path / SOURCE_NAME).load_policy(checkpoint.read_bytes(), device)
    header = {
        "levels": name,
        "levels_sha256": digest,
        "checkpoint_sha256": sha256_file(checkpoint),
    }
    lines = [header, *({"level": i, "moves": moves} for i, moves in enumerate(play(policy, levels, device)))]
    evidence = run.path / TRACK.evidence_name
    write_atomic(evidence, "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    score = replay_evidence(evidence)
    run.eval_stop(evidence, score)
    run.stop()
    return score


@torch.inference_mode()
def play(policy: Policy, levels: LevelTable, device: torch.device) -> list[str]:
    """Play every level of the table once; returns the moves of each in LURD notation."""
    batch = SokobanBatch(levels, len(levels), generator=None, device=device)
    actions: list[list[int]] = [[] for _ in range(len(levels))]
    playing = torch.ones(len(levels), dtype=torch.bool, device=device)
    with progress_bar(STEP_LIMIT, "action") as bar:
        for _ in range(STEP_LIMIT):  # every action costs at least one move
            walks = batch.walks()
            chosen = policy.act(Position(batch.boards, batch.moves, walks, batch.legal_pushes(walks)))
            for index in playing.nonzero()[:, 0].tolist():
                actions[index].append(int(chosen[index]))
            outcome = batch.push(chosen, walks) if policy.acts_by_pushing else batch.move(chosen)
            playing &= ~outcome.done
            bar.update()
            if not playing.any():
                bar.total = bar.n  # fewer actions than moves were needed
                break
    unroll = unroll_pushes if policy.acts_by_pushing else unroll_moves
    return [unroll(levels.level(index), chosen) for index, chosen in enumerate(actions)]


def unroll_pushes(level: Level, actions: list[int]) -> str:
    """Write push actions as moves: the walk to each box, then the push; up to the step limit."""
    game, text = Game(level), ""
    for action in actions:
        direction, cell = action >> 6, action & 63
        box = (cell // 8 + 1, cell % 8 + 1)
        behind = neighbour(box, direction ^ 1)
        steps = walk(level, game.boxes, game.player, behind)
        beyond = neighbour(box, direction)
        if steps is None or box not in game.boxes or beyond in game.boxes | level.walls:
            return text  # the rules let an illegal push cost a move; as evidence it is the end of play
        for letter in steps + LETTERS[direction]:
            if game.moves == STEP_LIMIT:
                return text
            text += letter.upper() if game.move(LETTERS.index(letter)) else letter
    return text


def unroll_moves(level: Level, actions: list[int]) -> str:
    """Write primitive actions as moves."""
    game = Game(level)
    return "".join(LETTERS[a].upper() if game.move(a) else LETTERS[a] for a in actions)


def snapshot(path: Path) -> ModuleType:
    """The run's own speedrun.py as a module."""
    spec = importlib.util.spec_from_file_location("snapshot_of_speedrun", path)
    if spec is None or spec.loader is None:
        raise Problem("cannot be loaded", file=path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m non_llm.eval_speedrun",
        description="Play the held-out levels with the checkpoint of a run.",
    )
    parser.add_argument("run", type=Path, help="run folder, outputs/<run>")
    arguments = parser.parse_args()
    with Run.open(arguments.run, TRACK.name) as run:
        evaluate(run)


if __name__ == "__main__":
    run_command(main, LevelsUnavailable)
