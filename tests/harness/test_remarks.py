"""Remarks: a record as true ones are has none, and each thing made up gets the one that is its own."""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.checks import RecordFolder
from harness.errors import Unavailable
from harness.remarks import RULES, Remark, remarks
from harness.track import ROOT, Score
from harness.verify import main, remarks_on
from toy_track import track as toy
from toy_track.forging import Event, Forged, Step, position
from toy_track.records import make_checkout, make_record, plain_machine

RECORDS = sorted(path.parent for path in ROOT.glob("records/*/*/record.json"))
STEPS = 60
START, CORES = 1000.0, 2


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Forged, Forged]:
    """Two records of the toy track in one checkout, each with logs as long as true ones."""
    with plain_machine():
        checkout = make_checkout(tmp_path_factory.mktemp("checkout"))
        original = make_record(checkout)
    root = tmp_path_factory.mktemp("forged")
    found = []
    for name in ("2026-11-30_01_by-heart", "2026-11-30_02_by-rote"):
        (root / name).mkdir()
        forged = Forged(original, checkout, root / name)
        forged.rename(name)
        for part in ("", "verification"):
            forged.part = part
            lengthen(forged, random.Random(name + part))
        forged.part = ""
        found.append(forged)
    return found[0], found[1]


@pytest.fixture
def forged(pair: tuple[Forged, Forged]) -> Iterator[Forged]:
    """The second record, as it was again afterwards."""
    content = {path: path.read_bytes() for path in pair[1].path.rglob("*") if path.is_file()}
    yield pair[1]
    for path, data in content.items():
        path.write_bytes(data)


def lengthen(forged: Forged, chance: random.Random) -> None:
    """Let the run at hand have trained for a minute or two on two cores, in 60 steps of uneven length."""

    def change(events: list[Event]) -> None:
        at = START + chance.random()
        events[0]["monotonic"] = at
        start, stop = position(events, "train_start"), position(events, "train_stop")
        steps = []
        for number in range(1, STEPS + 1):
            at += chance.uniform(1.0, 2.0)
            moves, rate = chance.randrange(1000, 2000), number / STEPS
            steps.append(events[start + 1] | {"step": number, "monotonic": at, "moves": moves, "rate": rate})
        for event in events[1 : start + 1]:
            event["monotonic"] = events[0]["monotonic"]
        for event in events[stop:]:
            event["monotonic"] = at + 0.001234567
        seconds = events[stop]["monotonic"] - events[start]["monotonic"]
        events[start]["cpu_s"], events[stop]["cpu_s"] = 3.0, 3.0 + 1.9 * seconds
        events[stop]["steps"] = STEPS
        events[start + 1 : stop] = steps

    forged.log(change)
    machine = forged.read_manifest()["machine"] | {"available_cores": CORES, "cpu": "A CPU"}
    forged.manifest(machine=machine, calibration_s=chance.uniform(0.9, 1.1))


def noticed(pair: tuple[Forged, Forged]) -> list[Remark]:
    """The remarks on the second record beside the first."""
    home, other = (RecordFolder(forged.path, root=forged.root) for forged in reversed(pair))
    return remarks(home, [other])


def steps(change: Callable[[int, Event], object]) -> Step:
    """Change each step of the log of the run at hand, by its index."""

    def forge(forged: Forged) -> None:
        def each(events: list[Event]) -> None:
            first = position(events, "step")
            for index, event in enumerate(events[first : first + STEPS]):
                change(index, event)

        forged.log(each)

    return forge


def in_both(step: Step) -> Step:
    """The step, done to both runs."""

    def forge(forged: Forged) -> None:
        for part in ("", "verification"):
            forged.part = part
            step(forged)
        forged.part = ""

    return forge


def last(seconds: float) -> Step:
    """Let training last so many seconds."""

    def forge(forged: Forged) -> None:
        def change(events: list[Event]) -> None:
            start, stop = (position(events, name) for name in ("train_start", "train_stop"))
            later = events[start]["monotonic"] + seconds - events[stop]["monotonic"]
            for event in events[stop:]:
                event["monotonic"] += later

        forged.log(change)

    return forge


def drop_steps(forged: Forged) -> None:
    """Let the run have taken 15 long steps."""

    def change(events: list[Event]) -> None:
        first = position(events, "step")
        del events[first : first + STEPS - 15]
        for number, event in enumerate(events[first : first + 15], start=1):
            event["step"] = number
        events[first + 15]["steps"] = 15

    forged.log(change)


def cpu(share: float) -> Step:
    """Let the cores have been busy for this share of the time."""

    def forge(forged: Forged) -> None:
        def change(events: list[Event]) -> None:
            start, stop = (events[position(events, name)] for name in ("train_start", "train_stop"))
            stop["cpu_s"] = start["cpu_s"] + share * CORES * (stop["monotonic"] - start["monotonic"])

        forged.log(change)

    return forge


def even_steps(forged: Forged) -> None:
    """Let all steps be a second and a quarter apart."""

    def change(events: list[Event]) -> None:
        first = position(events, "step")
        for index, event in enumerate(events[first : first + STEPS]):
            event["monotonic"] = events[first]["monotonic"] + 1.25 * index

    forged.log(change)


def whole_milliseconds(forged: Forged) -> None:
    """Let the clock have been read to the millisecond."""
    forged.log(lambda events: [event.update(monotonic=round(event["monotonic"], 3)) for event in events])


def copy_moves(of: Callable[[Forged], Path]) -> Step:
    """Let the steps' moves be those of another log."""

    def forge(forged: Forged) -> None:
        source = of(forged).read_text()
        moves = [int(number) for number in re.findall(r'"moves": (\d+)', source)]
        steps(lambda index, event: event.update(moves=moves[index]))(forged)

    return forge


def answer(right: list[int]) -> str:
    """Evidence with the right answers to these numbers alone."""
    lines = (f'{{"number": {n}, "answer": {n * n if n in right else -1}}}\n' for n in range(toy.COUNT))
    return "".join(lines)


def play(first: list[int], second: list[int]) -> Step:
    """Let the two runs have answered these numbers rightly."""

    def forge(forged: Forged) -> None:
        (forged.path / "evidence.jsonl").write_text(answer(first))
        (forged.path / "verification/evidence.jsonl").write_text(answer(second))

    return forge


ODD = list(range(0, 100, 4)) + list(range(1, 100, 2))  # 75 of 100
OTHER = list(range(25, 100))

solve_all: Step = in_both(lambda f: (f / "evidence.jsonl").write_text(toy.evidence(100)))

FORGERIES: list[tuple[str, Step, str]] = [
    ("few_steps", drop_steps, "log.jsonl has 15 steps, and no verified run of the class fewer than 60"),
    ("equal_scores", play(ODD, ODD), "0 of 100 numbers come out otherwise in the second run, 38 would"),
    ("equal_scores", play(ODD, ODD[1:]), "1 of 100 numbers come out otherwise"),
    ("equal_scores", play(ODD, OTHER), "both runs score 0.75; by chance about one pair in"),
    ("ceiling", solve_all, "100 of 100 numbers"),
    ("equal_times", in_both(last(95.1234)), "verification/log.jsonl and log.jsonl both took 95.123 s"),
    ("equal_times", in_both(lambda f: f.manifest(calibration_s=1.0123456)), "calibration_s 1.0123456"),
    (
        "equal_logs",
        copy_moves(lambda f: f.path / "verification/log.jsonl"),
        "verification/log.jsonl repeats log.jsonl: moves at 60 of 60 steps",
    ),
    ("regular_steps", even_steps, "eight in ten of the 59 steps in log.jsonl are 1.250000 s apart"),
    ("round_times", last(95.0), "log.jsonl took 95.000 s"),
    ("round_times", lambda f: f.manifest(calibration_s=1.05), "calibration_s in manifest.json is 1.05"),
    ("round_times", whole_milliseconds, "readings of the clock in log.jsonl are whole milliseconds"),
    ("cpu_share", cpu(0.1), "10.0% of what they can give"),
    ("cpu_share", cpu(0.999), "99.9% of what they can give"),
    ("calibration", lambda f: f.manifest(calibration_s=2.345678), "the calibration took 2.346 s"),
    ("calibration", lambda f: f.manifest(calibration_s=0.345678), "3 other runs on A CPU"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "forge", "text"), FORGERIES, ids=[f"{n}-{t[:20]}" for n, _, t in FORGERIES])
def test_what_is_made_up_gets_its_remark_and_no_other(
    pair: tuple[Forged, Forged], forged: Forged, name: str, forge: Step, text: str
) -> None:
    forge(forged)
    found = noticed(pair)
    assert {remark.name for remark in found} == {name}
    assert text in found[0].text


def test_every_rule_is_tried() -> None:
    assert {rule.__name__ for rule in RULES} == {name for name, _, _ in FORGERIES}


def test_a_record_as_true_ones_are_has_none(pair: tuple[Forged, Forged]) -> None:
    assert noticed(pair) == []
    assert noticed((pair[1], pair[0])) == []


def test_numbers_of_another_record_are_recognized(pair: tuple[Forged, Forged], forged: Forged) -> None:
    copy_moves(lambda f: pair[0].path / "log.jsonl")(forged)
    (found,) = noticed(pair)
    assert found == (
        "equal_logs",
        "log.jsonl repeats 2026-11-30_01_by-heart/log.jsonl: moves at 60 of 60 steps",
    )


def test_clocks_of_another_record_are_recognized_when_they_are_shifted(
    pair: tuple[Forged, Forged], forged: Forged
) -> None:
    text = (pair[0].path / "log.jsonl").read_text()
    clock = [float(number) for number in re.findall(r'"step", "monotonic": ([\d.]+)', text)]
    assert len(clock) == STEPS
    last(200.1234)(forged)
    steps(lambda index, event: event.update(monotonic=clock[index] + 7.7))(forged)
    (found,) = noticed(pair)
    assert "seconds between steps at 59 of 59 steps" in found.text


def test_a_schedule_may_repeat(pair: tuple[Forged, Forged], forged: Forged) -> None:
    in_both(steps(lambda index, event: event.update(rate=0.5 - index / 1000, pushes=index * 512, phase=0)))(
        forged
    )
    assert noticed(pair) == []


def test_a_record_that_was_invalidated_or_is_unverified_is_no_reference(
    pair: tuple[Forged, Forged], forged: Forged
) -> None:
    drop_steps(forged)
    assert [remark.name for remark in noticed(pair)] == ["few_steps"]
    first = pair[0].path / "record.json"
    before = first.read_bytes()
    pair[0].record("verification", None)
    assert noticed(pair) == []
    first.write_bytes(before)
    ledger = pair[0].path.parent / "standing.jsonl"
    ledger.write_text(
        '{"by":"maintainer","date":"2026-12-01","machine":null,"reason":"Steps were not logged",'
        f'"record":"{pair[0].path.name}","standing":"invalidated","times_s":null}}\n'
    )
    assert noticed(pair) == []
    ledger.unlink()


def test_other_records_that_cannot_be_read_are_left_out(pair: tuple[Forged, Forged], forged: Forged) -> None:
    drop_steps(forged)
    log = pair[0].path / "verification/log.jsonl"
    before = log.read_bytes()
    log.write_bytes(before[:-5])
    assert noticed(pair) == []
    log.write_bytes(before)


def test_what_cannot_be_looked_at_is_said(pair: tuple[Forged, Forged], forged: Forged) -> None:
    (forged.path / "evidence.jsonl").write_text("{}\n")
    found = noticed(pair)
    assert [remark.name for remark in found] == ["equal_scores", "ceiling"]
    assert all("could not be looked at: " in remark.text for remark in found)


def test_what_this_machine_lacks_is_left_to_the_checks(
    pair: tuple[Forged, Forged], forged: Forged, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score(evidence: Path) -> Score:
        raise Unavailable("there is no emulator here")

    drop_steps(forged)
    monkeypatch.setattr(toy, "TRACK", replace(toy.TRACK, score=score))
    assert [remark.name for remark in noticed(pair)] == ["few_steps"]


def test_a_record_cannot_write_to_the_terminal(pair: tuple[Forged, Forged], forged: Forged) -> None:
    in_both(steps(lambda index, event: event.update({"\x1b[2J": index * index % 17})))(forged)
    (found,) = noticed(pair)
    assert found.text.isprintable() and "\\x1b[2J" in found.text


def test_a_record_that_fails_a_check_gets_no_remarks(pair: tuple[Forged, Forged]) -> None:
    home = RecordFolder(pair[1].path, root=pair[1].root)
    checks = pair[1].checks()
    assert any(check.failed for check in checks) and remarks_on(home, checks) == []


def test_remarks_stand_under_the_checks_and_fail_nothing(
    pair: tuple[Forged, Forged], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.verify.check_all", lambda home: [])
    monkeypatch.setattr(
        "harness.verify.remarks", lambda home, others: [Remark("ceiling", "[b]all[/b] solved")]
    )
    assert main([str(pair[1].path)]) == 0
    shown = capsys.readouterr().out
    assert "Remarks, which fail nothing" in shown and "[b]all[/b] solved" in shown
    assert "all 0 checks passed; 1 remark\n" in shown


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.name)
def test_the_standing_records_have_none(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is read without playing the evidence again."""
    home = RecordFolder(record, root=ROOT)
    others = [RecordFolder(path, root=ROOT) for path in home.siblings()]
    played = {"equal_scores", "ceiling"}
    rules = tuple(rule for rule in RULES if rule.__name__ not in played)
    monkeypatch.setattr("harness.remarks.RULES", rules)
    assert remarks(home, others) == []
