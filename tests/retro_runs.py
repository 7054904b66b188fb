"""Runs of the retro track without a search: movies made of the proven optimum, and true evidence of them."""

from collections.abc import Sequence
from pathlib import Path

from harness.files import sha256_file
from retro.emulator import versions
from retro.evidence import evidence_header, evidence_row, expected, movies_bytes, write_evidence
from retro.task import GAMES
from retro.track import replay_all


def slower(frames: int) -> str:
    """The optimum's inputs with so many frames more on the title, which stands still until START."""
    first, rest = GAMES[0].best_inputs.split(" ", 1)
    return f"{int(first) + frames} {rest}"


def make_run(folder: Path, seed: int, inputs: Sequence[str | None]) -> Path:
    """A folder with the movies and the evidence of a run whose searches found these inputs; returns it."""
    folder.mkdir(exist_ok=True)
    found = [one._replace(inputs=text) for one, text in zip(expected(seed), inputs, strict=True)]
    (folder / "movies.json").write_bytes(movies_bytes(found))
    header = evidence_header("cpu", seed, sha256_file(folder / "movies.json"), versions())
    rows = [evidence_row(one, replay) for one, replay in zip(found, replay_all(found), strict=True)]
    write_evidence(folder / "evidence.jsonl.xz", header, rows)
    return folder
