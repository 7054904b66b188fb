"""A run folder from its creation to its end, and all the ways it can end early."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from harness.eligibility import eligibility
from harness.errors import Problem
from harness.files import sha256_bytes, sha256_file
from harness.log import read_log
from harness.machine import find_class, inspect
from harness.manifest import read_manifest
from harness.run import Run, cpu_seconds
from harness.track import ROOT, HardwareClass, fixed_file_hashes
from toy_track import speedrun
from toy_track.track import COUNT, DATA, TRACK, evidence, score

pytestmark = pytest.mark.usefixtures("plain_machine")


def create(outputs: Path, **changes: Any) -> Run:
    settings: dict[str, Any] = {
        "recipe_name": "cpu",
        "recipe": {"rate": 0.5, "layers": (3, 4)},
        "hardware_class": TRACK.classes[0],
        "seed": 7,
        "seed_source": "recipe",
        "flags": [],
        "smoke": False,
        "source": Path(__file__),
        "outputs": outputs,
    }
    return Run.create(TRACK, **{**settings, **changes})


def trained(outputs: Path) -> Run:
    with create(outputs) as run:
        with run.warmup():
            pass
        run.train_start()
        run.log_step(1, solve_rate=0.5)
        run.train_stop()
        run.save_checkpoint(b"weights")
    return run


def evaluated(path: Path, right: int) -> None:
    with Run.open(path) as run:
        run.eval_start()
        file = path / "evidence.jsonl"
        file.write_text(evidence(right))
        run.eval_stop(file, score(file))
        run.stop()


def test_a_whole_run_leaves_a_folder_that_can_become_a_record(tmp_path: Path) -> None:
    path = speedrun.train(tmp_path)
    speedrun.evaluate(path)
    manifest, log = read_manifest(path / "manifest.json"), read_log(path / "log.jsonl")
    assert {file.name for file in path.iterdir()} == {
        "manifest.json",
        "log.jsonl",
        "speedrun.py",
        "checkpoint.bin",
        "evidence.jsonl",
        ".lock",
    }
    assert eligibility(manifest, log) == []
    assert manifest.hardware_class == "cpu"
    assert manifest.recipe == {"right": 90, "steps": 3, "rate": 0.5, "seed": 1}
    assert manifest.recipe_sha256 == sha256_bytes(b'{"rate":0.5,"right":90,"seed":1,"steps":3}')
    assert manifest.data == {"squares.txt": sha256_bytes(DATA)}
    assert manifest.source_sha256 == sha256_file(path / "speedrun.py")
    assert (path / "speedrun.py").read_bytes() == Path(speedrun.__file__).read_bytes()
    assert manifest.fixed_files == fixed_file_hashes(TRACK, ROOT)
    assert (log.run_id, log.seed, log.recipe_sha256) == (manifest.run_id, 1, manifest.recipe_sha256)
    assert log.status == "complete"
    assert [event.fields["solve_rate"] for event in log.steps] == pytest.approx([0.3, 0.6, 0.9])
    assert log.get("checkpoint").fields["sha256"] == sha256_file(path / "checkpoint.bin")
    assert log.get("eval_start").fields["checkpoint_sha256"] == sha256_file(path / "checkpoint.bin")
    assert log.get("eval_stop").fields["evidence_sha256"] == sha256_file(path / "evidence.jsonl")
    assert log.get("eval_stop").fields["value"] == 91 / COUNT


def test_the_folder_is_named_for_the_run(tmp_path: Path) -> None:
    run = create(tmp_path, smoke=True)
    moment, _, name = run.path.name.partition("_")
    time.strptime(moment, "%Y%m%d-%H%M%S")
    assert name == "toy_track_cpu_seed7_smoke"


def test_a_manifest_equals_itself_when_read(tmp_path: Path) -> None:
    run = create(tmp_path)
    assert read_manifest(run.path / "manifest.json") == run.manifest
    assert run.manifest.recipe["layers"] == [3, 4]


def test_two_runs_started_in_the_same_second_have_two_folders(tmp_path: Path) -> None:
    first, second = create(tmp_path), create(tmp_path)
    assert first.path != second.path
    assert read_log(first.path / "log.jsonl").run_id != read_log(second.path / "log.jsonl").run_id


def test_a_recipe_that_json_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for value in (float("nan"), Path("levels")):
        with pytest.raises(Problem, match="recipe holds what JSON cannot"):
            create(tmp_path / "outputs", recipe={"rate": value})
    assert not (tmp_path / "outputs").exists()


def test_a_missing_source_and_an_unwritable_place_are_problems(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="cannot be read"):
        create(tmp_path, source=tmp_path / "missing.py")
    (tmp_path / "file").write_text("")
    with pytest.raises(Problem, match="cannot be written"):
        create(tmp_path / "file")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"flags": ["--steps"]}, "flags change the recipe: --steps"),
        ({"smoke": True}, "smoke run"),
        ({"hardware_class": TRACK.classes[1]}, "it is not 1xH100: GPUs visible: 0, wanted: 1"),
    ],
)
def test_a_run_that_ranks_nowhere_says_so_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], reason: str
) -> None:
    create(tmp_path, **changes)
    lines = [line for line in capsys.readouterr().out.splitlines() if "ranks nowhere" in line]
    assert len(lines) == 1
    assert reason in lines[0]


def test_a_run_that_can_rank_says_nothing_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = create(tmp_path)
    assert "ranks nowhere" not in capsys.readouterr().out
    assert run.manifest.hardware_class == "cpu"
    assert find_class(TRACK, inspect()) == TRACK.classes[0]


def test_a_warmup_over_its_limit_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with create(tmp_path, hardware_class=replace(TRACK.classes[0], warmup_limit_s=0.0)) as run:
        with run.warmup():
            time.sleep(0.01)
        assert "the warm-up took" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyboardInterrupt(), "Ctrl-C"),
        (ValueError("a\nb"), "ValueError: a b"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_an_interrupted_run_says_so_and_raises_on(tmp_path: Path, error: BaseException, reason: str) -> None:
    run = create(tmp_path)
    with pytest.raises(type(error)), run, run.warmup():
        raise error
    log = read_log(run.path / "log.jsonl")
    assert [event.name for event in log.events] == ["run_start", "warmup_start", "run_stop"]
    assert (log.status, log.events[-1].fields["reason"]) == ("interrupted", reason)
    assert eligibility(run.manifest, log) == [f"it is interrupted: {reason}"]
    with pytest.raises(Problem, match="the run has no checkpoint: it is interrupted"):
        Run.open(run.path)


def test_a_killed_run_is_incomplete(tmp_path: Path) -> None:
    run = create(tmp_path)
    assert eligibility(run.manifest, read_log(run.path / "log.jsonl")) == [
        "it is incomplete: it ends after run_start"
    ]


def test_a_failed_evaluation_can_be_repeated_and_a_finished_one_too(tmp_path: Path) -> None:
    path = trained(tmp_path).path
    with pytest.raises(KeyboardInterrupt), Run.open(path) as run:
        run.eval_start()
        raise KeyboardInterrupt
    assert read_log(path / "log.jsonl").status == "interrupted"
    for right in (80, 85):
        evaluated(path, right)
        log = read_log(path / "log.jsonl")
        assert (log.status, log.get("eval_stop").fields["value"]) == ("complete", right / COUNT)
        assert [event.name for event in log.events].count("eval_start") == 1


def test_opening_a_complete_run_in_vain_leaves_it_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = trained(tmp_path).path
    evaluated(path, 80)
    with pytest.raises(KeyboardInterrupt), Run.open(path):
        raise KeyboardInterrupt
    assert read_log(path / "log.jsonl").status == "complete"
    assert capsys.readouterr().err == ""


def test_another_checkpoint_is_not_evaluated(tmp_path: Path) -> None:
    path = trained(tmp_path).path
    (path / "checkpoint.bin").write_bytes(b"better weights")
    with pytest.raises(Problem, match="not the checkpoint that the log names"):
        Run.open(path)


def test_evidence_from_elsewhere_is_refused(tmp_path: Path) -> None:
    path = trained(tmp_path).path
    elsewhere = tmp_path / "evidence.jsonl"
    elsewhere.write_text(evidence(80))
    with Run.open(path) as run:
        run.eval_start()
        with pytest.raises(Problem, match="evidence belongs in"):
            run.eval_stop(elsewhere, score(elsewhere))


def test_the_clock_runs_from_train_start_to_train_stop_and_waits_for_the_device(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        with run.warmup():
            time.sleep(0.05)
        assert run.elapsed_s == 0
        run.train_start()
        run.log_step(1)
        assert 0 < run.elapsed_s < 5
        run.train_stop(lambda: time.sleep(0.05))
        stopped = run.elapsed_s
        time.sleep(0.02)
        assert run.elapsed_s == stopped
        run.save_checkpoint(b"")
    log = read_log(run.path / "log.jsonl")
    assert log.time_s == stopped >= 0.05
    assert log.warmup_s >= 0.05
    assert Run.open(run.path).elapsed_s == stopped


BURN = "import time\nwhile time.process_time() < 0.3: pass"


def test_cpu_seconds_count_work_and_not_sleep() -> None:
    before = cpu_seconds()
    time.sleep(0.2)
    slept = cpu_seconds() - before
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    assert cpu_seconds() - before - slept >= 0.25
    assert slept < 0.15


def test_cpu_seconds_count_children_of_children_while_they_live_and_after() -> None:
    before = cpu_seconds()
    burn = f"{BURN}\nprint('done', flush=True)\ninput()"
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    with subprocess.Popen([sys.executable, "-c", start], stdin=PIPE, stdout=PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"done\n"
        alive = cpu_seconds() - before
        child.communicate(b"\n")
    assert alive >= 0.25
    assert cpu_seconds() - before >= 0.25


def test_a_signal_from_the_keyboard_or_a_kill_leaves_a_readable_log(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from toy_track import speedrun\n"
        "speedrun.Run.log_step = lambda *_, **__: (print('training', flush=True), time.sleep(60))\n"
        "speedrun.train(Path(sys.argv[1]))"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    for number, status in ((signal.SIGINT, "interrupted"), (signal.SIGKILL, "incomplete")):
        outputs = tmp_path / status
        command = [sys.executable, "-c", script, str(outputs)]
        with subprocess.Popen(command, stdout=PIPE, stderr=PIPE, env=environment) as child:
            assert child.stdout is not None
            while child.stdout.readline() != b"training\n":
                assert child.poll() is None
            child.send_signal(number)
            child.communicate(timeout=30)
        (path,) = outputs.iterdir()
        log = read_log(path / "log.jsonl")
        assert log.status == status
        assert log.find("train_start") is not None


def test_data_are_recorded_file_by_file(tmp_path: Path) -> None:
    run = create(tmp_path)
    run.record_data([("a.txt", "a" * 64)])
    run.record_data([("b.txt", "b" * 64)])
    assert read_manifest(run.path / "manifest.json").data == {"a.txt": "a" * 64, "b.txt": "b" * 64}


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """The nearest a test comes to a full disk: the system refuses to write on, in the middle of a line."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_no_room_for_the_checkpoint_is_a_clear_problem_and_an_interruption(tmp_path: Path) -> None:
    with pytest.raises(Problem) as caught, create(tmp_path) as run:
        with run.warmup():
            pass
        run.train_start()
        run.log_step(1)
        run.train_stop()
        with no_file_longer_than(10_000):
            run.save_checkpoint(bytes(20_000))
    assert "checkpoint.bin: cannot be written: File too large. Remedy: make room" in str(caught.value)
    assert read_log(run.path / "log.jsonl").status == "interrupted"
    assert {file.name for file in run.path.iterdir()} == {
        "manifest.json",
        "log.jsonl",
        "speedrun.py",
        ".lock",
    }


def test_no_room_for_the_log_leaves_whole_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = create(tmp_path)
    room = (run.path / "log.jsonl").stat().st_size + 20
    with pytest.raises(Problem, match="cannot be written"), no_file_longer_than(room), run, run.warmup():
        pass
    assert [event.name for event in read_log(run.path / "log.jsonl").events] == ["run_start"]
    assert "cannot be written" in capsys.readouterr().err  # there was no room for run_stop either


def test_a_class_name_in_the_folder_needs_no_fitting_machine(tmp_path: Path) -> None:
    other = HardwareClass("8xH100", "eight H100", None, 8, "H100", 60.0)
    run = create(tmp_path, hardware_class=other)
    assert "_8xH100_" in run.path.name
    assert run.manifest.hardware_class is None
