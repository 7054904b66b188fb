"""llm.puzzles: what is read is what was pinned, and every row keeps what the datasets promise."""

import hashlib
import json
import shutil
from itertools import combinations
from pathlib import Path

import pytest

from harness.errors import Problem
from llm import puzzles
from llm.puzzles import DATASETS, NAMES, Puzzle, dataset_sha256, read_puzzles
from sokoban.reference import Game

SPLITS = {name: read_puzzles(name) for name in NAMES}
STEPS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}


def normal_form(board: str, hidden: str = "") -> tuple[tuple[int, int, str], ...]:
    """What a board and its eight images share: the cells that are no wall, moved to the origin.

    Written on coordinates, with no text turned, to judge the text of `llm.make_datasets` independently.
    `hidden` are characters of the player, shown as what is under them.
    """
    under = {"*": "-", "%": "X"}
    cells = [
        (row, column, under[mark] if mark in hidden else mark)
        for row, line in enumerate(board.split("\n"))
        for column, mark in enumerate(line)
        if mark != "+"
    ]
    forms = []
    for rows, columns, swapped in ((r, c, s) for r in (1, -1) for c in (1, -1) for s in (False, True)):
        image = [(rows * row, columns * column, mark) for row, column, mark in cells]
        image = [(column, row, mark) if swapped else (row, column, mark) for row, column, mark in image]
        top, left = min(row for row, _, _ in image), min(column for _, column, _ in image)
        forms.append(tuple(sorted((row - top, column - left, mark) for row, column, mark in image)))
    return min(forms)


def solvable_within(board: str, moves: int) -> bool:
    """Whether any string of at most `moves` letters brings the one box home: all strings are tried."""
    rows = board.split("\n")
    where = {
        mark: (row, column)
        for row, line in enumerate(rows)
        for column, mark in enumerate(line)
        if mark in "*%@X"
    }
    player = where["%"] if "%" in where else where["*"]
    goal = where["%"] if "%" in where else where["X"]

    def tried(player: tuple[int, int], box: tuple[int, int], left: int) -> bool:
        if box == goal:
            return True
        for down, right in STEPS.values() if left else ():
            ahead, pushed = (player[0] + down, player[1] + right), box
            if ahead == box:
                pushed = (box[0] + down, box[1] + right)
            blocked = "+" in (rows[ahead[0]][ahead[1]], rows[pushed[0]][pushed[1]])
            if not blocked and tried(ahead, pushed, left - 1):
                return True
        return False

    return tried(player, where["@"], moves)


def test_every_row_is_solved_by_its_last_move() -> None:
    for rows in SPLITS.values():
        for puzzle in rows:
            game = Game(puzzle.level)
            for letter in puzzle.solution:
                assert not game.solved, puzzle
                game.move("UDLR".index(letter))
            assert game.solved, puzzle


def test_shape_and_difficulty() -> None:
    for name, rows in SPLITS.items():
        boxes, sides, lengths = (1, {5, 6}, range(1, 7)) if "tiny" in name else (2, {6, 7}, range(4, 17))
        for index, puzzle in enumerate(rows):
            lines = puzzle.board.split("\n")
            assert puzzle.index == index
            assert {len(lines), *map(len, lines)} <= sides
            assert sum(puzzle.board.count(mark) for mark in "@$") == boxes
            assert set(puzzle.board) <= set("+-X@$*%\n") and set(puzzle.solution) <= set("UDLR")
            assert puzzle.difficulty == len(puzzle.solution) and puzzle.difficulty in lengths
    counts = {name: len(rows) for name, rows in SPLITS.items()}
    assert counts == {
        "sokoban_train": 6_000,
        "sokoban_valid": 256,
        "sokoban_eval": 300,
        "tiny_train": 7_500,
        "tiny_valid": 512,
        "tiny_eval": 1_000,
    }


def test_tiny_solutions_are_the_shortest() -> None:
    sample = SPLITS["tiny_eval"] + SPLITS["tiny_valid"] + SPLITS["tiny_train"][::10]
    for puzzle in sample:
        assert not solvable_within(puzzle.board, puzzle.difficulty - 1), puzzle
        assert solvable_within(puzzle.board, puzzle.difficulty), puzzle


def test_no_board_twice_up_to_symmetry() -> None:
    forms = [normal_form(puzzle.board) for rows in SPLITS.values() for puzzle in rows]
    assert len(set(forms)) == len(forms)


def test_splits_share_no_board_that_differs_only_in_the_player() -> None:
    rooms = {name: {normal_form(puzzle.board, "*%") for puzzle in rows} for name, rows in SPLITS.items()}
    assert not any(rooms[one] & rooms[other] for one, other in combinations(NAMES, 2))


def test_normal_form_by_hand() -> None:
    board = "+++++\n+*-X+\n++@-+\n+++++"
    turned = "++++\n++*+\n+@-+\n+-X+\n++++"  # clockwise, by hand
    mirrored = "+++++\n+X-*+\n+-@++\n+++++"
    thicker = "++++++\n++++++\n+*-X++\n++@-++\n++++++"
    assert {normal_form(image) for image in (board, turned, mirrored, thicker)} == {normal_form(board)}
    assert normal_form("+++++\n+*-X+\n+-@-+\n+++++") != normal_form(board)
    assert normal_form(board, "*") == normal_form("+++++\n+--X+\n++@-+\n+++++")


def test_hash_file_is_what_sha256sum_checks() -> None:
    lines = (DATASETS / "datasets.sha256").read_text().splitlines()
    assert lines == [
        f"{hashlib.sha256((DATASETS / f'{name}.jsonl').read_bytes()).hexdigest()}  {name}.jsonl"
        for name in NAMES
    ]
    assert [dataset_sha256(name) for name in NAMES] == [line.split()[0] for line in lines]
    assert {path.stem for path in DATASETS.glob("*.jsonl")} == set(NAMES)


def test_level() -> None:
    puzzle = Puzzle(0, "+++++\n+%@-+\n+-X@+\n+++++", "R")
    level = puzzle.level
    assert (level.height, level.width, level.player) == (4, 5, (1, 1))
    assert level.boxes == {(1, 2), (2, 3)} and level.goals == {(1, 1), (2, 2)}


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the datasets that `read_puzzles` reads."""
    folder = tmp_path / "datasets"
    shutil.copytree(DATASETS, folder)
    monkeypatch.setattr(puzzles, "DATASETS", folder)
    return folder


def test_a_changed_row_is_refused(copied: Path) -> None:
    path = copied / "tiny_eval.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    row = json.loads(lines[7])
    easier = {**row, "board": row["board"].replace("@", "-", 1).replace("X", "$", 1)}
    path.write_text("".join([*lines[:7], json.dumps(easier) + "\n", *lines[8:]]))
    with pytest.raises(Problem, match="SHA-256") as caught:
        read_puzzles("tiny_eval")
    assert caught.value.file == str(path)
    assert "git checkout llm/datasets" in (caught.value.remedy or "")
    assert len(read_puzzles("tiny_valid")) == 512


@pytest.mark.parametrize("harm", ["reordered", "a line more", "a line less", "carriage returns", "empty"])
def test_any_other_content_is_refused(copied: Path, harm: str) -> None:
    path = copied / "sokoban_valid.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    harmed = {
        "reordered": [lines[1], lines[0], *lines[2:]],
        "a line more": [*lines, lines[0]],
        "a line less": lines[:-1],
        "carriage returns": [line.replace(b"\n", b"\r\n") for line in lines],
        "empty": [],
    }
    path.write_bytes(b"".join(harmed[harm]))
    with pytest.raises(Problem, match="SHA-256"):
        read_puzzles("sokoban_valid")


def test_what_is_missing_is_named(copied: Path) -> None:
    (copied / "tiny_train.jsonl").unlink()
    with pytest.raises(Problem, match=r"tiny_train\.jsonl"):
        read_puzzles("tiny_train")
    (copied / "datasets.sha256").write_text("")
    with pytest.raises(Problem, match=r"datasets\.sha256.*tiny_eval\.jsonl"):
        read_puzzles("tiny_eval")
    with pytest.raises(Problem, match="no dataset 'tiny'"):
        read_puzzles("tiny")
