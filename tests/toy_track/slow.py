"""Squares learned one by one, so slowly that a run can be broken off: `python -m toy_track.slow`."""

import json
import time
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from random import Random

from harness.errors import run_command
from harness.files import write_atomic
from harness.launch import launch
from harness.run import Run
from harness.track import Score
from toy_track.track import DATA, TRACK, evidence


@dataclass(frozen=True)
class Recipe:
    """How many squares to learn, and how slowly."""

    seed: int = 1
    steps: int = 90
    pause: float = 0.01
    """Seconds a step."""

    def smoke(self) -> "Recipe":
        return replace(self, steps=20)


RECIPES = {"cpu": Recipe(), "1xH100": Recipe(steps=95)}


def train(run: Run, recipe: Recipe) -> None:
    generator, sums, begun = Random(run.seed), [0.0], 0
    with run.warmup():
        time.sleep(recipe.pause)
    run.train_start()
    run.record_data([("squares.txt", sha256(DATA).hexdigest())])
    if run.state is not None:
        begun, sums, (version, inner, gauss) = json.loads(run.state)
        generator.setstate((version, tuple(inner), gauss))
    for step in range(begun + 1, recipe.steps + 1):
        time.sleep(recipe.pause)
        sums.append(sums[-1] + generator.random())
        run.log_step(step, solve_rate=step / 100)
        if run.state_due():
            state = (step, sums, generator.getstate())
            run.save_state(lambda: json.dumps(state).encode())  # noqa: B023  (called at once)
    run.train_stop()
    run.save_checkpoint(json.dumps({"known": recipe.steps, "sums": sums, **asdict(recipe)}).encode())


def evaluate(run: Run) -> Score:
    run.eval_start()
    known = json.loads((run.path / TRACK.checkpoint_name).read_text())["known"]
    time.sleep(0.2)
    file = run.path / TRACK.evidence_name
    write_atomic(file, evidence(known))
    score = TRACK.score(file)
    run.eval_stop(file, score)
    run.stop()
    return score


if __name__ == "__main__":
    run_command(lambda: launch(TRACK, RECIPES, train=train, evaluate=evaluate, source=Path(__file__)))
