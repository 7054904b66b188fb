"""Practice starts a frame before its level, and what it finds is tried from the run's own arrival."""

from retro.inputs import format_inputs, parse_inputs
from retro.marathon.practice import Hinted, Practice, before, brought_in, open_practice
from retro.packages import load_package
from retro.search.pool import Worker
from retro.search.route import Piece, runs_of
from retro.search.segment import SegmentSearch
from scripted_game import BUTTONS, HOPPER_INPUTS, fastest
from scripted_game.searching import HOPPER, finish, play, settings

PACKAGE = load_package(HOPPER)
SMALL_GAMES = "scripted_game.small:"
TO_LEVEL_1 = [0, 8]
TO_LEVEL_2 = HOPPER_INPUTS[: 2 + len(fastest(1)) + 6]


def text(inputs: list[int]) -> str:
    return format_inputs(inputs, BUTTONS)


def piece(spec: str, state: str, entered: str, before: list[int], inputs: list[int]) -> Piece:
    ram_hash = play(load_package(spec), before + inputs).hashes[-1]
    return Piece(state, entered, text(inputs), len(inputs), ram_hash, "solved", len(inputs), *[0] * 5)


def test_it_starts_in_the_frame_before_with_the_cell_of_the_frame_after() -> None:
    worker = Worker(PACKAGE)
    start = before(worker.world, runs_of(TO_LEVEL_2))
    arrival, waited = worker.arrive(runs_of(TO_LEVEL_2))
    assert waited == 0
    assert (start.segment, start.cell, start.reward) == (2, arrival.cell, arrival.reward)
    assert start.ram_hash == play(PACKAGE, TO_LEVEL_2[:-1]).hashes[-1] != arrival.ram_hash


def test_a_search_from_there_finds_a_way_out() -> None:
    worker = Worker(PACKAGE)
    start, known, prefix = open_practice(worker, PACKAGE, Practice("level-2", text(TO_LEVEL_2)))
    assert known is None
    assert prefix == TO_LEVEL_2[:-1]
    search = SegmentSearch(start, settings(), "1")
    search.open(worker)
    best = finish(search, worker).solutions[0]
    inputs = prefix + [mask for mask, frames in best.runs for _ in range(frames)]
    played = play(PACKAGE, inputs)
    assert played.states[-1] == 3 != played.states[-2]
    assert best.frames <= 1 + len(fastest(2)) + 6 + 4


def test_a_way_that_is_known_is_one_to_beat() -> None:
    way = [0, *fastest(2), *[0] * 6]
    practice = Practice("level-2", text(TO_LEVEL_2), text(way), "ending")
    _, known, _ = open_practice(Worker(PACKAGE), PACKAGE, practice)
    assert known is not None
    assert (known.frames, known.into.segment) == (len(way), 3)


def test_what_was_practised_goes_into_a_run() -> None:
    way = [0, *fastest(2), *[0] * 6]
    practice = Practice("level-2", text(TO_LEVEL_2), text(way), "ending")
    late = [0] * 7 + fastest(1) + [0] * 6
    pieces = [
        piece(HOPPER, "power-on", "title", [], [0]),
        piece(HOPPER, "title", "level-1", [0], [8]),
        piece(HOPPER, "level-1", "level-2", TO_LEVEL_1, late),
    ]
    found = brought_in(Worker(PACKAGE), PACKAGE, pieces, practice)
    assert found is not None
    assert found[:3] == pieces
    assert (found[3].state, found[3].entered, found[3].frames) == ("level-2", "ending", len(way) - 1)
    inputs = [mask for one in found for mask in parse_inputs(one.inputs, BUTTONS)]
    assert play(PACKAGE, inputs).hashes[-1] == found[3].ram_hash


def test_where_the_arrival_differs_too_much_it_does_not() -> None:
    spec = SMALL_GAMES + "Gate"
    package = load_package(spec)
    practice = Practice("second", text([0] + [4] * 10), text([0] + [4] * 9), "ending")
    pieces = [piece(spec, "power-on", "first", [], [0]), piece(spec, "first", "second", [0], [0] + [4] * 10)]
    assert brought_in(Worker(package), package, pieces, practice) is None


def test_hints_are_given_once_and_before_those_of_guidance() -> None:
    class Guide:
        def begin(self, *_: object) -> tuple[()]:
            return ()

        def news(self) -> None:
            return None

        def exits(self) -> list[object]:
            return [((1, 1),)]

    hinted = Hinted(Guide(), [((2, 3),)])  # type: ignore[arg-type]
    assert hinted.exits() == [((2, 3),), ((1, 1),)]
    assert hinted.exits() == [((1, 1),)]
    assert Hinted(None, []).exits() == []
    assert Hinted(None, []).news() is None
