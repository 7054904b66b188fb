"""Beds and plots on maps made by hand."""

from crafter_worlds import at, game_of

from agents.benchmarks.crafter.ground import SIDES, Ground
from agents.benchmarks.crafter.places import find_bed, plots


def test_a_bed_in_solid_ground() -> None:
    ground = Ground(game_of("@...... ####### ####### ####### #######", wood_pickaxe=1))
    bed = find_bed(ground, ground.here, ())
    assert bed is not None
    # Straight down, two cells behind a door; beside the left column is lava, which is no wall.
    assert (bed.door, bed.outer, bed.inner) == tuple(at(1, y) for y in (0, 1, 2))
    assert SIDES[bed.side] == "down"
    assert set(bed.walls) == {at(x, y) for x in (0, 2) for y in (1, 2)}
    assert bed.end == at(1, 3)


def test_no_bed_without_means() -> None:
    drawing = "@...... ####### ####### ####### #######"
    assert find_bed(Ground(game_of(drawing)), at(0, 0), ()) is None
    meadow = Ground(game_of("@...... " + "....... " * 6, wood_pickaxe=1, stone=9))
    assert find_bed(meadow, meadow.here, ()) is None


def test_a_tunnel_is_a_bed_for_whoever_has_stones() -> None:
    drawing = "####### @______ #######"
    assert find_bed(Ground(game_of(drawing, wood_pickaxe=1, stone=1)), at(0, 1), ()) is None
    bed = find_bed(Ground(game_of(drawing, wood_pickaxe=1, stone=2)), at(0, 1), ())
    assert bed is not None and {bed.outer, bed.inner} <= {at(x, 1) for x in range(7)}


def test_plots_cost_by_their_open_sides() -> None:
    ground = Ground(game_of("@..## ####. #####", stone=1))
    goals = plots(ground, ground.here, ())
    # All grass has lava beside it.
    assert goals == {}
    ground = Ground(game_of("###### #@..## ###### ######", stone=1))
    assert plots(ground, ground.here, ())[at(2, 1) * 4 + SIDES.index("right")] == 5
    assert all(stand // 4 != at(1, 1) for stand in plots(ground, ground.here, ()))
