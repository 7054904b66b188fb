"""FIXED: a segment's search on disk, so that it goes on after a restart as if nothing had happened.

The file is an .npz of plain arrays and one JSON text; nothing in it is executed. It is written whole or not
at all, and carries a checksum over all of it.
"""

import io
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from harness.errors import Problem
from harness.files import canonical_json, parse_json, read_bytes, write_atomic
from retro.search.archive import Node, Runs
from retro.search.segment import SegmentSearch, Solution
from retro.search.settings import Settings
from retro.search.world import Beginning

_VERSION = 3
_MAGIC = b"retro segment\n"
_COUNTS = (
    "seed",
    "first",
    "rounds",
    "frames",
    "improved_at",
    "found_at",
    "deaths",
    "transit",
    "mode_frames",
    "shaved",
    "ending",
)
_REMEDY = "remove the file: only this segment's search begins anew"


def save_search(path: Path, search: SegmentSearch) -> None:
    """Write all that a search knows."""
    archive = search.archive
    nodes = list(archive.nodes.values())
    lost = (0,) * len(search.beginning.cell)
    solutions = search.solutions
    blobs = [node.state for node in nodes] + [solution.into.state for solution in solutions]
    runs = [node.runs for node in nodes] + [solution.runs for solution in solutions]
    arrays: dict[str, NDArray[Any]] = {
        "nodes": np.array(
            [
                (n.index, n.parent, n.frames, n.novelty, n.visits, n.expanded, n.cell is not None)
                for n in nodes
            ],
            np.int64,
        ),
        "rewards": np.array([node.reward for node in nodes], np.float64),
        "cells": np.array([node.cell or lost for node in nodes], np.int64),
        "run_counts": np.array([len(run) for run in runs], np.int64),
        "runs": np.array([pair for run in runs for pair in run], np.int64).reshape(-1, 2),
        "blob_sizes": np.array([len(blob) for blob in blobs], np.int64),
        "blobs": np.frombuffer(b"".join(blobs), np.uint8),
        "seen": np.array(sorted(search.seen), np.int64).reshape(-1, 2),
    }
    meta = {
        "version": _VERSION,
        "beginning": _beginning_meta(search.beginning),
        "settings": asdict(search.settings),
        "counts": {name: getattr(search, name) for name in _COUNTS},
        "solutions": [{"frames": s.frames, "into": _beginning_meta(s.into)} for s in solutions],
        "next_index": archive.next_index,
        "dropped": archive.dropped,
        "beaten": list(archive.beaten.items()),
    }
    arrays["meta"] = np.frombuffer(canonical_json(meta).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    content = buffer.getvalue()
    write_atomic(path, _MAGIC + xxhash.xxh3_128_digest(content) + content)


def load_search(path: Path, beginning: Beginning, settings: Settings) -> SegmentSearch | None:
    """Read a search back, to go on with `settings`; None where the file is of another segment's.

    A search that was cut off goes on if the settings allow more than before.

    Raises:
        Problem: the file is cut short or corrupt.
    """
    content = read_bytes(path)
    body = content[len(_MAGIC) + 16 :]
    if not content.startswith(_MAGIC) or xxhash.xxh3_128_digest(body) != content[len(_MAGIC) :][:16]:
        raise Problem("cut short or corrupt", file=path, remedy=_REMEDY)
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
            return _rebuild(dict(arrays), path, beginning, settings)
    except Problem:
        raise
    except Exception as error:  # whatever numpy and zipfile say to what is no archive of arrays
        raise Problem(f"no saved search: {error}", file=path, remedy=_REMEDY) from error


def _rebuild(
    arrays: dict[str, NDArray[Any]], path: Path, beginning: Beginning, settings: Settings
) -> SegmentSearch | None:
    meta = parse_json(arrays["meta"].tobytes(), path, 1)
    began = meta["beginning"]
    if meta["version"] != _VERSION or (began["segment"], began["ram_hash"]) != (
        beginning.segment,
        beginning.ram_hash,
    ):
        return None
    blobs = _cut(arrays["blobs"].tobytes(), arrays["blob_sizes"])
    runs = _runs(arrays["runs"], arrays["run_counts"])
    count = len(arrays["nodes"])
    nodes = [
        Node(
            *(index, parent, run, frames, tuple(cell) if held else None),
            *(blob, reward, novelty, visits, bool(expanded)),
        )
        for (index, parent, frames, novelty, visits, expanded, held), run, cell, blob, reward in zip(
            arrays["nodes"].tolist(),
            runs[:count],
            arrays["cells"].tolist(),
            blobs[:count],
            arrays["rewards"].tolist(),
            strict=True,
        )
    ]
    if any(node.parent >= node.index for node in nodes):  # nor could a path be followed to its end
        raise ValueError("a cell was reached from a later one")
    counts = meta["counts"]
    search = SegmentSearch(beginning, settings, counts["seed"])
    search.archive.restore(nodes, meta["next_index"], meta["dropped"], dict(meta["beaten"]))
    for name in _COUNTS:
        setattr(search, name, counts[name])
    search.mode_frames = {name: counts["mode_frames"].get(name, 0) for name in settings.modes}
    search.seen = {(variable, value) for variable, value in arrays["seen"].tolist()}
    search.solutions = [
        Solution(solution["frames"], run, _beginning(solution["into"], blob))
        for solution, run, blob in zip(meta["solutions"], runs[count:], blobs[count:], strict=True)
    ]
    search.crossed = bool(search.solutions)
    if search.ending == "cut off" and search.frames < settings.frames:
        search.ending = "searching"
    return search


def _beginning_meta(beginning: Beginning) -> dict[str, Any]:
    return {
        "segment": beginning.segment,
        "ram_hash": beginning.ram_hash,
        "cell": list(beginning.cell),
        "reward": beginning.reward,
    }


def _beginning(meta: dict[str, Any], state: bytes) -> Beginning:
    return Beginning(meta["segment"], state, meta["ram_hash"], tuple(meta["cell"]), meta["reward"])


def _cut(content: bytes, sizes: NDArray[Any]) -> list[bytes]:
    edges = [0, *np.cumsum(sizes).tolist()]
    if edges[-1] != len(content):
        raise ValueError("the savestates do not add up")
    return [content[start:end] for start, end in pairwise(edges)]


def _runs(pairs: NDArray[Any], counts: NDArray[Any]) -> list[Runs]:
    edges = [0, *np.cumsum(counts).tolist()]
    table = [(mask, frames) for mask, frames in pairs.tolist()]
    if edges[-1] != len(table):
        raise ValueError("the inputs do not add up")
    return [tuple(table[start:end]) for start, end in pairwise(edges)]
