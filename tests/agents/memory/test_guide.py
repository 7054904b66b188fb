"""The strategy guide: versions, diffs, JSON."""

import json

from agents.memory.guide import StrategyGuide
from agents.memory.versions import Version, diff_texts


def test_each_change_is_a_version_with_its_diff() -> None:
    guide = StrategyGuide()
    assert (
        guide.rewrite("Look first.\n", "it helps", 0)
        == "--- guide 0\n+++ guide 1\n@@ -0,0 +1 @@\n+Look first.\n"
    )
    second = guide.rewrite("Look first.\nThen act.", "so does this", 4)
    assert second == "--- guide 1\n+++ guide 2\n@@ -1 +1,2 @@\n Look first.\n+Then act.\n"
    assert guide.text == "Look first.\nThen act."
    assert guide.versions[1] == Version(2, 4, "so does this", second)


def test_what_stays_is_no_version() -> None:
    guide = StrategyGuide()
    guide.rewrite("Look first.", "it helps", 0)
    assert guide.rewrite("\n Look first.  \n".replace(" L", "L"), "again", 1) == ""
    assert [version.number for version in guide.versions] == [1]


def test_json_and_back() -> None:
    guide = StrategyGuide()
    guide.rewrite("One.", "a", 0)
    guide.rewrite("Two.", "b", 1)
    again = StrategyGuide.from_json(json.loads(json.dumps(guide.to_json())))
    assert again.to_json() == guide.to_json()
    assert again.rewrite("Two.", "c", 2) == ""


def test_equal_texts_have_no_diff() -> None:
    assert diff_texts("a\nb", "a\nb\n", "guide", 3) == ""
