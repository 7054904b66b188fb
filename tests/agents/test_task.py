"""The test episodes of each class: fixed for all runs, as many of each task, from the test split alone."""

from collections import Counter

import pytest

from agents.benchmarks import BENCHMARKS, load_benchmark
from agents.benchmarks.base import Episode
from agents.task import TASKS, episodes, versions
from harness.files import canonical_json, sha256_bytes

COUNTS = {"babyai": (5, 20), "crafter": (1, 20), "scienceworld": (30, 2)}
DIGESTS = {
    "babyai": "35beaaaa0b8ae24995201cb31776f6667d2378f524f40c33939afc30cf69860e",
    "crafter": "1ffe34f8ec319ab10ba5ad3bf653f0b0511661856690192ec134f86db9aed835",
    "scienceworld": "d325081c2a5f2a6837f8c6b4b83ee6752f5e5e0af351829af61fc0c509beca20",
}
"""Of the episodes as canonical JSON: other ones would make another ruleset."""


def test_every_benchmark_is_a_class() -> None:
    assert tuple(TASKS) == BENCHMARKS
    assert {name: task.target for name, task in TASKS.items()} == {
        "babyai": 0.8, "crafter": 0.5, "scienceworld": 0.6,
    }  # fmt: skip


@pytest.mark.parametrize("name", TASKS)
def test_the_episodes_are_the_same_for_every_run(name: str) -> None:
    found, benchmark = episodes(name), load_benchmark(name)
    tasks, each = COUNTS[name]
    assert len(found) == len(set(found)) == tasks * each
    assert set(Counter(episode.task for episode in found).values()) == {each}
    for task, seed in found:
        assert seed in benchmark.seeds(task, "test")
        assert seed not in benchmark.seeds(task, "train") and seed not in benchmark.seeds(task, "valid")
    assert sha256_bytes(canonical_json(found).encode()) == DIGESTS[name]


def test_the_first_episodes_of_babyai() -> None:
    assert episodes("babyai")[:3] == [
        Episode("goto", 2040586), Episode("pickup", 2046918), Episode("open", 2078817),
    ]  # fmt: skip


def test_versions_name_what_decides_the_play(monkeypatch: pytest.MonkeyPatch) -> None:
    assert versions("babyai")["minigrid"] == "3.2.0"

    def missing(name: str) -> str:
        from importlib.metadata import PackageNotFoundError

        raise PackageNotFoundError(name)

    monkeypatch.setattr("agents.task.version", missing)
    assert set(versions("crafter").values()) == {"none"}
