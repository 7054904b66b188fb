"""speedrunner and speedrunner_no_cl: programs, edits, and everything that can be wrong with them."""

import json
from typing import Any

import pytest
from scripted_replies import Script, answer, json_block, make_tools, oracle_episode, python_block

from agents.benchmarks.babyai import BENCHMARK
from agents.benchmarks.base import Episode
from agents.llm.ledger import BudgetSpent
from agents.llm.reply import Reply, Usage
from agents.memory.trajectory import Trajectory
from agents.methods import METHODS
from agents.methods.serving import Served, view
from agents.methods.speedrunner import SpeedRunner, SpeedRunnerNoCL

WALK = [
    "def walk(env, steps):",
    '    """Walk."""',
    "    for _ in range(steps):",
    '        env.step("go forward")',
]
BOTH = [SpeedRunner, SpeedRunnerNoCL]


def edits(*some: dict[str, Any], reason: str = "walking took many answers") -> str:
    return json_block({"reason": reason, "edits": list(some)})


def add(name: str = "walk", source: str | list[str] = WALK) -> dict[str, Any]:
    return {"op": "add", "name": name, "reason": "it helps", "source": source}


def batch() -> list[Trajectory]:
    return [oracle_episode("goto", 9), oracle_episode("open", 4)]


@pytest.mark.parametrize("method", BOTH)
def test_edits_reach_the_agent(method: type[SpeedRunner]) -> None:
    script = Script(edits(add()))
    learner = method(make_tools(script))
    sleep = learner.sleep(batch(), 0)
    assert sleep.changed
    assert sleep.reason == "walking took many answers"
    assert "+def walk(env, steps):\n" in sleep.diff
    assert sleep.errors == ()
    assert script.systems == [f"[kind: sleep.{method.name}; benchmark: babyai]"]
    assert learner.memory_text(Episode("goto", 1), "x") == "## Skills\n\nskill walk(steps)\n    Walk."
    with learner.tools.sandbox() as sandbox:
        sandbox.load(learner.skills_source())
        environment = BENCHMARK.make()
        environment.reset(Episode("goto", 11))
        sandbox.call("walk", [2], {}, Served(environment), view(environment))
        assert environment.steps == 2


@pytest.mark.parametrize("method", BOTH)
def test_the_codebook_is_shown_with_how_it_served(method: type[SpeedRunner]) -> None:
    from dataclasses import replace

    from agents.memory.trajectory import Taken, Turn

    script = Script(edits(add(), add("look", 'def look(env):\n    """Look."""')), edits())
    learner = method(make_tools(script))
    learner.sleep(batch(), 0)
    turn = Turn("", "skill walk(1)", (Taken("go forward", "x", 0.0),), "", "walk", "crash: no")
    sleep = learner.sleep([replace(batch()[0], turns=(turn,))], 1)
    assert not sleep.changed
    assert "\n".join(WALK) + "\n# 1 calls, 1 of them failed, 1 steps; 1 of 1 episodes with it" in script.last
    assert '"""Look."""\n# never called\n' in script.last


def test_programs_run_over_the_episodes_beside_the_codebook() -> None:
    script = Script(
        edits(add()),
        python_block("print(len(episodes), episodes[0]['task'])\nepisodes[-1]['turns'][0]['steps'][0][0]"),
        "First\n```python\nx = 20\n```\nthen\n```py\nx + callable(walk)\n```",
        python_block("x"),
        python_block("pass"),
        edits({"op": "delete", "name": "walk", "reason": "not needed"}),
    )
    learner = SpeedRunner(make_tools(script))
    learner.sleep(batch(), 0)
    sleep = learner.sleep(batch(), 1)
    assert sleep.changed
    assert learner.skills_source() == ""
    told = [messages[-1].content for _, messages, _ in script.asked[2:]]
    assert told[0].startswith('Printed:\n\n4 goto\n\nValue: "')
    assert told[1].startswith("Value: 21\n\nAnswer with another program")
    assert told[2].startswith("The program failed: crash: NameError: name 'x' is not defined\nline 1, in ")
    assert told[3].startswith("The program printed nothing.")
    assert len(sleep.exchanges) == 5
    assert sleep.errors == ()


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("while True: pass", "The program failed: timeout"),
        ("print('x' * 100_000)", "more characters"),
        ("'x' * 1_000_000", "The program failed: output"),
        ("[0] * 10**9", "The program failed: memory"),
        ("x ===", "The program failed: syntax"),
        ("open('/etc/passwd')", "The program failed: crash: NameError"),
        ("print('seen')\n1 / 0", "Printed:\n\nseen\n\nThe program failed: crash: ZeroDivisionError"),
        ("episodes.clear()\nlen(episodes)", "Value: 0"),
        ("walk(None, 1)", "The program failed: crash: "),
        ("{1, 2}", 'Value: "{1, 2}"'),
    ],
)
def test_programs_may_fail_in_every_way(program: str, told: str) -> None:
    script = Script(edits(add()), python_block(program), python_block("print(len(episodes), walk)"), edits())
    learner = SpeedRunner(make_tools(script))
    learner.sleep(batch(), 0)
    sleep = learner.sleep(batch(), 1)
    assert told in script.asked[2][1][-1].content
    assert len(script.asked[2][1][-1].content) < 8_000
    assert "4 <function walk" in script.last  # what is run next finds everything in its place
    assert sleep.errors == ()


def test_without_code_a_program_is_a_fault() -> None:
    script = Script(python_block("print(1)"), edits(add()))
    sleep = SpeedRunnerNoCL(make_tools(script)).sleep(batch(), 0)
    assert sleep.changed
    assert sleep.errors == ("no program is run; the edits are JSON in a ```json block",)


def test_both_are_told_the_same_but_for_programs() -> None:
    prompts = {}
    for method in BOTH:
        script = Script(edits())
        method(make_tools(script)).sleep(batch(), 0)
        _, (system, user), most = script.asked[0]
        prompts[method.name] = (system.content, user.content, most)
    (system, user, most), (bare_system, bare_user, bare_most) = prompts.values()
    assert most == bare_most
    assert user.replace("Answer with a program, or with the edits.", "Answer with the edits.") == bare_user
    assert "```python" in system
    assert "```python" not in bare_system
    start, end = bare_system.index("# Answers"), bare_system.index("```json")
    assert system.startswith(bare_system[:start])
    assert (
        system.partition("```json")[2].replace("speedrunner;", "speedrunner_no_cl;") == bare_system[end + 7 :]
    )


def test_edits_end_the_sleep_though_a_program_stands_beside_them() -> None:
    sleep = SpeedRunner(make_tools(Script(python_block("1 / 0") + "\n" + edits(add())))).sleep(batch(), 0)
    assert sleep.changed


def test_the_last_answer_must_be_edits() -> None:
    script = Script(python_block("1"), python_block("2"), python_block("3"), edits(add()))
    sleep = SpeedRunner(make_tools(script, sleep_turns=3)).sleep(batch(), 0)
    assert "with another program" in script.asked[1][1][-1].content
    assert script.asked[2][1][-1].content.endswith(
        "There is no room for another program. Answer with the edits."
    )
    assert sleep.errors == ("no program is run any more; the edits are JSON in a ```json block",)
    assert sleep.changed


def test_programs_end_when_tokens_run_low() -> None:
    script = Script(answer(python_block("1"), usage=Usage(4_000, 20)), edits(add()))
    learner = SpeedRunner(make_tools(script, sleep_tokens=12_000, answer_tokens=1_000))
    sleep = learner.sleep(batch(), 0)
    assert script.last.endswith("There is no room for another program. Answer with the edits.")
    assert sleep.changed


@pytest.mark.parametrize("method", BOTH)
def test_a_sleep_keeps_to_its_tokens(method: type[SpeedRunner]) -> None:
    script = Script(answer("no edits", usage=Usage(4_000, 5_000)))
    learner = method(make_tools(script, sleep_tokens=10_000))
    sleep = learner.sleep(batch(), 0)
    assert not sleep.changed
    assert sleep.reason.startswith("9000 of the sleep's 10000 tokens are used")
    assert sleep.reason.endswith("so the codebook stays as it was")
    assert len(learner.experience.episodes) == 2  # what was lived through is not forgotten
    assert method(make_tools(Script(), sleep_tokens=1_000)).sleep(batch(), 0).exchanges == ()


@pytest.mark.parametrize(
    ("faulty", "fault"),
    [
        ("I am done.", "no ```json block"),
        ('```json\n{"reason": \n```', "it is no JSON"),
        (json_block({"edits": []}), "reason: Field required"),
        (json_block({"reason": "so", "edits": [{"op": "rename"}]}), "edits.0.op: "),
        (json_block([]), "the JSON is no object"),
        ("", "it was empty"),
        (answer("I won't.", "refusal"), "it was a refusal"),
        (answer('```json\n{"reason": "so", "ed', "length"), "be shorter"),
        (answer("", "context"), "too long for the model"),
        (edits(add("run", WALK)), "the source defines walk, expected run alone"),
        (edits({"op": "delete", "name": "fly", "reason": "so"}), "there is no such function"),
        (edits(add(source="def walk(env:")), "it is not Python"),
        (edits(add(source='def walk(env):\n    "W."\n    import socket')), "walk, line 3"),
        (
            edits(add(source='def walk(env, x=1 / 0):\n    "W."')),
            "the functions do not load: load: ZeroDivision",
        ),
        (edits(add(source='def walk(env, x="' + "x" * 6_000 + '"):\n    "W."')), "and may have 6000"),
        (edits(*(add(f"f{n}", f'def f{n}(env):\n    "F."') for n in range(4))), "and may have 3"),
        (edits(add(), add()), "edit 2 (add walk): there is a function of that name"),
    ],
)
@pytest.mark.parametrize("method", BOTH)
def test_a_faulty_answer_is_told_back_once(
    faulty: str | Reply, fault: str, method: type[SpeedRunner]
) -> None:
    for second in (edits(add()), faulty):
        script = Script(faulty, second)
        learner = method(make_tools(script, functions=3))
        sleep = learner.sleep(batch(), 0)
        assert fault in script.last
        assert any(fault in error for error in sleep.errors)
        assert list(learner.codebook.functions) == (["walk"] if second is not faulty else [])
        assert sleep.changed == (second is not faulty)
        if second is faulty:
            assert sleep.reason == "a second answer was unusable, so the codebook stays as it was"
            assert sleep.diff == ""


def test_edits_are_taken_together_or_not_at_all() -> None:
    script = Script(edits(add(), {"op": "delete", "name": "fly", "reason": "so"}), "No.")
    learner = SpeedRunner(make_tools(script))
    learner.sleep(batch(), 0)
    assert learner.codebook.functions == {}


def test_programs_still_find_the_codebook_after_edits_that_do_not_load() -> None:
    script = Script(
        edits(add()),
        edits(add("f", 'def f(env, x=1 / 0):\n    "F."')),
        python_block("walk"),
        edits(add("f", 'def f(env):\n    "F."')),
    )
    learner = SpeedRunner(make_tools(script))
    learner.sleep(batch(), 0)
    learner.sleep(batch(), 1)
    assert "<function walk" in script.last
    assert list(learner.codebook.functions) == ["walk", "f"]


def test_a_faulty_answer_after_programs_is_told_back_too() -> None:
    script = Script(python_block("1"), "Hm.", python_block("2"), "Hm.")
    sleep = SpeedRunner(make_tools(script)).sleep(batch(), 0)
    assert not sleep.changed
    assert len(sleep.exchanges) == 4


def test_a_function_may_use_those_of_the_codebook_and_helpers() -> None:
    source = 'def twice(env):\n    """Walk twice."""\n    walk(env, 1)\n    walk(env, _one())'
    script = Script(edits(add(), add("_one", "def _one():\n    return 1"), add("twice", source)))
    learner = SpeedRunner(make_tools(script))
    assert learner.sleep(batch(), 0).changed
    assert "_one" not in learner.memory_text(Episode("goto", 1), "")
    environment = BENCHMARK.make()
    environment.reset(Episode("goto", 11))
    with learner.tools.sandbox() as sandbox:
        assert [function.name for function in sandbox.load(learner.skills_source())] == ["walk", "twice"]
        sandbox.call("twice", [], {}, Served(environment), view(environment))
    assert environment.steps == 2


def test_a_spent_budget_leaves_the_memory_as_it_was() -> None:
    learner = SpeedRunner(make_tools(Script(edits(add()), python_block("1"), BudgetSpent("no dollars"))))
    learner.sleep(batch(), 0)
    before = learner.dump()
    with pytest.raises(BudgetSpent):
        learner.sleep(batch(), 1)
    assert learner.dump() == before


@pytest.mark.parametrize("method", BOTH)
def test_memory_survives_json(method: type[SpeedRunner]) -> None:
    learner = method(make_tools(Script(edits(add()))))
    learner.sleep(batch(), 0)
    again = METHODS[method.name](make_tools(Script()))
    again.load(json.loads(json.dumps(learner.dump())))
    assert again.dump() == learner.dump()
    assert again.skills_source() == learner.skills_source()
