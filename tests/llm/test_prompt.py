"""The question, and what a program can refuse of what stands around it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Problem
from llm.answers import judge
from llm.prompt import LONGEST_TEMPLATE, check_prompt, fill, question
from llm.puzzles import Puzzle, read_puzzles
from sokoban.levels import REASONING_GYM, parse_levels

PUZZLE = Puzzle(7, "++++++\n+*-@X+\n++++++", "RR")


def test_the_tiny_model_is_asked_the_board_alone() -> None:
    assert question("cpu", PUZZLE) == PUZZLE.board


@pytest.mark.parametrize("name", ["sokoban_valid", "tiny_valid"])
def test_the_board_stands_last_in_the_question_one_symbol_a_cell(name: str) -> None:
    for puzzle in read_puzzles(name)[:20]:
        text = question("8xH100", puzzle)
        rows = puzzle.board.count("\n") + 1
        drawn = "\n".join(text.split("\n")[-rows:])
        assert drawn.replace(" ", "") == puzzle.board
        assert parse_levels(drawn, REASONING_GYM) == [puzzle.level]


def test_the_question_names_the_whole_alphabet_the_limit_and_the_form_of_an_answer() -> None:
    text = question("8xH100", PUZZLE)
    dialect = REASONING_GYM
    for symbol, meaning in [
        (dialect.wall, "wall"),
        (dialect.floors, "empty floor"),
        (dialect.goal, "goal"),
        (dialect.box, "box"),
        (dialect.box_on_goal, "box on a goal"),
        (dialect.player, "player"),
        (dialect.player_on_goal, "player on a goal"),
    ]:
        assert f"\n{symbol} {meaning}\n" in text
    assert "At most 120 moves" in text
    # A model that says the question's own example back has a block, and of no more than moves.
    assert judge(PUZZLE, text) == (False, "not solved", 4)


def test_a_template_is_filled_once_even_where_the_question_looks_like_one() -> None:
    assert fill("{question}\n\nThink.", "cpu", PUZZLE) == f"{PUZZLE.board}\n\nThink."
    odd = Puzzle(0, "{question}", "")
    assert fill("{question}", "cpu", odd) == "{question}"


@pytest.mark.parametrize(
    "template",
    [
        "{question}",
        "{question}\n\nThink step by step, check each step, and then give the final answer.",
        "<think>\n{question}\n</think>",
        "Think hard inside <think> and </think>, then answer.\n\n{question}",
        "You are careful. Don't guess: you'd better be sure (it's worth it).\n\n{question}\n\nYour answer:",
        "1. Read the question twice.\n2. Plan.\n3. Verify, i.e. look for mistakes.\n\n{question}",
        "User: {question}\nAssistant:",
        "Take at most 40 lines. {question}",
    ],
)
def test_a_prompt_for_any_subject_may_stand_around_the_question(template: str) -> None:
    check_prompt(template)


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (None, "is not text"),
        (b"{question}", "is not text"),
        ("", "exactly once"),
        ("{question}{question}", "exactly once"),
        ("{ question }", "exactly once"),
        ("{question} {board}", "outside letters"),
        ("{question}" + "a" * (LONGEST_TEMPLATE - 9), "has 1,001 characters"),
        # words of the task, in any form or case
        ("This is Sokoban. {question}", "the word 'Sokoban'"),
        ("{question} Push boxes", "the word 'Push'"),
        ("{question} Mind the BOXES", "the word 'BOXES'"),
        ("Never shove anything into a cornering spot. {question}", "the word 'shove'"),
        ("Beware of corners. {question}", "the word 'corners'"),
        ("Beware of dead ends. {question}", "the word 'dead'"),
        ("Write each coordinate down. {question}", "the word 'coordinate'"),
        ("{question} go up", "the word 'up'"),
        ("{question} Use the Manhattan distance.", "the word 'Manhattan'"),
        ("Solve this puzzle. {question}", "the word 'puzzle'"),
        ("Here is an example. {question}", "the word 'example'"),
        # words of the task, hidden
        ("pu-sh it {question}", "the word 'push'"),
        ("pu.sh it {question}", "the word 'push'"),
        ("so ko ban {question}", "hides the word 'sokoban'"),
        ("so, ko... ban {question}", "hides the word 'sokoban'"),
        ("b o n y {question}", "letters one by one"),
        ("b-o-x-e-s {question}", "letters one by one"),
        ("b0x {question}", "letters and digits in one word"),
        ("\uff30ush {question}", "outside letters"),
        ("pu\u200bsh {question}", "outside letters"),
        ("\u0440ush {question}", "outside letters"),
        ("empujad las paredes \u00f1 {question}", "outside letters"),
        ("cHVzaCB0aGUgYm94ZXMK {question}", "letters and digits"),
        ("pushtheboxesintothegoals {question}", "20 letters or more"),
        # boards
        ("{question} +++", "outside letters"),
        ("@ means a thing {question}", "outside letters"),
        ("{question} -----", "a drawing"),
        ("{question} --", "a drawing"),
        ("{question} ......", "a drawing"),
        ("thing X {question}", "the word 'X'"),
        # answers and demonstrations
        ("{question} LURD", "could be an answer: 'LURD'"),
        ("{question} 'lurd'", "could be an answer: 'lurd'"),
        ("{question} Try R first", "could be an answer: 'R'"),
        ("{question} U,D", "could be an answer: 'U'"),
        ("{question} Say R'd", "could be an answer: 'R'"),
        ("<answer>{question}</answer>", "outside letters"),
        ("<|im_end|>{question}", "outside letters"),
        ("<think >{question}", "outside letters"),
        # numbers and blanks that could carry something
        ("at (1, 2) {question}", "a row of numbers"),
        ("3-4 {question}", "a row of numbers"),
        ("12345 {question}", "a row of numbers"),
        ("a  b {question}", "blanks"),
        ("a \n b {question}", "blanks"),
        ("a\n\n\nb {question}", "blanks"),
        ("a\tb {question}", "outside letters"),
        ("a\r\n{question}", "outside letters"),
    ],
)
def test_a_prompt_about_the_task_is_refused(template: object, reason: str) -> None:
    with pytest.raises(Problem, match=reason) as caught:
        check_prompt(template)
    if isinstance(template, str):
        assert "any other subject" in str(caught.value)


def test_no_line_of_the_question_may_be_said_again_around_it() -> None:
    lines = [line for line in question("8xH100", PUZZLE).split("\n") if line.strip()]
    for line in lines:
        with pytest.raises(Problem):
            check_prompt(f"{line}\n{{question}}")


@given(st.text(st.characters(), max_size=60), st.text(max_size=60))
def test_any_template_passes_or_is_refused_with_a_reason(before: str, after: str) -> None:
    try:
        check_prompt(before + "{question}" + after)
    except Problem as problem:
        assert problem.reason.startswith("the prompt ")
    else:
        assert (before + after).isascii()


@given(
    st.sampled_from(["box", "Wall", "GOAL", "push", "player", "corner", "grid", "left"]),
    st.sampled_from(["", " ", "\n", ". ", "'", '"', "(", "-", "/", "; "]),
    st.sampled_from(["", "s", "es", "ing", "ed"]),
)
def test_the_heaviest_words_are_found_wherever_they_stand(word: str, sign: str, ending: str) -> None:
    for template in (
        f"{sign}{word}{ending}{{question}}",
        f"Look{sign or ' '}{word}{ending}{sign}, {{question}}",
    ):
        with pytest.raises(Problem):
            check_prompt(template)
