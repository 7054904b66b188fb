"""The benchmark of guidance: what is done is kept, and tables say what it shows."""

import io
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.retro_guidance import (
    Outcome,
    Settings,
    fastest_movie,
    main,
    over,
    read_outcomes,
    shares_of,
    table,
)
from harness.errors import Problem
from harness.files import canonical_json
from harness.track import ROOT

SETTINGS = Settings(games=("airstriker",), seeds=2, seconds=5)


def outcome(variant: str, seed: int, frames: int | None, segments: int = 3) -> Outcome:
    shares = shares_of(variant, SETTINGS)
    training = 2.0 if "policy" in shares else 0.0
    return Outcome("airstriker", variant, seed, 5, shares, 5.0, training, segments, frames and 4.0, frames)


DONE = [
    *(outcome("none", 1, 100), outcome("table", 1, 90), outcome("policy", 1, None), outcome("both", 1, 80)),
    *(outcome("none", 2, 120), outcome("table", 2, 100), outcome("policy", 2, 90), outcome("both", 2, 130)),
]


def test_the_table_has_means_and_differences_seed_by_seed() -> None:
    shown = io.StringIO()
    Console(width=140, file=shown).print(table("airstriker", DONE, SETTINGS))
    rows = [line.split() for line in shown.getvalue().splitlines()]
    assert rows[0] == ["airstriker:", "5", "CPU", "s", "each"]
    assert rows[2] == ["none", "3.0", "2", "of", "2", "4", "110", "[100,", "120]", "0"]
    assert rows[3] == ["table", "3.0", "2", "of", "2", "4", "95", "[90,", "100]", "-15", "[-20,", "-10]", "0"]
    assert rows[4] == ["policy", "3.0", "1", "of", "2", "4", "90", "40"]
    assert rows[5] == ["both", "3.0", "2", "of", "2", "4", "105", "[80,", "130]", "-5", "[-20,", "+10]", "40"]


def test_a_difference_takes_two_seeds_with_movies() -> None:
    assert over({1: 90}, {1: DONE[0], 2: DONE[4]}) == ""
    assert over({1: 90, 2: 90}, {1: outcome("none", 1, None), 2: DONE[4]}) == ""


def test_what_is_done_is_not_done_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "done.jsonl"
    out.write_text("".join(canonical_json(asdict(one)) + "\n" for one in DONE))
    assert list(read_outcomes(out)) == DONE
    main(Settings(games=("airstriker",), seeds=2, seconds=5, out=out))
    assert "2 of 2" in capsys.readouterr().out
    assert list(read_outcomes(out)) == DONE


def test_the_rival_is_the_fastest_movie_that_stands() -> None:
    assert len(fastest_movie("Quarterstep-Nes-v0")) == 788
    with pytest.raises(Problem, match="leave the variant rival out"):
        fastest_movie("Other-Nes-v0")


def test_a_search_runs_for_its_seconds_and_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "done.jsonl"
    words = ["--seconds", "2", "--seeds", "1", "--games", "quarterstep", "--variants", "table", "rival"]
    command = [sys.executable, "-m", "benchmarks.retro_guidance", *words, "--lanes", "1", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    guided, memory = read_outcomes(out)
    assert (guided.shares, memory.shares) == ({"table": 0.3}, {"memory": 4.0, "rival": 1.0})
    for found in (guided, memory):
        assert found.cpu_seconds >= 1.9
        assert found.training_seconds == 0
    assert "quarterstep: 2 CPU s each" in done.stdout
