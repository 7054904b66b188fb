"""What the gate says against modules, and that it says nothing against honest ones."""

import ast
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.sandbox.allowed import FORBIDDEN_NAMES, MODULES
from agents.sandbox.gate import check
from agents.sandbox.host import Limits, Sandbox, SkillError

LIMITS = Limits(memory_mb=64)
HONEST = '''
"""Skills; __all__ of them."""
from __future__ import annotations
import heapq, math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

@dataclass(order=True)
class Node:
    f_score: float
    place: tuple[int, int] = field(compare=False)

    def __post_init__(self):
        self._seen = getattr(self, "seen", False)

class Grid(dict):
    """A map, see Grid.__init__."""

    def __init__(self, cells):
        super().__init__(cells)

    def __contains__(self, key):
        return self.get(key) is not None

def go_to(env, x: int, y: int) -> bool:
    """Walk to a place."""
    for action in _path(env.state, (x, y)):
        env.step(action)
        if env.done:
            raise RuntimeError(f"the episode is over: {type(env).__name__}")
    return True

def _path(state, goal):
    return ["forward"]
'''


def test_an_honest_module_passes_and_loads() -> None:
    assert check(HONEST, LIMITS, docstrings=True) == []
    with Sandbox(LIMITS) as sandbox:
        assert [function.name for function in sandbox.load(HONEST)] == ["go_to"]


@pytest.mark.parametrize("module", [*MODULES, "collections.abc", "__future__"])
def test_allowed_modules_pass_and_load(module: str) -> None:
    imported = f"from {module} import *" if module != "__future__" else "from __future__ import division"
    assert check(f"{imported}\nimport {module}", LIMITS) == []


@pytest.mark.parametrize(
    "module", ["os", "sys", "ctypes", "agents.sandbox.worker", "mathematics", "builtins"]
)
def test_other_modules_are_refused_by_gate_and_worker(module: str) -> None:
    reason = f"line 1: {module} cannot be imported; these can: bisect, "
    assert check(f"import {module}", LIMITS)[0].startswith(reason)
    assert check(f"from {module} import name", LIMITS)[0].startswith(reason)
    with (
        Sandbox(LIMITS) as sandbox,
        pytest.raises(SkillError, match=f"ImportError: {module} cannot be imported"),
    ):
        sandbox.load(f"import {module}")


def test_forbidden_names_are_refused_by_the_gate_and_absent_in_the_worker() -> None:
    for name in FORBIDDEN_NAMES - {"__import__"}:
        assert check(f"x = {name}", LIMITS) == [f"line 1: the name {name} is not allowed"]
    with Sandbox(LIMITS) as sandbox:
        present = sandbox.run(
            "[n for n in names if n in __builtins__]", {"names": sorted(FORBIDDEN_NAMES)}
        ).value
    assert present == ["__import__"]  # the one that refuses modules


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def f(env)", "line 1: it does not parse: expected ':'"),
        ("x = '\0'", "it does not parse: source code string cannot contain null bytes"),
        ("x = " + "(" * 3_000, "it does not parse"),
        ("x = " + "-" * 90_000 + "1", "it does not parse: MemoryError"),
        ("#" * 100_001, "the source has 100001 characters; 100000 is the limit"),
        ("x = ().__class__", "line 1: the attribute __class__ is not allowed"),
        ("x = f.__globals__['x']", "line 1: the attribute __globals__ is not allowed"),
        ("def f(env):\n    return env.step.__self__", "line 2: the attribute __self__ is not allowed"),
        ("x = __builtins__", "line 1: the name __builtins__ is not allowed"),
        ("x = '{0.__class__}'.format(1)", "line 1: the string holds __class__"),
        ("x = getattr(y, '__class__')", "line 1: the string holds __class__"),
        ("x = getattr(y, '__cl' + 'ass__')", "line 1: getattr takes the attribute's name as a plain string"),
        ("import operator\nx = operator.attrgetter(y)", "line 2: attrgetter takes the attribute's name"),
        ("x = getattr(y, 'f_globals')", "line 1: getattr is not allowed to reach into frames and code"),
        ("x = (i for i in y).gi_frame.f_back", "line 1: the attribute f_back is not allowed"),
        (
            "try:\n    1 / 0\nexcept Exception as e:\n    x = e.__traceback__.tb_frame",
            "line 4: the attribute",
        ),
        ("class A:\n    def __reduce__(self):\n        pass", "line 2: a function named __reduce__"),
        ("async def f(env):\n    pass", "line 1: async code does not work here"),
        ("def f(other):\n    pass", "line 1: the first parameter of f is not env (helpers are named _f)"),
        ("def f():\n    pass", "line 1: the first parameter of f is not env"),
        ("def f(*env):\n    pass", "line 1: the first parameter of f is not env"),
        ("from random import __builtins__", "line 1: the name __builtins__ is not allowed"),
        ("from . import x", "line 1: . cannot be imported"),
    ],
)
def test_every_reason(source: str, reason: str) -> None:
    assert any(reason in found for found in check(source, LIMITS)), check(source, LIMITS)


def test_reasons_come_all_at_once_in_the_order_of_lines() -> None:
    found = check("import os\nx = open\ny = eval\ndef f():\n    pass", LIMITS)
    assert [reason.partition(":")[0] for reason in found] == ["line 1", "line 2", "line 3", "line 4"]


def test_docstrings_and_counts_are_asked_for() -> None:
    source = "def f(env):\n    pass\n\ndef g(env):\n    '''Does.'''\n\ndef _h():\n    pass"
    assert check(source, LIMITS) == []
    assert check(source, LIMITS, docstrings=True) == ["line 1: f has no docstring"]
    assert check(source, LIMITS, functions=2) == ["it defines 3 functions; 2 is the limit"]


def test_an_odd_escape_is_no_matter() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check("x = '\\d'", LIMITS) == []


@given(st.text())
def test_any_text_gets_a_verdict(text: str) -> None:
    reasons = check(text, LIMITS)
    assert all(isinstance(reason, str) and reason for reason in reasons)
    if not reasons:
        ast.parse(text)
