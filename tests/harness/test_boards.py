"""Boards: the order of rows, one row's text, and a check that names what was changed by hand."""

import datetime
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from harness.boards import Entry, board, main, read_records, refresh, with_boards
from harness.errors import Problem
from harness.record import Record, RunEntry, ScoreEntry, worse
from harness.track import Board
from toy_track.records import make_checkout, make_record, plain_machine
from toy_track.track import TRACK

ROOT = Path("/checkout")
SCORE = ScoreEntry(value=0.742, low=0.71437, high=0.76821, count=1000)
SECOND = RunEntry(seed=2, time_s=431.0, cpu_s=810.0, score=SCORE, calibration_s=1.25)


def entry(number: int, time_s: float, verification: RunEntry | None = SECOND, **changes: object) -> Entry:
    record = Record.model_validate(
        {
            "ruleset": "1", "track": "toy_track", "hardware_class": "cpu", "number": number,
            "date": datetime.date(2026, 11, 30), "name": f"idea-{number}", "description": "Learns",
            "contributors": ("Ada", "Bob"), "seed": 1, "time_s": time_s, "cpu_s": 801.6, "score": SCORE,
            "target": 0.7, "hardware": "h", "calibration_s": 1.254, "files": {},
            "verification": verification, "published": worse(TRACK, SCORE, None), **changes,
        }
    )  # fmt: skip
    return Entry(ROOT / "records/toy_track" / record.folder_name, record)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with one true record and everything generated from it."""
    root = make_checkout(tmp_path_factory.mktemp("checkout"))
    with plain_machine():
        make_record(root)
    refresh(root)
    return root


@pytest.fixture
def root(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "checkout"))


def test_a_row_tells_the_record() -> None:
    assert board([entry(7, 758.9)], ROOT).split("\n")[2] == (
        "| 7 | [idea-7](records/toy_track/2026-11-30_07_idea-7) | 12:38 | 802 "
        "| 0.7420 [0.7144, 0.7682] of 1000 | 0.7420 [0.7144, 0.7682] of 1000 "
        "| 1.25 | 2026-11-30 | Ada, Bob | Learns |"
    )


def test_the_fastest_verified_record_stands_on_top_and_pending_ones_below() -> None:
    entries = [entry(1, 500.0), entry(2, 100.0, None), entry(3, 300.0), entry(4, 50.0, None), entry(5, 400.0)]
    *rows, blank, curve = board(entries, ROOT).split("\n")[2:]
    assert blank == "" and curve.endswith("_03_idea-3/training_curve.svg)")
    assert [row.split(" ")[1] for row in rows] == ["3", "5", "1", "4", "2"]
    assert [" pending " in row for row in rows] == [False, False, False, True, True]


def test_a_board_without_records_says_so() -> None:
    assert board([], ROOT) == "No record yet."


def test_each_class_has_its_own_board() -> None:
    names = ["toy_track:cpu", "toy_track:1xH100"]
    document = "".join(f"<!-- board:{name}:start -->\n<!-- board:{name}:end -->\n" for name in names)
    entries = [entry(1, 500.0), entry(2, 100.0, hardware_class="1xH100")]
    made = with_boards(document, entries, ROOT)
    assert made.index("[idea-1]") < made.index("board:toy_track:1xH100:start") < made.index("[idea-2]")
    assert with_boards(made, entries, ROOT) == made


def test_a_track_may_have_boards_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    track = replace(TRACK, boards=(Board("largest", lambda root: f"The largest square in {root}"),))
    monkeypatch.setattr("harness.boards.load_track", lambda name: track)
    document = "<!-- board:toy_track:largest:start -->\n<!-- board:toy_track:largest:end -->\n"
    assert "\nThe largest square in /checkout\n" in with_boards(document, [], ROOT)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("", "has no block board:toy_track:cpu for 2026-11-30_01_idea-1"),
        ("<!-- board:toy_track:start -->\n", "expected board:<track>:<class>"),
        ("<!-- board:toy_track:tpu:start -->\n", "toy_track has no class 'tpu'"),
        ("<!-- board:no_track:cpu:start -->\n", "there is no track 'no_track'"),
        ("<!-- board:toy_track:cpu:start -->\n", "has 0 lines <!-- board:toy_track:cpu:end -->"),
    ],
)
def test_a_readme_that_cannot_hold_the_boards_is_named(document: str, says: str) -> None:
    with pytest.raises(Problem) as caught:
        with_boards(document, [entry(1, 500.0)], ROOT)
    assert says in str(caught.value)


def test_refreshing_twice_changes_nothing(root: Path) -> None:
    assert refresh(root) == []


def test_what_was_changed_by_hand_is_named_and_made_anew(root: Path) -> None:
    record = next(root.glob("records/*/*"))
    changed = [
        root / "README.md", root / "docs/figures/toy_track_history.svg", record / "README.md",
        record / "training_curve.svg", record / "mistakes.md",
    ]  # fmt: skip
    before = [path.read_text() for path in changed]
    for path in changed:
        text = path.read_text().replace("0.9100", "0.9900").replace("</svg>", "<!-- --></svg>")
        path.write_text(text.replace("- 91", "- 90 91"))
    assert refresh(root, write=False) == changed
    assert refresh(root, write=False, records_only=True) == changed[2:]
    assert [path.read_text() for path in changed] != before
    assert refresh(root) == changed
    assert [path.read_text() for path in changed] == before


def test_a_description_edited_in_record_json_reaches_both_readmes(root: Path) -> None:
    path = next(root.glob("records/*/*/record.json"))
    path.write_text(path.read_text().replace("Knows them all", "Knows most of them"))
    assert set(refresh(root)) == {root / "README.md", path.with_name("README.md")}
    assert "Knows most of them |" in (root / "README.md").read_text()


def test_words_that_would_break_a_table_are_refused(root: Path) -> None:
    path = next(root.glob("records/*/*/record.json"))
    text = path.read_text()
    path.write_text(text.replace("Knows them all", "Knows | them"))
    with pytest.raises(Problem, match=r"record.json: description holds '\|'"):
        read_records(root)
    path.write_text(text.replace('"Ada"', '"<b>"'))
    with pytest.raises(Problem, match=r"record.json: contributors have one, '<b>'"):
        read_records(root)


def test_only_record_json_is_read_for_a_board(root: Path) -> None:
    record = next(root.glob("records/*/*"))
    expected = with_boards((root / "README.md").read_text(), read_records(root), root)
    for path in record.rglob("*"):
        if path.is_file() and path.name != "record.json":
            path.unlink()
    assert with_boards((root / "README.md").read_text(), read_records(root), root) == expected


def test_check_writes_nothing_and_exits_1(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"], root=root) == 0
    (root / "README.md").write_text((root / "README.md").read_text().replace("0.9100", "0.9200"))
    assert main(["--check", "--records"], root=root) == 0
    assert main(["--check"], root=root) == 1
    assert "README.md: differs from the records" in capsys.readouterr().out
    assert "0.9200" in (root / "README.md").read_text()
    assert main([], root=root) == 0
    assert "0.9100" in (root / "README.md").read_text()
