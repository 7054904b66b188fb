"""Rulesets: a record is checked by its own, whatever came after it, and a closed one takes no new runs."""

import datetime
import hashlib
import json
import lzma
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pull_requests import Repository

from harness.accepted import ABSENT, LEDGER, Version, versions_of_records
from harness.boards import Entry, board, read_records, with_boards
from harness.checks import RecordFolder, check_all
from harness.eligibility import derived_seed, second_seed
from harness.errors import Problem
from harness.manifest import Manifest, read_manifest
from harness.packed import pack_lines
from harness.track import ROOT, Track, available_tracks, load_track
from toy_track import track as toy
from toy_track.forging import failing
from toy_track.records import make_checkout, make_record, plain_machine

LINES = '{"b": 1, "a": [1.50, "\\u00fc"]}\n{"level":0}\n'
CANONICAL = '{"a":[1.5,"\\u00fc"],"b":1}\n{"level":0}'


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_checkout(tmp_path_factory.mktemp("checkout"))
    with plain_machine():
        return make_record(root)


@pytest.fixture
def record(original: Path, tmp_path: Path) -> Path:
    """A true record of ruleset 2 in a checkout of its own."""
    root = Path(shutil.copytree(original.parents[2], tmp_path / "checkout"))
    return root / original.relative_to(original.parents[2])


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes ruleset 3 the current one of the toy track, with what ruleset 2 had otherwise."""

    def put(change: Callable[[Track], Track], **now: object) -> None:
        track = replace(toy.TRACK, ruleset="3", earlier={**toy.TRACK.earlier, "2": change}, **now)
        monkeypatch.setattr(toy, "TRACK", track)

    return put


def commit(root: Path) -> None:
    repository = Repository(root)
    repository.git("init", "--quiet")
    repository.commit()


def failures(record: Path) -> dict[str, str]:
    return failing(check_all(RecordFolder(record, root=record.parents[2])))


def manifest(record: Path, ruleset: str) -> Manifest:
    return read_manifest(record / "manifest.json").model_copy(update={"ruleset": ruleset})


def test_the_second_seed_follows_from_what_evidence_says_however_it_is_written(
    record: Path, tmp_path: Path
) -> None:
    made = manifest(record, "2")
    expected = derived_seed(hashlib.sha256(CANONICAL.encode()).hexdigest(), made.recipe_sha256)
    lines = [json.loads(line) for line in LINES.splitlines()]
    for content in (
        LINES.encode(),
        CANONICAL.encode(),
        "".join(json.dumps(line, indent=None, sort_keys=True) + "\n" for line in lines).encode(),
        pack_lines(lines),
        lzma.compress(LINES.encode(), preset=0),
        lzma.compress(LINES.encode(), check=lzma.CHECK_SHA256, preset=9),
    ):
        (tmp_path / "evidence").write_bytes(content)
        assert second_seed(tmp_path / "evidence", made, toy.TRACK) == expected


HEADER = {"checkpoint_sha256": "0" * 64, "class": "cpu", "versions": {"a": "1"}}
CALL = {"completion": 3, "kind": "call", "label": "wake/0", "lost": 0, "reply": "wait"}
EPISODE: dict[str, Any] = {"actions": ["go"], "kind": "episode", "steps": 1}
SAID: dict[str, Any] = {"answer_tokens": 2, "finish": "stop", "text": "go", "tokens": 5}
Rows = list[dict[str, Any]]
BESIDE: dict[str, tuple[Rows, Rows]] = {
    "non_llm": (
        [HEADER, {"moves": "rU"}],
        [HEADER | {"class": "x"}, {"moves": "rU"}],
    ),
    "retro": ([HEADER, {"frames": 9}], [HEADER | {"versions": {}}, {"frames": 9}]),
    "llm": (
        [HEADER, {"completions": [SAID], "puzzle": 0}],
        [HEADER | {"class": "x"}, {"completions": [SAID | {"answer_tokens": 30, "tokens": 77}], "puzzle": 0}],
    ),
    "agents": (
        [HEADER, CALL, CALL, EPISODE],
        [HEADER, CALL | {"completion": 4, "reply": "go"}, EPISODE],
    ),
}
"""Of each track, two ways of evidence that tell of one play."""
LIKE_IT = ('go,"tokens":', '"kind":"call",', '{"checkpoint_sha256":', '"answer_tokens":', 'go","tokens":')
"""Texts of what was played that look like what does not count."""


def seed_of(rows: Rows, track: str, record: Path) -> int:
    """The second seed that follows from these lines of evidence."""
    evidence = record / "rows"
    evidence.write_bytes(pack_lines(rows))
    return second_seed(evidence, manifest(record, "2"), load_track(track))


@pytest.mark.parametrize("track", BESIDE)
def test_what_stands_beside_the_play_makes_no_other_second_seed(track: str, record: Path) -> None:
    one, other = BESIDE[track]
    assert seed_of(one, track, record) == seed_of(other, track, record)
    assert seed_of(one, "toy_track", record) != seed_of(other, "toy_track", record)


@pytest.mark.parametrize("track", BESIDE)
def test_all_of_the_play_makes_another_second_seed(track: str, record: Path) -> None:
    rows = BESIDE[track][0]
    texts = [f"{text}{number}" for number in "12" for text in LIKE_IT]
    seeds = {seed_of([*rows, {"said": [SAID | {"text": text}]}], track, record) for text in texts}
    seeds |= {seed_of([*rows, EPISODE | {"actions": [text]}], track, record) for text in texts}
    assert len(seeds) == 2 * len(texts)


def test_under_the_first_ruleset_it_followed_from_the_bytes(record: Path, tmp_path: Path) -> None:
    made = manifest(record, "1")
    (tmp_path / "evidence").write_text(LINES)
    expected = derived_seed(hashlib.sha256(LINES.encode()).hexdigest(), made.recipe_sha256)
    assert second_seed(tmp_path / "evidence", made, toy.TRACK) == expected


@pytest.mark.parametrize("content", [b"\xff", b"no JSON\n", b"[" * 100_000, b'{"a": NaN}\n', b""])
def test_what_is_no_json_counts_as_it_is(content: bytes, record: Path, tmp_path: Path) -> None:
    (tmp_path / "evidence").write_bytes(content)
    made = manifest(record, "2")
    expected = derived_seed(hashlib.sha256(content).hexdigest(), made.recipe_sha256)
    assert second_seed(tmp_path / "evidence", made, toy.TRACK) == expected


def test_a_record_keeps_the_target_of_its_ruleset(record: Path, later: Callable[..., None]) -> None:
    later(lambda track: replace(track, target=0.7), target=0.99)
    assert failures(record) == {}
    later(lambda track: replace(track, target=0.9), target=0.7)
    assert "expected 0.9 by toy_track" in failures(record)["target"]


def test_a_record_keeps_the_fixed_files_of_its_ruleset(record: Path, later: Callable[..., None]) -> None:
    root, more = record.parents[2], "tests/toy_track/more.py"
    (root / more).write_text("")
    fixed = (*toy.TRACK.fixed_files, more)
    later(lambda track: replace(track, fixed_files=fixed[:1]), fixed_files=fixed)
    assert failures(record) == {}
    later(lambda track: track, fixed_files=fixed)
    assert f"{more} is not listed" in failures(record)["fixed_files"]


def test_a_file_that_came_later_is_accepted_as_absent(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, more = record.parents[2], "tests/toy_track/more.py"
    (root / more).write_text("")
    track = replace(toy.TRACK, fixed_files=("tests/toy_track/*.py",))
    monkeypatch.setattr(toy, "TRACK", track)
    assert f"{more} is not listed" in failures(record)["fixed_files"]
    commit(root)
    assert versions_of_records(root) == {Version(ABSENT, "2", more)}
    (root / LEDGER).parent.mkdir()
    (root / LEDGER).write_text(f"{ABSENT}  1  {more}\n")
    assert f"{more} is not listed" in failures(record)["fixed_files"]
    (root / LEDGER).write_text(f"{ABSENT}  2  {more}\n")
    assert failures(record) == {}


def test_a_version_is_accepted_for_its_ruleset_alone(record: Path) -> None:
    root, fixed = record.parents[2], "tests/toy_track/track.py"
    (root / fixed).write_text((root / fixed).read_text() + "# better\n")
    commit(root)
    (version,) = versions_of_records(root)
    assert (version.ruleset, version.name) == ("2", fixed)
    assert f"{fixed} is {version.digest}" in failures(record)["fixed_files"]
    (root / LEDGER).parent.mkdir()
    (root / LEDGER).write_text("  ".join(version._replace(ruleset="1")) + "\n")
    assert "fixed_files" in failures(record)
    (root / LEDGER).write_text("  ".join(version) + "\n")
    assert failures(record) == {}


def test_a_ruleset_takes_runs_until_it_closes(record: Path, later: Callable[..., None]) -> None:
    day = read_manifest(record / "manifest.json").started_utc.date()
    later(lambda track: replace(track, closes=day))
    assert failures(record) == {}
    later(lambda track: replace(track, closes=day - datetime.timedelta(days=1)))
    (name,) = failures(record)
    assert name == "ruleset" and "Remedy: run it again under the current" in failures(record)["ruleset"]


def test_an_unknown_ruleset_is_named(record: Path) -> None:
    text = (record / "record.json").read_text()
    (record / "record.json").write_text(text.replace('"ruleset": "2"', '"ruleset": "9"'))
    assert failures(record)["track"].startswith("toy_track has no ruleset '9'. Remedy: the rulesets here")
    with pytest.raises(Problem, match="toy_track has no ruleset '9'"):
        board(read_records(record.parents[2]), record.parents[2])


def test_rulesets_that_compare_share_a_board_and_others_stand_apart(
    record: Path, later: Callable[..., None]
) -> None:
    (second,) = read_records(record.parents[2])
    third = Entry(second.folder, second.record.model_copy(update={"ruleset": "3", "name": "newer"}))
    later(lambda track: track)
    together = board([second, third], record.parents[2])
    assert together.count("| # |") == 1 and "[by-heart]" in together and "[newer]" in together
    later(lambda track: replace(track, comparable=False))
    first, apart = board([second, third], record.parents[2]).split("Under ruleset 2, which does not compare:")
    assert "[newer]" in first and "[by-heart]" in apart and "| # |" in apart
    alone = board([second], record.parents[2])
    assert alone.startswith("No record yet.\n\nUnder ruleset 2")


@pytest.mark.parametrize("track", available_tracks())
def test_the_readme_holds_a_block_for_every_class_and_board_of_every_track(track: str) -> None:
    known = load_track(track)
    document = (ROOT / "README.md").read_text()
    for name in [*(hardware.name for hardware in known.classes), *(own.name for own in known.boards)]:
        mark = f"<!-- board:{track}:{name}:"
        assert document.count(mark) == 2
    lacking = "".join(line for line in document.splitlines(True) if f"board:{track}:" not in line)
    with pytest.raises(Problem, match=f"has no block board:{track}:"):
        with_boards(lacking, [])


def test_the_standing_records_name_a_ruleset_that_their_track_has() -> None:
    for path in ROOT.glob("records/*/*/manifest.json"):
        found = read_manifest(path)
        track = load_track(found.track).under(found.ruleset)
        assert track.closes is None or found.started_utc.date() <= track.closes
