"""What the evaluation writes down is what was played: bitboards and reference must agree on every level."""

import torch
from torch import Tensor

from non_llm.eval_speedrun import Position, play, unroll_moves, unroll_pushes
from sokoban.generator import generate_solved, practice_levels
from sokoban.levels import parse_levels
from sokoban.reference import replay
from sokoban.rules import unpack

CPU = torch.device("cpu")


class RandomPusher:
    """Pushes any legal push, from a seeded generator."""

    acts_by_pushing = True

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.solved = torch.zeros(0)

    def act(self, position: Position) -> Tensor:
        legal = unpack(position.legal).flatten(1).float()
        legal[legal.sum(dim=1) == 0] = 1
        return torch.multinomial(legal, 1, generator=self.generator).squeeze(1)


class RandomMover:
    """Steps anywhere, bumping into walls too."""

    acts_by_pushing = False

    def act(self, position: Position) -> Tensor:
        return (position.moves * 7 + position.boards.player % 11) % 4


def test_random_pushes_replay_in_the_reference() -> None:
    levels = practice_levels().take(slice(0, 200))
    played = play(RandomPusher(0), levels, CPU)
    results = [replay(levels.level(index), moves) for index, moves in enumerate(played)]
    assert len(played) == 200
    assert sum(result.pushes for result in results) > 2000
    assert all(result.solved or result.moves > 0 for result in results)


def test_random_moves_replay_in_the_reference() -> None:
    levels = practice_levels().take(slice(0, 50))
    played = play(RandomMover(), levels, CPU)
    results = [replay(levels.level(index), moves) for index, moves in enumerate(played)]
    assert all(result.moves == 120 or result.solved for result in results)


def test_play_is_deterministic() -> None:
    levels = practice_levels().take(slice(0, 20))
    assert play(RandomPusher(3), levels, CPU) == play(RandomPusher(3), levels, CPU)


def test_known_solutions_unroll_to_solutions() -> None:
    solved = generate_solved(50, seed=5)
    for index in range(50):
        level = solved.levels.level(index)
        actions = solved.pushes[index, : solved.lengths[index]].tolist()
        moves = unroll_pushes(level, actions)
        assert len(moves) <= 120
        if len(moves) < 120:  # reverse play may take longer than an evaluation lets
            assert replay(level, moves).solved


def test_walks_take_the_shortest_way_and_pushes_are_capitals() -> None:
    (level,) = parse_levels("#######\n#@    #\n#  $. #\n#######")
    # The box at row 2, column 3 is bit 8 * 1 + 2 = 10; direction 3 is right.
    assert unroll_pushes(level, [3 * 64 + 10]) == "drR"
    assert unroll_moves(level, [1, 3, 3, 0]) == "drRu"


def test_unrolling_stops_at_the_limit() -> None:
    (level,) = parse_levels("########\n#@ $  .#\n########")
    back_and_forth = [3 * 64 + 2]
    assert unroll_pushes(level, back_and_forth) == "rR"
    (wide,) = parse_levels("########\n#      #\n#@ $  .#\n#      #\n########")
    actions = [3 * 64 + 8 + 2, 2 * 64 + 8 + 3] * 60  # push the box right and left again
    moves = unroll_pushes(wide, actions)
    assert len(moves) == 120 and replay(wide, moves).moves == 120
