"""What honest skills and their callers get."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from agents.core.literals import write_literal
from agents.sandbox import process
from agents.sandbox.host import EpisodeOver, Function, Limits, Sandbox, SkillError, check_lockable

LIMITS = Limits(memory_mb=64, seconds=10, steps=30)
ROOT = Path(__file__).parents[3]


def view(steps: int = 0, **other: Any) -> dict[str, Any]:
    return {
        "goal": "go to the ball",
        "observation": f"step {steps}",
        "state": {"ball": [steps, 2]},
        "actions": ["left", "forward"],
        "done": False,
        "steps": steps,
        "reward": 0.0,
    } | other


class World:
    """Takes any action; over after `end` steps."""

    def __init__(self, end: int = 1_000) -> None:
        self.end = end
        self.actions: list[str] = []

    def __call__(self, action: str) -> dict[str, Any]:
        if len(self.actions) == self.end:
            raise EpisodeOver
        self.actions.append(action)
        return view(len(self.actions), reward=0.5, done=len(self.actions) == self.end)


def call(source: str, *args: Any, serve: Any = None, **kwargs: Any) -> Any:
    """The outcome of calling the skill f of a module."""
    with Sandbox(LIMITS) as sandbox:
        sandbox.load(source)
        return sandbox.call("f", args, kwargs, serve or World(), view())


def error(source: str, **kwargs: Any) -> SkillError:
    with pytest.raises(SkillError) as caught:
        call(source, **kwargs)
    return caught.value


def test_the_worker_is_locked_here() -> None:
    assert check_lockable() is None
    with Sandbox(LIMITS) as sandbox:
        walls = sandbox.confinement.split("+")
        assert {"seccomp", "rlimits"} < set(walls) <= {"landlock", "seccomp", "rlimits", "bubblewrap"}
        status = Path(f"/proc/{sandbox.pid}/status").read_text()
    assert (
        "Seccomp:\t2\n" in status and "NoNewPrivs:\t1\n" in status and "CapEff:\t0000000000000000\n" in status
    )


def test_unsafe_says_so() -> None:
    with Sandbox(LIMITS, unsafe=True) as sandbox:
        assert sandbox.confinement == "unsafe"
        assert "Seccomp:\t0\n" in Path(f"/proc/{sandbox.pid}/status").read_text()
        assert sandbox.run("1 + 1", {}).value == 2


def test_functions_are_listed_without_helpers_and_imports() -> None:
    source = '''
from math import sqrt
from collections import deque
from dataclasses import dataclass

@dataclass
class Place:
    x: int = 0

def go_to(env, kind: str, *, color="red") -> bool:
    """Go there.

    Returns whether it is reached.
    """
    return _near(env)

def _near(env):
    return True
'''
    with Sandbox(LIMITS) as sandbox:
        assert sandbox.load(source) == [
            Function(
                "go_to",
                "(env, kind: str, *, color='red') -> bool",
                "Go there.\n\nReturns whether it is reached.",
            )
        ]


def test_a_skill_sees_the_view_and_each_view_that_a_step_returns() -> None:
    outcome = call(
        """
def f(env, first, *, last):
    seen = [env.goal, env.observation, env.state, env.actions, env.done, env.steps, env.reward]
    back = env.step(first)
    env.step(last)
    print("moved", back)
    return seen + [back, env.observation, env.state["ball"][0], env.steps, env.reward]
""",
        "left",
        last="forward",
        serve=(world := World()),
    )
    assert outcome.value == [
        *("go to the ball", "step 0", {"ball": [0, 2]}, ["left", "forward"], False, 0, 0.0),
        *("step 1", "step 2", 2, 2, 0.5),
    ]
    assert (outcome.output, outcome.steps) == ("moved step 1\n", 2)
    assert world.actions == ["left", "forward"]
    assert 0 < outcome.seconds < 10


def test_what_json_lacks_is_returned_as_its_repr() -> None:
    assert call("def f(env):\n    return {(1, 2): 3}").value == "{(1, 2): 3}"
    assert call("def f(env):\n    return float('nan')").value == "nan"
    assert call("def f(env):\n    return (1, [None, True, 'ä😀'])").value == [1, [None, True, "ä😀"]]
    assert call("def f(env):\n    return 'a\\ud800b'").value == "a?b"


def test_values_are_nested_up_to_a_depth() -> None:
    value = call("def f(env):\n    x = 1\n    for _ in range(100):\n        x = [x]\n    return x").value
    assert write_literal(value) == "[" * 100 + "1" + "]" * 100
    fault = error("def f(env):\n    x = 1\n    for _ in range(101):\n        x = {'': x}\n    return x")
    assert (fault.kind, fault.message) == (
        "output",
        "the value is nested more than 100 deep, which is the limit",
    )


def test_the_end_of_the_episode_ends_the_skill_and_is_no_error() -> None:
    source = "def f(env):\n    while True:\n        print(env.step('left'))"
    outcome = call(source, serve=World(2))
    assert (outcome.value, outcome.output, outcome.steps) == (None, "step 1\nstep 2\n", 2)


@pytest.mark.parametrize(
    "answer", ["pass", "raise ValueError", "return {}['x']", "while True:\n            pass"]
)
def test_a_skill_may_do_as_it_likes_when_the_episode_is_over(answer: str) -> None:
    source = f"""
def f(env):
    try:
        while True:
            try:
                env.step("left")
            except Exception:
                pass
    finally:
        {answer}
"""
    limits = Limits(memory_mb=64, seconds=0.3)
    with Sandbox(limits) as sandbox:
        sandbox.load(source)
        assert sandbox.call("f", [], {}, World(2), view()).steps == 2
        assert sandbox.call("f", [], {}, World(1), view()).steps == 1


def test_steps_are_limited() -> None:
    failure = error("def f(env):\n    while True:\n        env.step('left')", serve=(world := World()))
    assert (failure.kind, failure.steps, len(world.actions)) == ("steps", 30, 30)
    assert failure.message == "the skill asked for more than 30 steps"


def test_an_error_tells_the_lines_of_the_skill_alone() -> None:
    failure = error(
        """
import functools

def f(env):
    print("so far")
    env.step("left")
    return functools.reduce(_divide, [1, 0])

def _divide(a, b):
    return a / b
"""
    )
    assert failure.kind == "crash"
    assert failure.message == "ZeroDivisionError: division by zero"
    assert failure.trace == (
        "line 7, in f: return functools.reduce(_divide, [1, 0])\nline 10, in _divide: return a / b"
    )
    assert (failure.output, failure.steps) == ("so far\n", 1)
    assert str(failure) == f"crash: {failure.message}\n{failure.trace}"


def test_a_module_that_cannot_be_loaded_says_why() -> None:
    assert str(error("def f(env)\n    pass")) == "syntax: expected ':' (line 1)\ndef f(env)"
    assert str(error("return 1")) == "syntax: 'return' outside function (line 1)"
    assert error("a\0b").kind == "syntax"
    assert error("(" * 5_000).kind == "syntax"
    assert (
        str(error("x = 1\nx = y")) == "load: NameError: name 'y' is not defined\nline 2, in <module>: x = y"
    )
    assert "os cannot be imported here; these can: bisect, collections" in str(error("import os"))
    assert error("#" * 100_001).message == "the source has 100001 characters; 100000 is the limit"
    assert error("while True:\n    break\nexit()").kind == "load"


def test_nothing_is_left_of_a_module_when_the_next_is_loaded_or_fails_to() -> None:
    with Sandbox(LIMITS) as sandbox:
        sandbox.load("seen = [1]\ndef f(env):\n    seen.append(1)\n    return len(seen)")
        assert [sandbox.call("f", [], {}, World(), view()).value for _ in range(2)] == [2, 3]
        sandbox.load("def g(env):\n    return 'seen' in str(seen)")
        with pytest.raises(SkillError, match="NameError"):
            sandbox.call("g", [], {}, World(), view())
        with pytest.raises(SkillError, match="load: "):
            sandbox.load("1 / 0")
        with pytest.raises(SkillError, match=r"missing: there is no skill named g$"):
            sandbox.call("g", [], {}, World(), view())


def test_a_missing_skill_is_named_with_one_like_it() -> None:
    with Sandbox(LIMITS) as sandbox:
        sandbox.load("def go_to(env):\n    pass")
        with pytest.raises(SkillError, match="missing: there is no skill named goto; there is go_to"):
            sandbox.call("goto", [], {}, World(), view())


def test_wrong_arguments_are_the_callers_fault() -> None:
    with Sandbox(LIMITS) as sandbox:
        sandbox.load("def f(env, n):\n    return n")
        with pytest.raises(
            SkillError, match=r"crash: TypeError: f.. missing 1 required positional argument: 'n'"
        ):
            sandbox.call("f", [], {}, World(), view())
        with pytest.raises(SkillError, match=r"crash: TypeError: f.. got an unexpected keyword argument 'm'"):
            sandbox.call("f", [1], {"m": 2}, World(), view())
        with pytest.raises(TypeError):
            sandbox.call("f", [object()], {}, World(), view())
        assert sandbox.call("f", [5], {}, World(), view()).value == 5


def test_an_action_is_a_string() -> None:
    assert "env.step takes an action as a string, not int" in str(error("def f(env):\n    env.step(3)"))


def test_chance_is_the_same_in_every_worker_but_not_in_every_call() -> None:
    source = """
import random
def f(env, n):
    return [random.random(), random.Random().random(), random.choice("abc"), list({"a", "b", "c", "d"})]
"""
    drawn = []
    for _ in range(2):
        with Sandbox(LIMITS) as sandbox:
            sandbox.load(source)
            drawn.append([sandbox.call("f", [n], {}, World(), view()).value for n in range(2)])
    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[0][1]


def test_modules_that_may_be_imported_work() -> None:
    outcome = call(
        """
from __future__ import annotations
import bisect, collections.abc, copy, dataclasses, enum, functools, heapq, itertools, json, math, operator
import random, re, statistics, string, typing

class Way(enum.Enum):
    LEFT = enum.auto()

@dataclasses.dataclass(order=True)
class Node:
    cost: float
    path: list[str] = dataclasses.field(compare=False)

class Pair(typing.NamedTuple):
    a: int

def f(env):
    heap = [3, 1]
    heapq.heapify(heap)
    return [
        math.floor(statistics.mean([1, 2])), re.sub("a", "b", "a"), json.loads("[1]"), heap[0], Way.LEFT.name,
        "ä".encode("latin-1").decode("latin-1"), "\\N{BULLET}", string.Template("$a").substitute(a=1),
        f"{3.14159:.2f}", bisect.bisect([1, 2], 1), copy.deepcopy([1]), "abc".casefold(),
        heapq.nsmallest(1, [Node(2, []), Node(1, ["x"])])[0].path, Pair(1).a,
        isinstance([], collections.abc.Sized),
    ]
"""
    )
    assert outcome.value == [1, "b", [1], 1, "LEFT", "ä", "•", "1", "3.14", 1, [1], "abc", ["x"], 1, True]


def test_code_runs_over_data_and_skills_and_its_last_expression_is_the_value() -> None:
    with Sandbox(LIMITS) as sandbox:
        sandbox.load("def near(env, a):\n    return a < 3\n_factor = 2")
        outcome = sandbox.run(
            "total = sum(x for x in episodes if near(None, x))\nprint(total)\n_factor * total",
            {"episodes": [1, 2, 5]},
        )
        assert (outcome.value, outcome.output, outcome.steps) == (6, "3\n", 0)
        assert sandbox.run("x = 1", {}).value is None
        assert sandbox.run("", {}).value is None
        with pytest.raises(SkillError, match="NameError: name 'total' is not defined"):
            sandbox.run("total", {})
        with pytest.raises(SkillError, match=r"syntax: invalid syntax .line 2.\nb c"):
            sandbox.run("a = 1\nb c", {})
        with pytest.raises(SkillError, match=r"crash: KeyError: 'x'\nline 2, in <module>: data..x.."):
            sandbox.run("# look\ndata['x']", {"data": {}})


def test_data_may_be_large() -> None:
    episodes = [{"text": "x" * 1_000, "number": n} for n in range(3_000)]
    with Sandbox(LIMITS) as sandbox:
        assert sandbox.run(
            "sum(e['number'] + len(e['text']) for e in episodes)", {"episodes": episodes}
        ).value == (sum(range(3_000)) + 3_000_000)


class Menu:
    """Makes a list of actions when asked, and counts how often that was."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> list[str]:
        self.asked += 1
        return [f"action {self.asked}"]


def test_a_function_in_a_view_is_called_if_the_skill_looks_and_once_a_view() -> None:
    menu = Menu()

    def serve(action: str) -> dict[str, Any]:
        return view(actions=menu)

    with Sandbox(LIMITS) as sandbox:
        sandbox.load(
            "def blind(env):\n    env.step('x')\n    env.step('x')\n"
            "def see(env):\n    first = [env.actions, env.actions]\n    env.step('x')\n    env.step('x')\n"
            "    return [*first, env.actions]\n"
        )
        assert sandbox.call("blind", [], {}, serve, view(actions=menu)).steps == 2
        assert menu.asked == 0
        outcome = sandbox.call("see", [], {}, serve, view(actions=menu))
    assert outcome.value == [["action 1"], ["action 1"], ["action 2"]]
    assert (outcome.steps, menu.asked) == (2, 2)


def test_what_a_function_in_a_view_raises_passes_through_and_the_sandbox_lives() -> None:
    def broken() -> list[str]:
        raise RuntimeError("the environment broke")

    with Sandbox(LIMITS) as sandbox:
        sandbox.load("def f(env):\n    return len(env.actions)")
        with pytest.raises(RuntimeError, match="the environment broke"):
            sandbox.call("f", [], {}, World(), view(actions=broken))
        assert sandbox.call("f", [], {}, World(), view()).value == 2


def test_a_call_keeps_its_thread_and_the_worker_on_one_core_and_gives_the_thread_back_its_own() -> None:
    before, during = os.sched_getaffinity(0), []
    with Sandbox(LIMITS) as sandbox:

        def serve(action: str) -> dict[str, Any]:
            assert sandbox.pid is not None
            during.append((os.sched_getaffinity(0), os.sched_getaffinity(sandbox.pid)))
            if action == "break":
                raise RuntimeError(action)
            return view()

        sandbox.load("def f(env, action):\n    env.step(action)")
        sandbox.call("f", ["go"], {}, serve, view())
        assert os.sched_getaffinity(0) == before
        with pytest.raises(RuntimeError):
            sandbox.call("f", ["break"], {}, serve, view())
    assert os.sched_getaffinity(0) == before
    assert len(during) == 2
    for host, worker in during:
        assert host == worker and len(host) == 1 and host <= before


def test_a_worker_that_computes_for_long_may_do_so_on_any_core() -> None:
    before, seen = os.sched_getaffinity(0), []
    code = "def f(env):\n    env.step('soon')\n    sum(range(30_000_000))\n    env.step('late')"
    with Sandbox(LIMITS) as sandbox:

        def serve(action: str) -> dict[str, Any]:
            seen.append(os.sched_getaffinity(sandbox.pid or 0))
            return view()

        sandbox.load(code)
        sandbox.call("f", [], {}, serve, view())
    assert len(seen[0]) == 1
    assert seen[1] == before


@pytest.mark.parametrize("name", ["sched_setaffinity", "sched_getaffinity"])
def test_a_system_that_forbids_to_choose_cores_is_served_all_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with Sandbox(LIMITS) as sandbox:
        sandbox.load("def f(env):\n    env.step('go')\n    return env.steps")
        monkeypatch.setattr(os, name, forbidden)
        assert sandbox.call("f", [], {}, World(), view()).value == 1
        monkeypatch.delattr(os, name)
        assert sandbox.call("f", [], {}, World(), view()).value == 1
        monkeypatch.undo()
        monkeypatch.setattr(process, "_this_core", lambda: -1)
        before = os.sched_getaffinity(0)
        assert sandbox.call("f", [], {}, World(), view()).value == 1
        assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("copy", ["copy", "deepcopy"])
def test_env_is_not_copied(copy: str) -> None:
    """Two that look at one menu would be told it once."""
    fault = error(f"import copy\ndef f(env):\n    return copy.{copy}(env).actions")
    assert fault.kind == "crash"
    assert "env is the one environment and cannot be copied" in fault.message


def test_what_serve_raises_passes_through_and_the_sandbox_lives() -> None:
    def serve(action: str) -> dict[str, Any]:
        raise RuntimeError("the environment broke")

    with Sandbox(LIMITS) as sandbox:
        sandbox.load("def f(env):\n    try:\n        env.step('x')\n    finally:\n        return 1")
        with pytest.raises(RuntimeError, match="the environment broke"):
            sandbox.call("f", [], {}, serve, view())
        assert sandbox.call("f", [], {}, World(), view()).value == 1


def test_a_worker_that_was_killed_is_replaced_with_its_skills() -> None:
    with Sandbox(LIMITS) as sandbox:
        sandbox.load("def f(env):\n    return 7")
        assert sandbox.pid is not None
        os.kill(sandbox.pid, signal.SIGKILL)
        psutil.wait_procs([psutil.Process(sandbox.pid)], timeout=5) if psutil.pid_exists(
            sandbox.pid
        ) else None
        assert sandbox.call("f", [], {}, World(), view()).value == 7


def test_several_sandboxes_work_at_once_and_outlive_the_thread_that_made_them() -> None:
    made: list[Sandbox] = []

    def make() -> None:
        made.append(Sandbox(LIMITS))
        made[-1].load("def f(env, n):\n    for _ in range(20):\n        env.step(str(n))\n    return n")

    makers = [threading.Thread(target=make) for _ in range(4)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    time.sleep(0.05)
    pids = [sandbox.pid for sandbox in made]
    worlds = [World() for _ in made]
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda n: made[n].call("f", [n], {}, worlds[n], view()), range(4)))
    assert [outcome.value for outcome in outcomes] == [0, 1, 2, 3]
    assert [world.actions for world in worlds] == [[str(n)] * 20 for n in range(4)]
    assert [sandbox.pid for sandbox in made] == pids
    for sandbox in made:
        sandbox.close()


def test_nothing_is_left_open(tmp_path: Path) -> None:
    me = psutil.Process()
    with Sandbox(LIMITS):
        pass
    gc.collect()
    before = me.num_fds(), len(me.children(recursive=True))
    for _ in range(3):
        with Sandbox(LIMITS) as sandbox:
            with pytest.raises(SkillError):
                sandbox.load("import os")
            sandbox.close()
            assert sandbox.run("1", {}).value == 1
    assert (me.num_fds(), len(me.children(recursive=True))) == before


def test_a_worker_dies_with_its_host() -> None:
    script = f"""
from agents.sandbox.host import Limits, Sandbox
sandbox = Sandbox(Limits(memory_mb=64, seconds=600))
sandbox.load("def f(env):\\n    while True:\\n        pass")
print(sandbox.pid, flush=True)
sandbox.call("f", [], {{}}, print, {view()!r})
"""
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        worker = psutil.Process(int(host.stdout.readline()))
        time.sleep(0.1)
        assert worker.is_running()
        host.kill()
        host.wait()
        assert psutil.wait_procs([worker], timeout=20) == ([worker], [])
