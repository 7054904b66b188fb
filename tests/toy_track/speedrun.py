"""Learns to square numbers, by being told how many it shall know."""

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from harness.machine import inspect, nearest_class
from harness.run import Run
from toy_track import track


@dataclass(frozen=True)
class Recipe:
    """Everything that may change."""

    right: int = 90
    steps: int = 3
    rate: float = 0.5
    seed: int = 1


RECIPES = {
    "cpu": Recipe(),
    "1xH100": Recipe(right=95, steps=4),
}


def train(outputs: Path, seed: int | None = None, verifies: str | None = None, smoke: bool = False) -> Path:
    """Run the recipe of this machine with its own seed or another; returns the run folder."""
    hardware = nearest_class(track.TRACK, inspect())
    recipe = RECIPES[hardware.name]
    source = "recipe" if seed is None else f"derived from {verifies}" if verifies else "flag"
    run = Run.create(
        track.TRACK,
        recipe_name=hardware.name,
        recipe=asdict(recipe),
        hardware_class=hardware,
        seed=recipe.seed if seed is None else seed,
        seed_source=source,
        flags=["--seed"] if source == "flag" else [],
        smoke=smoke,
        source=Path(__file__),
        verifies=verifies,
        outputs=outputs,
    )
    with run:
        with run.warmup():
            pass
        run.train_start()
        run.record_data([("squares.txt", sha256(track.DATA).hexdigest())])
        for step in range(1, recipe.steps + 1):
            run.log_step(step, solve_rate=step * recipe.right / recipe.steps / track.COUNT)
        run.train_stop()
        # The seed moves the result a little, as it does everywhere.
        known = recipe.right + run.manifest.seed % 2
        run.save_checkpoint(json.dumps({"known": known, "seed": run.manifest.seed}).encode())
    return run.path


def evaluate(path: Path) -> None:
    """Play the held-out set and end the run."""
    with Run.open(path) as run:
        known = json.loads((path / track.TRACK.checkpoint_name).read_text())["known"]
        run.eval_start()
        evidence = path / track.TRACK.evidence_name
        evidence.write_text(track.evidence(known))
        run.eval_stop(evidence, track.score(evidence))
        run.stop()
