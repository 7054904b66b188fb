"""A run's log in TensorBoard and W&B: the numbers, steps and clocks arrive, of a run that ends or goes on."""

import importlib
import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.errors import Problem
from harness.export import export, main, read_lines
from harness.log import Event, LogWriter, read_log
from harness.manifest import read_manifest
from toy_track import speedrun
from toy_track.records import make_run, plain_machine
from toy_track.wandb_files import wandb_records, wandb_rows


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with plain_machine():
        return make_run(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A folder of one's own with the log and the manifest of a finished run."""
    for name in ("log.jsonl", "manifest.json"):
        (tmp_path / name).write_bytes((finished / name).read_bytes())
    return tmp_path


class Kept:
    """A sink that keeps what it gets, and presses Ctrl-C after so many steps."""

    def __init__(self, interrupt_at: int | None = None) -> None:
        self.steps: list[tuple[int, float, dict[str, float]]] = []
        self.results: dict[str, float] | None = None
        self.interrupt_at = interrupt_at

    def step(self, step: int, moment: float, numbers: Mapping[str, float]) -> None:
        self.steps.append((step, moment, dict(numbers)))
        if step == self.interrupt_at:
            raise KeyboardInterrupt

    def finish(self, results: Mapping[str, float]) -> None:
        assert self.results is None
        self.results = dict(results)


def moments(run: Path) -> list[float]:
    return [step.utc.timestamp() for step in read_log(run / "log.jsonl").steps]


def eval_stop(run: Path) -> Event:
    return read_log(run / "log.jsonl").get("eval_stop")


# ---- reading ------------------------------------------------------------------------------------------


def test_steps_times_and_the_score_are_sent(run: Path) -> None:
    sink, log = Kept(), read_log(run / "log.jsonl")
    assert export(run, [sink]) == 3
    assert [(step, moment) for step, moment, _ in sink.steps] == list(enumerate(moments(run), start=1))
    assert [numbers["solve_rate"] for *_, numbers in sink.steps] == pytest.approx([0.3, 0.6, 0.9])
    start = log.get("train_start").monotonic
    assert [numbers["time_s"] for *_, numbers in sink.steps] == [step.monotonic - start for step in log.steps]
    value, low, high = (eval_stop(run).fields[name] for name in ("value", "low", "high"))
    assert sink.results == {"time_s": log.time_s, "score": value, "score_low": low, "score_high": high}


def test_of_a_run_that_goes_on_the_whole_lines_are_sent(run: Path) -> None:
    data = (run / "log.jsonl").read_bytes()
    (run / "log.jsonl").write_bytes(data[: data.index(b'"step": 3')])
    sink = Kept()
    assert export(run, [sink]) == 2
    assert sink.results == {}


def test_following_waits_for_the_rest_of_a_line_and_ends_with_the_run(run: Path) -> None:
    path = run / "log.jsonl"
    data = path.read_bytes()
    path.write_bytes(b"")

    def log_slowly() -> None:
        for start in range(0, len(data), 97):
            time.sleep(0.002)
            with path.open("ab") as handle:
                handle.write(data[start : start + 97])

    writer = threading.Thread(target=log_slowly)
    writer.start()
    lines = [line.event for line in read_lines(path, follow=True, wait_s=0.001)]
    writer.join()
    assert lines == [json.loads(text)["event"] for text in data.splitlines()]


def test_a_log_that_is_written_anew_sends_no_step_twice_and_the_last_score(run: Path) -> None:
    path = run / "log.jsonl"
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b'{"event": "run_stop"')])
    sink = Kept()

    def evaluate_again() -> None:
        while len(sink.steps) < 3:
            time.sleep(0.001)
        log = LogWriter(path)
        log.rewind()
        (checkpoint,) = (event for event in read_log(path).events if event.name == "checkpoint")
        log.write("eval_start", checkpoint_sha256=checkpoint.fields["sha256"])
        log.write("eval_stop", evidence_sha256="0" * 64, value=0.5, low=0.4, high=0.6)
        log.write("run_stop", status="complete")

    evaluation = threading.Thread(target=evaluate_again)
    evaluation.start()
    export(run, [sink], follow=True, wait_s=0.001)
    evaluation.join()
    assert [step for step, *_ in sink.steps] == [1, 2, 3]
    assert sink.results is not None and sink.results["score"] == 0.5


def test_ctrl_c_ends_it_in_good_order(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sinks = [Kept(interrupt_at=2), Kept()]
    export(run, sinks, follow=True)
    assert [sink.results for sink in sinks] == [{}, {}]
    assert "Stopped by Ctrl-C" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    ["", "[]", "{", "1", '"step"', '{"event": "step"}',
     '{"event": "step", "monotonic": 1, "utc": "2026-11-30T00:00:00+00:00"}',
     '{"event": "step", "monotonic": 1, "utc": "2026-11-30T00:00:00+00:00", "step": 1e999}',
     '{"event": "step", "monotonic": 1, "utc": "now", "step": 1}',
     '{"event": "step", "monotonic": null, "utc": "2026-11-30T00:00:00+00:00", "step": 1}'],
)  # fmt: skip
def test_what_is_no_line_of_a_log_is_named(line: str, run: Path) -> None:
    sink = Kept()
    (run / "log.jsonl").write_text(line + "\n")
    with pytest.raises(Problem, match=r"log.jsonl:1: not a line of a log"):
        export(run, [sink])
    assert sink.results == {}


# ---- the command --------------------------------------------------------------------------------------


def test_tensorboard_reads_what_was_sent(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert main([str(run), "--tensorboard"]) == 0
    assert f"tensorboard --logdir {run / 'tensorboard'}" in capsys.readouterr().out
    events = reader.EventAccumulator(str(run / "tensorboard")).Reload()
    rates = events.Scalars("train/solve_rate")
    assert [rate.step for rate in rates] == [1, 2, 3]
    assert [rate.wall_time for rate in rates] == moments(run)
    assert [rate.value for rate in rates] == pytest.approx([0.3, 0.6, 0.9])
    (score,) = events.Scalars("result/score")
    assert (score.step, score.value) == (3, pytest.approx(eval_stop(run).fields["value"]))
    (text,) = events.Tensors("run")
    made_with = json.loads(text.tensor_proto.string_val[0])
    assert made_with["recipe"] == read_manifest(run / "manifest.json").recipe
    with pytest.raises(Problem, match="holds events already"):
        main([str(run), "--tensorboard"])
    assert main([str(run), "--tensorboard", str(run / "other"), "--follow"]) == 0
    assert len(list((run / "other").iterdir())) == 1


def test_wandb_keeps_what_was_sent(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert main([str(run), "--wandb", "speed"]) == 0
    wandb.teardown()  # as at the end of a process: the file is complete then
    (path,) = run.glob("wandb/offline-run-*/*.wandb")
    records = list(wandb_records(path))
    manifest = read_manifest(run / "manifest.json")
    (made,) = (record.run for record in records if record.WhichOneof("record_type") == "run")
    assert (made.project, made.run_id, made.display_name) == ("speed", manifest.run_id, run.name)
    config = {update.key: json.loads(update.value_json) for update in made.config.update}
    assert config["recipe"] == manifest.recipe
    rows = wandb_rows(path)
    assert [row["_step"] for row in rows] == [1, 2, 3]
    assert [row["solve_rate"] for row in rows] == pytest.approx([0.3, 0.6, 0.9])
    assert [row["_timestamp"] for row in rows] == pytest.approx(moments(run), abs=1)
    summary = {
        update.key: json.loads(update.value_json)
        for record in records
        if record.WhichOneof("record_type") == "summary"
        for update in record.summary.update
    }
    assert summary["score"] == pytest.approx(eval_stop(run).fields["value"])


@pytest.mark.parametrize(
    ("flags", "library"), [(["--tensorboard"], "tensorboard"), (["--wandb", "p"], "wandb")]
)
def test_a_missing_library_is_named_with_its_remedy(
    flags: list[str], library: str, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(Problem, match=rf"needs the {library} library: .* Remedy: pip install '.\[export\]'"):
        main([str(run), *flags])


def test_without_a_place_to_send_to_nothing_is_done(run: Path) -> None:
    with pytest.raises(Problem, match="nothing to send to"):
        main([str(run)])


def test_a_run_that_is_still_training_can_be_sent(tmp_path: Path) -> None:
    with plain_machine():
        trained = speedrun.train(tmp_path)
    sink = Kept()
    assert export(trained, [sink]) == 3
    assert sink.results is not None and sink.results.keys() == {"time_s"}
