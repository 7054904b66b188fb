"""What a model's answer does: every way to write it that models use, and whatever else comes along."""

import ast
import math
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agents.core.actions import Action, Primitive, SkillCall, Unparsed, format_call, parse_action, spoken
from agents.core.literals import DEEPEST, Malformed, read_arguments, write_arguments, write_literal

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
NUMBERS = st.one_of(st.integers(-(10**30), 10**30), st.floats(allow_nan=False, allow_infinity=False))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
PIECES = st.sampled_from(
    ["Action:", "action", ":", "skill", "go_to", "(", ")", "[", "]", "{", "}", '"', "'", "\\", "\\u12", ",",
     "=", "1e9", "-", "\n", "```", "**", "Thought:", "<think>", "</think>",
     "red", "None", " ", "\x00", "\ud800"]
)  # fmt: skip


def taken(answer: str, *skills: str) -> str:
    """The text of the action that an answer takes."""
    action = parse_action(answer, skills)
    assert not isinstance(action, Unparsed), action
    return action.text


def reason(answer: str) -> str:
    action = parse_action(answer, ["go_to"])
    assert isinstance(action, Unparsed), action
    return action.reason


@pytest.mark.parametrize(
    "answer",
    [
        "Thought: the door is open.\nAction: go forward",
        "Action: go forward",
        "action:go forward",
        "ACTION : go forward.",
        "**Thought:** hm\n\n**Action:** go forward",
        "**Action**: `go forward`",
        "- Action: **go forward**",
        "> Action: go forward",
        "### Action:\n\ngo forward",
        "Action:\n```\ngo forward\n```",
        "Action 3: go forward",
        'Action: "go forward"',
        "`Action: go forward`",
        "Action: [go forward]\r\n",
        "<think>Action: turn left\n</think>\n\nThought: yes\nAction: go forward",
        "Thought: what Action: means\nAction: go forward\nObservation: a wall\nAction: turn left",
    ],
)
def test_a_primitive_action_is_read(answer: str) -> None:
    assert taken(answer) == "go forward"


def test_the_thought_is_kept() -> None:
    action = parse_action("**Thought:** the door\nis open.\n\nAction: toggle")
    assert action.thought == "the door\nis open."


def test_actions_imagined_ahead_are_counted_and_ignored() -> None:
    action = parse_action("Action: a\nObservation: x\nAction: b\nAction: c")
    assert isinstance(action, Primitive)
    assert (action.text, action.ignored) == ("a", 2)


@pytest.mark.parametrize(
    "answer",
    [
        'Action: skill go_to("ball", color="red")',
        "Action: skill go_to('ball', color='red')",
        'Action: Skill: go_to("ball", color = "red").',
        'Action: `skill go_to("ball", color="red")`',
        '**Action:** skill go_to(\n    "ball",\n    color="red",\n)\nObservation: it worked',
        'Action:\n```python\nskill go_to("ball", color="red")\n```',
        'Action: go_to("ball", color="red")',
        'Action: skill skills.go_to("ball", color="red")  # the nearest',
    ],
)
def test_a_call_is_read(answer: str) -> None:
    action = parse_action(answer, ["go_to"])
    assert isinstance(action, SkillCall), action
    assert (action.name, action.args, action.kwargs) == ("go_to", ("ball",), {"color": "red"})
    assert action.text == 'skill go_to("ball", color="red")'


def test_a_call_without_arguments_needs_no_parentheses() -> None:
    assert taken("Action: skill explore") == "skill explore()" == taken("Action: skill explore ()")


def test_only_skills_are_called_without_the_word() -> None:
    assert isinstance(parse_action("Action: focus(on)", ["go_to"]), Primitive)
    assert isinstance(parse_action("Action: focus on box (containing nothing)", ["focus"]), Primitive)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("", "no line begins"),
        ("I would rather not.", "no line begins"),
        ("my Action: go forward", "no line begins"),
        ("<think>Action: go forward", "no line begins"),
        ("Action:", "nothing stands behind"),
        ("Action:\n```\n```\n", "nothing stands behind"),
        ("Action: " + "x" * 301, "more than 300"),
        ("Action: skill go_to(red)", "found `red)`"),
        ("Action: skill go_to(kind=ball)", "found `ball)`"),
        ('Action: skill go_to("ball"', "a comma or a closing parenthesis, found the end"),
        ('Action: skill go_to("ball)', 'not closed with "'),
        ("Action: skill go_to(env.step(1))", "found `env.step(1))`"),
        ("Action: skill go_to(kind=1, 2)", "without a name follows"),
        ("Action: skill go_to(kind=1, kind=2)", "given twice"),
        ("Action: skill go_to({1: 2})", "a quoted key"),
        ("Action: skill go_to({1, 2})", "a quoted key"),
        ("Action: skill go_to(1e999)", "too large"),
        ("Action: skill go_to(0x10)", "found `0x10)`"),
        ("Action: skill go_to(1__0)", "found `1__0)`"),
        ("Action: skill go_to(**{})", "a literal"),
        ("Action: skill go_to(" + "9" * 41 + ")", "more than 40"),
        ('Action: skill go_to("\\u12")', "number of a character"),
        ("Action: skill go_to(" + "[" * 5000, "nested"),
        ("Action: skill go_to(1) + 2", "one call"),
        ("Action: skill go_to(1).x", "one call"),
        ("Action: go_to(1) and go_to(2)", "one call"),
        ("Action: skill go_to red ball", "not followed by arguments"),
    ],
)
def test_what_cannot_be_read_says_why(answer: str, words: str) -> None:
    assert words in reason(answer)


@settings(max_examples=30)
@given(NAMES, st.lists(VALUES, max_size=3), st.dictionaries(NAMES, VALUES, max_size=3))
def test_a_written_call_is_read_back_equal(name: str, args: list[object], kwargs: dict[str, object]) -> None:
    text = format_call(name, args, kwargs)
    action = parse_action(f"Thought: so be it.\nAction: {text}\nObservation: done")
    assert isinstance(action, SkillCall), action
    assert (action.name, list(action.args), action.kwargs, action.text) == (name, args, kwargs, text)


@settings(max_examples=30)
@given(st.lists(VALUES, max_size=3), st.dictionaries(NAMES, VALUES, max_size=3))
def test_python_reads_the_same_arguments(args: list[object], kwargs: dict[str, object]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call = ast.parse(
            f"f{write_arguments(args, {f'k{name}': v for name, v in kwargs.items()})}", mode="eval"
        )
    assert isinstance(call.body, ast.Call)
    assert [ast.literal_eval(one) for one in call.body.args] == args
    assert [ast.literal_eval(one.value) for one in call.body.keywords] == list(kwargs.values())


@settings(max_examples=30)
@given(VALUES.map(repr))
def test_what_python_writes_is_read(text: str) -> None:
    (value,), _, end = read_arguments(f"({text})", 0)
    assert (value, end) == (ast.literal_eval(text), len(text) + 2)


def test_tuples_become_lists_and_json_words_are_read() -> None:
    assert read_arguments("((1, 2), true, null, -.5, {'a': (),},)", 0).args == (
        [1, 2],
        True,
        None,
        -0.5,
        {"a": []},
    )


def test_characters_in_halves_are_joined_or_replaced() -> None:
    assert read_arguments('("\\ud83d\\ude00", "\\ud83d!")', 0).args == ("\U0001f600", "�!")
    assert spoken("a\ud800b") == "a?b"


@given(st.one_of(st.text(), st.lists(PIECES, max_size=25).map("".join)))
@example("Action: skill f(" + "(" * 40)
@example("Action: skill f(" + "-" * 40)
@example("\n" * 3000 + "Action" + " " * 3000)
def test_nothing_is_ever_raised(answer: str) -> None:
    action: Action = parse_action(answer, ["go_to", "red"])
    if isinstance(action, Unparsed):
        assert action.reason
    elif isinstance(action, Primitive):
        assert 0 < len(action.text) <= 300
        assert "\n" not in action.text
        action.text.encode()
    else:
        assert parse_action("Action: " + action.text) == SkillCall(
            "", action.name, action.args, action.kwargs, 0
        )


@settings(max_examples=30)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_arguments_are_read_or_refused_in_words(text: str) -> None:
    try:
        args, kwargs, end = read_arguments("(" + text, 0)
    except Malformed as error:
        assert str(error)
    else:
        assert read_arguments(write_arguments(args, kwargs), 0)[:2] == (args, kwargs)
        assert end <= len(text) + 1


def test_nesting_is_allowed_to_a_depth() -> None:
    assert read_arguments("(" + "[" * DEEPEST + "]" * DEEPEST + ")", 0)
    with pytest.raises(Malformed, match="nested"):
        read_arguments("(" + "[" * (DEEPEST + 2) + "]" * (DEEPEST + 2) + ")", 0)


def test_numbers_that_are_not_finite_cannot_be_written_unnoticed() -> None:
    with pytest.raises(Malformed):
        read_arguments(f"({write_literal(math.inf)})", 0)


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 200_000,
        "-" * 200_000,
        "Action:\n" * 30_000,
        "Action:" + "\n" * 200_000,
        "Action: skill f(" + "1," * 5_000,
        "Action: skill f()" + " " * 200_000 + "x",
        "Action: skill f()" + " " * 200_000 + ";" * 200_000 + " " * 200_000 + "x",
        "Action: " + '*"' * 200_000 + '"*' * 200_000,
        "Action: " + "[" * 200_000 + "]" * 200_000,
    ],
)
def test_long_answers_take_no_time(text: str) -> None:
    parse_action(text, ["f"])
