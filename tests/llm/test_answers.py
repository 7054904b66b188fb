"""What counts as an answer and what it is worth, against the reference rules and reasoning-gym's scorer."""

import re
import time
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_levels import directions, levels

from llm.answers import (
    AFTER_SOLVE,
    CUT_OFF,
    EMPTY,
    NO_BLOCK,
    REASONS,
    SOLVED,
    STRAY,
    TOO_MANY,
    UNSOLVED,
    final_answer,
    judge,
)
from llm.puzzles import MOVES, Puzzle, read_puzzles
from sokoban.levels import REASONING_GYM, Level, format_level
from sokoban.reference import STEP_LIMIT, Game, IllegalMove, replay
from sokoban.solver import solve

CORRIDOR = Puzzle(0, "++++++++\n+*-@--X+\n++++++++", "RRRR")
SOLUTION = f"<answer>{CORRIDOR.solution}</answer>"


def puzzle_of(level: Level) -> Puzzle:
    return Puzzle(0, format_level(level, REASONING_GYM).strip(), "")


def block(moves: str) -> str:
    return f"<answer>{moves}</answer>"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", None),
        ("RRRR", None),
        ("<answer>RRRR", None),
        ("RRRR</answer>", None),
        ("</answer>RRRR<answer>", None),
        ("<Answer>RRRR</Answer>", None),
        ("< answer>RRRR</answer>", None),
        ("<answer >RRRR</answer>", None),
        ("\uff1canswer>RRRR</answer>", None),
        ("<answer></answer>", ""),
        ("<answer> \t\r\n\f\vRRRR\n</answer>", "RRRR"),
        ("<answer>\u00a0RRRR</answer>", "\u00a0RRRR"),
        ("<answer>RR RR</answer>", "RR RR"),
        ("so <answer>U</answer>, no: <answer>RRRR</answer>.", "RRRR"),
        ("<answer>RRRR</answer> <answer>U", "RRRR"),
        ("<answer>RRRR</answer> or not </answer>", "RRRR"),
        ("<answer>U<answer>RRRR</answer>", "RRRR"),
        ("<answer>U<answer>RRRR</answer>D</answer>", "RRRR"),
        ("<answer>RRRR<answer/></answer>", "RRRR<answer/>"),
        ("<answer>RRRR</answer><answer></answer>", ""),
    ],
)
def test_the_last_well_formed_block_is_the_answer(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer


@pytest.mark.parametrize(
    ("text", "reason", "moves"),
    [
        (SOLUTION, SOLVED, 4),
        (f"I push it.\n{block(' RRRR ')} Done.", SOLVED, 4),
        (block("ULDLRRRR"), SOLVED, 8),
        (block("L" * (STEP_LIMIT - 4) + "RRRR"), SOLVED, STEP_LIMIT),
        (block("L" * (STEP_LIMIT - 3) + "RRRR"), TOO_MANY, STEP_LIMIT + 1),
        (block("RRRRL"), AFTER_SOLVE, 5),
        (block("RRRRLLLL" + "R" * STEP_LIMIT), TOO_MANY, STEP_LIMIT + 8),
        (block("RRR"), UNSOLVED, 3),
        (block("RRRLR"), UNSOLVED, 5),
        (block(""), EMPTY, 0),
        (block("rrrr"), STRAY, 0),
        (block("RRrR"), STRAY, 0),
        (block("R R R R"), STRAY, 0),
        (block("R,R,R,R"), STRAY, 0),
        (block("RRRR."), STRAY, 0),
        (block("RIGHT"), STRAY, 0),
        (block("R is the answer"), STRAY, 0),
        (block("\u0280RRR"), STRAY, 0),
        (block("\uff32RRR"), STRAY, 0),
        (block("RR\u200bRR"), STRAY, 0),
        (block("RR\x00RR"), STRAY, 0),
        (f"{SOLUTION} or rather {block('no idea')}", STRAY, 0),
        ("R is the answer", NO_BLOCK, 0),
        ("RRRR", NO_BLOCK, 0),
    ],
)
def test_verdicts(text: str, reason: str, moves: int) -> None:
    assert judge(CORRIDOR, text) == (reason == SOLVED, reason, moves)
    assert reason in REASONS


def test_what_was_cut_off_fails_whatever_it_says() -> None:
    assert judge(CORRIDOR, SOLUTION, stopped=True).solved
    assert judge(CORRIDOR, SOLUTION, stopped=False) == (False, CUT_OFF, 0)


def test_a_puzzle_that_starts_solved_has_no_solution() -> None:
    puzzle = Puzzle(0, "+++++\n+*-$+\n+++++", "")
    assert judge(puzzle, block("")).reason == EMPTY
    assert judge(puzzle, block("R")).reason == AFTER_SOLVE


@pytest.mark.parametrize("name", ["tiny_eval", "sokoban_eval"])
def test_every_solution_of_a_dataset_scores_and_nothing_shorter_or_longer(name: str) -> None:
    for puzzle in read_puzzles(name)[::7]:
        assert judge(puzzle, block(puzzle.solution)) == (True, SOLVED, puzzle.difficulty)
        assert judge(puzzle, block(puzzle.solution[:-1])).reason in (UNSOLVED, EMPTY)
        assert judge(puzzle, block(puzzle.solution + "U")).reason == AFTER_SOLVE
        assert judge(puzzle, block(puzzle.solution.lower())).reason == STRAY


def replayed(level: Level, moves: str) -> bool:
    """Whether the reference rules take the moves, once their case says which are pushes, as a solution."""
    game, cased = Game(level), ""
    for letter in moves:
        cased += letter if game.move(MOVES.index(letter)) else letter.lower()
    try:
        return replay(level, cased).solved
    except IllegalMove:
        return False


LEVELS = levels(largest=4, most_boxes=2).filter(
    lambda level: level.player not in level.boxes and len(level.boxes) == len(level.goals)
)
SOLVABLE = [puzzle.level for name in ("tiny_valid", "sokoban_valid") for puzzle in read_puzzles(name)[:64]]


@given(st.one_of(LEVELS, st.sampled_from(SOLVABLE)), directions(longest=140))
def test_judging_agrees_with_the_reference_rules(level: Level, wander: list[int]) -> None:
    start, few = Game(level), wander[: len(wander) // 8]
    for direction in few:
        start.move(direction)
    moved = replace(level, boxes=frozenset(start.boxes), player=start.player)
    walked = "".join(MOVES[direction] for direction in wander)
    on = walked[: len(few)] + (solve(moved) or "").upper()  # and what is left to do, if it can be done
    for moves in (walked, on, f"{on}U"):
        if moves:
            assert judge(puzzle_of(level), block(moves)).solved == replayed(level, moves)


TAGGED = st.lists(
    st.one_of(
        st.sampled_from(
            ["<answer>", "</answer>", "<answer", "RRRR", "R", "\n", " ", "<", "\U0001f4a9", "\ud800"]
        ),
        st.text(st.characters(), max_size=4),
    )
).map("".join)


def blocks_of(text: str) -> list[str]:
    """Contents of all well-formed blocks, found by reading the tags from left to right."""
    found, start = [], None
    for tag in re.finditer("</?answer>", text):
        if tag[0] == "<answer>":
            start = tag.end()
        elif start is not None:
            found.append(text[start : tag.start()])
            start = None
    return found


@given(TAGGED)
def test_any_text_is_judged_by_its_last_block(text: str) -> None:
    blocks = blocks_of(text)
    assert final_answer(text) == (blocks[-1].strip(" \t\n\r\f\v") if blocks else None)
    assert judge(CORRIDOR, text).solved == (final_answer(text) == "RRRR")


class Hostile:
    """Raises at every touch."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError


class HostileText(str):
    def rfind(self, *_: Any) -> int:
        raise RuntimeError


@given(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.binary(),
        st.just(SOLUTION.encode()),
        st.lists(st.just(SOLUTION)),
        st.dictionaries(st.just("text"), st.just(SOLUTION)),
        st.builds(Hostile),
        st.just(HostileText(SOLUTION)),
        st.just(HostileText),
    )
)
def test_what_is_no_text_is_worth_nothing(thing: object) -> None:
    assert judge(CORRIDOR, thing) == (False, NO_BLOCK, 0)


@given(st.text(st.characters(), min_size=1), st.integers(0, 4))
def test_no_answer_with_anything_in_it_scores(noise: str, place: int) -> None:
    moves = f"{CORRIDOR.solution[:place]}{noise}{CORRIDOR.solution[place:]}"
    stray = noise.strip(" \t\n\r\f\v" if place in (0, 4) else "").strip(MOVES)
    if stray and "answer>" not in noise:
        assert judge(CORRIDOR, block(moves)) == (False, STRAY, 0)


@pytest.mark.parametrize(
    "text",
    [
        "<answer>" * 125_000,
        "</answer>" * 111_000,
        "<answer></answer>" * 60_000,
        "<answer>" * 62_500 + "</answer>" * 55_000,
        "</answer>" * 55_000 + "<answer>" * 62_500,
        "<" * 1_000_000,
        "</answer" * 125_000,
        block("U" * 1_000_000),
        block("U" * 1_000_000 + "x"),
        block(" " * 1_000_000),
        "\U0001f4a9" * 1_000_000,
    ],
    ids=lambda text: text[:18],
)
def test_a_megabyte_is_judged_at_once(text: str) -> None:
    start = time.process_time()
    assert not judge(CORRIDOR, text).solved
    assert time.process_time() - start < 0.2


@cache
def scorer() -> Any:
    """reasoning-gym's own scorer of Sokoban."""
    factory = pytest.importorskip("reasoning_gym")
    return factory.create_dataset("sokoban", size=1, seed=0)


def scored_elsewhere(board: str, moves: str) -> float:
    return float(scorer().score_answer(moves, {"metadata": {"gamestr": board}}))


@pytest.mark.parametrize("name", ["tiny_eval", "sokoban_eval"])
def test_what_solves_here_solves_in_reasoning_gym(name: str) -> None:
    for puzzle in read_puzzles(name)[::5]:
        assert judge(puzzle, block(puzzle.solution)).solved
        assert scored_elsewhere(puzzle.board, puzzle.solution) == 1
        assert scored_elsewhere(puzzle.board, puzzle.solution[:-1]) == 0


@given(LEVELS)
def test_a_solution_of_any_level_solves_in_reasoning_gym(level: Level) -> None:
    moves = (solve(level) or "").upper()
    if moves and len(moves) <= STEP_LIMIT:
        puzzle = puzzle_of(level)
        assert judge(puzzle, block(moves)).solved
        assert scored_elsewhere(puzzle.board, moves) == 1
