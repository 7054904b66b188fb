"""FIXED: what a completion answers, and whether it is right; one judge for training and evaluation.

A completion gives its answer as `<answer>RRULD</answer>`: capital letters alone, up (U), down (D), left (L)
and right (R). The last well-formed block counts; nothing outside it does.
"""

from typing import NamedTuple

from llm.puzzles import MOVES, Puzzle
from sokoban.reference import STEP_LIMIT, Game

OPENING, CLOSING = "<answer>", "</answer>"
_WHITESPACE = " \t\n\r\f\v"

SOLVED = "solved"
CUT_OFF = "cut off"
NO_BLOCK = "no answer block"
EMPTY = "empty answer"
STRAY = "stray characters"
TOO_MANY = "too many moves"
AFTER_SOLVE = "move after the solve"
UNSOLVED = "not solved"
REASONS = (SOLVED, CUT_OFF, NO_BLOCK, EMPTY, STRAY, TOO_MANY, AFTER_SOLVE, UNSOLVED)
"""Every reason that a verdict can give."""


class Verdict(NamedTuple):
    """What a completion is worth."""

    solved: bool
    reason: str
    """One of REASONS."""
    moves: int
    """Letters of the answer; 0 where it is none."""


def final_answer(text: object) -> str | None:
    """What the last well-formed block holds, without whitespace around it, or None where there is no block.

    A block is an opening tag and the first closing tag after it, with no other opening tag in between.
    """
    if type(text) is not str:
        return None
    start = text.rfind(OPENING, 0, max(text.rfind(CLOSING), 0))
    if start < 0:
        return None
    start += len(OPENING)
    return text[start : text.find(CLOSING, start)].strip(_WHITESPACE)


def judge(puzzle: Puzzle, text: object, *, stopped: bool = True) -> Verdict:
    """Whether a completion solves a puzzle. Any object may stand for the text; never raises.

    The last move must be the one that solves: play is over there, and no answer may move on. A completion
    that was cut off, and so has not `stopped` by itself, fails whatever it says.
    """
    if not stopped:
        return Verdict(False, CUT_OFF, 0)
    answer = final_answer(text)
    if answer is None:
        return Verdict(False, NO_BLOCK, 0)
    if not answer:
        return Verdict(False, EMPTY, 0)
    if answer.strip(MOVES):  # something is left where not every character is a move
        return Verdict(False, STRAY, 0)
    if len(answer) > STEP_LIMIT:
        return Verdict(False, TOO_MANY, len(answer))
    game = Game(puzzle.level)
    for letter in answer:
        if game.solved:
            return Verdict(False, AFTER_SOLVE, len(answer))
        game.move(MOVES.index(letter))
    return Verdict(game.solved, SOLVED if game.solved else UNSOLVED, len(answer))
