"""The ledger of standings: what it says shows on the board, and whatever is malformed in it is named."""

import datetime
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.boards import board, read_records, refresh
from harness.checks import RecordFolder, check_all
from harness.errors import Problem
from harness.files import canonical_json
from harness.standing import LEDGER, Standing, add_standing, main, read_standings
from harness.verify import main as verify
from toy_track.records import make_checkout, make_record, plain_machine

TODAY = datetime.datetime.now(datetime.UTC).date()
REASON = "Trained on a level that is held out"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_checkout(tmp_path_factory.mktemp("checkout"))
    with plain_machine():
        make_record(root)
    refresh(root)
    return root


@pytest.fixture
def record(original: Path, tmp_path: Path) -> Path:
    """A true record in a checkout of its own."""
    root = Path(shutil.copytree(original, tmp_path / "checkout"))
    return next(root.glob("records/toy_track/*"))


def entry(record: str, **changes: Any) -> dict[str, Any]:
    made = {
        "record": record, "standing": "retimed", "date": TODAY.isoformat(), "by": "maintainer",
        "reason": "Timed on a quiet machine", "times_s": [160.5, 158.25], "machine": "two EPYC cores",
    }  # fmt: skip
    return made | changes


def invalidated(record: str, **changes: Any) -> dict[str, Any]:
    made = entry(record, standing="invalidated", reason=REASON, times_s=None, machine=None)
    return made | changes


def write(record: Path, *entries: dict[str, Any]) -> Path:
    path = record.parent / LEDGER
    path.write_text("".join(canonical_json(one) + "\n" for one in entries))
    return path


def test_without_a_ledger_all_records_stand(record: Path) -> None:
    assert read_standings(record.parent) == {}
    assert check_all(RecordFolder(record, root=record.parents[2]))[-1].reason == "stands as it was made"


def test_a_retimed_record_ranks_by_the_retimed_seconds_and_says_so(record: Path) -> None:
    root = record.parents[2]
    assert main(
        ["retime", str(record), "160.5", "158.25", "--machine", "two EPYC cores", "--reason", "Quiet now"],
        root=root,
    ) == 0  # fmt: skip
    (found,) = read_records(root)
    assert (found.valid, found.ranked.time_s) == (True, 160.5)
    assert found.ranked.verification is not None and found.ranked.verification.time_s == 158.25
    assert found.record.time_s < 1
    row = board([found], root).split("\n")[2]
    assert " | 2:40 (retimed) | " in row
    assert row.endswith(f" | Knows them all (retimed {TODAY} on two EPYC cores by a maintainer: Quiet now) |")
    check = check_all(RecordFolder(record, root=root))[-1]
    assert check.passed and check.reason.startswith(f"retimed {TODAY} on two EPYC cores")


def test_an_invalidated_record_stays_at_the_end_struck_through_with_the_reason(
    record: Path, original: Path
) -> None:
    root = record.parents[2]
    other = record.with_name("2026-01-01_02_slow")
    shutil.copytree(record, other)
    (other / "record.json").write_text(
        (record / "record.json").read_text()
        .replace('"number": 1', '"number": 2').replace('"time_s": 0', '"time_s": 9')
    )  # fmt: skip
    assert main(["invalidate", str(record), "--reason", REASON, "--by", "contributor"], root=root) == 0
    found = {one.folder.name: one for one in read_records(root)}
    assert [one.valid for one in found.values()] == [False, True]
    *_, slow, struck, blank, curve = board(found.values(), root).split("\n")
    assert slow.startswith("| 2 | [") and "~~" not in slow
    assert struck.startswith("| ~~1~~ | ~~[by-heart](") and " | ~~0:00~~ | " in struck
    assert struck.endswith(f"| ~~Knows them all~~ (invalidated {TODAY} by a contributor: {REASON}) |")
    assert blank == "" and other.name in curve
    refresh(root)
    history = (root / "docs/figures/toy_track_history.svg").read_text()
    assert history != (original / "docs/figures/toy_track_history.svg").read_text()


def test_a_board_of_nothing_but_invalidated_records_shows_no_curve(record: Path) -> None:
    root = record.parents[2]
    write(record, invalidated(record.name))
    shown = board(read_records(root), root)
    assert "~~by-heart~~" not in shown and "![" not in shown and "(invalidated" in shown
    refresh(root)
    assert refresh(root, write=False) == []


def test_what_fails_in_an_invalidated_record_does_not_count(
    record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (record / "record.json").write_text((record / "record.json").read_text().replace("Ada", "Eve"))
    assert verify([str(record)]) == 1
    write(record, invalidated(record.name))
    assert verify([str(record)]) == 0
    shown = capsys.readouterr().out
    assert "FAIL" in shown and "it was invalidated, so what fails does not count" in shown


def test_the_last_entry_counts(record: Path) -> None:
    write(record, entry(record.name), entry(record.name, times_s=[9.5, 8.5]), invalidated(record.name))
    assert read_standings(record.parent)[record.name].standing == "invalidated"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda one: one | {"record": "2026-01-01_07_none"}, "there is no record '2026-01-01_07_none'"),
        (lambda one: one | {"record": "../toy_track/x"}, "there is no record"),
        (lambda one: one | {"record": ""}, "there is no record ''"),
        (lambda one: one | {"standing": "best"}, "standing: Input should be 'retimed' or 'invalidated'"),
        (lambda one: one | {"by": "a friend"}, "by: Input should be 'maintainer' or 'contributor'"),
        (lambda one: one | {"date": "2026-01-01"}, "date is 2026-01-01, before the record's"),
        (lambda one: one | {"date": "yesterday"}, "date: "),
        (lambda one: one | {"reason": "a | b"}, "the reason holds '|'"),
        (lambda one: one | {"reason": ""}, "the reason is empty"),
        (lambda one: one | {"machine": "~~x~~"}, "the machine holds '~'"),
        (lambda one: one | {"machine": None}, "times_s and machine are told of what is retimed"),
        (lambda one: one | {"times_s": None}, "times_s and machine are told of what is retimed"),
        (lambda one: one | {"standing": "invalidated"}, "times_s and machine are told of what is retimed"),
        (lambda one: one | {"times_s": [1.0]}, "times_s.1: Field required"),
        (lambda one: one | {"times_s": [0.0, 1.0]}, "times_s.0: "),
        (lambda one: one | {"times_s": [-1.0, 1.0]}, "times_s.0: "),
        (lambda one: one | {"times_s": [1.0, 1e300]}, "times_s.1: "),
        (lambda one: one | {"extra": 1}, "extra: Extra inputs"),
        (lambda one: {name: one[name] for name in one if name != "by"}, "by: Field required"),
    ],
)  # fmt: skip
def test_an_entry_that_cannot_be_is_named_with_its_line(
    change: Callable[[dict[str, Any]], dict[str, Any]], says: str, record: Path
) -> None:
    path = write(record, entry(record.name), change(entry(record.name)))
    with pytest.raises(Problem) as caught:
        read_standings(record.parent)
    assert says in caught.value.reason
    assert (caught.value.file, caught.value.line) == (str(path), 2)
    check = check_all(RecordFolder(record, root=record.parents[2]))[-1]
    assert check.failed and says in check.reason
    with pytest.raises(Problem):
        read_records(record.parents[2])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (lambda one: json.dumps(one) + "\n", "is not in the form that is written"),
        (lambda one: canonical_json(one) + "\r\n", "is not in the form that is written"),
        (lambda one: canonical_json(one), "the last line is cut short"),
        (lambda one: canonical_json(one)[:-1] + ',"by":"maintainer"}\n', "repeated key 'by'"),
        (lambda one: "<<<<<<< HEAD\n", "not JSON"),
        (lambda one: "[]\n", "not a JSON object"),
        (lambda one: canonical_json(one).replace("160.5", "1605e-1") + "\n", "is not in the form"),
        (lambda one: canonical_json(one).replace("160.5", "NaN") + "\n", "not a finite number"),
    ],
)
def test_one_form_alone_is_read(text: Callable[[dict[str, Any]], str], says: str, record: Path) -> None:
    (record.parent / LEDGER).write_text(text(entry(record.name)), newline="")
    with pytest.raises(Problem) as caught:
        read_standings(record.parent)
    assert says in caught.value.reason and caught.value.line == 1


def test_entries_come_in_the_order_of_their_dates_and_end_with_an_invalidation(record: Path) -> None:
    later = (TODAY + datetime.timedelta(days=1)).isoformat()
    write(record, entry(record.name, date=later), entry(record.name))
    with pytest.raises(Problem, match=f"is of {TODAY}, after one of {later}"):
        read_standings(record.parent)
    write(record, invalidated(record.name), entry(record.name))
    with pytest.raises(Problem, match="is invalidated already"):
        read_standings(record.parent)


def test_a_link_is_no_ledger(record: Path, tmp_path: Path) -> None:
    path = write(record, entry(record.name))
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Problem, match="is not a plain file"):
        read_standings(record.parent)


def test_an_entry_that_cannot_be_added_leaves_the_ledger_alone(record: Path) -> None:
    root = record.parents[2]
    before = write(record, entry(record.name)).read_bytes()
    for arguments, says in (
        (["invalidate", str(record), "--reason", "<b>"], "the reason holds '<'"),
        (["retime", str(record), "0", "1", "--machine", "m", "--reason", "r"], "are not two times"),
        (["retime", str(record), "nan", "1", "--machine", "m", "--reason", "r"], "are not two times"),
        (["invalidate", str(root / "records/toy_track/x"), "--reason", "r"], "there is no record 'x'"),
        (["invalidate", str(root / "README.md"), "--reason", "r"], "is not a record"),
    ):
        with pytest.raises(Problem, match=says):
            main(arguments, root=root)
    assert (record.parent / LEDGER).read_bytes() == before


def test_a_pending_record_cannot_be_retimed(record: Path) -> None:
    content = json.loads((record / "record.json").read_text())
    (record / "record.json").write_text(json.dumps(content | {"verification": None}))
    with pytest.raises(Problem, match="has no second run"):
        add_standing(record.parent, Standing.model_validate_json(json.dumps(entry(record.name))))


@given(st.binary(max_size=300))
def test_any_content_is_read_or_named(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / LEDGER).write_bytes(content)
        try:
            assert read_standings(Path(folder)) == {}
        except Problem as problem:
            assert problem.file == str(Path(folder) / LEDGER)
