"""YAML is read strictly: faults carry their line, and misspelt keys a hint."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from agents.strict_yaml import check, read_yaml, suggestion
from harness.errors import Problem
from harness.files import STRICT


class Inner(BaseModel):
    model_config = STRICT

    count: int = Field(ge=1)
    tasks: tuple[str, ...] = ()


class Outer(BaseModel):
    model_config = STRICT

    name: str
    inner: Inner | None = None
    several: tuple[Inner, ...] = ()
    rate: float = 0.5


GOOD = "name: x\ninner:\n  count: 3\n  tasks: [a, 2026-01-01]\nseveral:\n- count: 1\n- {count: 2}\nrate: 1\n"


def refused(folder: Path, text: str | bytes) -> Problem:
    path = folder / "own.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(Problem) as caught:
        check(read_yaml(path), Outer)
    assert caught.value.file == str(path)
    return caught.value


def test_a_good_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(GOOD)
    assert check(read_yaml(path), Outer) == Outer(
        name="x",
        inner=Inner(count=3, tasks=("a", "2026-01-01")),
        several=(Inner(count=1), Inner(count=2)),
        rate=1.0,
    )


@pytest.mark.parametrize(
    ("text", "line", "reason", "remedy"),
    [
        ("name: x\nnmae: y\n", 2, "unknown key 'nmae'", "did you mean 'name'?"),
        (
            "name: x\ninner:\n  cuont: 3\n  count: 1\n",
            3,
            "unknown key 'inner.cuont'",
            "did you mean 'count'?",
        ),
        (
            "name: x\nseveral:\n- count: 1\n- count: 2\n  task: [a]\n",
            5,
            "unknown key 'several.1.task'",
            "'tasks'",
        ),
        ("name: x\nwhat: y\n", 2, "unknown key 'what'", "choose one of: name, inner, several, rate"),
        ("rate: 1\n", None, "the key 'name' is missing", None),
        ("name: x\ninner:\n  tasks: []\n", 2, "the key 'inner.count' is missing", None),
        ("name: x\ninner:\n  count: 0\n", 3, "inner.count: expected greater than or equal to 1", None),
        ("name: x\ninner:\n  count: 1.5\n", 3, "inner.count: expected a valid integer", None),
        ("name: x\ninner:\n  count: '1'\n", 3, "inner.count: expected a valid integer", None),
        ("name: 3\n", 1, "name: expected a valid string", None),
        ("name: yes\n", 1, "name: expected a valid string", None),
        (
            "name: x\ninner:\n  count: 1\n  tasks:\n  - a\n  - 3\n",
            6,
            "inner.tasks.1: expected a valid string",
            None,
        ),
        ("name: x\nname: y\n", 2, "the key 'name' stands here a second time", None),
        ("name: x\ninner: {count: 1, count: 2}\n", 2, "the key 'count' stands here a second time", None),
        ("3: x\n", 1, "the key 3 is not text", None),
        ("[a]: x\n", 1, "is not text", None),
        ("name: &a x\nrate: *a\n", 2, "refers to an anchor", None),
        ("a: &a [*a]\n", 1, "refers to an anchor", None),
        ("name: x\nrate: .inf\n", 2, "neither text nor a finite number", None),
        ("name: x\nrate: !!binary aGk=\n", 2, "neither text nor a finite number", None),
        ("name: x\nrate: !!python/name:os.system ''\n", 2, "no YAML", None),
        ("name: x\nrate: !!int abc\n", 2, "this cannot be read as int", None),
        ("name: x\nrate: !!int ''\n", 2, "this cannot be read as int", None),
        ("name: x\nrate: 0b_\n", 2, "this cannot be read as int", None),
        ("name: x\nrate: 0x_\n", 2, "this cannot be read as int", None),
        ("name: x\nrate: !!float abc\n", 2, "this cannot be read as float", None),
        ("name: x\nrate: !!bool maybe\n", 2, "this cannot be read as bool", None),
        ("name: x\nrate: !!timestamp maybe\n", 2, "this cannot be read as timestamp", None),
        ("!!int abc: x\n", 1, "this cannot be read as int", None),
        (f"name: x\nrate: {'9' * 5000}\n", 2, "this cannot be read as int", None),
        (f"name: x\nrate: 0x{'f' * 5000}\n", 2, "this cannot be read as int", None),
        ("name: [x\n", 2, "no YAML", None),
        ("name: x\n\tinner: 3\n", 2, "no YAML", None),
        ("- name\n", 1, "holds no keys", None),
        ("", 1, "holds no keys", None),
        ("# nothing\n", 1, "holds no keys", None),
        ("name: x\n---\nname: y\n", 2, "no YAML", None),
        (b"name: \xff\n", None, "no UTF-8", None),
    ],
)
def test_every_fault_is_named(
    tmp_path: Path, text: str | bytes, line: int | None, reason: str, remedy: str | None
) -> None:
    problem = refused(tmp_path, text)
    assert reason in problem.reason
    assert problem.line == line
    assert (remedy or "") in (problem.remedy or "")


def test_all_faults_are_told_in_the_order_of_lines(tmp_path: Path) -> None:
    problem = refused(tmp_path, "rate: x\ninner:\n  count: 0\nnome: y\nname: z\n")
    assert problem.line == 1
    assert [part.split(":")[0] for part in problem.reason.split("; ")] == ["rate", "line 3", "line 4"]


def test_keys_that_are_missing_at_the_top_have_no_line(tmp_path: Path) -> None:
    class Needy(BaseModel):
        first: int
        second: int
        third: int = 0

    path = tmp_path / "own.yaml"
    path.write_text("third: x\n")
    with pytest.raises(Problem) as caught:
        check(read_yaml(path), Needy)
    faults = ["the key 'first' is missing", "the key 'second' is missing", "line 1: third: "]
    assert all(fault in str(caught.value) for fault in faults)
    assert "None" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="cannot be read"):
        read_yaml(tmp_path / "none.yaml")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text("abc:#- \n'\"é", max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc ", max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=50)
@given(st.dictionaries(st.text("abc:#", max_size=4), JSON, min_size=1, max_size=3))
def test_what_yaml_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, object]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(yaml.safe_dump(value, allow_unicode=True))
    assert read_yaml(path).value == value


@settings(max_examples=100)
@given(st.text("ab: -[]{}&*!|>'\"#\n\t,?%@0.", max_size=40))
def test_any_text_is_read_or_refused_with_words(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text)
    try:
        assert isinstance(read_yaml(path).value, dict)
    except Problem as problem:
        assert problem.reason
        assert problem.line is None or 1 <= problem.line <= text.count("\n") + 1


def test_suggestions() -> None:
    assert suggestion("babyia", ["babyai", "crafter"]) == "did you mean 'babyai'?"
    assert suggestion("x", ["babyai", "crafter"]) == "choose one of: babyai, crafter"
