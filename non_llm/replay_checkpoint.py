"""Asks the checkpoints of a record to play again, and compares their moves with the evidence.

    python -m non_llm.replay_checkpoint records/non_llm/<record>

This RUNS the record's speedrun.py, which verify_record.py never does: read it first. Sums in another order
turn a few greedy choices on another machine, so it exits 1 only where a checkpoint solves a share of levels
that is further from that of the evidence than half of the claimed interval.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from harness.errors import Problem, run_command
from harness.files import read_bytes, read_jsonl
from harness.record import SECOND, SOURCE
from non_llm.eval_speedrun import Policy, play, snapshot
from non_llm.track import TEST, TRACK, held_out, score
from sokoban.boxoban import LevelsUnavailable
from sokoban.reference import replay


class Replayed(NamedTuple):
    """What a checkpoint played, beside what its evidence says of the same levels."""

    levels: int
    alike: int
    """Levels with the same moves, to the last."""
    solved: int
    """Levels that the checkpoint solved now."""
    claimed: int
    """Levels that the evidence solves."""
    tolerance: float
    """How far apart the two may be, as a share of the levels."""

    @property
    def agrees(self) -> bool:
        return abs(self.solved - self.claimed) <= self.tolerance * self.levels


def replay_checkpoint(run: Path, source: Path, levels: int | None = None) -> Replayed:
    """Play the first test levels, or all, with the checkpoint in a folder, by the policy of a speedrun.py.

    Raises:
        Problem: the evidence breaks the rules, or a file or the levels are missing.
        Exception: whatever that source raises.
    """
    evidence = run / TRACK.evidence_name
    claimed = score(evidence)
    table = held_out(TEST)[0].take(slice(levels))
    told = [str(line["moves"]) for number, line in read_jsonl(evidence) if number > 1][: len(table)]
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    policy: Policy = snapshot(source).load_policy(read_bytes(run / TRACK.checkpoint_name), device)
    played = play(policy, table, device)
    return Replayed(
        levels=len(table),
        alike=sum(one == other for one, other in zip(played, told, strict=True)),
        solved=sum(replay(table.level(index), moves).solved for index, moves in enumerate(played)),
        claimed=round(sum(claimed.outcomes[: len(table)])),
        tolerance=(claimed.high - claimed.low) / 2,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m non_llm.replay_checkpoint",
        description="Ask the checkpoints of a record to play the test levels again. Runs its speedrun.py.",
    )
    parser.add_argument("record", type=Path, help="folder records/non_llm/<record>")
    parser.add_argument("--levels", type=int, help="only so many of the levels")
    options = parser.parse_args(arguments)
    record: Path = options.record
    if not (record / SOURCE).is_file():
        raise Problem(f"holds no {SOURCE}", file=record, remedy="give a folder records/non_llm/<record>")
    agreed = True
    for run in (run for run in (record, record / SECOND) if run.is_dir()):
        found = replay_checkpoint(run, record / SOURCE, options.levels)
        print(
            f"{run}: {found.alike} of {found.levels} levels played alike; {found.solved} solved, "
            f"{found.claimed} in the evidence: {'agrees' if found.agrees else 'DIFFERS'}",
            flush=True,
        )
        agreed &= found.agrees
    return 0 if agreed else 1


if __name__ == "__main__":
    run_command(main, LevelsUnavailable)
