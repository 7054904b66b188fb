"""sokoban.generator: levels sound, distinct, solvable, a function of the seed, and like the official ones."""

import sys
from pathlib import Path

import numpy as np
import pytest

from sokoban import generator
from sokoban.boxoban import read_split
from sokoban.generator import PRACTICE, generate, generate_solved, make_practice_set, practice_levels
from sokoban.levels import BOXOBAN, Level, parse_levels, read_levels
from sokoban.reference import replay
from sokoban.solver import region
from sokoban.symmetry import canonical_keys, level_keys


def test_every_level_is_sound() -> None:
    table = generate(600, seed=3)
    assert len(table) == 600
    floor, goals, boxes, player = table.planes
    assert (np.bitwise_count(boxes) == 4).all() and (np.bitwise_count(goals) == 4).all()
    assert (np.bitwise_count(player) == 1).all()
    assert ((goals | boxes | player) & ~floor == 0).all()
    assert (boxes & goals == 0).all() and (player & (boxes | goals) == 0).all()
    for index in range(0, 600, 20):
        level = table.level(index)
        everywhere = {(row, column) for row in range(10) for column in range(10)}
        assert region(level, frozenset(), level.player) == everywhere - level.walls  # one room


def test_reverse_play_read_backwards_solves() -> None:
    solved = generate_solved(120, seed=11)
    for index in range(120):
        outcome = replay(solved.levels.level(index), solved.moves(index), limit=100_000)
        assert outcome.solved
        assert 4 <= outcome.pushes <= solved.lengths[index]


def test_the_seed_decides() -> None:
    table, again, shorter = generate(500, seed=1), generate(500, seed=1), generate(60, seed=1)
    assert np.array_equal(level_keys(table), level_keys(again))
    assert np.array_equal(level_keys(table)[:60], level_keys(shorter))
    assert not np.isin(canonical_keys(generate(500, seed=2)), canonical_keys(table)).any()
    with pytest.raises(ValueError, match="at least one"):
        generate(0, seed=1)


def test_no_two_levels_are_images_of_each_other() -> None:
    keys = canonical_keys(generate(2000, seed=5))
    assert len(np.unique(keys)) == 2000


def test_practice_set_is_made_again_byte_for_byte() -> None:
    assert make_practice_set() == PRACTICE.read_bytes()
    assert len(read_levels(PRACTICE, BOXOBAN, count=1000)) == 1000


def test_training_never_meets_a_practice_level() -> None:
    """Even from the practice set's own seed, which makes every one of its levels again."""
    practice = canonical_keys(practice_levels())
    made = generator._generate(1000, generator.PRACTICE_SEED, frozenset()).levels
    assert np.array_equal(canonical_keys(made), practice)
    for seed in (generator.PRACTICE_SEED, 0):
        assert not np.isin(canonical_keys(generate(1200, seed)), practice).any()


@pytest.mark.usefixtures("boxoban_folder")
def test_levels_resemble_the_official_ones() -> None:
    ours, official = generate(2000, seed=8), read_split("unfiltered/train", 10)
    assert not np.isin(canonical_keys(ours), canonical_keys(official)).any()
    cells = [np.bitwise_count(table.floor).astype(float) for table in (ours, official)]
    assert abs(cells[0].mean() - cells[1].mean()) < 1 and abs(cells[0].std() - cells[1].std()) < 1
    spread = [
        np.mean([nearest_goals(table.level(index)) for index in range(500)]) for table in (ours, official)
    ]
    assert abs(spread[0] - spread[1]) < 1


def nearest_goals(level: Level) -> int:
    """Summed over boxes, the steps to the nearest goal as the crow flies."""
    return sum(min(abs(r - gr) + abs(c - gc) for gr, gc in level.goals) for r, c in level.boxes)


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "made.txt"
    monkeypatch.setattr(sys, "argv", ["generator", "--count", "5", "--seed", "9", "--out", str(path)])
    assert generator.main() == 0
    table = generate(5, seed=9)
    read = parse_levels(path.read_text("utf-8"), BOXOBAN, count=5)
    assert [level.boxes for level in read] == [table.level(index).boxes for index in range(5)]

    monkeypatch.setattr(sys, "argv", ["generator", "--out", str(tmp_path / "none" / "made.txt")])
    assert generator.main() == 2
    assert "No such file" in capsys.readouterr().err
    for wrong in (
        [],
        ["--practice", "--out", "x"],
        ["--count", "0", "--out", "x"],
        ["--seed", "-1", "--out", "x"],
    ):
        monkeypatch.setattr(sys, "argv", ["generator", *wrong])
        with pytest.raises(SystemExit) as caught:
            generator.main()
        assert caught.value.code == 2
