"""voyager on worlds of Crafter and levels of BabyAI, and everything that can be wrong with answers."""

import json
from typing import Any

import pytest
from scripted_replies import LIMITS, Script, answer, json_block, make_tools, python_block

from agents.benchmarks.babyai import BENCHMARK as BABYAI
from agents.benchmarks.base import Benchmark, Episode
from agents.benchmarks.crafter import BENCHMARK as CRAFTER
from agents.llm.ledger import BudgetSpent
from agents.llm.reply import Reply, Usage
from agents.memory.trajectory import Trajectory
from agents.methods.base import Seat
from agents.methods.voyager import Voyager
from agents.sandbox.host import Limits, Sandbox

GO = 'def go(env):\n    """Go."""\n    env.step(env.actions[1])\n    return f"{env.steps} taken"'
TWICE = 'def go_twice(env):\n    """Go twice."""\n    go(env)\n    go(env)'
CRASH = 'def crash(env):\n    """Fail."""\n    env.step("drop")\n    raise ValueError("no tree")'
WAIT = 'def wait(env):\n    """Wait."""\n    while True:\n        env.step("noop")'
WORLD = Episode("survive", 3)
LEVEL = Episode("goto", 9)


def task(text: str) -> str:
    return json_block({"reasoning": "it is near", "task": text})


def verdict(success: bool, critique: str = "") -> str:
    return json_block({"reasoning": "seen", "success": success, "critique": critique})


def play(
    script: Script,
    voyager: Voyager | None = None,
    *,
    episode: Episode = LEVEL,
    turn_limit: int | None = None,
    token_limit: int | None = None,
    learning: bool = True,
    limits: Limits = LIMITS,
    **settings: Any,
) -> Trajectory:
    """Play until the replies are used up, or as far as other limits allow."""
    benchmark: Benchmark = CRAFTER if episode.task in CRAFTER.tasks else BABYAI
    voyager = voyager or Voyager(make_tools(script, benchmark, **settings))
    voyager.tools.model.replies[:] = script.replies  # type: ignore[attr-defined]
    voyager.tools.model.asked = script.asked  # type: ignore[attr-defined]
    limit = len(script.replies) if turn_limit is None else turn_limit
    environment = benchmark.make()
    with Sandbox(limits) as sandbox:
        seat = Seat(environment, sandbox, episode, 5, "wake/000005", limit, 4, learning, token_limit)
        return voyager.play(seat)


def kinds(script: Script) -> list[str]:
    return [line.split("voyager.")[1].split(";")[0] for line in script.systems]


def test_a_task_is_done_and_its_program_learned() -> None:
    script = Script(
        task("walk left"),
        python_block(GO),
        verdict(True),
        task("walk further"),
        python_block(TWICE),
        verdict(True),
    )
    voyager = Voyager(make_tools(script, CRAFTER))
    trajectory = play(script, voyager, episode=WORLD)
    assert kinds(script) == ["curriculum", "code", "critic"] * 2
    assert script.labels == [f"wake/000005/{number:03d}" for number in range(6)]
    assert trajectory.ending == "turn limit"
    assert trajectory.steps == 3
    assert trajectory.actions == ["move left"] * 3
    assert [turn.skill for turn in trajectory.turns] == [None, "go", None, None, "go_twice", None]
    assert trajectory.turns[1].note == 'go took 1 steps, the last of them: move left.\nOutput: "1 taken"'
    assert trajectory.learned["completed"] == ["walk left", "walk further"]
    assert trajectory.tokens == {"prompt": 600, "completion": 120}
    assert trajectory.details["steps"] == 3
    prompt = script.asked[4][1][-1].content
    assert "Task: walk further" in prompt
    assert GO in prompt  # the skill is retrieved
    assert "Completed in this episode: walk left\n" in script.asked[3][1][-1].content
    assert "Skills in the library: go\n" in script.asked[3][1][-1].content
    assert voyager.skills_source() == ""  # until it sleeps
    sleep = voyager.sleep([trajectory], 0)
    assert sleep.changed
    assert sleep.reason == "episode 5: go did 'walk left'\nepisode 5: go_twice did 'walk further'"
    assert sleep.exchanges == ()
    assert list(voyager.library.skills) == ["go", "go_twice"]
    assert [skill.task for skill in voyager.library.log] == ["walk left", "walk further"]


def test_the_same_replies_lead_to_the_same_trajectory() -> None:
    replies = [task("walk left"), python_block(GO), verdict(False, "further"), python_block(CRASH)]
    assert play(Script(*replies)) == play(Script(*replies))


def test_a_program_is_refined_by_what_came_of_it() -> None:
    script = Script(
        task("walk left"),
        python_block(CRASH),
        python_block(GO),
        verdict(False, "It stopped too early."),
        python_block(TWICE),
        python_block(GO),
        verdict(False),
        task("rest"),
    )
    trajectory = play(script, turn_limit=8)
    assert kinds(script) == ["curriculum", "code", "code", "critic", "code", "code", "critic", "curriculum"]
    crashed = script.asked[2][1][-1].content
    assert CRASH in crashed
    assert "It failed: crash: ValueError: no tree" in crashed
    assert 'line 22, in crash: raise ValueError("no tree")' in crashed
    assert "The last program" not in script.asked[1][1][-1].content
    assert "Critique: It stopped too early." in script.asked[4][1][-1].content
    # A program that succeeded not is no skill, so it cannot be called.
    assert "NameError: name 'go' is not defined" in script.asked[5][1][-1].content
    assert "Failed in this episode: walk left" in script.asked[7][1][-1].content
    assert trajectory.learned == {"skills": [], "completed": [], "failed": ["walk left"]}
    assert trajectory.actions == ["drop", "turn right", "turn right"]


@pytest.mark.parametrize(
    ("faulty", "fault"),
    [
        ("I would walk.", "no ```python block"),
        ("", "it was empty"),
        (answer("No.", "refusal"), "it was a refusal"),
        (answer("```python\ndef f(env):", "length"), "be shorter"),
        (python_block("def f(env:"), "it is not Python"),
        (python_block("import math"), "defines no function"),
        (python_block("def f():\n    'F.'"), "first parameter of f"),
        (python_block(GO + "\n\ndef _help(): pass"), "_help, is a helper"),
        (python_block("def f(env):\n    'F.'\n    open('x')"), "f, line 3"),
        (python_block("def f(env, x=1 / 0):\n    'F.'"), "do not load: load: ZeroDivisionError"),
        (python_block(f"def f(env):\n    '{'x' * 6_000}'"), "f: a function may have 6000 characters"),
    ],
)
def test_a_program_that_cannot_be_run_is_told_back(faulty: str | Reply, fault: str) -> None:
    script = Script(task("walk left"), faulty, python_block(GO), verdict(True))
    trajectory = play(script)
    assert "It could not be read." in script.asked[2][1][-1].content
    assert fault in script.asked[2][1][-1].content
    assert fault in (trajectory.turns[1].error or "")
    assert trajectory.turns[1].action == ""
    assert [learned["task"] for learned in trajectory.learned["skills"]] == ["walk left"]


@pytest.mark.parametrize(
    ("program", "told", "steps"),
    [
        ('while True:\n        env.step("noop")', "It failed: steps", 40),
        ("while True: pass", "It failed: timeout", 0),
        ("return env.state['nothing']", "It failed: crash: KeyError", 0),
        ("print('x' * 9_000)", "more characters", 0),
        ("return env.step('fly')", "took 1 steps", 1),
    ],
)
def test_programs_may_fail_in_every_way(program: str, told: str, steps: int) -> None:
    source = f'def act(env):\n    """Act."""\n    {program}'
    script = Script(task("act"), python_block(source), verdict(False))
    trajectory = play(script, turn_limit=2, limits=Limits(seconds=0.5, steps=40))
    assert told in trajectory.turns[1].note
    assert len(trajectory.turns[1].note) < 3_000
    assert trajectory.steps == steps


def test_a_task_is_given_up_after_its_refinements() -> None:
    script = Script(task("walk left"), "no", "no", task("rest"), "no", "no", task("walk left"))
    trajectory = play(script, refinements=2)
    assert kinds(script) == ["curriculum", "code", "code"] * 2 + ["curriculum"]
    assert trajectory.learned["failed"] == ["walk left", "rest"]
    assert trajectory.steps == 0


@pytest.mark.parametrize(
    "faulty", ["Walk.", json_block({"task": ""}), json_block({"task": "a", "why": "b"}), ""]
)
def test_a_curriculum_that_says_nothing_twice_gives_up(faulty: str) -> None:
    script = Script(faulty, faulty)
    trajectory = play(script, turn_limit=9)
    assert trajectory.ending == "gave up"
    assert script.last.startswith("That answer cannot be used:")
    assert all(turn.error for turn in trajectory.turns)

    script = Script(faulty, task("walk left"), python_block(GO), verdict(True))
    assert play(script).learned["completed"] == ["walk left"]


def test_a_critic_that_says_nothing_twice_says_no() -> None:
    script = Script(task("walk left"), python_block(GO), "Well done.", json_block({"success": "yes"}), "no")
    trajectory = play(script)
    assert kinds(script) == ["curriculum", "code", "critic", "critic", "code"]
    assert "success: Input should be a valid boolean" in (trajectory.turns[3].error or "")
    assert "Critique" not in script.asked[4][1][-1].content
    assert trajectory.learned["skills"] == []

    script = Script(task("walk left"), python_block(GO), "Well done.", verdict(True))
    assert len(play(script).learned["skills"]) == 1


def test_an_episode_ends_with_its_world() -> None:
    script = Script(task("wait"), python_block(WAIT), verdict(True))
    trajectory = play(script, turn_limit=9, episode=WORLD, limits=Limits(seconds=60, steps=5_000))
    assert trajectory.steps <= 1_000
    assert trajectory.details["died"] == (trajectory.ending == "failure")
    assert trajectory.ending in ("failure", "step limit")
    assert trajectory.turns[1].note.endswith("The episode is over.")
    assert len(script.asked) == 3  # what came of the last program is judged, and no task follows
    assert len(trajectory.learned["skills"]) == 1


def test_an_episode_that_is_over_needs_no_verdict() -> None:
    script = Script(task("wait"), python_block(WAIT))
    trajectory = play(script, turn_limit=2, limits=Limits(seconds=60, steps=5_000))
    assert trajectory.ending == "step limit"


def test_success_is_the_environments_word() -> None:
    source = 'def face(env):\n    """Face the ball."""\n    env.step("turn right")'
    script = Script(task("face the ball"), python_block(source), verdict(False))
    trajectory = play(script, episode=Episode("goto", 3), turn_limit=9)
    assert (trajectory.ending, trajectory.success, trajectory.score) == ("success", True, 1.0)
    assert script.systems[0] == "[kind: voyager.curriculum; benchmark: babyai]"


def test_an_episode_keeps_to_its_tokens() -> None:
    script = Script(answer(task("walk left"), usage=Usage(900, 100)), python_block(GO))
    trajectory = play(script, turn_limit=9, token_limit=1_000)
    assert trajectory.ending == "tokens"
    assert len(trajectory.turns) == 1


def test_a_frozen_memory_learns_nothing_even_within_the_episode() -> None:
    script = Script(task("walk left"), python_block(GO), verdict(True), task("again"), python_block(TWICE))
    trajectory = play(script, learning=False)
    assert trajectory.learned == {}
    assert "Skills in the library: none yet" in script.asked[3][1][-1].content
    assert "NameError" in (trajectory.turns[4].error or "")


def test_a_full_library_learns_nothing_more() -> None:
    script = Script(task("walk left"), python_block(GO), verdict(True), task("again"), python_block(GO))
    trajectory = play(script, functions=1)
    assert len(trajectory.learned["skills"]) == 1


def test_helpers_are_kept_once_and_do_not_count() -> None:
    helped = GO.replace("def", "def _help():\n    pass\n\ndef", 1)
    again = helped.replace("def go(", "def go_on(")
    script = Script(
        task("walk left"),
        python_block(helped),
        verdict(True),
        task("go on"),
        python_block(again),
        verdict(True),
    )
    trajectory = play(script, functions=2)
    kept = [learned["function"]["name"] for learned in trajectory.learned["skills"]]
    assert kept == ["_help", "go", "go_on"]
    assert "Skills in the library: go\n" in script.asked[3][1][-1].content
    assert "def _help" not in script.asked[4][1][-1].content


def test_a_later_episode_uses_the_skills_of_an_earlier_one() -> None:
    script = Script(task("walk left"), python_block(GO), verdict(True))
    voyager = Voyager(make_tools(script, CRAFTER))
    voyager.sleep([play(script, voyager, episode=WORLD)], 0)
    second = Script(task("walk further"), python_block(TWICE), verdict(True))
    trajectory = play(second, voyager, episode=Episode("survive", 4))
    assert trajectory.steps == 2
    assert GO in second.asked[1][1][-1].content
    voyager.sleep([trajectory], 1)
    assert list(voyager.library.skills) == ["go", "go_twice"]
    assert not voyager.sleep([trajectory], 2).changed  # all of it is there


def test_a_spent_budget_passes_through() -> None:
    with pytest.raises(BudgetSpent):
        play(Script(task("walk left"), BudgetSpent("no dollars")))


def test_memory_survives_json() -> None:
    script = Script(task("walk left"), python_block(GO), verdict(True))
    voyager = Voyager(make_tools(script, CRAFTER))
    trajectory = Trajectory.from_json(json.loads(json.dumps(play(script, voyager).to_json())))
    voyager.sleep([trajectory], 0)
    again = Voyager(make_tools(Script(), CRAFTER))
    again.load(json.loads(json.dumps(voyager.dump())))
    assert again.dump() == voyager.dump()
    assert again.skills_source() == voyager.skills_source()
