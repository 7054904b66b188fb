"""A log is in its one order, or the line that is not is named."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Problem
from harness.log import LogWriter, mend_log, read_log

HASH = "0" * 64
TRAINING: list[tuple[str, dict[str, Any]]] = [
    ("run_start", {"run_id": "f" * 32, "seed": 3, "recipe_sha256": HASH}),
    ("warmup_start", {}),
    ("warmup_stop", {}),
    ("train_start", {"cpu_s": 2.0}),
    ("step", {"step": 1, "solve_rate": 0.25}),
    ("step", {"step": 2, "solve_rate": 0.5}),
    ("train_stop", {"steps": 2, "cpu_s": 9.5}),
    ("checkpoint", {"sha256": HASH}),
]
EVALUATION: list[tuple[str, dict[str, Any]]] = [
    ("eval_start", {"checkpoint_sha256": HASH}),
    ("eval_stop", {"evidence_sha256": HASH, "value": 0.75, "low": 0.72, "high": 0.78}),
    ("run_stop", {"status": "complete"}),
]
WHOLE = TRAINING + EVALUATION
START = datetime(2026, 11, 30, 2, 13, 34, 123456, UTC)


def entries(events: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The lines of a log in which one event happens every 2 s."""
    return [
        {
            "event": event,
            "monotonic": 100.0 + 2 * index,
            "utc": (START + timedelta(seconds=2 * index)).isoformat(),
            **fields,
        }
        for index, (event, fields) in enumerate(events)
    ]


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def test_a_whole_log_says_what_happened(path: Path) -> None:
    log = read_log(write(path, entries(WHOLE)))
    assert [event.name for event in log.events] == [name for name, _ in WHOLE]
    assert (log.run_id, log.seed, log.recipe_sha256) == ("f" * 32, 3, HASH)
    assert log.status == "complete"
    assert [(step.line, step.fields["solve_rate"]) for step in log.steps] == [(5, 0.25), (6, 0.5)]
    assert (log.warmup_s, log.time_s, log.cpu_s) == (2.0, 6.0, 7.5)
    assert log.events[0].utc == START
    assert log.get("eval_stop").fields["low"] == 0.72


@pytest.mark.parametrize("length", range(1, len(WHOLE)))
def test_a_log_may_end_early_and_is_then_incomplete(path: Path, length: int) -> None:
    log = read_log(write(path, entries(WHOLE[:length])))
    assert log.status == "incomplete"
    assert log.find("run_stop") is None
    with pytest.raises(Problem, match="the run has no run_stop: it is incomplete"):
        log.get("run_stop")


@pytest.mark.parametrize("length", range(1, len(WHOLE)))
def test_a_run_may_be_interrupted_anywhere(path: Path, length: int) -> None:
    stop = ("run_stop", {"status": "interrupted", "reason": "Ctrl-C"})
    log = read_log(write(path, entries([*WHOLE[:length], stop])))
    assert log.status == "interrupted"


@given(data=st.data())
def test_any_event_left_out_or_doubled_or_moved_is_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "log.jsonl"
    events = list(WHOLE)
    taken = events.pop(data.draw(st.integers(0, len(events) - 2)))
    if data.draw(st.booleans()):
        events.insert(data.draw(st.integers(0, len(events))), taken)
    if events == WHOLE:
        return
    with pytest.raises(Problem) as caught:
        read_log(write(path, entries(events)))
    assert caught.value.line is not None


def change(**fields: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda line: {**line, **fields}


def without(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda line: {key: value for key, value in line.items() if key != name}


@pytest.mark.parametrize(
    ("number", "alter", "reason"),
    [
        (1, change(seed="3"), "run_start.seed must be a whole number, not '3'"),
        (1, change(seed=True), "run_start.seed must be a whole number"),
        (1, without("recipe_sha256"), "run_start lacks recipe_sha256"),
        (1, change(event="start"), "unknown event 'start'"),
        (1, change(event=["run_start"]), "event and utc must be texts"),
        (1, change(event="step", step=1), "step cannot follow the start of the log"),
        (1, change(event="run_stop", status="interrupted", reason="x"), "cannot follow the start of the log"),
        (2, change(note="fast"), "warmup_start has no field note"),
        (2, without("monotonic"), "the line lacks monotonic"),
        (2, change(monotonic="102"), "monotonic a number"),
        (2, change(monotonic=99.0), "the monotonic clock runs backwards"),
        (2, change(utc="2026-11-30T02:13:36"), "is not a time in UTC"),
        (2, change(utc="2026-11-30T02:13:36+01:00"), "is not a time in UTC"),
        (2, change(utc="yesterday"), "yesterday"),
        (5, change(solve_rate="high"), "step.solve_rate must be a finite number, not 'high'"),
        (5, change(solve_rate=10**400), "step.solve_rate must be a finite number"),
        (5, change(solve_rate=1e300), "step.solve_rate must be a finite number"),
        (2, change(monotonic=10**400), "monotonic a number"),
        (5, change(solve_rate=None), "step.solve_rate must be a finite number"),
        (5, change(solve_rate=True), "step.solve_rate must be a finite number"),
        (5, change(step=1.0), "step.step must be a whole number"),
        (6, change(step=3), "step 3 follows step 1"),
        (6, change(step=1), "step 1 follows step 1"),
        (7, change(steps=3), "train_stop counts 3 steps, the log has 2"),
        (11, change(status="done"), "unknown status 'done'"),
        (11, change(reason="late"), "run_stop has no field reason"),
        (11, change(status="interrupted"), "run_stop lacks reason"),
    ],
)
def test_a_wrong_line_is_named(
    path: Path, number: int, alter: Callable[[dict[str, Any]], dict[str, Any]], reason: str
) -> None:
    lines = entries(WHOLE)
    lines[number - 1] = alter(lines[number - 1])
    with pytest.raises(Problem) as caught:
        read_log(write(path, lines))
    assert reason in caught.value.reason
    assert (caught.value.file, caught.value.line) == (str(path), number)


def test_nothing_may_follow_the_end(path: Path) -> None:
    with pytest.raises(Problem, match="run_start cannot follow run_stop") as caught:
        read_log(write(path, entries([*WHOLE, WHOLE[0]])))
    assert caught.value.line == len(WHOLE) + 1


def test_nan_a_cut_line_and_an_empty_log_are_refused(path: Path) -> None:
    text = write(path, entries(WHOLE)).read_text()
    path.write_text(text.replace("0.25", "NaN"))
    with pytest.raises(Problem, match=r":5: .*NaN"):
        read_log(path)
    path.write_text(text[:-1])
    with pytest.raises(Problem, match=":11: the last line is cut short"):
        read_log(path)
    path.write_text("")
    with pytest.raises(Problem, match="the log is empty"):
        read_log(path)


def test_the_clock_may_start_again_at_the_evaluation_only(path: Path) -> None:
    lines = entries(WHOLE)
    for line in lines[len(TRAINING) :]:
        line["monotonic"] -= 100
    assert read_log(write(path, lines)).status == "complete"
    lines[-1]["monotonic"] = lines[-2]["monotonic"] - 1
    with pytest.raises(Problem, match=":11: the monotonic clock runs backwards"):
        read_log(write(path, lines))


def resumed(step: int) -> list[tuple[str, dict[str, Any]]]:
    """A log whose training broke off after a step, and went on."""
    begun = TRAINING[: 4 + step] if step else TRAINING[:1]
    resume = ("resume", {"step": step, "cpu_s": 2.5 if step else 0.0})
    return [
        *begun,
        resume,
        *TRAINING[1:3],
        ("train_start", {"cpu_s": 4.0}),
        *TRAINING[4 + step :],
        *EVALUATION,
    ]


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_resumed_log_adds_up_its_parts(path: Path, step: int) -> None:
    """Events come every 2 s; the clocks restart at the resume, and what was between counts nowhere."""
    lines = entries(resumed(step))
    at = next(index for index, line in enumerate(lines) if line["event"] == "resume")
    for line in lines[at:]:
        line["monotonic"] -= 100
    log = read_log(write(path, lines))
    assert log.status == "complete" and len(log.steps) == 2
    assert log.time_s == log.clock_s == 2 * step + 2 * (3 - step)
    assert log.cpu_s == (0.5 if step else 0) + 5.5


def test_a_resume_stands_after_the_step_that_it_names_and_before_a_warmup(path: Path) -> None:
    good = resumed(1)
    at = next(index for index, (event, _) in enumerate(good) if event == "resume")
    for wrong, reason in (
        (
            [*good[:at], ("resume", {"step": 2, "cpu_s": 0.0}), *good[at + 1 :]],
            "names step 2 and follows step 1",
        ),
        ([*good[: at + 1], *good[at + 3 :]], "train_start cannot follow resume"),
        ([*good[: at + 1], *good[at:]], "resume cannot follow resume"),
        ([*TRAINING[:4], ("resume", {"step": 0, "cpu_s": 0.0})], "resume cannot follow train_start"),
        ([*TRAINING, ("resume", {"step": 2, "cpu_s": 0.0})], "resume cannot follow checkpoint"),
    ):
        with pytest.raises(Problem, match=reason):
            read_log(write(path, entries(wrong)))


@pytest.mark.parametrize("step", [0, 1, 2])
def test_rewinding_to_a_step_keeps_what_came_before_byte_by_byte(path: Path, step: int) -> None:
    write(path, entries(TRAINING[:6]))
    lines = path.read_bytes().splitlines(keepends=True)
    writer = LogWriter(path)
    writer.rewind(step)
    assert path.read_bytes() == b"".join(lines[: 4 + step] if step else lines[:1])
    for event, fields in resumed(step)[4 + step if step else 1 :]:
        writer.write(event, **fields)
    assert read_log(path).status == "complete"


@given(cut=st.integers(0, 400))
def test_mending_drops_a_cut_line_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "log.jsonl"
    content = write(path, entries(TRAINING)).read_bytes()
    kept = content[: max(1, len(content) - cut)]
    path.write_bytes(kept)
    assert mend_log(path) == (not kept.endswith(b"\n"))
    assert path.read_bytes() == content[: kept.rfind(b"\n") + 1]


def test_what_is_written_can_be_read(path: Path) -> None:
    before = datetime.now(UTC)
    writer = LogWriter(path)
    for event, fields in WHOLE:
        writer.write(event, **fields)
    log = read_log(path)
    assert [(event.name, event.fields) for event in log.events] == WHOLE
    assert before <= log.events[0].utc <= log.events[-1].utc <= datetime.now(UTC)
    assert (writer.steps, writer.stopped) == (2, True)


def test_each_line_is_in_the_file_at_once(path: Path) -> None:
    writer = LogWriter(path)
    for number, (event, fields) in enumerate(WHOLE, start=1):
        assert writer.write(event, **fields) == read_log(path).events[-1]
        assert len(read_log(path).events) == number


@pytest.mark.parametrize(
    ("event", "fields", "reason"),
    [
        ("train_stop", {"steps": 0, "cpu_s": 1.0}, "train_stop cannot follow train_start"),
        ("step", {"step": 2}, "step 2 follows step 0"),
        ("step", {"step": 1, "loss": float("nan")}, "step.loss must be a finite number, not nan"),
        ("step", {"step": 1, "loss": [0.5]}, "step.loss must be a finite number"),
        ("step", {"step": 1, "utc": 3}, "a name that every line has"),
        ("finish", {}, "unknown event"),
    ],
)
def test_the_writer_refuses_what_the_reader_would(
    path: Path, event: str, fields: dict[str, Any], reason: str
) -> None:
    writer = LogWriter(path)
    for earlier, earlier_fields in TRAINING[:4]:
        writer.write(earlier, **earlier_fields)
    with pytest.raises(Problem) as caught:
        writer.write(event, **fields)
    assert reason in caught.value.reason
    writer.write("step", step=1)
    assert [entry.name for entry in read_log(path).events][-2:] == ["train_start", "step"]


def test_a_second_writer_goes_on_where_the_first_left_off(path: Path) -> None:
    for event, fields in WHOLE:
        LogWriter(path).write(event, **fields)
    assert read_log(path).status == "complete"


@pytest.mark.parametrize("length", range(len(TRAINING), len(WHOLE) + 1))
def test_rewinding_keeps_the_training_byte_by_byte(path: Path, length: int) -> None:
    write(path, entries(WHOLE[:length]))
    training = path.read_bytes().splitlines(keepends=True)[: len(TRAINING)]
    writer = LogWriter(path)
    writer.rewind()
    assert path.read_bytes() == b"".join(training)
    for event, fields in EVALUATION:
        writer.write(event, **fields)
    assert read_log(path).status == "complete"


def test_there_is_no_rewinding_to_a_checkpoint_that_is_not(path: Path) -> None:
    writer = LogWriter(write(path, entries(TRAINING[:-1])))
    with pytest.raises(Problem, match="has no checkpoint"):
        writer.rewind()
