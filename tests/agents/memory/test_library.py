"""The skill library: what is called and found follows from its log."""

import json

from agents.memory.functions import read_functions
from agents.memory.library import Skill, SkillLibrary


def skill(name: str, docstring: str, task: str = "", body: str = "pass") -> Skill:
    (function,) = read_functions(f'def {name}(env):\n    """{docstring}"""\n    {body}')
    return Skill(function, task, 0)


def names(skills: list[Skill]) -> list[str]:
    return [one.function.name for one in skills]


def test_queries_find_by_name_docstring_and_task() -> None:
    library = SkillLibrary(
        [skill("chop", "Fell a tree."), skill("drink_water", "Find it."), skill("f", "It.", "eat a cow")]
    )
    assert names(library.retrieve("get water", 1)) == ["drink_water"]
    assert names(library.retrieve("which tree is near?", 1)) == ["chop"]
    assert names(library.retrieve("cow", 1)) == ["f"]


def test_the_latest_fill_up_what_a_query_does_not_find() -> None:
    library = SkillLibrary([skill(name, f"Do {name}.") for name in ("north", "south", "east", "west")])
    assert names(library.retrieve("go south", 3)) == ["south", "west", "east"]
    assert names(library.retrieve("", 9)) == ["west", "east", "south", "north"]
    assert SkillLibrary().retrieve("south", 5) == []


def test_the_latest_of_a_name_is_called_and_the_log_keeps_both() -> None:
    library = SkillLibrary([skill("go", "Go."), skill("look", "Look.")])
    diff = library.add(skill("go", "Go on.", body="return 2"))
    assert '-    pass\n+    """Go on."""\n+    return 2\n' in diff
    assert diff.startswith("--- library 2\n+++ library 3\n")
    assert list(library.skills) == ["go", "look"]
    assert library.source().count("def go(") == 1
    assert "return 2" in library.source()
    assert len(library.log) == 3


def test_what_is_there_word_for_word_is_not_added_again() -> None:
    library = SkillLibrary([skill("go", "Go.")])
    assert library.add(skill("go", "Go.", "another task")) == ""
    assert len(library.log) == 1


def test_helpers_are_part_of_the_module_alone() -> None:
    library = SkillLibrary([skill("_half", "Halve a tree."), skill("go", "Go.")])
    assert library.public == ["go"]
    assert names(library.retrieve("halve", 5)) == ["go"]
    assert "def _half(" in library.source()


def test_a_copy_grows_on_its_own() -> None:
    library = SkillLibrary([skill("go", "Go.")])
    copy = library.copy()
    copy.add(skill("look", "Look."))
    assert list(library.skills) == ["go"]
    assert list(copy.skills) == ["go", "look"]


def test_json_and_back() -> None:
    library = SkillLibrary([skill("go", "Go.", "walk"), skill("go", "Go on.")])
    again = SkillLibrary.from_json(json.loads(json.dumps(library.to_json())))
    assert again.log == library.log
    assert again.source() == library.source()
