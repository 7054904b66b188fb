"""The command line that every speedrun.py shares, on a toy recipe."""

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import pytest

from harness.errors import Problem
from harness.files import canonical_json, sha256_file
from harness.launch import launch
from harness.log import read_log
from harness.manifest import read_manifest
from harness.run import Run, derived_seed
from harness.track import Score
from toy_track import track


@dataclass(frozen=True)
class ToyRecipe:
    """A recipe whose only open number is how many squares it learns."""

    seed: int = 1
    right: int = 95
    """How many squares to know."""

    def smoke(self) -> "ToyRecipe":
        return replace(self, right=2)


def train(run: Run, recipe: ToyRecipe) -> None:
    with run.warmup():
        pass
    run.train_start()
    run.record_data([("squares.txt", sha256(track.DATA).hexdigest())])
    run.log_step(1, solve_rate=recipe.right / track.COUNT)
    run.train_stop()
    run.save_checkpoint(json.dumps({"known": recipe.right, "seed": run.manifest.seed}).encode())


def evaluate(run: Run) -> Score:
    run.eval_start()
    evidence = run.path / track.TRACK.evidence_name
    known = json.loads((run.path / track.TRACK.checkpoint_name).read_text())["known"]
    evidence.write_text(track.evidence(known))
    score = track.TRACK.score(evidence)
    run.eval_stop(evidence, score)
    run.stop()
    return score


@pytest.fixture
def command(tmp_path: Path, plain_machine: None, monkeypatch: pytest.MonkeyPatch) -> "Command":
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.machine.available_cores", lambda: 2)
    monkeypatch.setattr("harness.machine.pin", lambda cores: None)
    return Command(tmp_path, monkeypatch)


class Command:
    """`python -m toy_track.speedrun ARGUMENTS`; returns the run folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        self.source = folder / "speedrun.py"
        self.source.write_text("# the source of a recipe\n")

    def __call__(self, *arguments: str) -> Path:
        before = set((self.folder / "outputs").glob("*"))
        self.monkeypatch.setattr("sys.argv", ["speedrun", *arguments])
        recipes = {"cpu": ToyRecipe(), "1xH100": ToyRecipe(right=99)}
        status = launch(track.TRACK, recipes, train=train, evaluate=evaluate, source=self.source)
        assert status == 0
        (run,) = set((self.folder / "outputs").glob("*")) - before
        return run


def test_without_flags_the_pinned_recipe_runs(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    run = command()
    manifest = read_manifest(run / "manifest.json")
    assert manifest.recipe == {"seed": 1, "right": 95}
    assert (manifest.recipe_name, manifest.seed, manifest.seed_source) == ("cpu", 1, "recipe")
    assert manifest.flags == () and not manifest.smoke and manifest.verifies is None
    assert read_log(run / "log.jsonl").status == "complete"
    assert f"Next: RUN={Path('outputs') / run.name} DEST=" in capsys.readouterr().out


def test_a_flag_changes_the_recipe_and_is_named(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    run = command("--recipe.right", "98")
    manifest = read_manifest(run / "manifest.json")
    assert manifest.recipe["right"] == 98 and manifest.flags == ("--recipe.right",)
    assert "No record, because flags change the recipe: --recipe.right" in capsys.readouterr().out


def test_a_flag_that_repeats_the_pinned_value_changes_nothing(command: Command) -> None:
    assert read_manifest(command("--recipe.right", "95") / "manifest.json").flags == ()


def test_smoke_is_tiny_and_says_so(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = read_manifest(command("--smoke") / "manifest.json")
    assert manifest.smoke and manifest.recipe["right"] == 2
    output = capsys.readouterr().out
    assert "it is a smoke run" in output and "is not above the target" in output


def test_verification_takes_the_seed_from_the_first_run(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    first = command()
    second = read_manifest(command("--verify", str(first)) / "manifest.json")
    manifest = read_manifest(first / "manifest.json")
    recipe_hash = sha256(canonical_json({"seed": 1, "right": 95}).encode()).hexdigest()
    assert manifest.recipe_sha256 == second.recipe_sha256 == recipe_hash
    assert second.seed == derived_seed(sha256_file(first / track.TRACK.evidence_name), recipe_hash) != 1
    assert second.verifies == manifest.run_id
    assert f"VERIFY_OF={first}" in capsys.readouterr().out


def test_verification_by_another_source_or_recipe_is_refused(command: Command) -> None:
    first = command()
    with pytest.raises(Problem, match="this is another"):
        command("--verify", str(first), "--recipe.right", "97")
    command.source.write_text("# another source\n")
    with pytest.raises(Problem, match=r"not the one that made this record.*cp "):
        command("--verify", str(first))


def test_unknown_flags_and_help_exit(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, status in ((["--nonsense"], 2), (["--help"], 0)):
        with pytest.raises(SystemExit) as caught:
            command(*arguments)
        assert caught.value.code == status
    assert "How many squares to know" in capsys.readouterr().out
