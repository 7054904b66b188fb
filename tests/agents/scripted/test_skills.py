"""What the scripted programmer writes passes the gate, loads in the sandbox, and does what it says."""

from collections.abc import Iterator

import pytest

from agents.benchmarks import load_benchmark
from agents.benchmarks.base import Episode
from agents.memory.functions import module_source, read_functions
from agents.methods.trial import load_faults, practise
from agents.sandbox.host import Sandbox
from agents.scripted.missions import read_mission
from agents.scripted.sources import renamed, sources

SKILLS = ["go_to", "pick_up", "open_door", "put_next", "look_around"]


def whole(module: str) -> str:
    return module_source(read_functions("\n\n".join(sources(module).values())))


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as made:
        yield made


@pytest.mark.parametrize(
    ("module", "public"), [("babyai_skills", SKILLS), ("crafter_skills", ["gather", "place", "make"])]
)
def test_functions_may_be_kept(module: str, public: list[str], sandbox: Sandbox) -> None:
    functions = read_functions("\n\n".join(sources(module).values()))
    assert [function.name for function in functions if function.public] == public
    assert load_faults(functions, whole(module), sandbox) == []
    assert all(len(function.source) < 6_000 for function in functions)


def test_a_function_is_renamed_in_its_head_alone() -> None:
    source = sources("babyai_skills")["_search_at_first"]
    assert renamed(source, "_search_at_first", "_search").startswith("def _search(env, seen, kind, color):")


@pytest.mark.parametrize(
    ("task", "least"),
    [("goto", 19), ("pickup", 19), ("open", 20), ("putnext", 19), ("pick_up_seq_go_to", 19)],
)
def test_missions_are_done_by_their_skills(task: str, least: int, sandbox: Sandbox) -> None:
    sandbox.load(whole("babyai_skills"))
    environment = load_benchmark("babyai").make()
    reached = steps = 0
    for seed in range(20):
        episode = Episode(task, seed)
        environment.reset(episode)
        calls = [part.call for part in read_mission(environment.goal)]
        practice = practise(environment, sandbox, episode, calls, SKILLS)
        reached += practice.success
        steps += practice.steps
        assert not practice.faults
    assert reached >= least and steps < 20 * 20


def test_wood_is_gathered_and_made_into_a_pickaxe(sandbox: Sandbox) -> None:
    sandbox.load(whole("crafter_skills"))
    environment = load_benchmark("crafter").make()
    calls = [
        'skill gather("tree", "wood", 5)',
        'skill place("place table")',
        'skill make("make wood pickaxe")',
    ]
    unlocked = []
    for seed in range(3):
        practise(environment, sandbox, Episode("survive", seed), calls, ["gather", "place", "make"])
        unlocked.append(set(environment.state()["achievements"]))
    assert sum({"collect wood", "place table", "make wood pickaxe"} <= one for one in unlocked) >= 2
