"""opo: a guide that is written anew, and stays as it was where no answer can be used."""

import json

import pytest
from scripted_replies import Script, answer, make_tools, oracle_episode

from agents.benchmarks.base import Episode
from agents.llm.ledger import BudgetSpent
from agents.llm.reply import Usage
from agents.methods import METHODS
from agents.methods.opo import Opo

GUIDE = "<reason>the key was found by turning</reason>\n<guide>\nTurn around first.\n</guide>"


def test_a_guide_is_written_and_read_awake() -> None:
    script = Script(GUIDE, GUIDE.replace("first", "at first"))
    opo = Opo(make_tools(script))
    assert opo.memory_text(Episode("goto", 1), "x") == opo.skills_source() == ""
    sleep = opo.sleep([oracle_episode("goto", 9)], 0)
    assert sleep.changed
    assert sleep.reason == "the key was found by turning"
    assert sleep.diff == "--- guide 0\n+++ guide 1\n@@ -0,0 +1 @@\n+Turn around first.\n"
    assert sleep.errors == ()
    assert sleep.steps == 0
    assert opo.memory_text(Episode("goto", 1), "x").endswith("\n\nTurn around first.")
    assert opo.sleep([oracle_episode("goto", 0)], 1).diff.startswith("--- guide 1\n")
    assert script.labels == ["sleep/0/0", "sleep/1/0"]
    assert set(script.systems) == {"[kind: sleep.opo; benchmark: babyai]"}
    assert "Turn around first." in script.last
    assert "go to the grey key" in script.last
    assert "go to the green box" not in script.last  # of the batch before
    assert "goto: 2 of 2 episodes" in script.last


def test_the_same_guide_again_changes_nothing() -> None:
    opo = Opo(make_tools(Script(GUIDE, GUIDE)))
    opo.sleep([oracle_episode("goto", 9)], 0)
    sleep = opo.sleep([oracle_episode("goto", 9)], 1)
    assert not sleep.changed
    assert sleep.diff == ""


@pytest.mark.parametrize(
    ("faulty", "fault"),
    [
        ("Here is your guide: turn around.", "there is no <guide>"),
        ("<guide>Turn.</guide>", "there is no <reason>"),
        ("<reason>so</reason><guide> </guide>", "<guide> is empty"),
        (f"<reason>so</reason><guide>{'x' * 101}</guide>", "has 101 characters, and may have 100"),
        ("", "it was empty"),
        (answer("No.", "refusal"), "a refusal"),
        (answer("<reason>so</reason><guide>Turn", "length"), "there is no <guide>"),
        (answer("", "context"), "too long for the model"),
    ],
)
def test_a_faulty_answer_is_told_back_once(faulty: str, fault: str) -> None:
    for second in (GUIDE, faulty):
        script = Script(faulty, second)
        opo = Opo(make_tools(script, guide_chars=100))
        sleep = opo.sleep([oracle_episode("goto", 0)], 0)
        assert fault in script.last
        assert fault in sleep.errors[0]
        assert sleep.changed == (second is GUIDE)
        assert opo.guide.text == ("Turn around first." if second is GUIDE else "")
        assert len(sleep.exchanges) == 2
        if second is faulty:
            assert sleep.reason == "both answers were unusable, so the guide stays as it was"


def test_what_was_cut_off_is_told_to_be_shorter() -> None:
    sleep = Opo(make_tools(Script(answer("<guide>Turn", "length"), GUIDE))).sleep(
        [oracle_episode("goto", 0)], 0
    )
    assert len(sleep.errors) == 2
    assert "be shorter" in sleep.errors[1]


def test_a_sleep_keeps_to_its_tokens() -> None:
    script = Script(answer("no guide", usage=Usage(1_500, 3_000)))
    opo = Opo(make_tools(script, sleep_tokens=5_000))
    sleep = opo.sleep([oracle_episode("goto", 0)], 0)
    assert not sleep.changed
    assert "4500 of the sleep's 5000 tokens are used" in sleep.reason
    assert len(script.asked) == 1
    none = Opo(make_tools(Script(), sleep_tokens=1_000)).sleep([oracle_episode("goto", 0)], 0)
    assert none.reason.startswith("0 of the sleep's 1000 tokens are used")
    assert none.exchanges == ()


def test_a_spent_budget_leaves_the_memory_as_it_was() -> None:
    opo = Opo(make_tools(Script(GUIDE, "faulty", BudgetSpent("no dollars"))))
    opo.sleep([oracle_episode("goto", 0)], 0)
    before = opo.dump()
    with pytest.raises(BudgetSpent):
        opo.sleep([oracle_episode("goto", 1)], 1)
    assert opo.dump() == before


def test_memory_survives_json() -> None:
    opo = Opo(make_tools(Script(GUIDE)))
    opo.sleep([oracle_episode("goto", 9)], 0)
    again = Opo(make_tools(Script()))
    again.load(json.loads(json.dumps(opo.dump())))
    assert again.dump() == opo.dump()
    assert again.memory_text(Episode("goto", 1), "") == opo.memory_text(Episode("goto", 1), "")


@pytest.mark.parametrize("name", [name for name in METHODS if name != "react"])
def test_the_memory_of_something_else_is_refused(name: str) -> None:
    method = METHODS[name](make_tools(Script()))
    before = method.dump()
    with pytest.raises((ValueError, KeyError, TypeError)):
        method.load({"notes": []})
    assert method.dump() == before
