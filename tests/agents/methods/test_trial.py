"""Whether functions may be kept, tried in a real sandbox and a real environment."""

from collections.abc import Iterator

import pytest
from scripted_replies import LIMITS, oracle_episode

from agents.benchmarks.babyai import BENCHMARK
from agents.benchmarks.base import Episode
from agents.memory.functions import module_source, read_functions
from agents.methods.trial import Practice, load_faults, practise
from agents.sandbox.host import Sandbox

WALK = '''
def walk(env, steps):
    """Walk."""
    for _ in range(steps):
        env.step("go forward")

def fail(env):
    """Fail after a step."""
    env.step("turn left")
    return 1 / 0

def idle(env):
    """Do nothing."""

def run(env):
    """Never stop."""
    while True:
        env.step("turn left")
'''


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(LIMITS) as sandbox:
        yield sandbox


def faults(source: str, sandbox: Sandbox) -> list[str]:
    functions = read_functions(source)
    return load_faults(functions, module_source(functions), sandbox)


def test_functions_without_fault_are_loaded(sandbox: Sandbox) -> None:
    assert faults(WALK, sandbox) == []
    with pytest.raises(RuntimeError, match="served"):
        sandbox.call("walk", [1], {}, refuse, VIEW)


VIEW = {"goal": "", "observation": "", "state": {}, "actions": [], "done": False, "steps": 0, "reward": 0.0}


def refuse(action: str) -> dict[str, object]:
    raise RuntimeError("served")


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ('def f(env):\n    "F."\n    import os', "f, line 3: "),
        ('def f(env):\n    "F."\n    return eval("1")', "f, line 3: "),
        ('def f(env, x=1 / 0):\n    "F."', "the functions do not load: load: ZeroDivisionError"),
        ('@missing\ndef f(env):\n    "F."', "the functions do not load: load: NameError"),
        ('@functools.cache\ndef f(env):\n    "F."', "f is no function once it is loaded"),
        ('def f(env):\n    "F."\n    return "' + "x" * 100_000 + '"', "f, the source has 1000"),
    ],
)
def test_faults_are_told(source: str, fault: str, sandbox: Sandbox) -> None:
    found = faults(source, sandbox)
    assert len(found) == 1
    assert found[0].startswith(fault)


def test_a_module_that_is_too_long_as_a_whole_is_refused(sandbox: Sandbox) -> None:
    functions = read_functions('def f(env):\n    "F."')
    found = load_faults(functions, module_source(functions) + "#" * 100_000, sandbox)
    assert found[0].startswith("the functions do not load: load: the source has 100")


@pytest.fixture
def loaded(sandbox: Sandbox) -> Sandbox:
    assert faults(WALK, sandbox) == []
    return sandbox


def test_a_replay_that_reaches_the_goal(loaded: Sandbox) -> None:
    episode = oracle_episode("goto", 9)
    replay = ["turn left", "skill walk(4)", "Turn Left", "go forward", "turn right", "turn right"]
    assert episode.actions == ["turn left", *["go forward"] * 4, "turn left", "go forward", "turn right"]
    practice = practise(BENCHMARK.make(), loaded, episode.episode, replay, ["walk"])
    assert practice == Practice(True, 8, ("walk",), ())


def test_the_word_skill_may_be_left_out(loaded: Sandbox) -> None:
    practice = practise(BENCHMARK.make(), loaded, Episode("goto", 9), ["walk(steps=2)"], ["walk"])
    assert practice == Practice(False, 2, ("walk",), ())


@pytest.mark.parametrize(
    ("entry", "fault", "steps"),
    [
        ("skill fail()", "it failed after 1 steps: crash: ZeroDivisionError", 1),
        ("skill idle()", "it took no step", 0),
        ("skill fly()", "it failed after 0 steps: missing", 0),
        ("skill walk(2, 3)", "it failed after 0 steps: crash: TypeError", 0),
        ("skill run()", "it failed after 40 steps: steps", 40),
        ("skill walk(", "the arguments of walk: ", 0),
        ("", "nothing stands behind", 0),
    ],
)
def test_a_replay_ends_at_its_first_fault(entry: str, fault: str, steps: int, loaded: Sandbox) -> None:
    practice = practise(BENCHMARK.make(), loaded, Episode("goto", 9), [entry, "turn left"], ["walk"])
    assert not practice.success
    assert practice.steps == steps
    assert len(practice.faults) == 1
    assert practice.faults[0].startswith(f"replay, entry 1 ({entry}): {fault}")


def test_a_replay_ends_with_its_episode(loaded: Sandbox) -> None:
    practice = practise(BENCHMARK.make(), loaded, Episode("goto", 3), ["drop"] * 200, [])
    assert practice == Practice(False, 128, (), ())


def test_a_skill_that_goes_on_after_the_goal_is_stopped(loaded: Sandbox) -> None:
    practice = practise(BENCHMARK.make(), loaded, Episode("goto", 3), ["turn right", "skill run()"], [])
    assert practice == Practice(True, 1, (), ())
    practice = practise(BENCHMARK.make(), loaded, Episode("goto", 3), ["skill run()"], [])
    assert practice == Practice(True, 3, ("run",), ())
