"""OPEN: the recipe that holds the record: what an agent learns in which episodes, with which model.

    python -m agents.speedrun babyai             the pinned recipe of BabyAI; also crafter and scienceworld
    python -m agents.speedrun babyai --smoke     the same, tiny, with a script in place of a model
    python -m agents.speedrun babyai --verify records/agents/...     a record's recipe with its second seed
    python -m agents.speedrun babyai --resume outputs/<run>          goes on with a run that broke off

It asks Qwen3.5-35B-A3B on a server of one's own, which agents/scripts/run_server.sh starts. Another model is
a flag away (and the run then ranks nowhere), here OpenAI's with the key in OPENAI_API_KEY:

    python -m agents.speedrun babyai --recipe.provider openai --recipe.base-url None \
        --recipe.model gpt-5-mini --recipe.temperature None

The agent plays training episodes with ReAct, and after every few of them its method updates a memory from
what happened. The methods are in `agents/methods`, what they remember in in `agents/memory`, and what the
model is told in `agents/prompts`; all of these are open too. What ranks are all tokens, those of the
evaluation among them, so a memory that makes episodes short pays twice.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from agents.core import checkpoint
from agents.core.journal import Row
from agents.core.loop import Experiment
from agents.core.replay import REPORT_TEXT
from agents.core.train import write_report
from agents.eval_speedrun import TRAINING, checkpoint_bytes, evaluate, placed
from agents.reach import SCRIPTED, check_reachable
from agents.track import TRACK
from harness.errors import Problem, run_command
from harness.launch import launch
from harness.run import Run
from harness.silent import SilentRun

# ---- the recipe --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """One way to learn."""

    tasks: tuple[str, ...] = ()
    """Training episodes are of these in turn; () = those of the evaluation."""
    seed: int = 1
    """The training episodes and all else that is random follow from it."""
    method: str = "speedrunner"
    """What learns: react, opo, speedrunner, speedrunner_no_cl, asi or voyager."""
    provider: str = "local"
    """Who serves the model: openai, gemini, local, or compatible for another server."""
    model: str = "Qwen/Qwen3.5-35B-A3B"
    """As the server knows it."""
    base_url: str | None = "http://localhost:5012/v1"
    """Address of the server; None = the provider's own."""
    api_key_env: str | None = None
    """Environment variable that holds the key; None = the provider's own."""
    temperature: float | None = 0.7
    """None = the server's."""
    top_p: float | None = None
    """None = the server's."""
    max_tokens: int = 2048
    """Of an answer, reasoning included."""
    episodes: int = 60
    """To train on."""
    sleep_every: int = 10
    """Episodes between two updates of the memory."""
    turn_limit: int = 40
    """Answers in an episode."""
    history: int = 12
    """Latest turns that prompts repeat word for word."""
    sleep_tokens: int = 80_000
    """Prompt and completion tokens of one update."""
    sleep_turns: int = 8
    """Answers of one update."""
    answer_tokens: int = 8_000
    """Completion tokens of one answer in an update."""
    functions: int = 40
    """That a codebook or a skill library holds at most."""
    experience: int = 60
    """Latest episodes that updates look back on."""
    parallel: int = 8
    """Episodes at a time."""
    budget_dollars: float | None = None
    """The most that training and evaluation may take together; None = no limit."""
    budget_tokens: int | None = None
    budget_calls: int | None = None

    def smoke(self) -> "Recipe":
        """A few short episodes with a script in place of the model."""
        return replace(
            self,
            provider="local",
            model=SCRIPTED,
            base_url=SCRIPTED,
            episodes=2,
            sleep_every=1,
            turn_limit=6,
        )


RECIPES = {
    "babyai": Recipe(),
    "crafter": Recipe(
        episodes=20,
        sleep_every=4,
        turn_limit=100,
        parallel=4,
    ),
    "scienceworld": Recipe(
        turn_limit=60,
        parallel=4,
    ),
}

# ---- learning ----------------------------------------------------------------------------------------------


def check(name: str, recipe: Recipe) -> None:
    """A Problem where the recipe cannot be, or its model cannot be asked."""
    with placed(name, vars(recipe), recipe.seed) as config:
        check_reachable(config.model)


def train(run: Run | SilentRun, recipe: Recipe) -> None:
    """Play, sleep, and save what has been learned."""
    assert isinstance(run, Run)  # no torchrun here

    def note(row: Row) -> None:
        tokens = experiment.ledger.totals().tokens
        run.log_step(run.steps + 1, score=row["score"], episode_steps=row["steps"], tokens=tokens)
        run.save_state(bytes)  # the folder of the experiment holds it all

    with placed(run.manifest.recipe_name, vars(recipe), run.seed) as config:
        folder = run.path / TRAINING
        with run.warmup():
            if not (folder / checkpoint.CONFIG).is_file():
                shutil.rmtree(folder, ignore_errors=True)  # nothing was asked yet
                checkpoint.begin(folder, config)
            experiment = Experiment(folder, config, played=note)
        try:
            run.train_start()
            for row in experiment.journal.rows[run.steps :]:  # what was not logged before it broke off
                note(row)
            end = experiment.run()
            if end.status == "interrupted":
                raise KeyboardInterrupt
            if end.status == "failed":
                raise Problem(end.reason)
            run.train_stop()
            write_report(experiment, end)
            print(f"Report of the training: {folder / REPORT_TEXT}", flush=True)
            memory = experiment.method.dump()
        finally:
            experiment.close()
    run.save_checkpoint(checkpoint_bytes(recipe.method, run.seed, memory))


if __name__ == "__main__":
    run_command(
        lambda: launch(TRACK, RECIPES, train=train, evaluate=evaluate, source=Path(__file__), check=check)
    )
