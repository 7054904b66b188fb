"""asi: skills from successes, replayed in new environments, and everything that can be wrong with them."""

import json
from dataclasses import replace
from typing import Any

import pytest
from scripted_replies import Script, answer, json_block, make_tools, oracle_episode

from agents.benchmarks.base import Episode
from agents.llm.ledger import BudgetSpent
from agents.llm.reply import Reply, Usage
from agents.memory.trajectory import Trajectory
from agents.methods.asi import Asi

WALK = [
    "def walk(env, steps):",
    '    """Walk."""',
    "    for _ in range(steps):",
    '        env.step("go forward")',
]
FACE = '''
def face(env):
    """Face left."""
    env.step("turn left")
    return _one()

def _one():
    return 1
'''
REPLAY = ["turn left", "skill walk(4)", "turn left", "go forward", "turn right"]
"""Reaches the goal of goto 9."""


def induction(*skills: dict[str, Any], replay: list[str] = REPLAY) -> str:
    return json_block({"reason": "walking comes again", "skills": list(skills), "replay": replay})


def skill(name: str = "walk", source: str | list[str] = WALK) -> dict[str, Any]:
    return {"name": name, "source": source}


@pytest.fixture(scope="module")
def success() -> Trajectory:
    return oracle_episode("goto", 9)


def test_a_skill_that_stands_up_to_its_replay_is_added(success: Trajectory) -> None:
    script = Script(induction(skill()))
    asi = Asi(make_tools(script))
    sleep = asi.sleep([success], 2)
    assert sleep.changed
    assert sleep.steps == 8
    assert sleep.reason == "episode 9: walking comes again"
    assert "+def walk(env, steps):\n" in sleep.diff
    assert script.labels == ["sleep/2/000009/0"]
    assert script.systems == ["[kind: sleep.asi; benchmark: babyai]"]
    assert "; ".join(success.actions) in script.last
    assert asi.memory_text(Episode("goto", 1), "") == "## Skills\n\nskill walk(steps)\n    Walk."
    assert asi.library.log[0].task == "go to the green box"
    assert asi.library.log[0].sleep == 2


def test_only_successes_are_looked_at(success: Trajectory) -> None:
    sleep = Asi(make_tools(Script())).sleep([replace(success, success=False)], 0)
    assert not sleep.changed
    assert sleep.reason.startswith("no episode reached its goal")


def test_nothing_may_be_worth_keeping(success: Trajectory) -> None:
    sleep = Asi(make_tools(Script(induction(replay=[])))).sleep([success], 0)
    assert not sleep.changed
    assert sleep.steps == 0
    assert sleep.errors == ()


def test_later_episodes_see_the_skills_of_earlier_ones(success: Trajectory) -> None:
    replay = ["skill face()", "skill walk(steps=4)", "turn left", "go forward", "turn right"]
    script = Script(induction(skill()), induction(skill("face", FACE), replay=replay))
    asi = Asi(make_tools(script))
    sleep = asi.sleep([success, replace(success, index=10)], 0)
    assert script.labels == ["sleep/0/000009/0", "sleep/0/000010/0"]
    assert "skill walk(steps)\n    Walk." in script.last
    assert sleep.steps == 16
    assert list(asi.library.skills) == ["walk", "face", "_one"]
    assert "_one" not in asi.memory_text(Episode("goto", 1), "")


@pytest.mark.parametrize(
    ("faulty", "fault", "steps"),
    [
        ("Nothing.", "no ```json block", 0),
        (json_block({"reason": "so"}), "skills: Field required", 0),
        ("", "it was empty", 0),
        (answer("No.", "refusal"), "it was a refusal", 0),
        (answer('```json\n{"rea', "length"), "be shorter", 0),
        (induction(skill(source="def walk(env:")), "walk: it is not Python", 0),
        (induction(skill("run")), "run: the source defines walk", 0),
        (induction(skill("_a", "def _a(): pass")), "_a: the source defines helpers alone", 0),
        (induction(skill(), skill()), "defined twice: walk", 0),
        (induction(skill(source=[*WALK, "#" * 6_000])), "and may have 6000", 0),
        (
            induction(*(skill(f"f{n}", f'def f{n}(env):\n    "F."') for n in range(4))),
            "may have 3 functions",
            0,
        ),
        (induction(skill(source='def walk(env):\n    "W."\n    open("x")')), "walk, line 3", 0),
        (
            induction(skill(source='def walk(env, x=1 / 0):\n    "W."')),
            "do not load: load: ZeroDivisionError",
            0,
        ),
        (
            induction(skill(), replay=["turn left"]),
            "the replay did not reach the goal; after it: You face",
            1,
        ),
        (induction(skill(), replay=[]), "the replay did not reach the goal", 0),
        (induction(skill(), replay=["skill walk()"]), "entry 1 (skill walk()): it failed after 0 steps", 0),
        (induction(skill(), replay=["skill walk(0)"]), "entry 1 (skill walk(0)): it took no step", 0),
        (induction(skill(), replay=["turn left", "skill fly()"]), "entry 2 (skill fly()): it failed", 1),
        (
            induction(
                skill(), replay=["turn left", *["go forward"] * 4, "turn left", "go forward", "turn right"]
            ),
            "the replay never calls walk",
            8,
        ),
    ],
)
def test_a_faulty_answer_is_told_back_once(
    faulty: str | Reply, fault: str, steps: int, success: Trajectory
) -> None:
    for second in (induction(skill()), faulty):
        script = Script(faulty, second)
        asi = Asi(make_tools(script, functions=3))
        sleep = asi.sleep([success], 0)
        assert fault in script.last
        assert any(fault in error for error in sleep.errors)
        assert list(asi.library.skills) == (["walk"] if second is not faulty else [])
        assert sleep.steps == steps + (8 if second is not faulty else steps)
        if second is faulty:
            assert sleep.reason == "episode 9: both answers were unusable, so no skill was added"


def test_skills_are_never_changed(success: Trajectory) -> None:
    changed = [*WALK, "    return steps"]
    script = Script(
        induction(skill()), induction(skill(source=changed)), induction(skill("walk_on", changed))
    )
    asi = Asi(make_tools(script))
    asi.sleep([success], 0)
    sleep = asi.sleep([success], 1)
    assert sleep.errors[0] == "there is a skill named walk; skills cannot be changed"
    assert not sleep.changed
    assert "return steps" not in asi.skills_source()


def test_without_verification_nothing_is_replayed(success: Trajectory) -> None:
    script = Script(induction(skill(), replay=[]))
    asi = Asi(make_tools(script, verify=False))
    sleep = asi.sleep([success], 0)
    assert sleep.changed
    assert sleep.steps == 0
    assert "It is played in the same world" not in script.asked[0][1][0].content


def test_a_reason_is_given_once_with_its_episodes(success: Trajectory) -> None:
    same, other = json_block({"reason": "nothing new", "skills": []}), induction(skill())
    asi = Asi(make_tools(Script(same, other, same)))
    sleep = asi.sleep([replace(success, index=index) for index in (3, 4, 6)], 0)
    assert sleep.reason == "episodes 3, 6: nothing new\nepisode 4: walking comes again"


def test_a_sleep_keeps_to_its_tokens_and_keeps_what_it_has(success: Trajectory) -> None:
    script = Script(answer(induction(skill()), usage=Usage(3_000, 6_500)))
    asi = Asi(make_tools(script, sleep_tokens=10_000))
    sleep = asi.sleep([success, replace(success, index=10)], 0)
    assert sleep.changed
    assert "9500 of the sleep's 10000 tokens are used" in sleep.reason
    assert list(asi.library.skills) == ["walk"]
    assert len(script.asked) == 1


def test_a_spent_budget_leaves_the_memory_as_it_was(success: Trajectory) -> None:
    asi = Asi(make_tools(Script(induction(skill()), BudgetSpent("no dollars"))))
    with pytest.raises(BudgetSpent):
        asi.sleep([success, replace(success, index=10)], 0)
    assert asi.dump() == Asi(make_tools(Script())).dump()


def test_memory_survives_json(success: Trajectory) -> None:
    asi = Asi(make_tools(Script(induction(skill()))))
    asi.sleep([success], 0)
    again = Asi(make_tools(Script()))
    again.load(json.loads(json.dumps(asi.dump())))
    assert again.dump() == asi.dump()
    assert again.skills_source() == asi.skills_source()
