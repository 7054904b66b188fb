"""The page of the methods against the code: names, settings, and the function that it shows."""

import re

import pytest
from scripted_replies import LIMITS

from agents.benchmarks.babyai import BENCHMARK
from agents.benchmarks.base import Episode
from agents.memory.functions import module_source, read_functions
from agents.methods import METHODS
from agents.methods.answers import blocks
from agents.methods.base import MethodSettings
from agents.methods.serving import Served, view
from agents.methods.trial import load_faults
from agents.sandbox.host import Sandbox
from harness.track import ROOT

TEXT = (ROOT / "docs" / "agents_methods.md").read_text()


def test_every_setting_has_its_default() -> None:
    told = dict(re.findall(r"^\| `(\w+)` \| (\w+) \| [^|]*\|$", TEXT, re.MULTILINE))
    defaults = MethodSettings().model_dump()
    assert told == {name: str(value).lower() for name, value in defaults.items()}


def test_every_method_has_its_row() -> None:
    assert re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \| [^|]+ \| [^|]+ \|$", TEXT, re.MULTILINE) == [
        *METHODS
    ]


@pytest.mark.parametrize(("kind", "seed", "led_to"), [("ball", 3, (True, 1)), ("door", 9, (False, 4))])
def test_the_function_that_is_shown_works(kind: str, seed: int, led_to: object) -> None:
    functions = read_functions(blocks(TEXT, "python")[0])
    environment = BENCHMARK.make()
    environment.reset(Episode("goto", seed))
    with Sandbox(LIMITS) as sandbox:
        assert load_faults(functions, module_source(functions), sandbox) == []
        outcome = sandbox.call("face", [kind], {}, Served(environment), view(environment))
    assert (outcome.value, outcome.steps) == led_to
