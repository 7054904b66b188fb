"""A run that broke off goes on as if nothing had happened, but for its rank; what cannot go on says why."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from harness.eligibility import eligibility
from harness.errors import Problem
from harness.folder import stage
from harness.launch import launch
from harness.lock import locked
from harness.log import read_log
from harness.manifest import Manifest, read_manifest
from harness.run import Run
from harness.silent import SilentRun
from harness.state import read_state
from toy_track import slow
from toy_track.track import TRACK

Command = Callable[..., Path]


@pytest.fixture
def command(tmp_path: Path, plain_machine: None, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`python -m toy_track.slow ARGUMENTS` in a folder of its own; returns the latest run folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.machine.available_cores", lambda: 2)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    (tmp_path / "speedrun.py").write_bytes(Path(slow.__file__).read_bytes())

    def run(*arguments: str, train: Callable[[Run, slow.Recipe], None] = slow.train) -> Path:
        monkeypatch.setattr("sys.argv", ["speedrun", *arguments])
        launch(TRACK, slow.RECIPES, train=train, evaluate=slow.evaluate, source=tmp_path / "speedrun.py")
        return latest(tmp_path)

    return run


def latest(folder: Path) -> Path:
    return max((folder / "outputs").glob("[0-9]*"), key=lambda path: path.stat().st_ctime)


@contextmanager
def broken_off(monkeypatch: pytest.MonkeyPatch, event: str, count: int = 1) -> Iterator[None]:
    """A Ctrl-C that does not wait, right after the log holds so many events of this name."""
    from harness.log import LogWriter

    write, seen = LogWriter.write, [0]

    def then_stop(self: LogWriter, name: str, **fields: object) -> object:
        written = write(self, name, **fields)
        seen[0] += name == event
        if name == event and seen[0] == count:
            raise KeyboardInterrupt
        return written

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(LogWriter, "write", then_stop)
        yield


@contextmanager
def interrupted(monkeypatch: pytest.MonkeyPatch, number: int, event: str, count: int = 1) -> Iterator[None]:
    """A signal that comes right after the log holds so many events of this name."""
    from harness.log import LogWriter

    write, seen = LogWriter.write, [0]

    def then_send(self: LogWriter, name: str, **fields: object) -> object:
        written = write(self, name, **fields)
        seen[0] += name == event
        if name == event and seen[0] == count:
            signal.raise_signal(number)
        return written

    end = KeyboardInterrupt if number == signal.SIGINT else SystemExit
    with monkeypatch.context() as patch, pytest.raises(end):
        patch.setattr(LogWriter, "write", then_send)
        yield


def known(run: Path) -> object:
    return json.loads((run / TRACK.checkpoint_name).read_text())


def test_it_ends_with_the_checkpoint_of_a_run_that_went_through(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = command()
    for count in (7, 20):
        with broken_off(monkeypatch, "step", count):
            command("--save-every", "0")
        path = latest(tmp_path)
        assert (
            f"Go on with: python -m toy_track.speedrun --resume outputs/{path.name}"
            in capsys.readouterr().err
        )
        before = read_log(path / "log.jsonl")
        assert len(before.steps) == count and before.status == "interrupted"
        with broken_off(monkeypatch, "step", 5):
            command("--resume", f"outputs/{path.name}", "--save-every", "0")
        assert f"goes on after step {count - 1}" in capsys.readouterr().out
        assert command("--resume", f"outputs/{path.name}") == path
        assert "No record" in (said := capsys.readouterr().out) and "it is resumed" in said
        assert known(path) == known(whole)
        log, manifest = read_log(path / "log.jsonl"), read_manifest(path / "manifest.json")
        assert [event.fields["step"] for event in log.steps] == list(range(1, 91))
        assert [e.fields["step"] for e in log.events if e.name == "resume"] == [count - 1, count + 3]
        assert log.status == "complete" and manifest.resumed and "it is resumed" in eligibility(manifest, log)
        unmarked = Manifest.model_validate({**dict(manifest), "resumed": False})
        assert "it is resumed" in eligibility(unmarked, log)
        assert {file.name for file in path.iterdir()} == {
            *("manifest.json", "log.jsonl", "speedrun.py", "checkpoint.bin", "evidence.jsonl", ".lock")
        }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_for_the_state_of_its_step(
    number: int, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = command()
    with interrupted(monkeypatch, number, "step", 40):
        command()  # 30 s from its next saving
    path = latest(tmp_path)
    log, state = read_log(path / "log.jsonl"), read_state(path, read_manifest(path / "manifest.json").run_id)
    assert (log.status, len(log.steps)) == ("interrupted", 40)
    assert state is not None and state.step == 40
    assert log.events[-1].fields["reason"] == ("Ctrl-C" if number == signal.SIGINT else "terminated")
    with interrupted(monkeypatch, number, "train_stop"):
        command("--resume", str(path))
    log = read_log(path / "log.jsonl")
    assert stage(path) == "evaluation" and log.status == "interrupted" and log.find("checkpoint") is not None
    assert command("--resume", str(path)) == path
    assert known(path) == known(whole) and read_log(path / "log.jsonl").status == "complete"


def test_the_time_before_and_after_adds_up(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with broken_off(monkeypatch, "step", 3):
        command("--save-every", "0")
    path = latest(tmp_path)
    before = read_log(path / "log.jsonl")
    first = before.steps[1].monotonic - before.get("train_start").monotonic
    command("--resume", str(path))
    log = read_log(path / "log.jsonl")
    starts = [event for event in log.events if event.name == "train_start"]
    second = log.get("train_stop").monotonic - starts[1].monotonic
    assert len(starts) == 2 and log.time_s == pytest.approx(first + second)
    assert Run.open(path).elapsed_s == log.time_s
    assert log.cpu_s >= 0


@pytest.mark.parametrize("event", ["run_start", "warmup_stop", "train_start", "step"])
def test_where_nothing_was_saved_it_begins_anew_in_the_same_folder(
    event: str,
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with broken_off(monkeypatch, event) if event != "run_start" else broken_off(monkeypatch, "warmup_start"):
        command()
    path = latest(tmp_path)
    command("--resume", str(path))
    assert "training begins anew" in capsys.readouterr().out
    log = read_log(path / "log.jsonl")
    assert [e.name for e in log.events[:2]] == ["run_start", "resume"] and log.status == "complete"


def test_a_run_that_was_trained_is_only_evaluated_and_can_rank(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for event in ("checkpoint", "eval_start"):
        with broken_off(monkeypatch, event):
            command()
        path = latest(tmp_path)
        training = (path / "log.jsonl").read_bytes().splitlines()[:95]
        command("--resume", str(path), train=lambda run, recipe: pytest.fail("it trains"))
        manifest, log = read_manifest(path / "manifest.json"), read_log(path / "log.jsonl")
        assert eligibility(manifest, log) == [] and not manifest.resumed
        assert (path / "log.jsonl").read_bytes().splitlines()[:95] == training


def test_a_line_that_was_cut_short_and_files_that_were_not_finished_go(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with broken_off(monkeypatch, "step", 4):
        command("--save-every", "0")
    path = latest(tmp_path)
    whole = (path / "log.jsonl").read_bytes().splitlines(keepends=True)[:-1]  # without run_stop
    (path / ".state.bin.0000.partial").write_bytes(b"half a st")
    for torn in (b'{"event": "step", "mono', b"\0\0\0"):
        (path / "log.jsonl").write_bytes(b"".join(whole) + torn)
        with pytest.raises(Problem, match="cut short"):
            read_log(path / "log.jsonl")
        with broken_off(monkeypatch, "warmup_start"):
            command("--resume", str(path))
        assert "the last line was cut short and is dropped" in capsys.readouterr().err
        assert not list(path.glob(".*.partial"))
    command("--resume", str(path))
    assert read_log(path / "log.jsonl").status == "complete"


def test_a_damaged_state_is_refused_and_one_that_the_log_has_lost_is_not_used(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with broken_off(monkeypatch, "step", 9):
        command("--save-every", "0")
    path = latest(tmp_path)
    content, log = (path / "state.bin").read_bytes(), (path / "log.jsonl").read_bytes()
    other = content.replace(read_manifest(path / "manifest.json").run_id.encode(), b"0" * 32)
    for wrong in (content[:-1], content[:40], b"", other):
        (path / "state.bin").write_bytes(wrong)
        with pytest.raises(Problem, match="Remedy: delete the file"):
            command("--resume", str(path))
        assert (path / "log.jsonl").read_bytes() == log
        assert not read_manifest(path / "manifest.json").resumed
    (path / "state.bin").write_bytes(content)
    (path / "log.jsonl").write_bytes(b"".join(log.splitlines(keepends=True)[:7]))
    command("--resume", str(path))
    shown = capsys.readouterr()
    assert "ends before step 8" in shown.err and "training begins anew" in shown.out


def test_what_cannot_go_on_is_refused_with_a_remedy(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = command()
    with broken_off(monkeypatch, "step", 4):
        command("--save-every", "0")
    path = latest(tmp_path)
    before = {file: file.read_bytes() for file in path.iterdir()}
    for arguments in (["--smoke"], ["--recipe.steps", "80"], ["--verify", str(complete)]):
        with pytest.raises(Problem, match=r"leave them away: python -m toy_track\.speedrun --resume"):
            command("--resume", str(path), *arguments)
    with pytest.raises(Problem, match=r"is complete\. Remedy: begin another one: python -m toy_track.speed"):
        command("--resume", str(complete))
    with pytest.raises(Problem, match=r"is not a run folder: it has no manifest.json\. Remedy: "):
        command("--resume", str(tmp_path))
    with locked(path), pytest.raises(Problem, match="another process works in it"):
        command("--resume", str(path))
    with monkeypatch.context() as patch:
        patch.setattr(
            "harness.resume.fixed_file_hashes", lambda track: {"tests/toy_track/track.py": "0" * 64}
        )
        with pytest.raises(Problem, match=r"when this run began: tests/toy_track/track.py\. Remedy"):
            command("--resume", str(path))
    text = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(text.replace('"recipe_name": "cpu"', '"recipe_name": "1xH100"'))
    with pytest.raises(Problem, match="on a machine of the class 1xH100"):
        command("--resume", str(path))
    (path / "manifest.json").write_text(text.replace('"steps": 90', '"steps": 91'))
    with pytest.raises(Problem, match="does not hold the recipe whose hash it names"):
        command("--resume", str(path))
    (path / "manifest.json").write_text(text)
    (tmp_path / "speedrun.py").write_text("# another\n")
    with pytest.raises(Problem, match=r"not the one that this run began with\. Remedy: cp "):
        command("--resume", str(path))
    assert {file: file.read_bytes() for file in path.iterdir()} == before


def test_a_run_with_flags_goes_on_with_them(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with broken_off(monkeypatch, "step", 4):
        command("--smoke", "--recipe.seed", "5")
    path = command("--resume", str(latest(tmp_path)))
    manifest = read_manifest(path / "manifest.json")
    assert manifest.smoke and manifest.seed == 5 and len(read_log(path / "log.jsonl").steps) == 20


def test_helpers_of_torchrun_train_what_is_resumed_and_nothing_that_is_trained(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with broken_off(monkeypatch, "step", 4):
        command("--smoke", "--recipe.seed", "5")
    path, seen = latest(tmp_path), []
    monkeypatch.setenv("RANK", "1")
    command("--resume", str(path), train=lambda run, recipe: seen.append((type(run), run.seed, recipe)))
    assert seen == [(SilentRun, 5, replace(slow.Recipe(seed=5), steps=20))]
    monkeypatch.setenv("RANK", "0")
    with broken_off(monkeypatch, "eval_start"):
        command("--resume", str(path))
    monkeypatch.setenv("RANK", "1")
    command("--resume", str(path), train=lambda run, recipe: pytest.fail("it trains"))


def test_two_evaluations_at_once_and_one_of_another_track_are_refused(command: Command) -> None:
    path = command()
    with Run.open(path), pytest.raises(Problem, match="another process works in it"):
        Run.open(path)
    with Run.open(path, "toy_track"):
        pass
    with pytest.raises(Problem, match=r"is a run of the track toy_track\. Remedy"):
        Run.open(path, "non_llm")


def test_saving_often_is_a_flag_and_seldom_is_not(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with broken_off(monkeypatch, "step", 12):
        command()
    path = latest(tmp_path)
    manifest = read_manifest(path / "manifest.json")
    assert manifest.flags == () and read_state(path, manifest.run_id) is None  # 30 s have not passed
    with broken_off(monkeypatch, "step", 12):
        command("--save-every", "0")
    path = latest(tmp_path)
    manifest = read_manifest(path / "manifest.json")
    state = read_state(path, manifest.run_id)
    assert manifest.flags == ("--save-every",) and state is not None and state.step == 11


@pytest.mark.parametrize("line", ["[]", "1", "null", '"checkpoint"'])
def test_a_line_that_is_no_event_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "log.jsonl").write_text(f'{{"event":"run_start"}}\n{line}\n')
    with pytest.raises(Problem, match=r"log\.jsonl:2: not a JSON object"):
        stage(tmp_path)
