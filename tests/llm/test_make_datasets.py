"""llm.make_datasets, llm.tiny_boards, llm.dataset_report: from seeds to files, and which boards are one."""

import json
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Problem
from llm import make_datasets, puzzles
from llm.dataset_report import describe, interval_power, power_table
from llm.make_datasets import Split, canonical_board, layout, make, proven, sokoban_rows, tiny_rows, write
from llm.puzzles import DATASETS, NAMES, read_puzzles
from llm.tiny_boards import random_level, shortest_solution
from sokoban.levels import REASONING_GYM, parse_levels


def walled(cells: list[list[str]], around: tuple[int, int, int, int] = (1, 1, 1, 1)) -> str:
    """Cells as text, with so many walls above, below, left and right."""
    top, bottom, left, right = around
    padded = np.pad(np.array(cells), ((top, bottom), (left, right)), constant_values="+")
    return "\n".join("".join(row) for row in padded.tolist())


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.sampled_from("+-X@$*%"), min_size=width, max_size=width), min_size=1, max_size=4
        )
    ),
    st.integers(0, 3),
    st.booleans(),
    st.tuples(*[st.integers(1, 3)] * 4),
)
def test_images_have_one_canonical_board(
    cells: list[list[str]], turns: int, mirrored: bool, around: tuple[int, int, int, int]
) -> None:
    cells[0][0] = "*"  # a board has a player, so it is never all wall
    image = np.rot90(np.array(cells), turns)
    image = image[:, ::-1] if mirrored else image
    assert canonical_board(walled(image.tolist(), around)) == canonical_board(walled(cells))


def test_other_boards_have_other_canonical_boards() -> None:
    """All 3x2 and 2x3 boards of some characters: as many classes as numpy's own images give."""
    found, expected = set(), set()
    for marks in product("-+X", repeat=5):
        for shape in ((3, 2), (2, 3)):
            cells = np.array([*marks, "*"]).reshape(shape)
            found.add(canonical_board(walled(cells.tolist())))
            images = [np.rot90(side, turns) for side in (cells, cells[::-1]) for turns in range(4)]
            tight = []
            for image in images:
                rows, columns = np.nonzero(image != "+")
                cut = image[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
                tight.append((cut.shape, cut.tobytes()))
            expected.add(min(tight))
    assert len(found) == len(expected)


def test_layout_is_the_board_without_its_player() -> None:
    board = "+++++\n+*-X+\n+-@-+\n+++++"
    assert layout(board) == layout("+++++\n+--X+\n+-@*+\n+++++") == layout("+++++\n+--%+\n+-@-+\n+++++")
    assert layout(board) != layout("+++++\n+*-X+\n+@--+\n+++++")
    assert layout(board) == canonical_board("+++++\n+--X+\n+-@-+\n+++++")


def test_shortest_solution_by_hand() -> None:
    level = parse_levels("+++++\n+*-X+\n+-@-+\n+---+\n+++++", REASONING_GYM)[0]
    # The box must go right and up: from the left a push right, then round below it and up.
    assert shortest_solution(level, 6) == "DRDRU"
    assert shortest_solution(level, 4) is None
    stuck = parse_levels("+++++\n+@-X+\n+--*+\n+++++", REASONING_GYM)[0]
    assert shortest_solution(stuck, 12) is None


def test_proven_stops_at_the_solve() -> None:
    board = "++++++\n+*@X-+\n++++++"
    assert proven(board, "R") == "R"
    assert proven(board, "LRRL") == "LR"  # a bump, then the push; what follows is cut
    assert proven(board, "L") is None and proven(board, "") is None
    assert proven("+++++\n+*-$+\n+++++", "R") is None


def test_random_levels() -> None:
    drawn = [random_level(Random(seed)) for seed in range(300)]
    levels = [level for level in drawn if level]
    assert len(levels) > 100
    assert {(level.height, level.width) for level in levels} == {(5, 5), (5, 6), (6, 5), (6, 6)}
    assert all(level.boxes != level.goals and len(level.boxes) == 1 for level in levels)
    assert all(level.player not in level.boxes | level.walls for level in levels)
    assert drawn == [random_level(Random(seed)) for seed in range(300)]


def test_tiny_eval_is_made_again() -> None:
    split = make_datasets.TINY[0]
    assert make(((split,), tiny_rows))["tiny_eval"] == (DATASETS / "tiny_eval.jsonl").read_bytes()


def test_tiny_lengths_are_even_and_earlier_layouts_left_out() -> None:
    first, second = Split("first", 103, 5), Split("second", 103, 5)
    files = make(((first, second), tiny_rows))
    rows = {name: [json.loads(line) for line in content.splitlines()] for name, content in files.items()}
    for split in rows.values():
        lengths = [len(row["solution"]) for row in split]
        assert [lengths.count(length) for length in range(1, 6)] == [2, 33, 34, 34, 0]
    layouts = [{layout(row["board"]) for row in split} for split in rows.values()]
    assert layouts[0].isdisjoint(layouts[1])  # the same seed would give the same boards


def test_the_first_sokoban_rows_are_made_again() -> None:
    pytest.importorskip("reasoning_gym")
    split = make_datasets.SOKOBAN[0]._replace(rows=40)
    made = make(((split,), sokoban_rows))["sokoban_eval"]
    committed = (DATASETS / "sokoban_eval.jsonl").read_bytes().splitlines(keepends=True)
    assert made == b"".join(committed[:40])


def test_another_generator_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_datasets, "GENERATOR", ("reasoning-gym", "0.0.1"))
    with pytest.raises(Problem, match=r"pip install reasoning-gym==0\.0\.1"):
        next(make_datasets.generated(1))


def test_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(puzzles, "DATASETS", tmp_path)
    monkeypatch.setattr(make_datasets, "DATASETS", tmp_path)
    row = json.dumps({"board": "++++++\n+*@-X+\n++++++", "solution": "RR"}) + "\n"
    files = dict.fromkeys(NAMES, row.encode())
    write(files, pin=True)
    assert [puzzle.solution for puzzle in read_puzzles("tiny_eval")] == ["RR"]
    (tmp_path / "tiny_eval.jsonl").unlink()
    write(files, pin=False)
    assert len(read_puzzles("tiny_eval")) == 1
    with pytest.raises(Problem, match="another file than the pinned one"):
        write({**files, "tiny_train": b""}, pin=False)
    assert len(read_puzzles("tiny_train")) == 1


def test_interval_power() -> None:
    power = interval_power(100, evaluations=100)
    # The public record on 100 puzzles of this spread: 0.8387, interval 0.8037 to 0.8712, SE 0.0171.
    assert power.standard_error == pytest.approx(0.0171)
    assert power.width == pytest.approx(0.8712 - 0.8037, abs=0.003)
    assert power.margin == pytest.approx(0.8387 - 0.8037, abs=0.002)
    # A normal interval is the right value for many puzzles.
    wide = interval_power(400, evaluations=100)
    assert wide.width == pytest.approx(2 * 1.96 * 0.171 / 20, rel=0.03)
    assert [row.split()[1] for row in power_table((50, 100))[2:]] == ["50", "100"]


def test_report_of_the_eval_splits() -> None:
    sample = {name: read_puzzles(name)[:60] for name in NAMES}
    lines = describe(sample)
    assert lines[-1] == "Boards: 360, different up to symmetry: 360."
    tiny = next(line for line in lines if line.startswith("| tiny_eval"))
    assert tiny.split("|")[5:7] == [" 100.0% ", " 0.0% "]  # shortest solutions, and no room of train
