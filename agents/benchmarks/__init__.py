"""FIXED: what the agents play."""

import importlib

from agents.benchmarks.base import Benchmark
from harness.errors import Problem, Unavailable

BENCHMARKS = ("babyai", "crafter", "scienceworld")


def load_benchmark(name: str, server: str | None = None) -> Benchmark:
    """A benchmark by its name; with the address of a `server`, which BabyAI alone has, it is played there.

    Raises:
        Problem: there is none of that name.
        Unavailable: a library of it is missing.
    """
    if name not in BENCHMARKS:
        raise Problem(f"there is no benchmark {name!r}", remedy=f"choose one of: {', '.join(BENCHMARKS)}")
    try:
        module = importlib.import_module(f"agents.benchmarks.{name}")
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"the benchmark {name} needs the module {error.name!r}",
            remedy="install the extra `agents`: make .venv/ready",
        ) from error
    benchmark = module.BENCHMARK if server is None else module.BabyAI(server)
    assert isinstance(benchmark, Benchmark)
    return benchmark
