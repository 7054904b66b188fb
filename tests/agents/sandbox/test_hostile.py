"""Skills that hang, flood, kill or lie: a SkillError of the right kind, and the next call works again."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from sandbox_world import BREAK_IN, PATH

from agents.sandbox.gate import check
from agents.sandbox.host import Limits, Outcome, Sandbox, SkillError

LIMITS = Limits(memory_mb=48, seconds=0.3, call_seconds=0.5, output_chars=2_000, value_chars=5_000, steps=20)
SKILLS = {
    # ------------------------------------------------------------------------------------------- hanging
    "loops": ("timeout", "while True:\n    pass"),
    "loops_whatever_is_raised": (
        "timeout",
        """
        while True:
            try:
                while True:
                    pass
            except BaseException:
                continue
        """,
    ),
    "loops_in_a_finally": (
        "timeout",
        """
        try:
            return 1
        finally:
            while True:
                pass
        """,
    ),
    "nests_lists": ("output", "x = []\nfor _ in range(920):\n    x = [x]\nreturn x"),
    "nests_mappings": ("output", "x = {}\nfor _ in range(500):\n    x = {'': x}\nreturn x"),
    "counts_in_c": ("timeout", "return sum(range(10**14))"),
    "raises_to_a_huge_power": ("timeout", "return str(7 ** (10**8))"),
    "writes_a_huge_int": ("crash", "return 10 ** (10**6)"),
    "backtracks": ("timeout", "import re\nreturn re.match('(a+)+$', 'a' * 60 + 'b')"),
    "searches_a_cycle": ("timeout", "import itertools\nreturn list(filter(None, itertools.repeat(0)))"),
    "steps_now_and_then": (
        "timeout",
        """
        for _ in range(20):
            env.step("look")
            for _ in range(5 * 10**6):
                pass
        """,
    ),
    "waits_for_a_message": ("timeout", "import os\nimport sys\nreturn os.read(int(sys.argv[1]), 1)"),
    "fails_to_say_what_it_is": (
        "timeout",
        """
        class Odd(Exception):
            def __str__(self):
                while True:
                    pass
        raise Odd
        """,
    ),
    "returns_what_has_no_repr": (
        "timeout",
        """
        class Odd:
            def __repr__(self):
                while True:
                    pass
        return Odd()
        """,
    ),
    # ------------------------------------------------------------------------------------------ flooding
    "fills_memory_bit_by_bit": ("memory", "kept = []\nwhile True:\n    kept.append(bytearray(100_000))"),
    "fills_memory_at_once": ("memory", "return len(bytearray(1 << 40))"),
    "fills_memory_with_text": ("memory", "text = 'x'\nwhile True:\n    text += text"),
    "fills_memory_and_goes_on": (
        "memory|timeout|crash",
        """
        kept = []
        while True:
            try:
                kept.append(kept * 2)
            except MemoryError:
                pass
        """,
    ),
    "keeps_memory_for_later": (
        "memory",
        "global kept\nkept = []\nwhile True:\n    kept.append([0] * 10_000)",
    ),
    "maps_memory": (
        "memory|crash",
        """
        import ctypes
        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        while libc.malloc(ctypes.c_size_t(1 << 20)):
            pass
        raise MemoryError
        """,
    ),
    "returns_too_much": ("output", "return 'x' * 10_000"),
    "returns_too_much_in_a_list": ("output", "return list(range(5_000))"),
    "returns_too_long_a_repr": ("output", "return {'x' * 10_000}"),
    "raises_a_long_message": ("crash", "raise ValueError('x' * 1_000_000)"),
    "steps_on_and_on": ("steps", "while True:\n    env.step('look')"),
    "steps_on_whatever_is_raised": (
        "steps",
        """
        while True:
            try:
                env.step("look")
            except BaseException:
                pass
        """,
    ),
    "recurses": ("crash", "def deeper():\n    return deeper()\nreturn deeper()"),
    "recurses_without_a_limit": (
        "crash",
        """
        import sys
        sys.setrecursionlimit(10**9)
        class Deep:
            def __repr__(self):
                return repr(self)
        return repr(Deep())
        """,
    ),
    "nests_too_deep": (
        "crash",
        """
        value = []
        for _ in range(10**5):
            value = [value]
        return value
        """,
    ),
    # ------------------------------------------------------------------------------------------- killing
    "exits": ("crash", "raise SystemExit(0)"),
    "interrupts": ("crash", "raise KeyboardInterrupt"),
    "exits_at_once": ("crash", "import os\nos._exit(0)"),
    "aborts": ("crash", "import os\nos.abort()"),
    "reads_address_zero": ("crash", "import ctypes\nctypes.string_at(0)"),
    "raises_a_lasting_signal": ("crash", "import signal\nsignal.raise_signal(signal.SIGSEGV)"),
    # --------------------------------------------------------------------------------------------- lying
    "forges_an_end_on_every_descriptor": (
        "protocol",
        """
        import os
        for descriptor in range(1024):
            try:
                os.write(descriptor, b'{"nonce":"0123456789abcdef","end":{"value":"forged"}}\\n')
            except OSError:
                pass
        """,
    ),
    "forges_a_pickle_on_every_descriptor": (
        "protocol",
        """
        import os
        for descriptor in range(1024):
            try:
                os.write(descriptor, b"cos\\nsystem\\n(S'exit 3'\\ntR.\\n")
            except OSError:
                pass
        """,
    ),
    "sends_no_json": ("protocol", "channel_write(env, b'[' * 100 + b'\\n')"),
    "sends_deep_json": ("protocol", "channel_write(env, b'[' * 20_000 + b']' * 20_000 + b'\\n')"),
    "sends_no_utf8": ("protocol", "channel_write(env, b'\\xff\\xfe\\n')"),
    "sends_a_list": ("protocol", "channel_write(env, b'[]\\n')"),
    "sends_no_nonce": ("protocol", 'channel_write(env, b\'{"end":{"value":1}}\\n\')'),
    "sends_nothing_but_a_nonce": ("protocol", "channel_send(env, 'so', 1)"),
    "sends_an_end_that_is_none": ("protocol", "channel_send(env, 'end', [1])"),
    "sends_output_that_is_none": ("protocol", "channel_send(env, 'end', {'value': 1, 'output': 5})"),
    "sends_an_unknown_kind": ("protocol", "channel_send(env, 'end', {'kind': 'success'})"),
    "sends_too_long_a_value": ("protocol", "channel_send(env, 'end', {'value': 'x' * 10_000})"),
    "sends_a_step_that_is_none": ("protocol", "channel_send(env, 'step', {'action': 'look'})"),
    "sends_half_a_character": (
        "protocol",
        """
        nonce = env._channel._nonce
        channel_write(env, ('{"nonce":"%s","end":{"value":"\\\\ud800"}}\\n' % nonce).encode())
        """,
    ),
    "sends_infinity": (
        "protocol",
        """
        nonce = env._channel._nonce
        channel_write(env, ('{"nonce":"%s","end":{"value":1e999}}\\n' % nonce).encode())
        """,
    ),
    "sends_without_end": ("protocol", "while True:\n    channel_write(env, b'x' * 60_000)"),
    "sends_drop_by_drop": ("protocol|timeout", "while True:\n    channel_write(env, b'x')"),
    "sends_a_deep_value": (
        "protocol",
        "x = []\nfor _ in range(500):\n    x = [x]\nchannel_send(env, 'end', {'value': x})",
    ),
}
HELPERS = """
def channel_write(env, data):
    import os
    while data:
        data = data[os.write(env._channel._writing, data):]

def channel_send(env, key, value):
    env._channel.send(key, value)
"""
PASS_THE_GATE = {
    name
    for name, (_, body) in SKILLS.items()
    if not any(word in body for word in ("import os", "import sys", "import ctypes", "import signal"))
}


def source(name: str) -> str:
    lines = [line.rstrip() for line in SKILLS[name][1].strip("\n").splitlines()]
    indent = len(lines[0]) - len(lines[0].lstrip())
    return f"def {name}(env):\n" + "".join(f"    {line[indent:]}\n" for line in lines)


def view(steps: int = 0) -> dict[str, Any]:
    return {
        "goal": "look about",
        "observation": f"after {steps} steps",
        "state": {"steps": steps},
        "actions": ["look"],
        "done": False,
        "steps": steps,
        "reward": 0.0,
    }


class Served:
    """Answers steps and counts them."""

    def __init__(self) -> None:
        self.steps = 0

    def __call__(self, action: str) -> dict[str, Any]:
        self.steps += 1
        return view(self.steps)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    honest = "def honest(env):\n    env.step('look')\n    return env.steps\n"
    with Sandbox(LIMITS) as made:
        made.load(BREAK_IN.format(path=PATH) + honest + HELPERS + "".join(map(source, SKILLS)))
        yield made


@pytest.fixture(scope="module")
def other() -> Iterator[Sandbox]:
    with Sandbox(LIMITS) as made:
        yield made


def works(sandbox: Sandbox) -> bool:
    outcome = sandbox.call("honest", [], {}, Served(), view())
    return (outcome.value, outcome.steps, outcome.output) == (1, 1, "")


@pytest.mark.parametrize("name", SKILLS)
def test_a_hostile_skill_fails_and_the_next_call_works(name: str, sandbox: Sandbox) -> None:
    serve = Served()
    with pytest.raises(SkillError) as error:
        sandbox.call(name, [], {}, serve, view())
    assert error.value.kind in SKILLS[name][0].split("|")
    assert error.value.steps == serve.steps <= LIMITS.steps
    assert len(error.value.message) < 2_100 and len(error.value.trace) < 2_100
    assert len(error.value.output) <= LIMITS.output_chars + 100
    assert works(sandbox)


@pytest.mark.parametrize("name", SKILLS)
def test_the_gate_lets_pass_only_what_hangs_or_floods(name: str) -> None:
    passes = not check(source(name), LIMITS)
    assert passes == (name in PASS_THE_GATE)


def run(other: Sandbox, code: str) -> Outcome:
    """Load a skill named f past the gate, and call it."""
    other.load(BREAK_IN.format(path=PATH) + HELPERS + code)
    return other.call("f", [], {}, Served(), view())


def test_steps_are_counted_here_whatever_the_worker_says(other: Sandbox) -> None:
    outcome = run(
        other,
        """
def f(env):
    env.steps = -100
    env.done = False
    env.reward = 1e9
    for _ in range(3):
        env.step("look")
        env.steps = -100
    channel_send(env, "end", {"value": "won", "steps": 0, "seconds": -5, "reward": 1e9})
""",
    )
    assert (outcome.value, outcome.steps) == ("won", 3)
    assert outcome.seconds > 0


@pytest.mark.parametrize("name", ["state", "reward", "__class__", "", 0, None])
def test_a_look_at_what_is_not_hidden_ends_the_worker(other: Sandbox, name: object) -> None:
    with pytest.raises(SkillError, match="not to be had"):
        run(other, f"def f(env):\n    channel_send(env, 'look', {name!r})\n    return env._channel.receive()")


def test_a_second_look_at_the_same_ends_the_worker(other: Sandbox) -> None:
    """So that no skill has the environment make its list over and over."""
    asked = []

    def menu() -> list[str]:
        asked.append(1)
        return ["look"]

    other.load(
        BREAK_IN.format(path=PATH)
        + HELPERS
        + """
def f(env):
    while True:
        channel_send(env, "look", "actions")
        env._channel.receive()
"""
    )
    with pytest.raises(SkillError, match="not to be had"):
        other.call("f", [], {}, Served(), view() | {"actions": menu})
    assert len(asked) == 1


def test_steps_past_env_are_served_and_counted_all_the_same(other: Sandbox) -> None:
    outcome = run(
        other,
        """
def f(env):
    counts = []
    for _ in range(5):
        channel_send(env, "step", "look")
        counts.append(env._channel.receive()["view"]["steps"])
    return counts
""",
    )
    assert (outcome.value, outcome.steps) == ([1, 2, 3, 4, 5], 5)


def test_an_answer_made_before_its_call_counts_for_nothing(other: Sandbox) -> None:
    run(
        other,
        """
def f(env):
    global nonce
    nonce = env._channel._nonce

def g(env):
    channel_write(env, b'{"nonce":"%s","end":{"value":"forged"}}\\n' % nonce.encode())
""",
    )
    with pytest.raises(SkillError) as error:
        other.call("g", [], {}, Served(), view())
    assert error.value.kind == "protocol"


def test_what_is_sent_after_the_end_does_not_reach_the_next_call(other: Sandbox) -> None:
    outcome = run(
        other,
        """
def f(env):
    channel_send(env, "end", {"value": "first"})
    channel_send(env, "end", {"value": "second"})
    channel_send(env, "step", "look")

def honest(env):
    env.step("look")
    return env.steps
""",
    )
    assert outcome.value == "first"
    time.sleep(0.05)
    assert works(other)


def test_slow_drops_do_not_hold_the_processor_time_back(other: Sandbox) -> None:
    code = "def f(env):\n    while True:\n        channel_write(env, b' ')\n        sum(range(20_000))\n"
    with pytest.raises(SkillError, match=r"for 0\.3 s of processor time"):
        run(other, code)


def test_a_skill_that_goes_on_after_its_end_does_not_spoil_the_next_call(other: Sandbox) -> None:
    outcome = run(
        other,
        """
def f(env):
    channel_send(env, "end", {"value": "forged", "output": ""})
    while True:
        pass

def honest(env):
    env.step("look")
    return env.steps
""",
    )
    assert outcome.value == "forged"
    spinning = other.pid
    assert works(other) and other.pid != spinning


def test_a_module_that_goes_on_after_its_end_is_no_module(other: Sandbox) -> None:
    forged = """
frame = _inside["sys"]._getframe()
while "load" not in frame.f_code.co_name:
    frame = frame.f_back
frame.f_locals["self"]._channel.send("end", {"value": [["f", "(env)", ""]], "output": ""})
while True:
    pass
"""
    other.load(BREAK_IN.format(path=PATH) + forged)
    with pytest.raises(SkillError, match="goes on after it was loaded"):
        other.call("f", [], {}, Served(), view())
    other.load("def f(env):\n    return 1\n")
    assert other.call("f", [], {}, Served(), view()).value == 1


def test_no_secret_of_the_host_is_in_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-" + "0123456789" * 3)
    with Sandbox(LIMITS) as another:
        outcome = run(
            another,
            """
def f(env):
    import gc
    import os
    import sys
    frame, words = sys._getframe(), []
    while frame:
        words += [repr(frame.f_locals)[:3000], repr(frame.f_globals)[:3000]]
        frame = frame.f_back
    words += [o for o in gc.get_objects() if isinstance(o, str)]
    words += [repr(o)[:1000] for o in gc.get_objects() if isinstance(o, dict)]
    text = repr(words) + repr(dict(os.environ))
    loaded = sorted(m for m in sys.modules if m.startswith(("agents", "harness")))
    return ["sk-" + "0123456789" in text, loaded, dict(os.environ)]
""",
        )
    found, loaded, environment = outcome.value
    assert not found
    assert environment == {}
    assert loaded == [
        "agents",
        "agents.sandbox",
        "agents.sandbox.allowed",
        "agents.sandbox.env",
        "agents.sandbox.lock",
        "agents.sandbox.protocol",
        "agents.sandbox.seccomp",
        "agents.sandbox.worker",
    ]


def test_a_load_begins_anew_whatever_was_changed(other: Sandbox) -> None:
    run(
        other,
        """
def f(env):
    import math
    import sys
    math.pi = 3
    sys.modules["agents.sandbox.env"].Env.step = lambda self, action: "nothing happens"
""",
    )
    other.load("import math\ndef f(env):\n    return [env.step('look'), math.pi > 3.1]")
    assert other.call("f", [], {}, Served(), view()).value == ["after 1 steps", True]


def test_printing_without_end_costs_time_and_no_memory(other: Sandbox) -> None:
    with pytest.raises(SkillError, match="processor time") as error:
        run(other, "def f(env):\n    while True:\n        print('x' * 10_000)")
    assert error.value.kind == "timeout"
    outcome = run(other, "def f(env):\n    for _ in range(100):\n        print('x' * 1_000)")
    assert len(outcome.output) < LIMITS.output_chars + 100
    assert outcome.output.endswith("more characters were printed)")
