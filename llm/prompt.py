"""FIXED: the question that a model is asked, and what may stand around it.

The question states the rules and the board, and is the environment's. A recipe chooses what stands around it:
a template with one `{question}`, which must suit a question of any other subject just as well. `check_prompt`
refuses what a program can know to be about this task; a person reads what passes.
"""

import re

from harness.errors import Problem
from llm.puzzles import Puzzle
from sokoban.levels import REASONING_GYM
from sokoban.reference import STEP_LIMIT

PLACEHOLDER = "{question}"
LONGEST_TEMPLATE = 1000  # characters

_D = REASONING_GYM
_RULES = f"""\
This is a Sokoban puzzle. The board is drawn with one symbol for each cell and a blank between cells:
{_D.wall} wall
{_D.floors} empty floor
{_D.goal} goal
{_D.box} box
{_D.box_on_goal} box on a goal
{_D.player} player
{_D.player_on_goal} player on a goal

The player moves one cell at a time: up (U), down (D), left (L) or right (R). Moving into a box pushes it \
one cell further in that direction. Nobody can enter a wall, push a box into a wall or into another box, or \
pull a box; such a move leaves the board as it is, but counts. The puzzle is solved as soon as every box is \
on a goal. It ends there: no move may follow. At most {STEP_LIMIT} moves are allowed.

Find moves that solve the puzzle. Write them as your final answer, in order, as capital letters with nothing \
between them: <answer>LURD</answer>, for example, stands for left, up, right, down.

The board:
"""

FORBIDDEN = re.compile(
    r"""(?: sokoban | boxoban | warehouse | puzzl | game | maze | board | grid | labyrinth | box | crate
    | stone | wall | obstacle | barrier | goal | target | storage | floor | cell | tile | squar | row | column
    | coordinat | position | locat | direction | orientation | adjacen | neighbo | corner | edge | corridor
    | room | tunnel | dead | trap | freez | push | pull | shov | slid | mov | walk | player | keeper | worker
    | robot | path | route | navigat | reachab | left | right | down | upward | upper | lower | north | south
    | east | west | horizontal | vertical | diagonal | heuristic | manhattan | dijkstra | breadth | depth
    | bfs | dfs | astar | search | backward | revers | nudg | wedg | simulat | example | instance
    | demonstrat )[a-z]* | star | up | map | maps | mapped | x""",
    re.VERBOSE | re.IGNORECASE,
)
"""Whole words that are of this task, or of the ways to solve it; where [a-z]* follows, with any ending."""
HIDDEN = ("sokoban", "boxoban", "deadlock", "warehouse", "heuristic")
"""Not even with blanks or signs between the letters."""

_TAGS = re.compile(r"</?think>")  # the one tag that is about thinking and not about this task
_CONTRACTIONS = re.compile(r"(?<=[A-Za-z])'(?:s|t|d|m|ll|re|ve)(?![A-Za-z])")  # I'd and you'll are no moves
_PATTERNS = (
    (re.compile(r"[^A-Za-z0-9 \n.,;:!?'\"()/-]"), "a character outside letters, digits and .,;:!?'\"()/-"),
    (re.compile(r"  | \n|\n{3,}"), "blanks that say nothing"),
    (re.compile(r"[.,;:!?'\"()/-]{4,}|--"), "a drawing"),
    (re.compile(r"[0-9]{3,}|[0-9][^A-Za-z0-9]{1,5}[0-9]"), "a row of numbers"),
    (re.compile(r"[A-Za-z][0-9]|[0-9][A-Za-z]"), "letters and digits in one word"),
    (re.compile(r"(?<![A-Za-z])[UDLRudlr]+(?![A-Za-z])"), "letters that could be an answer"),
    (re.compile(r"(?<![A-Za-z])(?:[A-Za-z][^A-Za-z]+){3}[A-Za-z](?![A-Za-z])"), "letters one by one"),
    (re.compile(r"[A-Za-z]{20,}"), "a word of 20 letters or more"),
)


def question(task_class: str, puzzle: Puzzle) -> str:
    """What is asked about a puzzle: rules and board, or the board alone for the tiny model."""
    if task_class == "cpu":
        return puzzle.board
    return _RULES + "\n".join(" ".join(row) for row in puzzle.board.split("\n"))


def fill(template: str, task_class: str, puzzle: Puzzle) -> str:
    """The prompt of a puzzle: the template with the question in its place."""
    return template.replace(PLACEHOLDER, question(task_class, puzzle))


def check_prompt(template: object) -> None:
    """Refuse a template that could say anything about this task.

    Raises:
        Problem: it is no text, is too long, lacks the one `{question}`, or holds a word or sign of the task.
    """
    if not isinstance(template, str):
        raise Problem("the prompt is not text")
    if len(template) > LONGEST_TEMPLATE:
        raise _refusal(f"has {len(template):,} characters, at most {LONGEST_TEMPLATE:,} are allowed")
    if template.count(PLACEHOLDER) != 1:
        raise _refusal(f"must hold {PLACEHOLDER} exactly once")
    for text in template.split(PLACEHOLDER):
        _check_text(_CONTRACTIONS.sub("", _TAGS.sub(".", text)))


def _check_text(text: str) -> None:
    for pattern, meaning in _PATTERNS:
        if found := pattern.search(text):
            raise _refusal(f"holds {meaning}: {found[0]!r}")
    glued = re.sub("(?<=[A-Za-z])[^A-Za-z0-9 \n](?=[A-Za-z])", "", text)  # pu-sh and pu.sh read push
    for word in re.findall("[A-Za-z]+", f"{text} {glued}"):
        if FORBIDDEN.fullmatch(word):
            raise _refusal(f"holds the word {word!r}")
    letters = re.sub("[^a-z]", "", text.lower())
    for word in HIDDEN:
        if word in letters:
            raise _refusal(f"hides the word {word!r}")


def _refusal(reason: str) -> Problem:
    remedy = "write a prompt that would suit a question of any other subject just as well"
    return Problem(f"the prompt {reason}", remedy=remedy)
