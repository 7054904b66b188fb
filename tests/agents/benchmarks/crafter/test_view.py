"""What is seen agrees with the world and with the package's own picture."""

from types import SimpleNamespace

import crafter
import numpy as np
import pytest
from crafter import constants, objects
from crafter.engine import LocalView

from agents.benchmarks.crafter.repair import World
from agents.benchmarks.crafter.view import DOWN, HEIGHT, PIXELS, RIGHT, WIDTH, Creature, look, seen, vignette


def world_of(daylight: float = 1.0) -> tuple[World, objects.Player]:
    """A meadow with the player in the middle."""
    world = World((64, 64), constants.materials, (12, 12))
    world._mat_map[:] = world._mat_ids["grass"]
    world.daylight = daylight
    player = objects.Player(world, (32, 32))
    world.add(player)
    return world, player


def test_the_vignette_is_that_of_the_picture() -> None:
    package = LocalView(SimpleNamespace(area=(64, 64)), None, (WIDTH, HEIGHT))
    pixels = package._vignette((WIDTH * PIXELS, HEIGHT * PIXELS, 3), 0.5)
    for right in range(-RIGHT, RIGHT + 1):
        for down in range(-DOWN, DOWN + 1):
            middle = ((right + RIGHT) * PIXELS + PIXELS // 2, (down + DOWN) * PIXELS + PIXELS // 2)
            assert vignette(right, down) == pytest.approx(pixels[middle], abs=1e-12)


@pytest.mark.parametrize("daylight", [0.0, 0.05, 0.1, 0.13, 0.2, 0.4, 0.6, 1.0])
def test_unseen_is_where_the_picture_has_more_noise_than_drawing(daylight: float) -> None:
    shape = (WIDTH * PIXELS, HEIGHT * PIXELS, 3)

    def picture(drawn: float, noise: float) -> np.ndarray:
        """The package's picture of a drawing and a noise that are the same everywhere."""
        random = SimpleNamespace(uniform=lambda low, high, size: np.full(size, noise))
        view = LocalView(SimpleNamespace(area=(64, 64), random=random), None, (WIDTH, HEIGHT))
        return view._light(np.full(shape, drawn), daylight)

    of_drawing = picture(200.0, 100.0) - picture(100.0, 100.0)
    of_noise = picture(100.0, 200.0) - picture(100.0, 100.0)
    for right in range(-RIGHT, RIGHT + 1):
        for down in range(-DOWN, DOWN + 1):
            middle = ((right + RIGHT) * PIXELS + PIXELS // 2, (down + DOWN) * PIXELS + PIXELS // 2, 0)
            difference = of_drawing[middle] - of_noise[middle]
            if abs(difference) > 3:  # the picture is rounded to whole numbers in between
                assert seen(right, down, daylight) == (difference > 0), (right, down)


def test_at_noon_all_is_seen_and_at_midnight_what_is_near() -> None:
    cells = [(right, down) for right in range(-RIGHT, RIGHT + 1) for down in range(-DOWN, DOWN + 1)]
    assert all(seen(*cell, 0.5) for cell in cells)
    near = {cell for cell in cells if seen(*cell, 0.0)}
    assert near == {(right, down) for right in range(-2, 3) for down in (-1, 0, 1)} | {(0, -2), (0, 2)}


def test_what_is_seen_is_what_is_there() -> None:
    world, player = world_of()
    world[31, 32] = "tree"
    world[36, 35] = "diamond"
    world[37, 32] = "lava"  # out of view
    world.add(objects.Zombie(world, (32, 30), player))
    world.add(objects.Cow(world, (28, 29)))
    world.add(objects.Arrow(world, (33, 32), (1, 0)))
    world.add(objects.Skeleton(world, (32, 36), player))  # out of view
    plant = objects.Plant(world, (32, 33))
    world.add(plant)
    view = look(world, player)
    assert len(view.grid) == HEIGHT and all(len(row) == WIDTH for row in view.grid)
    assert view.grid[3][3] == "tree" and view.grid[6][8] == "diamond"
    assert sum(row.count("grass") for row in view.grid) == 61
    assert view.creatures == (
        Creature("arrow", 1, 0, "right"),
        Creature("sapling", 0, 1, None),
        Creature("zombie", 0, -2, None),
        Creature("cow", -4, -3, None),
    )
    assert (view.facing, view.material, view.creature) == ("down", "grass", "sapling")
    plant.grown = 301
    assert look(world, player).creature == "ripe plant"


def test_the_dark_hides_creatures_too() -> None:
    world, player = world_of(daylight=0.0)
    world.add(objects.Zombie(world, (34, 34), player))
    world.add(objects.Zombie(world, (34, 33), player))
    view = look(world, player)
    assert view.creatures == (Creature("zombie", 2, 1, None),)
    assert sum(row.count("unseen") for row in view.grid) == 63 - 17
    assert view.grid[DOWN][RIGHT] == "grass"


def test_beyond_the_edge_is_nothing() -> None:
    world, player = world_of()
    world.move(player, (0, 63))
    player.facing = (-1, 0)
    view = look(world, player)
    assert view.grid[3] == ("outside",) * 4 + ("grass",) * 5
    assert view.grid[4:] == (("outside",) * 9,) * 3
    assert (view.material, view.creature) == ("outside", None)


def test_the_view_is_that_of_the_package() -> None:
    package = crafter.Env(seed=1)
    assert tuple(package._local_view._grid) == (WIDTH, HEIGHT)
    assert package._size[0] // package._view[0] == PIXELS
