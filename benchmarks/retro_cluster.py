"""Two workers on a Ray cluster against two processes: how fast they are, and what a lost node costs.

    python -m benchmarks.retro_cluster --rounds 30

Both nodes of the cluster are of this machine. A search of Quarterstep's first level goes a round in one pool
and one in the other, and must be the same in both. Then the node that the search does not run on is killed.
"""

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from harness.errors import run_command
from harness.track import ROOT
from retro.config import read_config
from retro.marathon.cluster import open_cluster
from retro.search.pool import Pool, open_pool
from retro.search.segment import SegmentSearch

SPEC = "quarterstep"
START = ((0, 30), (8, 10), (0, 20))
"""From power-on into level-1."""


@contextmanager
def nodes() -> Iterator[tuple[Any, Any]]:
    """A cluster of two nodes, and the second of them."""
    os.environ |= {"PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False})
    try:
        yield cluster, cluster.add_node()
    finally:
        cluster.shutdown()


class Measured:
    """A search in a pool, and what its rounds took."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.search = SegmentSearch(pool.arrive(START)[0], read_config("quick").settings, "benchmark")
        self.search.open(pool)
        self.rates: list[float] = []
        self.shares: list[float] = []

    def round(self) -> float:
        """Seconds that one round took."""
        frames, began, spent = self.search.frames, time.perf_counter(), time.process_time()
        self.search.round(self.pool)
        took = time.perf_counter() - began
        self.rates.append((self.search.frames - frames) / took)
        self.shares.append((time.process_time() - spent) / took)
        return took

    def found(self) -> tuple[object, ...]:
        search = self.search
        return list(search.archive.nodes.values()), search.solutions, search.seen, search.frames


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    rounds: int = parser.parse_args().rounds
    with (
        nodes() as (cluster, second),
        open_pool(SPEC, 2) as processes,
        open_cluster(SPEC, 2, cluster.address) as actors,
    ):
        both = {"processes": Measured(processes), "Ray actors": Measured(actors)}
        for _ in range(rounds):
            for one in both.values():
                one.round()
        table = Table(title=f"Two workers, medians of {rounds} rounds", title_justify="left")
        for column in ("", "frames per s", "main process, of a core"):
            table.add_column(column, justify="right" if column else "left")
        for name, one in both.items():
            table.add_row(name, f"{median(one.rates):,.0f}", f"{median(one.shares):.1%}")
        Console().print(table)
        cluster.remove_node(second, allow_graceful=False)
        took = [one.round() for one in both.values()][1]
        print(f"The round in which a node was lost took {took:.0f} s")
        results = [one.found() for one in both.values()]
        print("Both searches are the same" if results[0] == results[1] else "The searches differ")


if __name__ == "__main__":
    run_command(main)
