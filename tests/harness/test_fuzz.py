"""The fuzz of the verifier in small, and that it would see a false pass, a crash and a hang."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import harness.checks
from benchmarks import fuzz_verifier
from benchmarks.fuzzing import trees
from benchmarks.fuzzing.damage import damage_bytes, damage_lines, repack
from benchmarks.fuzzing.folders import operate
from benchmarks.fuzzing.judging import Verdict, check, clear, judge, remember_scores, write
from benchmarks.fuzzing.mutations import Mutation, change_json, mutate
from benchmarks.fuzzing.records import TrueRecord, payload
from benchmarks.fuzzing.sealing import seal
from benchmarks.fuzzing.workers import chance, donors
from harness.record import RECORD
from harness.track import ROOT
from toy_track.records import make_checkout, make_record, plain_machine
from toy_track.track import TRACK

LLM = ROOT / "records/llm/2026-11-30_01_hot-sampling"
CHANCES = st.randoms(use_true_random=False, note_method_calls=False)


def examples(count: int) -> settings:
    slow = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
    return settings(max_examples=count, suppress_health_check=slow)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrueRecord]:
    root = make_checkout(tmp_path_factory.mktemp("checkout"))
    with plain_machine():
        place = make_record(root)
    yield from remembering(TrueRecord.read(place, root))


@pytest.fixture(scope="module")
def llm() -> Iterator[TrueRecord]:
    pytest.importorskip("torch")
    yield from remembering(TrueRecord.read(LLM, ROOT))


def remembering(record: TrueRecord) -> Iterator[TrueRecord]:
    """The record, while its track remembers what evidence is worth."""
    assert record.track
    module = sys.modules[f"{record.place.parent.name}.track"]
    track = vars(module)["TRACK"]
    remember_scores(track.name, {})
    yield record
    vars(module)["TRACK"] = track


@examples(150)
@given(random=CHANCES)
def test_no_mutation_of_a_record_crashes_the_checks_or_passes_falsely(
    toy: TrueRecord, tmp_path: Path, random: Random
) -> None:
    clear(tmp_path / "record")
    verdict = judge(toy, random, donors([toy]), tmp_path / "record")
    assert verdict.kind in ("refused", "same", "unproven"), verdict


@pytest.mark.parametrize("index", range(40))
def test_no_mutation_of_a_committed_record_does(llm: TrueRecord, tmp_path: Path, index: int) -> None:
    verdict = judge(llm, chance(0, index), donors([llm]), tmp_path / "record")
    assert verdict.kind in ("refused", "same", "unproven"), verdict


def changed(record: TrueRecord, name: str, old: str, new: str) -> Mutation:
    """One text changed in one file, and the record sealed again."""
    text = payload(record.files[name]).decode()
    assert old in text
    files = seal(record, {**record.files, name: text.replace(old, new, 1).encode()})
    return Mutation(files, record.place.name, "by hand", sealed=True)


def check_in(record: TrueRecord, mutation: Mutation, folder: Path) -> Verdict:
    write(mutation.files, folder)
    return check(record, mutation, folder)


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """(holder, index) of the members of all objects and lists, of long ones some; an object's are pairs."""
    members = tree.pairs if isinstance(tree, trees.Object) else tree
    for index, member in enumerate(members if len(members) < 40 else members[:2]):
        yield members, index
        value = member[1] if isinstance(member, tuple) else member
        if not isinstance(value, trees.Scalar):
            yield from places(value)


@pytest.mark.parametrize("name", [RECORD, "manifest.json", "verification/manifest.json", "log.jsonl"])
@pytest.mark.parametrize("hostile", ["9" * 400, "-1e308", '"\\ud800"'], ids=["digits", "large", "surrogate"])
def test_a_hostile_value_in_any_place_is_judged(
    toy: TrueRecord, tmp_path: Path, name: str, hostile: str
) -> None:
    lines = toy.files[name].decode().splitlines() if name == "log.jsonl" else [toy.files[name].decode()]
    known = [index for index, line in enumerate(lines) if '"step": 2' not in line]
    for line in known:
        tree = trees.parse(lines[line])
        for holder, index in places(tree):
            kept = holder[index]
            value = trees.Scalar(hostile)
            holder[index] = (kept[0], value) if isinstance(kept, tuple) else value
            text = "\n".join([*lines[:line], trees.write(tree, trees.PLAIN), *lines[line + 1 :], ""])
            holder[index] = kept
            clear(tmp_path / "record")
            files = seal(toy, {**toy.files, name: text.encode()})
            verdict = check_in(toy, Mutation(files, toy.place.name, "", sealed=True), tmp_path / "record")
            assert verdict.kind in ("refused", "unproven"), (text[:200], verdict)


def test_what_a_mutation_comes_to(toy: TrueRecord, tmp_path: Path) -> None:
    seconds = json.loads(toy.files[RECORD])["time_s"]
    faster = changed(toy, RECORD, f'"time_s": {seconds}', f'"time_s": {seconds + 1}')
    verdict = check_in(toy, faster, tmp_path / "1")
    assert (verdict.kind, verdict.checks) == ("refused", ["time"])
    other = check_in(toy, changed(toy, "manifest.json", '"python": ', '"python":  '), tmp_path / "2")
    assert (other.kind, other.differs) == ("same", [])
    word = check_in(toy, changed(toy, RECORD, "Knows them all", "Knows them well"), tmp_path / "3")
    assert word.kind == "unproven" and "the author's words in record.json" in word.differs
    bare = Mutation({**toy.files, "log.jsonl": toy.files["log.jsonl"] + b"{}\n"}, toy.place.name, "")
    assert set(check_in(toy, bare, tmp_path / "4").checks) == {"file_hashes", "log_order"}


def without(name: str, examine: Callable[[object], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a check do something else."""
    steps = [step._replace(examine=examine) if step.name == name else step for step in harness.checks._STEPS]
    monkeypatch.setattr(harness.checks, "_STEPS", tuple(steps))


def test_a_check_that_misses_something_makes_a_false_pass(
    toy: TrueRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = json.loads(toy.files[RECORD])["time_s"]
    faster = changed(toy, RECORD, f'"time_s": {seconds}', f'"time_s": {seconds + 1}')
    without("time", lambda home: "fine", monkeypatch)
    assert check_in(toy, faster, tmp_path / "1").kind == "false pass"
    without("file_hashes", lambda home: "fine", monkeypatch)
    bare = changed(toy, "manifest.json", '"python": ', '"python":  ')
    bare.sealed, bare.files[RECORD] = False, toy.files[RECORD]
    assert check_in(toy, bare, tmp_path / "2").detail == "bytes under a hash differ"


def test_a_check_that_breaks_is_a_crash(
    toy: TrueRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without("time", lambda home: str(1 / 0), monkeypatch)
    verdict = check_in(toy, Mutation(dict(toy.files), toy.place.name, ""), tmp_path / "record")
    assert (verdict.kind, verdict.detail) == (
        "crash",
        "time: cannot be checked: ZeroDivisionError: division by zero",
    )


def test_sealing_leaves_a_true_record_as_it_is(toy: TrueRecord, llm: TrueRecord) -> None:
    for record in (toy, llm):
        assert seal(record, record.files) == record.files


def test_a_mutation_follows_from_its_seed(toy: TrueRecord) -> None:
    for index in range(20):
        assert mutate(toy, chance(3, index), donors([toy])) == mutate(toy, chance(3, index), donors([toy]))


@pytest.mark.parametrize(("name", "style"), [(RECORD, trees.INDENTED), ("log.jsonl", trees.PLAIN)])
def test_json_is_written_as_it_was(llm: TrueRecord, name: str, style: trees.Style) -> None:
    text = llm.files[name].decode()
    for part in [text.rstrip("\n")] if name == RECORD else text.splitlines():
        assert trees.write(trees.parse(part), style) == part


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@examples(100)
@given(value=JSON, seed=st.integers())
def test_any_json_can_be_changed(value: object, seed: int) -> None:
    assert isinstance(change_json(json.dumps(value), Random(seed)), str)


@examples(100)
@given(content=st.binary(max_size=50), seed=st.integers())
def test_any_content_can_be_damaged(content: bytes, seed: int) -> None:
    for damage in (damage_bytes, damage_lines):
        assert isinstance(damage(content, Random(seed), [b"a donor\n"]), bytes)
    assert isinstance(repack(content, Random(seed)), bytes)


@pytest.mark.parametrize("seed", range(30))
def test_anything_may_happen_to_files_and_is_cleared(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "record"
    write({"file": b"1", "verification/file": b"2"}, folder)
    operate(folder, ["file", "verification/file"], Random(seed))
    clear(folder)
    assert list(tmp_path.iterdir()) == []


def test_the_command_counts_and_keeps_what_hangs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", list(sys.path))
    monkeypatch.setattr("toy_track.track.TRACK", TRACK)  # it learns to remember
    monkeypatch.setenv("PYTHONPATH", "")
    command = ["--tracks", "toy_track", "--processes", "1", "--failures", str(tmp_path)]
    assert fuzz_verifier.main([*command, "--mutations", "10"]) == 0
    assert "10 mutations, seed 0" in capsys.readouterr().out and not list(tmp_path.iterdir())
    assert fuzz_verifier.main([*command, "--only", "4", "--seconds", "0"]) == 1
    said = (tmp_path / "0-4/what.txt").read_text()
    assert said.startswith("python -m benchmarks.fuzz_verifier --seed 0 --only 4 --tracks toy_track\n")
    assert "no verdict after 0 s" in said and (tmp_path / "0-4/record" / RECORD).is_file()
