"""The archive against a model that keeps every path as it was recorded and forgets nothing."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retro.packages import Cell
from retro.search.archive import Archive, Found, Runs

START: Cell = (0, 0)


@dataclass
class Model:
    """What an archive has to know, kept naively."""

    paths: dict[int, list[int]] = field(default_factory=lambda: {0: []})
    """Node -> buttons, one a frame."""
    fastest: dict[Cell, tuple[int, int]] = field(default_factory=lambda: {START: (0, 0)})
    """Cell -> (frames, node)."""
    dropped: int = 0
    exits: set[int] = field(default_factory=set)


def begun(limit: int = 1_000) -> Archive:
    archive = Archive(limit)
    archive.begin(START, b"start", 0.0)
    return archive


def found(archive: Archive, start: int, cell: int, runs: Runs = ((1, 1),), reward: float = 0.0) -> Found:
    frames = archive.nodes[start].frames + sum(length for _, length in runs)
    return Found(start, runs, frames, (0, cell), b"state %d" % cell, reward, 0)


def check(archive: Archive, model: Model) -> None:
    """All that holds at any time."""
    assert {cell: (node.frames, node.index) for cell, node in archive.cells.items()} == model.fastest
    assert archive.known() == {cell: frames for cell, (frames, _) in model.fastest.items()}
    assert archive.dropped == model.dropped
    used: set[int] = set()
    for above in (*model.exits, *(node.index for node in archive.cells.values())):
        while above >= 0:
            used.add(above)
            above = archive.nodes[above].parent
    assert set(archive.nodes) == used, "nodes that nothing needs are gone, and those of paths are there"
    for index, node in archive.nodes.items():
        path = archive.path(index)
        assert [mask for mask, length in path for _ in range(length)] == model.paths[index]
        assert node.frames == len(model.paths[index])
        assert list(node.children) == [
            other.index for other in archive.nodes.values() if other.parent == index
        ]
        assert (node.cell is None) == (node.state == b"") == (node not in archive.cells.values())
    assert archive.state_bytes == sum(len(node.state) for node in archive.nodes.values())
    assert list(archive.nodes) == sorted(archive.nodes), "the order in which draws are made"
    assert [node.index for node in archive.cells.values()] == sorted(n.index for n in archive.cells.values())
    for index, olds in archive.beaten.items():
        assert index in archive.nodes
        assert olds
        for old in set(olds) & set(archive.nodes):
            assert archive.nodes[old].cell is None
            assert archive.nodes[old].frames > archive.nodes[index].frames
    for bound in (None, 1, 9, 10**9):
        weights = archive.weights(bound)
        assert list(weights) == [node.index for node in archive.cells.values()]
        for node in archive.cells.values():
            assert math.isfinite(weights[node.index])
            assert (weights[node.index] > 0) == (bound is None or node.frames < bound)
            assert weights[node.index] >= 0


RUNS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=2).map(tuple)
OFFER = st.tuples(st.integers(0, 1_000), st.integers(0, 12), RUNS, st.integers(0, 5))
EXIT = st.tuples(st.integers(0, 1_000), RUNS)
LEGS = st.tuples(st.integers(1, 20), st.integers(0, 3), st.integers(1, 20))
STEPS = st.lists(st.one_of(OFFER, EXIT, LEGS, st.integers(1, 10)), max_size=60)


def try_legs(archive: Archive, limit: int, transit: int, budget: int) -> None:
    """Deal out what led on from slower ways in, twice the same, and take it as tried."""
    before = set(archive.beaten)
    legs = archive.legs(limit, transit, budget)
    assert archive.legs(limit, transit, budget) == legs, "a round that is broken off changes nothing"
    lengths = {index: [sum(n for _, n in leg) for leg in runs] for index, runs in legs.items()}
    for index, runs in legs.items():
        node = archive.nodes[index]
        assert node.cell is not None
        assert all(node.frames + length < limit for length in lengths[index])
        led_on = [leg.runs for leg in archive.nodes.values() if leg.parent in archive.beaten[index]]
        assert all(leg in led_on for leg in runs)
    *most, _ = [0, *map(sum, lengths.values()), 0][: len(lengths) + 1]
    assert sum(most) < budget
    assert set(archive.beaten) >= set(legs)
    if sum(map(sum, lengths.values())) < budget:
        assert set(archive.beaten) == set(legs) <= before, "what nothing can come of is forgotten"
    for index in legs:
        del archive.beaten[index]


@given(STEPS)
def test_an_archive_knows_what_a_model_without_limits_knows(steps: list[Any]) -> None:
    archive, model = begun(), Model()
    for step in steps:
        if isinstance(step, tuple) and len(step) == 3:
            try_legs(archive, *step)
        elif isinstance(step, tuple) and len(step) == 2:
            choice, runs = step
            places = sorted(index for index in archive.nodes if index not in model.exits)
            start, index = places[choice % len(places)], archive.next_index
            length = sum(frames for _, frames in runs)
            archive.keep_exit(start, runs, archive.nodes[start].frames + length)
            if start:
                model.exits.add(index)
                masks = [mask for mask, frames in runs for _ in range(frames)]
                model.paths[index] = model.paths[start] + masks
        elif isinstance(step, int):
            archive.limit = step
            weights = {node.cell: archive.weights()[node.index] for node in archive.cells.values()}
            gone = archive.shrink()
            kept = [weights[cell] for cell in archive.cells if cell != START]
            assert all(weights[cell] <= min(kept, default=math.inf) for cell in gone)
            assert START not in gone
            assert len(archive.cells) == min(len(model.fastest), step)
            for cell in gone:
                del model.fastest[cell]
            model.dropped += len(gone)
        else:
            choice, cell, runs, reward = step
            places = sorted(index for index in archive.nodes if index not in model.exits)
            start = places[choice % len(places)]
            offered = found(archive, start, cell, runs, reward)
            frames, _ = model.fastest.get(offered.cell, (1 << 30, -1))
            index = archive.next_index
            taken = archive.offer(offered)
            assert taken == (offered.frames < frames)
            if taken:
                masks = [mask for mask, length in runs for _ in range(length)]
                model.paths[index] = model.paths[start] + masks
                model.fastest[offered.cell] = (offered.frames, index)
        check(archive, model)


def test_a_cell_belongs_to_the_fastest_way_into_it() -> None:
    archive = begun()
    assert archive.offer(found(archive, 0, 1, ((2, 5),)))
    assert not archive.offer(found(archive, 0, 1, ((3, 5),))), "as fast is no better"
    assert archive.offer(found(archive, 0, 1, ((4, 4),)))
    assert archive.path(archive.cells[(0, 1)].index) == [(4, 4)]
    assert archive.cells[(0, 1)].frames == 4


def test_nothing_starts_from_a_node_that_is_gone() -> None:
    archive = begun()
    archive.offer(found(archive, 0, 1, ((2, 5),)))
    late = found(archive, archive.cells[(0, 1)].index, 2)
    archive.offer(found(archive, 0, 1, ((2, 4),)))
    assert not archive.offer(late)
    assert (0, 2) not in archive.cells


def test_a_faster_way_in_keeps_the_paths_of_those_who_came_by_the_slower() -> None:
    archive = begun()
    archive.offer(found(archive, 0, 1, ((2, 5),)))
    archive.offer(found(archive, archive.cells[(0, 1)].index, 2, ((1, 1),)))
    slow = archive.cells[(0, 2)].index
    archive.offer(found(archive, 0, 1, ((3, 2),)))
    assert archive.path(slow) == [(2, 5), (1, 1)]
    assert len(archive.nodes) == 4
    archive.offer(found(archive, archive.cells[(0, 1)].index, 2, ((1, 1),)))
    assert archive.path(archive.cells[(0, 2)].index) == [(3, 2), (1, 1)]
    assert len(archive.nodes) == 3, "the slower way is of no use any more"


def test_memory_does_not_grow_while_cells_only_get_faster() -> None:
    archive = begun()
    for frames in range(500, 0, -1):
        assert archive.offer(found(archive, 0, 1, ((1, frames),)))
        archive.offer(found(archive, archive.cells[(0, 1)].index, 2))
    assert len(archive.nodes) == 3


def test_the_start_is_never_dropped_and_never_beaten() -> None:
    archive = begun(1)
    archive.offer(found(archive, 0, 1))
    assert archive.shrink() == [(0, 1)]
    assert list(archive.cells) == [START]
    assert not archive.offer(Found(0, (), 0, START, b"", 0.0, 0))
    assert archive.shrink() == []


def test_the_least_promising_is_dropped_first() -> None:
    archive = begun(3)
    for cell, reward in ((1, 1.0), (2, 9.0), (3, 2.0), (4, 8.0)):
        archive.offer(found(archive, 0, cell, reward=reward))
    assert set(archive.shrink()) == {(0, 1), (0, 3)}
    assert archive.dropped == 2


def test_what_cannot_cross_in_time_weighs_nothing_and_goes_first() -> None:
    archive = begun(2)
    archive.offer(found(archive, 0, 1, ((1, 9),), reward=50.0))
    archive.offer(found(archive, 0, 2, ((1, 2),), reward=0.0))
    weights = archive.weights(9)
    assert weights[archive.cells[(0, 1)].index] == 0 < weights[archive.cells[(0, 2)].index]
    assert archive.shrink(9) == [(0, 1)]


def test_weights_prefer_the_rewarded_the_new_and_the_rarely_visited() -> None:
    archive = begun()
    archive.offer(found(archive, 0, 1, reward=1.0))
    archive.offer(found(archive, 0, 2, reward=5.0))
    archive.offer(Found(0, ((1, 1),), 1, (0, 3), b"", 1.0, 2))
    plain, rewarded, new = (archive.cells[(0, cell)] for cell in (1, 2, 3))
    weights = archive.weights()
    assert weights[plain.index] < weights[new.index]
    assert weights[plain.index] < weights[rewarded.index]
    rewarded.visits = 1_000_000
    assert archive.weights()[rewarded.index] < weights[plain.index]
    assert all(weight > 0 for weight in archive.weights().values())


def test_a_late_cell_weighs_less_where_there_is_a_crossing_to_beat() -> None:
    """40 frames behind the first cell of as much reward or more halve a weight, but for a fiftieth."""
    archive = begun()
    late = {1: 0, 2: 40, 3: 10, 4: 0, 5: 20}
    for cell, frames, reward in ((1, 10, 10.0), (2, 50, 10.0), (3, 20, 5.0), (4, 60, 20.0), (5, 80, 20.0)):
        archive.offer(found(archive, 0, cell, ((1, frames),), reward))
    index = {cell: archive.cells[0, cell].index for cell in late}
    free, bound = archive.weights(), archive.weights(81)
    for cell, frames in late.items():
        assert bound[index[cell]] == pytest.approx(free[index[cell]] * (0.02 + 0.5 ** (frames / 40)))
    assert bound[0] == pytest.approx(free[0] * 1.02)
    assert archive.weights(80) == bound | {index[5]: 0.0}


def test_cells_of_one_place_share_a_weight_before_the_first_crossing() -> None:
    archive = Archive(10)
    archive.begin((0, 5, 5, 0), b"", 0.0)
    for number, cell in enumerate([(0, 1, 2, 0), (0, 1, 2, 1), (0, 1, 2, 2), (0, 1, 3, 0)]):
        assert archive.offer(Found(0, ((1, 7),), 7 + number, cell, b"", 0.0, 0))
    weights = {cell: archive.weights()[node.index] for cell, node in archive.cells.items()}
    assert weights[(0, 1, 2, 0)] == weights[(0, 1, 2, 2)] == pytest.approx(weights[(0, 1, 3, 0)] / 3)
    late = {cell: archive.weights(99)[node.index] for cell, node in archive.cells.items()}
    assert late[(0, 1, 2, 0)] > late[(0, 1, 3, 0)], "with a crossing to beat, only lateness tells them apart"


def test_weights_bear_any_rewards_and_frames() -> None:
    archive = begun()
    for cell, (frames, reward) in enumerate(((10**6, -1e300), (1, 1e300), (10**9, 0.0)), start=1):
        archive.offer(found(archive, 0, cell, ((1, frames),), reward))
    weights = archive.weights(10**10)
    assert all(0 < weight < math.inf for weight in weights.values())


def test_a_way_out_is_tried_from_a_faster_way_into_its_cell() -> None:
    """Up to the bound for crossings, for its inputs lead through the transit; a cell has to be before it."""
    archive = begun()
    archive.offer(found(archive, 0, 1, ((2, 5),)))
    slow = archive.cells[0, 1].index
    archive.keep_exit(slow, ((3, 2), (0, 9)), 16)
    archive.offer(found(archive, slow, 2, ((1, 11),)))
    archive.offer(found(archive, 0, 1, ((2, 4),)))
    fast = archive.cells[0, 1].index
    assert archive.beaten == {fast: [slow]}
    assert archive.legs(20, 0, 100) == {fast: [((3, 2), (0, 9)), ((1, 11),)]}
    assert archive.legs(16, 1, 100) == {fast: [((3, 2), (0, 9))]}
    assert archive.legs(15, 9, 100) == {}
    assert archive.beaten == {}


def test_what_led_on_is_handed_on_to_those_who_are_faster_still() -> None:
    archive = begun()
    archive.offer(found(archive, 0, 1, ((2, 9),)))
    archive.offer(found(archive, archive.cells[0, 1].index, 2, ((1, 1),)))
    for frames in (8, 7, 6):
        archive.offer(found(archive, 0, 1, ((2, frames),)))
    fast = archive.cells[0, 1].index
    assert archive.legs(1_000, 0, 100) == {fast: [((1, 1),)]}
    assert list(archive.beaten) == [fast]


def test_a_budget_is_for_the_earliest_and_the_rest_waits() -> None:
    archive = begun()
    for cell in (1, 2, 3):
        archive.offer(found(archive, 0, cell, ((2, 10 * cell),)))
        archive.offer(found(archive, archive.cells[0, cell].index, 10 + cell, ((1, 5),)))
    for cell in (3, 2, 1):
        archive.offer(found(archive, 0, cell, ((2, 10 * cell - 1),)))
    fast = [archive.cells[0, cell].index for cell in (1, 2, 3)]
    assert list(archive.legs(1_000, 0, 6)) == fast[:2]
    assert list(archive.legs(1_000, 0, 5)) == fast[:1]
    assert sorted(archive.beaten) == sorted(fast)


def test_a_cell_that_was_dropped_is_not_gone_on_from() -> None:
    archive = begun()
    archive.offer(found(archive, 0, 1, ((2, 9),)))
    archive.offer(found(archive, archive.cells[0, 1].index, 2, ((1, 1),), reward=9.0))
    archive.offer(found(archive, 0, 1, ((2, 8),)))
    assert archive.beaten
    archive.limit = 2
    assert archive.shrink() == [(0, 1)]
    assert archive.legs(1_000, 0, 100) == {}
    assert archive.beaten == {}


def test_a_cell_found_faster_is_to_be_expanded_again() -> None:
    archive = begun()
    archive.offer(found(archive, 0, 1, ((1, 5),)))
    for node in archive.nodes.values():
        node.expanded = True
    assert not list(archive.unexpanded())
    archive.offer(found(archive, 0, 1, ((1, 4),)))
    assert [node.cell for node in archive.unexpanded()] == [(0, 1)]


@pytest.mark.parametrize("orders", ["as found", "replaced"])
def test_a_restored_archive_is_the_same_in_the_same_order(orders: str) -> None:
    archive = begun()
    for cell, frames in ((1, 5), (2, 6), (3, 7), *(((1, 4), (2, 3)) if orders == "replaced" else ())):
        archive.offer(found(archive, 0, cell, ((1, frames),)))
    other = Archive(archive.limit)
    nodes = [replace(node, children={}) for node in archive.nodes.values()]
    other.restore(nodes, archive.next_index, archive.dropped, dict(archive.beaten))
    assert [list(node.children) for node in nodes] == [list(node.children) for node in archive.nodes.values()]
    assert other.beaten == archive.beaten
    assert list(other.nodes) == list(archive.nodes)
    assert list(other.weights()) == list(archive.weights()), "draws go by this order"
    assert list(other.cells) == list(archive.cells)
