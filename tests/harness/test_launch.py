"""The command line that every speedrun.py shares, on a toy recipe."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import pytest

from harness.eligibility import derived_seed
from harness.errors import Problem
from harness.files import canonical_json, sha256_file
from harness.launch import launch
from harness.log import read_log
from harness.manifest import read_manifest
from harness.run import Run
from harness.silent import SilentRun
from harness.track import ROOT, Score
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
    played = (first / track.TRACK.evidence_name).read_text().splitlines()
    said = "\n".join(json.dumps(json.loads(line), sort_keys=True, separators=(",", ":")) for line in played)
    assert second.seed == derived_seed(sha256(said.encode()).hexdigest(), recipe_hash) != 1
    assert second.verifies == manifest.run_id
    assert f"VERIFY_OF={first}" in capsys.readouterr().out


def test_verification_follows_the_ruleset_of_the_first_run(command: Command) -> None:
    first = command()
    text = (first / "manifest.json").read_text()
    (first / "manifest.json").write_text(text.replace('"ruleset": "2"', '"ruleset": "1"'))
    second = read_manifest(command("--verify", str(first)) / "manifest.json")
    evidence = sha256_file(first / track.TRACK.evidence_name)
    assert (second.ruleset, second.seed) == ("1", derived_seed(evidence, second.recipe_sha256))


def test_verification_of_what_is_no_record_is_refused(command: Command) -> None:
    with pytest.raises(Problem, match=r"is not a record: it has no manifest\.json\. Remedy: give a folder"):
        command("--verify", "records/toy_track/nowhere")


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


# ---- several processes --------------------------------------------------------------------------------


def test_the_other_processes_of_torchrun_only_train(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They train the same recipe with the same seed, that of a verification too, and leave nothing."""
    first = command()
    verification = read_manifest(command("--verify", str(first)) / "manifest.json")
    folders = set((command.folder / "outputs").iterdir())
    capsys.readouterr()
    monkeypatch.setenv("RANK", "1")
    seen: list[tuple[int, ToyRecipe]] = []

    def assist(run: SilentRun, recipe: ToyRecipe) -> None:
        assert isinstance(run, SilentRun)
        with run.warmup():
            pass
        run.train_start()
        run.record_data([("squares.txt", "0" * 64)])
        with run.progress(1, "step") as bar:
            run.log_step(1, solve_rate=0.5)
            bar.update()
        run.train_stop(None)
        run.save_checkpoint(b"")
        seen.append((run.seed, recipe))

    for arguments in ([], ["--recipe.right", "3"], ["--smoke"], ["--verify", str(first)]):
        monkeypatch.setattr("sys.argv", ["speedrun", *arguments])
        assert start(assist, command.source) == 0
    assert seen == [
        (1, ToyRecipe()),
        (1, ToyRecipe(right=3)),
        (1, ToyRecipe(right=2)),
        (verification.seed, ToyRecipe()),
    ]
    assert set((command.folder / "outputs").iterdir()) == folders
    output = capsys.readouterr()
    assert output.out == "" and output.err == ""


def start(train: Callable[[SilentRun, ToyRecipe], None], source: Path) -> int:
    return launch(track.TRACK, {"cpu": ToyRecipe()}, train=train, evaluate=evaluate, source=source)


TOGETHER = """
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from harness.errors import run_command
from harness.launch import launch
from toy_track.track import TRACK, evidence

HERE = Path(__file__).parent

@dataclass(frozen=True)
class Recipe:
    seed: int = 1

def wait_for(name):
    while not (HERE / name).exists():
        time.sleep(0.01)

def train(run, recipe):
    with run.warmup():
        pass
    run.train_start()
    if os.environ["RANK"] == "0":
        (HERE / "started").touch()
        wait_for("worked")
    else:
        wait_for("started")
        end = time.process_time() + 0.5
        while time.process_time() < end:
            pass
        (HERE / "threads").write_text(os.environ["OMP_NUM_THREADS"])
        (HERE / "worked").touch()
    run.log_step(1, solve_rate=0.5)
    run.train_stop()
    run.save_checkpoint(b"weights")

def evaluate(run):
    run.eval_start()
    file = run.path / TRACK.evidence_name
    file.write_text(evidence(90))
    score = TRACK.score(file)
    run.eval_stop(file, score)
    run.stop()
    return score

run_command(lambda: launch(TRACK, {"cpu": Recipe()}, train=train, evaluate=evaluate, source=Path(__file__)))
"""


def test_a_run_that_repeats_a_record_says_so(
    command: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = command.folder / "records" / track.TRACK.name / "2026-11-30_01_first"
    monkeypatch.setattr("harness.launch.ROOT", command.folder)
    shutil.copytree(command(), record)
    capsys.readouterr()
    command()
    said = capsys.readouterr().out
    assert f"No new record, because what was played is that of {record.relative_to(command.folder)}" in said
    assert "Next:" not in said


def test_torchrun_gives_one_run_that_counts_all_its_processes(tmp_path: Path) -> None:
    """A real torchrun; the second process works for half a second while the first one waits for it."""
    pytest.importorskip("torch")
    (tmp_path / "speedrun.py").write_text(TOGETHER)
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment |= {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "CUDA_VISIBLE_DEVICES": "", "MKL_DYNAMIC": "0"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run(
        [*torchrun, str(tmp_path / "speedrun.py")],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("Run folder:") == done.stdout.count("No record, because") == 1
    (run,) = (tmp_path / "outputs").iterdir()
    manifest, log = read_manifest(run / "manifest.json"), read_log(run / "log.jsonl")
    assert log.status == "complete"
    assert (tmp_path / "threads").read_text() == "1"  # so torchrun told its processes, ...
    assert "OMP_NUM_THREADS" not in manifest.environment  # ... which is no wish of who started it
    assert manifest.environment["MKL_DYNAMIC"] == "0"
    assert {"MKL_DYNAMIC", "PYTHONPATH"} <= set(manifest.overriding_environment)
    before, after = (log.get(event).fields["cpu_s"] for event in ("train_start", "train_stop"))
    assert isinstance(before, float) and isinstance(after, float) and after - before >= 0.45
