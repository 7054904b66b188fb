"""Which texts are functions that can be kept, and the module that they make."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.memory.functions import Function, NoFunction, module_source, read_functions

GO = 'def go(env, n=1):\n    """Go on."""\n    for _ in range(n):\n        env.step("go forward")'


def test_a_function_is_read_with_what_agents_see_of_it() -> None:
    assert read_functions(f"\n\n{GO}  \n\n") == [Function("go", GO, "go(n=1)", "Go on.")]


@pytest.mark.parametrize(
    ("head", "signature"),
    [
        ("def f(env):", "f()"),
        ("def f(env, /, a: int, *rest, key='x', **more) -> str:", "f(a: int, *rest, key='x', **more)"),
        ("def f(env=None, a=(1, 2)):", "f(a=(1, 2))"),
        ("def f(env=None):", "f()"),
        ("def f(env, *, a):", "f(*, a)"),
        ("def f(env, a, /, b):", "f(a, /, b)"),
    ],
)
def test_signatures_leave_env_out(head: str, signature: str) -> None:
    (function,) = read_functions(f'{head}\n    "It does."\n')
    assert function.signature == signature


def test_decorators_comments_and_imports_stay() -> None:
    source = (
        'import math\nfrom re import sub\n\n@staticmethod\ndef f(env):\n    "Doc."  # why\n    return math.pi'
    )
    (function,) = read_functions(source)
    assert function.source == source.replace("\n\n", "\n")


def test_every_function_of_a_text_has_its_imports() -> None:
    both = read_functions(
        'import math\ndef _a(x):\n    return math.pi * x\ndef b(env):\n    "B."\n    return _a(2)'
    )
    assert [function.source.split("\n")[0] for function in both] == ["import math"] * 2
    assert [function.public for function in both] == [False, True]


def test_helpers_need_neither_env_nor_docstring() -> None:
    assert read_functions("def _half(x): return x / 2") == [
        Function("_half", "def _half(x): return x / 2", "_half(x)", "")
    ]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "defines no function"),
        ("import math", "defines no function"),
        ("def f(env:", "not Python"),
        ("def f(env):\n", "not Python"),
        ("x = 1\n" + GO, "line 1 is not a function"),
        (GO + "\ngo(env)", "line 5 is not a function"),
        ("class A:\n    pass", "line 1 is not a function"),
        ("async def f(env):\n    'Doc.'", "line 1 is not a function"),
        (GO + "\n" + GO, "defined twice"),
        ("def f():\n    'Doc.'", "first parameter of f is not `env`"),
        ("def f(kind, env):\n    'Doc.'", "first parameter of f is not `env`"),
        ("def f(*, env):\n    'Doc.'", "first parameter of f is not `env`"),
        ("def f(env):\n    return 1", "f has no docstring"),
        ("def f(env):\n    '  '", "f has no docstring"),
        ("def print(env):\n    'Doc.'", "name of something else"),
        ("def math(env):\n    'Doc.'", "name of something else"),
        ("def episodes(env):\n    'Doc.'", "name of something else"),
        ("\0", "not Python"),
        ("f(" * 5_000, "not Python"),
    ],
)
def test_other_texts_are_refused(source: str, reason: str) -> None:
    with pytest.raises(NoFunction, match=reason):
        read_functions(source)


def test_lines_may_end_in_other_ways() -> None:
    assert read_functions(GO.replace("\n", "\r\n")) == read_functions(GO)


def test_characters_that_python_does_not_break_lines_at_stay() -> None:
    source = 'def f(env):\n    """Doc."""\n    return "\x0c\u2028"\n\ndef g(env):\n    "G."'
    assert [function.name for function in read_functions(source)] == ["f", "g"]
    assert "\u2028" in read_functions(source)[0].source


def test_a_module_is_read_back() -> None:
    functions = [*read_functions(GO), *read_functions("def _half(x): return x / 2")]
    again = read_functions(module_source(functions))
    assert [function.name for function in again] == ["go", "_half"]
    assert again[0].source.endswith(GO)


def test_no_functions_are_no_module() -> None:
    assert module_source([]) == ""


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    for source in (text, f'def f(env):\n    "{text}"', f"def f({text}):\n    'Doc.'"):
        try:
            functions = read_functions(source)
        except NoFunction:
            continue
        assert all(function.source for function in functions)
