"""What the newest non_llm record has learned, as a moving picture: docs/figures/non_llm_solution.gif.

    python -m benchmarks.learned_solution

Its agent plays the committed practice levels, which it never saw. The first that it solves in 40 moves or
more is drawn.
"""

import argparse

import torch

from harness.boards import read_records
from harness.errors import run_command
from harness.files import write_atomic
from harness.track import ROOT
from non_llm.eval_speedrun import play, snapshot
from sokoban.generator import practice_levels
from sokoban.reference import replay
from sokoban.render import gif

LEAST = 40  # moves: fewer hardly show anything
TILE = 32  # pixels


def main() -> int:
    """Play, and draw."""
    argparse.ArgumentParser(
        prog="python -m benchmarks.learned_solution",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    record = [entry.folder for entry in read_records() if entry.record.track == "non_llm"][-1]
    checkpoint = (record / "checkpoint.safetensors").read_bytes()
    policy = snapshot(record / "speedrun.py").load_policy(checkpoint, torch.device("cpu"))
    levels = practice_levels()
    games = enumerate(play(policy, levels, torch.device("cpu")))
    index, moves = next((i, m) for i, m in games if len(m) >= LEAST and replay(levels.level(i), m).solved)
    path = ROOT / "docs/figures/non_llm_solution.gif"
    write_atomic(path, gif(levels.level(index), moves, tile=TILE))
    print(f"{path.relative_to(ROOT)}: {record.name} solves practice level {index} in {len(moves)} moves")
    return 0


if __name__ == "__main__":
    run_command(main)
