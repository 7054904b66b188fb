"""Reading a recipe from its source: literals are read, and every other way to say it is refused by line."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checks.recipe import read_recipe
from harness.errors import Problem

CLASS = '''from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """What may change."""

    steps: int
    """How many."""
    rates: tuple[float, ...] = (-0.5, 1e-3)
    seed: int = 1

    def smoke(self) -> "Recipe":
        return Recipe(steps=1)


'''
SOURCE = CLASS + 'RECIPES: dict[str, Recipe] = {"cpu": Recipe(steps=2), "gpu": Recipe(steps=9, seed=4)}\n'


def test_defaults_and_given_values_are_read_with_their_lines() -> None:
    cpu, gpu = read_recipe(SOURCE, "cpu"), read_recipe(SOURCE, "gpu")
    assert {name: setting.value for name, setting in cpu.items()} == {
        "steps": 2,
        "rates": [-0.5, 0.001],
        "seed": 1,
    }
    assert {name: setting.line for name, setting in cpu.items()} == {"steps": 17, "rates": 10, "seed": 11}
    assert (gpu["seed"].value, gpu["seed"].line) == (4, 17)


def test_the_encoding_that_is_read_may_be_declared() -> None:
    assert read_recipe("# coding: utf-8\n" + SOURCE, "cpu")["steps"].value == 2


def test_a_warning_of_the_parser_is_no_fault() -> None:
    assert read_recipe(SOURCE + 'PATTERN = "\\d"\n', "cpu")["steps"].value == 2


def test_reading_runs_nothing() -> None:
    read_recipe("import sys\nsys.setrecipelimit(1)\nraise SystemExit\n" + SOURCE, "cpu")


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5,
))  # fmt: skip
def test_any_literal_is_read_as_it_is(value: object) -> None:
    source = CLASS + f'RECIPES = {{"x": Recipe(steps={value!r})}}\n'
    assert read_recipe(source, "x")["steps"].value == value


@pytest.mark.parametrize(
    ("source", "line", "says"),
    [
        ("RECIPES = {", 1, "is not Python"),
        ("# coding: utf-7\n" + SOURCE, None, "is declared to be utf-7"),
        ("#!python\n# -*- coding: latin-1 -*-\n" + SOURCE, None, "is declared to be iso-8859-1"),
        ("# coding: nonsense\n" + SOURCE, None, "is not Python"),
        ("\ufeff" + SOURCE, None, "is declared to be utf-8-sig"),
        ("RECIPES = {}\n", None, "defines no class Recipe"),
        (CLASS, None, "assigns no RECIPES"),
        (SOURCE.replace('"cpu"', '"tpu"'), 17, "holds no 'cpu'"),
        (SOURCE.replace('"gpu"', '"cpu"'), 17, "holds 'cpu' twice"),
        (SOURCE.replace('"cpu":', "**{}, 1:"), 17, "must be texts"),
        (SOURCE.replace("steps=2", ""), 17, "no value for 'steps'"),
        (SOURCE.replace("steps=2", "2"), 17, "must be Recipe(field=value"),
        (SOURCE.replace("Recipe(steps=2)", "make()"), 17, "must be Recipe(field=value"),
        (SOURCE.replace("steps=2", "steps=int(2)"), 17, "int(2), expected a literal"),
        (SOURCE.replace("steps=2", "steps={2}"), 17, "{2}, expected a literal"),
        (SOURCE.replace("steps=2", "steps=1e999"), 17, "expected a literal"),
        (SOURCE.replace("steps=2", "steps=2, rate=1"), 17, "no field 'rate'"),
        (SOURCE.replace("steps=2", "**{'steps': 2}"), 17, "no field '**'"),
        (SOURCE.replace("= 1\n", "= int('1')\n"), 11, "int('1'), expected a literal"),
        (SOURCE.replace("frozen=True", "frozen=False"), 5, "must be a @dataclass(frozen=True)"),
        (SOURCE.replace("@dataclass(", "@faster\n@dataclass("), 6, "must be a @dataclass(frozen=True)"),
        (SOURCE.replace("class Recipe:", "class Recipe(Base):"), 5, "without bases"),
        (SOURCE.replace("smoke", "__getattribute__"), 13, "plain methods only"),
        (SOURCE + "RECIPES = {}\n", 18, "binds RECIPES a second time"),
        (SOURCE + "RECIPES |= {}\n", 18, "binds RECIPES a second time"),
        (SOURCE + "for Recipe in (): pass\n", 18, "binds Recipe a second time"),
        (SOURCE + "from fast import Recipe\n", 18, "binds Recipe a second time"),
        (SOURCE + "import fast as RECIPES\n", 18, "binds RECIPES a second time"),
        (SOURCE + "def RECIPES(): pass\n", 18, "binds RECIPES a second time"),
        (SOURCE + "def f():\n    global RECIPES\n    RECIPES = {}\n", 20, "binds RECIPES a second time"),
        (SOURCE + "match 1:\n    case RECIPES:\n        pass\n", 19, "binds RECIPES a second time"),
        (SOURCE + "match []:\n    case [*RECIPES]:\n        pass\n", 19, "binds RECIPES a second time"),
        (SOURCE + "match {}:\n    case {**RECIPES}:\n        pass\n", 19, "binds RECIPES a second time"),
        (SOURCE + "try:\n    1\nexcept E as Recipe:\n    pass\n", 20, "binds Recipe a second time"),
        (SOURCE + "import RECIPES.fast\n", 18, "binds RECIPES a second time"),
        (SOURCE + "from fast import *\n", 18, "imports *"),
        (SOURCE + "Recipe.__init__ = print\n", 18, "changes Recipe"),
        (SOURCE + "del Recipe.steps\n", 18, "changes Recipe"),
        (SOURCE + "RECIPES['cpu'] = Recipe(steps=1)\n", 18, "changes RECIPES"),
        (SOURCE + "del RECIPES['cpu']\n", 18, "changes RECIPES"),
        (SOURCE + "RECIPES.update(cpu=Recipe(steps=1))\n", 18, "uses RECIPES.update"),
    ],
)  # fmt: skip
def test_another_way_is_refused(source: str, line: int | None, says: str) -> None:
    with pytest.raises(Problem) as caught:
        read_recipe(source, "cpu")
    assert (caught.value.file, caught.value.line) == ("speedrun.py", line)
    assert says in caught.value.reason


def test_a_source_too_deep_to_read_does_not_stop_the_reader() -> None:
    with pytest.raises((Problem, RecursionError, MemoryError)):
        read_recipe(CLASS + "RECIPES = " + "(" * (10 * sys.getrecursionlimit()), "cpu")
