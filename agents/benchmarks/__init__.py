"""FIXED: what the agents play."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager

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
    with _needing(name):
        module = importlib.import_module(f"agents.benchmarks.{name}")
    benchmark = module.BENCHMARK if server is None else module.BabyAI(server)
    assert isinstance(benchmark, Benchmark)
    return benchmark


def check_playable(benchmark: Benchmark) -> None:
    """See that environments can be made.

    Raises:
        Problem: a library, Java or an answer of the benchmark's server is missing.
    """
    with _needing(benchmark.name):
        benchmark.make().close()


@contextmanager
def _needing(name: str) -> Iterator[None]:
    """Unavailable where a benchmark's library is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"the benchmark {name} needs the module {error.name!r}",
            remedy="install the extra `agents`: make .venv/ready",
        ) from error
