"""Reference rows: the same each time, replayed by verification, and refused where anything was changed."""

import datetime
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.references import ABOUT, FOLDER, LARGEST_EVIDENCE, add, board, check, main, read_references
from agents.task import EVIDENCE, TASKS
from agents_evidence import few_episodes
from harness.errors import Problem
from harness.packed import pack_lines, unpack_lines
from harness.track import ROOT

DAY = datetime.date(2026, 11, 30)


@pytest.fixture(autouse=True, scope="module")
def few() -> Iterator[None]:
    with few_episodes():
        yield


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for player in ("random", "oracle"):
        add("babyai", player, date=DAY, root=tmp_path)
    return tmp_path


def test_a_row_is_the_same_each_time(root: Path) -> None:
    before = {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
    assert len(before) == 4
    for player in ("random", "oracle"):
        add("babyai", player, date=DAY, root=root)
    assert {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()} == before


def test_the_floor_stands_below_the_oracle(root: Path) -> None:
    low, high = read_references(root)
    assert (low.about.player, high.about.player) == ("random", "oracle")
    assert low.about.score.value < high.about.score.value == 1.0
    assert high.about.score.count == 5 and high.about.steps == high.about.summary["steps to success"]
    for entry in (low, high):
        check(entry)


def test_the_board_reads_reference_json_alone(root: Path) -> None:
    for path in root.rglob(EVIDENCE):
        path.unlink()
    head, _, floor, oracle = board("babyai", root).split("\n")
    assert head == "| player | score | steps an episode | what it does |"
    assert floor.startswith("| [random](records/agents/references/babyai/random) | 0.")
    assert oracle.startswith("| [oracle](records/agents/references/babyai/oracle) | 1.0000 [0.5655, 1.0000] ")
    assert board("crafter", root) == "No reference row yet."


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("steps", 1.0, "steps is 1.0, expected"),
        ("evidence_sha256", "0" * 64, "evidence_sha256 is 000"),
        ("summary", {}, "summary is {}, expected {'steps'"),
        ("score", {"value": 1.0, "low": 1.0, "high": 1.0, "count": 5}, "score is value=1.0 low=1.0"),
    ],
)
def test_a_changed_number_is_refused(root: Path, field: str, value: object, says: str) -> None:
    path = root / FOLDER / "babyai/oracle" / ABOUT
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(Problem) as caught:
        check(read_references(root)[1])
    assert says in caught.value.reason


def test_changed_evidence_is_refused_with_its_line(root: Path) -> None:
    path = root / FOLDER / "babyai/oracle" / EVIDENCE
    lines = [value for _, value in unpack_lines(path, 2**20)]
    entry = read_references(root)[1]

    def refusal(changed: list[dict[str, object]]) -> str:
        path.write_bytes(pack_lines(changed))
        with pytest.raises(Problem) as caught:
            check(entry)
        return str(caught.value).replace(str(path), "")

    assert refusal([lines[0], lines[1] | {"actions": [], "steps": 0}, *lines[2:]]).startswith(":2: score is")
    assert "4 of 5 episodes" in refusal(lines[:5])
    assert refusal([*lines, lines[5]]).startswith(":7: more than 5 episodes")
    for changes in ({"benchmark": "chess"}, {"player": ["oracle"]}, {"seed": 1}, {"episodes": 5.0}, {"x": 1},
                    {"versions": {}}):  # fmt: skip
        assert refusal([lines[0] | changes, *lines[1:]]).startswith(":1: ")
    path.write_bytes(b"0" * (LARGEST_EVIDENCE + 1))
    with pytest.raises(Problem, match="at most 4,194,304"):
        check(entry)
    path.unlink()
    with pytest.raises(Problem, match="is not a plain file"):
        check(entry)


def test_what_does_not_belong_is_refused(root: Path) -> None:
    entry = read_references(root)[0]
    (entry.folder / "notes.txt").write_text("")
    with pytest.raises(Problem, match=r"holds notes\.txt"):
        check(entry)
    path = entry.folder / ABOUT
    path.write_text(path.read_text().replace("the floor", "the ceiling"))
    with pytest.raises(Problem, match="not that of this player"):
        read_references(root)
    path.write_text(path.read_text().replace("the ceiling", "the floor"))
    entry.folder.rename(entry.folder.with_name("chance"))
    with pytest.raises(Problem, match="lies in 'chance'"):
        read_references(root)


def test_the_command_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["add", "babyai", "oracle"], root=root) == 0
    assert "Minigrid's bot, which plans" in capsys.readouterr().out
    assert main(["verify"], root=root) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"pass {FOLDER}/babyai/{player}" for player in ("random", "oracle")
    ]
    path = root / FOLDER / "babyai/random" / ABOUT
    path.write_text(path.read_text().replace('"date": "2026', '"date": "2025'))
    assert main(["verify"], root=root) == 0  # a date is what the one who added it says
    path.write_text(path.read_text().replace('"count": 5', '"count": 6'))
    assert main(["verify"], root=root) == 1
    assert "FAIL" in capsys.readouterr().out


def test_the_committed_rows_can_be_shown() -> None:
    for name in TASKS:
        assert board(name, ROOT)
