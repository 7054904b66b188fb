"""The codebook: edits, their faults, versions, JSON."""

import json
import re

import pytest
from pydantic import ValidationError

from agents.memory.codebook import Codebook, Edit

GO = ["def go(env):", '    """Go on."""', '    env.step("go forward")']
STOP = 'def stop(env):\n    """Stop."""'


def edit(op: str, name: str, source: str | list[str] | None = None) -> Edit:
    return Edit.model_validate({"op": op, "name": name, "reason": "why", "source": source})


def with_go() -> Codebook:
    codebook = Codebook()
    codebook.commit(codebook.draft([edit("add", "go", GO)], 9, 999), "first", 0)
    return codebook


def test_add_replace_delete() -> None:
    codebook = with_go()
    assert list(codebook.functions) == ["go"]
    longer = [*GO, '    env.step("go forward")']
    draft = codebook.draft([edit("add", "stop", STOP), edit("replace", "go", longer)], 9, 999)
    assert not draft.faults
    diff = codebook.commit(draft, "second", 1)
    assert '+    env.step("go forward")\n' in diff
    assert "+def stop(env):\n" in diff
    assert "import" not in [line[:7] for line in diff.splitlines() if line[:1] == "+"]
    codebook.commit(codebook.draft([edit("delete", "go")], 9, 999), "third", 2)
    assert list(codebook.functions) == ["stop"]
    assert [(one.number, one.sleep, one.reason) for one in codebook.versions] == [
        (1, 0, "first"),
        (2, 1, "second"),
        (3, 2, "third"),
    ]


def test_a_draft_changes_nothing_by_itself() -> None:
    codebook = with_go()
    before = codebook.to_json()
    codebook.draft([edit("delete", "go"), edit("add", "stop", STOP)], 9, 999)
    assert codebook.to_json() == before


def test_no_change_is_no_version() -> None:
    codebook = with_go()
    assert codebook.commit(codebook.draft([edit("replace", "go", GO)], 9, 999), "same", 1) == ""
    assert codebook.commit(codebook.draft([], 9, 999), "none", 1) == ""
    assert len(codebook.versions) == 1


@pytest.mark.parametrize(
    ("edits", "fault"),
    [
        ([edit("add", "go", GO)], "there is a function of that name"),
        ([edit("replace", "stop", STOP)], "there is no such function; there are go"),
        ([edit("delete", "stop")], "there is no such function; there are go"),
        ([edit("delete", "go"), edit("delete", "go")], "edit 2 .*there are none"),
        ([edit("delete", "go", GO)], "a deletion has no source"),
        ([edit("add", "stop")], "it defines no function"),
        ([edit("add", "halt", STOP)], "defines stop, expected halt alone"),
        ([edit("add", "stop", STOP + "\n" + "\n".join(GO))], "defines stop, go, expected stop alone"),
        ([edit("add", "stop", STOP + " " * 200)], "has 230 characters, and may have 100"),
        ([edit("add", "stop", STOP.replace('"""Stop."""', "pass"))], "stop has no docstring"),
        (
            [edit("add", f"f{n}", f"def f{n}(env):\n  'F.'") for n in range(3)],
            "would have 4 functions, and may have 3",
        ),
    ],
)
def test_faults_are_told(edits: list[Edit], fault: str) -> None:
    draft = with_go().draft(edits, 3, 100)
    assert len(draft.faults) == 1
    assert re.search(fault, draft.faults[0])


def test_helpers_do_not_count() -> None:
    helpers = [edit("add", f"_f{n}", f"def _f{n}(): pass") for n in range(9)]
    assert not with_go().draft(helpers, 1, 100).faults


def test_every_faulty_edit_is_named() -> None:
    draft = with_go().draft([edit("delete", "a"), edit("delete", "go"), edit("add", "b", "x")], 3, 100)
    assert [fault.split(":")[0] for fault in draft.faults] == ["edit 1 (delete a)", "edit 3 (add b)"]


@pytest.mark.parametrize(
    "value",
    [
        {"op": "rename", "name": "a", "reason": "b"},
        {"op": "add", "name": 3, "reason": "b"},
        {"op": "add", "name": "a"},
        {"op": "add", "name": "a", "reason": ""},
        {"op": "add", "name": "a", "reason": "b", "source": 3},
        {"op": "add", "name": "a", "reason": "b", "code": "x"},
    ],
)
def test_other_edits_are_none(value: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Edit.model_validate(value)


def test_json_and_back() -> None:
    codebook = with_go()
    again = Codebook.from_json(json.loads(json.dumps(codebook.to_json())))
    assert again.to_json() == codebook.to_json()
    assert again.source() == codebook.source()
    assert again.functions == codebook.functions
