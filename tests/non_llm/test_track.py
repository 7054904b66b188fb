"""Evidence is scored by replaying it: a practice set with solutions from the generator's reverse play."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import Problem
from harness.files import sha256_file
from harness.intervals import wilson
from non_llm.track import PRACTICE, TEST, TRACK, held_out, replay_evidence, score
from sokoban.generator import PRACTICE as PRACTICE_FILE
from sokoban.solver import solve

Line = dict[str, Any]


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    """True evidence on the practice set: the first three levels solved, the others not touched."""
    levels, digest = held_out(PRACTICE)
    header = {"levels": PRACTICE, "levels_sha256": digest, "checkpoint_sha256": "0" * 64}
    solutions = [solve(levels.level(index)) or "" for index in range(3)]
    moves = [moves if len(moves) <= 120 else "" for moves in solutions] + [""] * (len(levels) - 3)
    return [header, *({"level": index, "moves": text} for index, text in enumerate(moves))]


def write(path: Path, lines: list[Line]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_replay_counts_the_levels_that_the_moves_solve(tmp_path: Path, lines: list[Line]) -> None:
    solved = sum(line.get("moves", "") != "" for line in lines)
    assert solved >= 2
    result = replay_evidence(write(tmp_path / "evidence.jsonl", lines))
    assert (result.successes, result.count, result.value) == (solved, 1000, solved / 1000)
    assert (result.low, result.high) == wilson(solved, 1000)
    assert result.outcomes[:4].count(1.0) == solved and not any(result.outcomes[3:])


def test_the_digest_is_that_of_the_file(lines: list[Line]) -> None:
    assert lines[0]["levels_sha256"] == sha256_file(PRACTICE_FILE)


def test_only_the_official_test_levels_score(tmp_path: Path, lines: list[Line]) -> None:
    with pytest.raises(Problem, match=f"not on '{TEST}'"):
        score(write(tmp_path / "evidence.jsonl", lines))


def test_official_levels_score(tmp_path: Path, boxoban_folder: Path) -> None:
    levels, digest = held_out(TEST)
    assert digest == "272928a4e7c185fdf84daa523b298750b6ff08703cb0c20d3be7eff93acc5256"
    moves = solve(levels.level(0))
    assert moves is not None
    header = {"levels": TEST, "levels_sha256": digest, "checkpoint_sha256": "0" * 64}
    rest = [{"level": index, "moves": ""} for index in range(1, 1000)]
    result = score(write(tmp_path / "evidence.jsonl", [header, {"level": 0, "moves": moves}, *rest]))
    assert result.successes == 1 and result.outcomes[0] == 1


def change(line: int, key: str, value: Any) -> Callable[[list[Line]], None]:
    return lambda lines: lines[line].update({key: value})


@pytest.mark.parametrize(
    ("forge", "number", "reason"),
    [
        (lambda lines: lines.clear(), 1, "does not name levels"),
        (change(0, "levels", "easy"), 1, "levels is none of"),
        (change(0, "levels_sha256", "0" * 64), 1, "levels_sha256 is not"),
        (change(0, "note", ""), 1, "does not name levels"),
        (lambda lines: lines.pop(5), 6, "must be level 4 "),
        (lambda lines: lines.insert(5, lines[5]), 7, "must be level 5 "),
        (lambda lines: lines.__setitem__(slice(5, 7), lines[6:4:-1]), 6, "must be level 4 "),
        (lambda lines: lines.pop(), None, "999 of 1000 levels"),
        (lambda lines: lines.append({"level": 1000, "moves": ""}), 1002, "more than 1000 levels"),
        (change(1, "level", False), 2, "must be level 0 "),
        (change(1, "score", 1), 2, "must be level 0 "),
        (change(1, "moves", None), 2, "are not a string"),
        (change(8, "moves", "x"), 9, r"level 7, move 1 \('x'\)"),
        (change(8, "moves", "\u0131"), 9, "level 7, move 1 .* not one of u d l r"),
    ],
)
def test_forged_evidence_is_named_by_line(
    tmp_path: Path, lines: list[Line], forge: Callable[[list[Line]], object], number: int | None, reason: str
) -> None:
    forged = [dict(line) for line in lines]
    forge(forged)
    with pytest.raises(Problem, match=reason) as caught:
        replay_evidence(write(tmp_path / "evidence.jsonl", forged))
    assert caught.value.line == number


def test_moves_after_the_solve_and_swapped_case_are_refused(tmp_path: Path, lines: list[Line]) -> None:
    index = next(i for i, line in enumerate(lines) if line.get("moves"))
    for moves in (lines[index]["moves"] + "u", lines[index]["moves"].swapcase()):
        forged = [dict(line) for line in lines]
        forged[index]["moves"] = moves
        with pytest.raises(Problem, match=f"level {index - 1}, move") as caught:
            replay_evidence(write(tmp_path / "evidence.jsonl", forged))
        assert caught.value.line == index + 1


def test_the_track_names_files_that_exist_and_data_that_is_pinned() -> None:
    files = TRACK.data_files()
    assert len(files) == 100 and all(name.startswith("unfiltered/train/") for name in files)
    assert "non_llm/speedrun.py" not in TRACK.fixed_files
