"""A few kills of a toy training; `python -m benchmarks.kill_points` does many, on every track."""

from pathlib import Path

from benchmarks.kill_points import kill


def test_what_is_killed_goes_on_and_nothing_is_half_written(tmp_path: Path) -> None:
    points, faults = kill("toy", 4, 3, tmp_path)
    assert faults == [] and len(points) == 4
