"""Route memory: cells of the ways through beaten levels, and the frames from each to the exit."""

from pathlib import Path

import pytest

from harness.errors import Problem
from retro.marathon.memory import MEMORY, Memory, Walk, walk
from retro.packages import load_package
from retro.search.archive import Archive, Found
from retro.search.pool import Worker
from retro.search.route import runs_of
from scripted_game import HOPPER_INPUTS as INPUTS
from scripted_game import fastest, fewest_frames
from scripted_game.searching import HOPPER

PACKAGE = load_package(HOPPER)


def learned(tmp_path: Path, *walks: Walk) -> Memory:
    memory = Memory(tmp_path, "a package")
    for one in walks:
        memory.take(one)
    return memory


def test_what_is_left_of_a_way_is_counted_in_frames_to_the_next_state(tmp_path: Path) -> None:
    way: Walk = [(0, (0, 5)), (0, (0, 6)), (-1, ()), (1, (1, 0)), (1, (1, 1))]
    assert learned(tmp_path, way).frames == {(0, 5): 3, (0, 6): 2}, "state 1 is not left"


def test_a_cell_keeps_its_shortest_way_on(tmp_path: Path) -> None:
    slow: Walk = [(0, (0, 5)), (0, (0, 5)), (0, (0, 6)), (1, (1, 0))]
    fast: Walk = [(0, (0, 6)), (0, (0, 5)), (1, (1, 0))]
    memory = learned(tmp_path, slow)
    assert memory.frames == {(0, 5): 2, (0, 6): 1}
    assert memory.take(fast) == 1
    assert memory.frames == {(0, 5): 1, (0, 6): 1}
    assert memory.take(slow) == 0


def test_the_fastest_movie_teaches_every_level(tmp_path: Path) -> None:
    memory = Memory(tmp_path, "a package")
    assert memory.learn(Worker(PACKAGE), runs_of(INPUTS)) > 10
    played = walk(Worker(PACKAGE).world, runs_of(INPUTS))
    assert len(played) == fewest_frames()
    for segment, level in ((1, 1), (2, 2)):
        cells = {cell: frames for cell, frames in memory.frames.items() if cell[0] == segment}
        assert max(cells.values()) == len(fastest(level)) + 6
        first = next(cell for held, cell in played if held == segment)
        assert cells[first] <= len(fastest(level)) + 6


def test_cells_weigh_more_the_closer_they_are_to_the_exit(tmp_path: Path) -> None:
    memory = learned(
        tmp_path, [(0, (0, 1, 1)), (0, (0, 2, 2)), (0, (0, 3, 3)), (0, (0, 4, 4)), (1, (1, 0, 0))]
    )
    near = memory.near(0, 4.0)
    assert near == {(0, 1, 1): 1.0, (0, 2, 2): 2.0, (0, 3, 3): 3.0, (0, 4, 4): 4.0}
    assert memory.near(1, 4.0) == {}
    archive = Archive(10)
    archive.begin((0, 1, 1), b"a", 0.0)
    for place in (2, 3, 4, 9):
        archive.offer(Found(0, ((0, place),), place, (0, place, place), b"a", 0.0, 0))
    plain = archive.weights()
    archive.near = near
    weighted = archive.weights()
    for index, node in archive.nodes.items():
        assert node.cell is not None
        assert weighted[index] == plain[index] * near.get(node.cell, 1.0)


def test_it_is_kept_on_disk_for_one_version_of_the_package(tmp_path: Path) -> None:
    memory = learned(tmp_path, [(0, (0, 5, -3)), (1, (1, 0, 0))])
    memory.save()
    assert Memory(tmp_path, "a package").frames == memory.frames
    assert Memory(tmp_path, "another").frames == {}


@pytest.mark.parametrize("text", ["[]", '{"package_sha256":"a"}', '{"package_sha256":"a","cells":[[]]}', "{"])
def test_a_malformed_file_is_a_problem(tmp_path: Path, text: str) -> None:
    (tmp_path / MEMORY).write_text(text)
    with pytest.raises(Problem) as caught:
        Memory(tmp_path, "a")
    assert caught.value.file == str(tmp_path / MEMORY)
    assert caught.value.remedy == "remove the file: it is learned again"
