"""What the sandbox costs: starting a worker, a skill's environment step, a call, and loading a module.

    python -m benchmarks.agents_sandbox [--rounds 20] [--steps 2000] [--unsafe]

A step is what a skill waits for beside the environment: its action goes to the host, a view comes back. The
environment here answers with a view that was made before, so that nothing but the sandbox is timed, with the
clock, from one time that the host is asked to the next. Views are a bare one, and two as long as those of
BabyAI and ScienceWorld. The last row has a look at `env.actions` in each step, a menu of 1,100 as in
ScienceWorld. Rows are medians, and the time that nine of ten stay below; other programs on the machine raise
both.
"""

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from statistics import median, quantiles
from typing import Any

from rich.console import Console
from rich.table import Table

from agents.sandbox.call import shown
from agents.sandbox.host import Limits, Sandbox
from agents.sandbox.protocol import json_text

SKILL = '''
def act(env, times):
    """Take a step again and again."""
    for _ in range(times):
        env.step("forward")


def look(env, times):
    """The same with a look at the actions each time."""
    for _ in range(times):
        env.step("forward")
        env.actions
'''


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agents_sandbox",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=20, help="of everything")
    parser.add_argument("--steps", type=int, default=2_000, help="of a call")
    parser.add_argument("--unsafe", action="store_true", help="without the lock, to see what it costs")
    arguments = parser.parse_args()
    start, own, load, call, looks = [], [], [], [], []
    steps: dict[str, list[float]] = {name: [] for name in views()}
    for _ in range(arguments.rounds):
        begun = time.perf_counter()
        with Sandbox(Limits(steps=arguments.steps), unsafe=arguments.unsafe) as sandbox:
            start.append(time.perf_counter() - begun)
            own.append(processor_time(sandbox))
            sandbox.run("0", {})  # a worker that has run something is replaced when a module is loaded
            load.append(clock(lambda: sandbox.load(SKILL)))
            call.append(clock(lambda: sandbox.call("act", [0], {}, serve_nothing, views()["bare"])))
            for name, view in views().items():
                steps[name] += step_times(sandbox, "act", view, arguments.steps)
            looks += step_times(sandbox, "look", views()["bare"] | {"actions": MENU.copy}, arguments.steps)
            confinement = sandbox.confinement
    table = Table("", "median", "9 of 10 below", title=f"confinement: {confinement}")
    table.add_row("start of a worker", *in_words(start))
    table.add_row("start of a worker, its processor time", *in_words(own))
    table.add_row("load of a module, in a new worker", *in_words(load))
    table.add_row("call of no step", *in_words(call))
    for name, times in steps.items():
        size = len(json_text(shown(views()[name])[0]))
        table.add_row(f"step, view {name} ({size:,} characters)", *in_words(times))
    menu = f"step, view bare, and a look at {len(MENU):,} actions ({len(json_text(MENU)):,} characters)"
    table.add_row(menu, *in_words(looks))
    Console(width=100).print(table)


def views() -> dict[str, dict[str, Any]]:
    """What the host answers, by name."""
    bare = {
        "goal": "",
        "observation": "",
        "state": {},
        "actions": list,
        "done": False,
        "steps": 0,
        "reward": 0.0,
    }
    thing = {"kind": "ball", "color": "red", "forward": 3, "right": -1}
    babyai = bare | {
        "goal": "go to the red ball",
        "observation": "You see a red ball three steps forward and one step to the left. " * 6,
        "state": {"things": [thing] * 8, "carrying": None, "facing": "wall"},
    }
    scienceworld = babyai | {
        "state": {"things": [thing] * 8, "seen": "a door to the kitchen (closed). " * 50}
    }
    return {"bare": bare, "as BabyAI's": babyai, "as ScienceWorld's": scienceworld}


MENU = [f"move orange to box {number:4}" for number in range(1_100)]


def step_times(sandbox: Sandbox, skill: str, view: dict[str, Any], times: int) -> list[float]:
    """Seconds between one time that a step is asked for and the next."""
    asked = []

    def serve(action: str) -> dict[str, Any]:
        asked.append(time.perf_counter())
        return view

    sandbox.call(skill, [times], {}, serve, view)
    return [later - earlier for earlier, later in pairwise(asked)]


def processor_time(sandbox: Sandbox) -> float:
    """Seconds that the worker has used."""
    assert sandbox.pid is not None
    return time.clock_gettime(~sandbox.pid << 3 | 2)  # Linux's clock of another process


def serve_nothing(action: str) -> dict[str, Any]:
    raise AssertionError(action)


def clock(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def in_words(seconds: list[float]) -> tuple[str, str]:
    middle, high = median(seconds), quantiles(seconds, n=10)[-1]
    scale, unit = (1e3, "ms") if middle > 1e-3 else (1e6, "µs")
    return f"{middle * scale:.1f} {unit}", f"{high * scale:.1f} {unit}"


if __name__ == "__main__":
    main()
