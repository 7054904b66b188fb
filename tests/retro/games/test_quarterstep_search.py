"""The exhaustive search of Quarterstep, against one of another kind and against the proof that is kept."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.errors import Problem
from retro.games.quarterstep import levels, model, policies, search


def screen(*rows):
    """A screen with these rows at the bottom left, all else solid."""
    text = ["#" + row.ljust(14, "#") + "#" for row in rows]
    return levels._screen(1, "TEST", ["#" * 16] * (14 - len(text)) + text + ["#" * 16])


PRIME = 2_147_483_647
SHIFTS = (34, 24, 19, 13, 12, 8, 1, 0)  # x, y, vx + 8, vy + 32, grounded, rng, door, lag: nothing is left out


def brute(place, limit=60):
    """(frames, ways modulo PRIME) to the exit: every frame all states, with the number of ways to each."""
    states = np.array([[int(value[0]) for value in model.start(place)] + [0]]).T
    counts = np.array([1])
    for frame in range(1, limit):
        following, numbers, ways = [], [], 0
        waiting = states[-1] > 0
        for action in model.ACTIONS:
            state, touched = model.step(place, model.State(*states[:-1]), action)
            after = np.vstack([*state, touched == levels.SPARK])
            after = np.where(waiting, np.vstack([states[:-1], 0 * counts]), after)
            ways += int(counts[~waiting & (touched == levels.EXIT)].sum())
            alive = waiting | ((touched != levels.EXIT) & (touched != levels.SPIKE))
            following.append(after[:, alive])
            numbers.append(counts[alive])
        if ways:
            return frame, ways % PRIME
        states = np.hstack(following)
        shifted = [
            (row + more) << shift
            for row, more, shift in zip(states, (0, 0, 8, 32, 0, 0, 0, 0), SHIFTS, strict=True)
        ]
        _, first, places = np.unique(sum(shifted), return_index=True, return_inverse=True)
        states, sums = states[:, first], np.zeros(len(first), np.int64)
        np.add.at(sums, places, np.concatenate(numbers))
        counts = sums % PRIME
    return None


@pytest.mark.parametrize(("tiles", "frames"), [(2, 16), (3, 24), (5, 40), (12, 96)])
def test_a_straight_run_takes_what_arithmetic_says(tiles, frames):
    """From the middle of the start's tile to the edge of the exit's: 1, 2, ... 8 and then 8 quarter pixels a
    frame."""
    travelled = np.cumsum([*range(1, 8), *[8] * 200])
    assert int(np.argmax(travelled >= tiles * 64 - 32)) + 1 == frames
    assert search.solve(screen("S" + "." * (tiles - 1) + "E")).frames == frames


@pytest.mark.parametrize(
    "rows",
    [("S.E",), ("S*E",), ("SLDE",), ("v..", "S.E"), ("E", "S"), ("PS#QE",)],
)
def test_frames_and_ways_are_those_of_a_search_that_leaves_nothing_out(rows):
    place = screen(*rows)
    found = brute(place)
    assert found is not None
    solution = search.solve(place)
    assert (solution.frames, solution.ways % PRIME) == found
    assert len(solution.inputs) == solution.frames


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5), st.lists(st.sampled_from(model.ACTIONS), min_size=1, max_size=150))
def test_a_key_holds_all_that_what_follows_depends_on(level, actions):
    place = levels.screens()[level]
    packing = search.Packing(place)
    state, lag = model.start(place), np.zeros(1, np.int16)
    for action in actions:
        again, lag_again = packing.unpack(packing.pack(state, lag))
        assert lag_again[0] == lag[0]
        for name, left, right in zip(state._fields, state, again, strict=True):
            if name != "rng" or state.door[0] == levels.CLOSED:
                assert left[0] == right[0], name
        state, touched = model.step(place, state, action)
        assume(touched[0] not in (levels.EXIT, levels.SPIKE))
        lag = (touched == levels.SPARK).astype(np.int16)


@given(st.lists(st.lists(st.integers(0, 1023), max_size=40), max_size=6))
def test_the_set_of_keys_is_a_set(batches):
    seen, expected = search.Seen(10), set()
    for batch in batches:
        keys = search.distinct(np.array(batch, np.uint32))
        assert keys.tolist() == sorted(set(batch))
        missing = seen.missing(keys)
        assert set(missing.tolist()) == set(batch) - expected
        seen.add(missing)
        expected |= set(batch)


def test_what_cannot_be_solved_or_packed_is_a_problem():
    with pytest.raises(Problem, match="cannot be reached"):
        search.solve(screen("S#E"))
    with pytest.raises(Problem, match="both sparks and a lock"):
        search.solve(screen("S*LDE"))


def test_players_without_search_arrive_where_it_is_easy():
    easy = policies.policies(screen("S....E"))
    fewest = search.solve(screen("S....E")).frames
    assert easy["right"] == fewest == easy["look-ahead"]
    assert all(frames is None or frames >= fewest for frames in easy.values())
    assert policies.policies(screen("E", "S"))["right"] is None
