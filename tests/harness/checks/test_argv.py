"""Which command lines run a recipe as it stands, and nothing else."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.checks.base import RunFiles
from harness.checks.run import argv
from harness.errors import Problem
from harness.track import Track
from toy_track.track import TRACK

CHOSEN = replace(TRACK, class_is_chosen=True)


def examine(line: str, *, second: bool = False, track: Track = TRACK) -> str:
    manifest = SimpleNamespace(argv=tuple(line.split()), hardware_class="cpu")
    run: Any = SimpleNamespace(
        manifest=manifest,
        home=SimpleNamespace(track=track),
        prefix="verification/" if second else "",
        name=str,
    )
    return argv.examine(cast(RunFiles, run))


@pytest.mark.parametrize(
    "line",
    [
        "python -m toy_track.speedrun",
        "/work/.venv/bin/python3.11 -u -m toy_track.speedrun",
        "python -B -s -E -m toy_track.speedrun",
        "python .venv/bin/torchrun --standalone --nproc_per_node=3 -m toy_track.speedrun",
        "python -m torch.distributed.run --nproc-per-node=8 -m toy_track.speedrun",
    ],
)
def test_lines_that_run_the_recipe(line: str) -> None:
    assert examine(line) == line
    for verify in ("--verify records/x", "--verify=records/x"):
        assert examine(f"{line} {verify}", second=True)
    with pytest.raises(Problem):
        examine(line, second=True)
    with pytest.raises(Problem):
        examine(f"{line} --verify records/x")


@pytest.mark.parametrize(
    "line",
    [
        "", "python", "python -m", "toy_track.speedrun", "-m toy_track.speedrun",
        "python -m toy_track.speedrun --smoke", "python -m toy_track.speedrun --recipe.rate 9",
        "python -m toy_track.speedrun cpu", "python -m toy_track.speedrun -m toy_track.speedrun",
        "python -O -m toy_track.speedrun", "python -X dev -m toy_track.speedrun",
        "python -c -m toy_track.speedrun", "python trick.py -m toy_track.speedrun",
        "python -m cProfile -m toy_track.speedrun", "bash -c python -m toy_track.speedrun",
        "python torchrun --nnodes=2 -m toy_track.speedrun", "python torchrun toy_track/speedrun.py",
        "python torchrun --standalone --rdzv-endpoint=far:1 -m toy_track.speedrun",
        "python -m torch.distributed.launch -m toy_track.speedrun",
    ],
)  # fmt: skip
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(Problem, match=r"expected 'python -m toy_track\.speedrun'"):
        examine(line)


@pytest.mark.parametrize(
    "flags", ["--verify", "--verify=x y", "--verify x --verify y", "--verify x --smoke", "x y"]
)
def test_a_second_run_has_one_flag(flags: str) -> None:
    with pytest.raises(Problem, match=r"expected 'python -m toy_track\.speedrun --verify <record>'"):
        examine(f"python -m toy_track.speedrun {flags}", second=True)


def test_where_classes_are_chosen_the_class_is_the_manifests() -> None:
    assert examine("python -m toy_track.speedrun cpu", track=CHOSEN)
    assert examine("python -m toy_track.speedrun cpu --verify x", track=CHOSEN, second=True)
    for line in ("python -m toy_track.speedrun", "python -m toy_track.speedrun 1xH100"):
        with pytest.raises(Problem, match=r"expected 'python -m toy_track\.speedrun cpu'"):
            examine(line, track=CHOSEN)
