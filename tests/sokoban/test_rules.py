"""The bitboard rules against the plain rules, board by board and action by action."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_levels import closed_level, directions, levels
from torch import Tensor

from sokoban.boxoban import LevelTable, table_of
from sokoban.levels import Cell, Level, parse_levels, read_levels
from sokoban.reference import LETTERS, Game, neighbour, walk
from sokoban.rules import (
    OPPOSITE,
    PUSH_ACTIONS,
    STEP_LIMIT,
    Boards,
    Outcome,
    Rewards,
    SokobanBatch,
    find_walks,
    shift,
    transform,
    unpack,
)
from sokoban.solver import solve

ROOM = parse_levels("######\n#    #\n# $. #\n# .$ #\n# @  #\n######\n")[0]
CORRIDOR = parse_levels("########\n#@ $  .#\n########\n")[0]
STUCK = parse_levels("#####\n#@$ #\n# #.#\n#####\n")[0]  # one push to the right, then no push at all


def bit_of(cell: Cell) -> int:
    """The bit of a cell of a level (its ring of wall included) in a word."""
    return 8 * (cell[0] - 1) + cell[1] - 1


def cells_of(word: int) -> set[Cell]:
    """The cells whose bits are set, as cells of the level."""
    return {(bit // 8 + 1, bit % 8 + 1) for bit in range(64) if word >> bit & 1}


def batch_of(table: Sequence[Level], **options: object) -> SokobanBatch:
    """One board a level, in order."""
    return SokobanBatch(table_of(table), len(table), generator=None, **options)  # type: ignore[arg-type]


def play_plainly(game: Game, action: Sequence[int], limit: int) -> tuple[float, bool, bool]:
    """Make moves one by one; the reward, whether that solved the level, and whether the moves ran out."""
    reward = 0.0
    for direction in action:
        on_goals = len(game.boxes & game.level.goals)
        game.move(direction)
        reward += -0.1 + (len(game.boxes & game.level.goals) - on_goals)
    reward += 10 * game.solved
    return reward, game.solved, game.moves >= limit and not game.solved


def assert_same(boards: Boards, index: int, game: Game) -> None:
    """The board at `index` holds what the plain game holds."""
    assert cells_of(int(boards.boxes[index])) == game.boxes
    assert cells_of(int(boards.player[index])) == {game.player}
    assert cells_of(int(boards.goals[index])) == game.level.goals


def brute_force_pushes(game: Game) -> set[int]:
    """Every legal push action: try each box and direction with a walk and a real move."""
    actions = set()
    for box in game.boxes:
        for direction in range(4):
            behind = neighbour(box, OPPOSITE[direction])
            if walk(game.level, game.boxes, game.player, behind) is not None:
                trial = Game(game.level)
                trial.player, trial.boxes = behind, set(game.boxes)
                if trial.move(direction):
                    actions.add(direction * 64 + bit_of(box))
    return actions


def actions_of(planes: Tensor) -> set[int]:
    """The push actions set in the (4,) words of one board."""
    return {action for action in range(PUSH_ACTIONS) if int(planes[action // 64]) >> action % 64 & 1}


@given(st.lists(levels(), min_size=1, max_size=4), directions(longest=130), st.integers(5, STEP_LIMIT))
def test_moves_agree_with_the_plain_rules(drawn: list[Level], moves: list[int], limit: int) -> None:
    check_moves(drawn, [[d ^ (board & 3) for board in range(len(drawn))] for d in moves], limit)


def check_moves(drawn: Sequence[Level], moves: Sequence[Sequence[int]], limit: int) -> None:
    """Play moves[t][board] on boards that restart on their own level, and compare after every move."""
    batch = batch_of(drawn, step_limit=limit)
    games = [Game(level) for level in drawn]
    for actions in moves:
        outcome = batch.move(torch.tensor(actions))
        for index, (game, direction) in enumerate(zip(games, actions, strict=True)):
            reward, solved, failed = play_plainly(game, [direction], limit)
            assert_same(outcome.after, index, game)
            assert outcome.moves[index].item() == 1
            assert outcome.reward[index].item() == pytest.approx(reward, abs=1e-5)
            assert (outcome.solved[index].item(), outcome.failed[index].item()) == (solved, failed)
            assert outcome.done[index].item() == (solved or failed)
            if solved or failed:
                games[index] = Game(drawn[index])
            assert_same(batch.boards, index, games[index])
            assert batch.moves[index].item() == games[index].moves


@given(st.lists(levels(), min_size=1, max_size=4), st.randoms(use_true_random=False), st.integers(5, 60))
@settings(max_examples=60)
def test_pushes_agree_with_the_plain_rules(drawn: list[Level], chance: random.Random, limit: int) -> None:
    check_pushes(drawn, chance, limit, steps=8)


def check_pushes(drawn: Sequence[Level], chance: random.Random, limit: int, steps: int) -> None:
    """Play pushes, most of them legal, on boards that restart on their own level, and compare after each."""
    batch = batch_of(drawn, step_limit=limit)
    games = [Game(level) for level in drawn]
    for _ in range(steps):
        legal = [brute_force_pushes(game) for game in games]
        walks = batch.walks()
        planes = batch.legal_pushes(walks)
        assert [actions_of(planes[index]) for index in range(len(games))] == legal
        actions = [
            chance.choice(sorted(pushes)) if pushes and chance.random() < 0.9 else chance.randrange(256)
            for pushes in legal
        ]
        outcome = batch.push(torch.tensor(actions), walks)
        for index, (game, action) in enumerate(zip(games, actions, strict=True)):
            reward, failed, before = -0.1, not legal[index], game.moves
            if action in legal[index]:
                box, direction = (action % 64 // 8 + 1, action % 8 + 1), action // 64
                path = walk(game.level, game.boxes, game.player, neighbour(box, OPPOSITE[direction]))
                assert path is not None
                steps_made = [LETTERS.index(letter) for letter in path] + [direction]
                if game.moves + len(steps_made) <= limit:
                    reward, _, _ = play_plainly(game, steps_made, limit)
                else:  # the push is not made, and its moves end the episode
                    game.moves += len(steps_made)
                    reward = -0.1 * len(steps_made) + 10 * game.solved
            else:
                game.moves += 1
                reward += 10 * game.solved
            solved = game.solved
            failed = (failed or game.moves >= limit) and not solved
            assert_same(outcome.after, index, game)
            assert outcome.moves[index].item() == game.moves - before
            assert outcome.reward[index].item() == pytest.approx(reward, abs=1e-4)
            assert (outcome.solved[index].item(), outcome.failed[index].item()) == (solved, failed)
            if solved or failed:
                games[index] = Game(drawn[index])
            assert_same(batch.boards, index, games[index])
            assert batch.moves[index].item() == games[index].moves


def test_official_levels_agree_with_the_plain_rules(boxoban_folder: Path) -> None:
    chosen = read_levels(boxoban_folder / "unfiltered" / "valid" / "000.txt")[:12]
    chance = random.Random(0)
    check_moves(chosen, [[chance.randrange(4) for _ in chosen] for _ in range(260)], STEP_LIMIT)
    check_pushes(chosen, chance, STEP_LIMIT, steps=25)


@given(levels())
def test_walks_are_the_shortest(level: Level) -> None:
    floor, _, boxes, player = batch_of([level]).boards
    walks = find_walks(floor, boxes, player)
    for bit in range(64):
        cell = (bit // 8 + 1, bit % 8 + 1)
        path = walk(level, level.boxes, level.player, cell)
        reached = int(walks.reach[0]) >> bit & 1
        assert reached == (path is not None)
        if path is not None:
            word = torch.ones(1, dtype=torch.int64) << bit
            assert walks.moves_to(word).item() == len(path)


def test_the_longest_walk_of_an_8x8_board_is_counted() -> None:
    """A snake through all rows: every even row is wall but for one end."""
    floor = {(row, column) for row in (1, 3, 5, 7) for column in range(1, 9)}
    floor |= {(2, 8), (4, 1), (6, 8), (8, 1)}
    level = closed_level(8, 8, floor, {(8, 1)}, {(1, 2)}, (1, 3))
    floors, _, boxes, player = batch_of([level]).boards
    walks = find_walks(floors, boxes, player)
    word = torch.ones(1, dtype=torch.int64) << bit_of((8, 1))
    path = walk(level, level.boxes, (1, 3), (8, 1))
    assert path is not None
    assert walks.moves_to(word).item() == len(path) == 33


@pytest.mark.parametrize("direction", range(4))
def test_shift_moves_each_bit_one_cell_and_loses_it_at_the_edge(direction: int) -> None:
    for bit in range(64):
        row, column = neighbour((bit // 8, bit % 8), direction)
        inside = 0 <= row < 8 and 0 <= column < 8
        word = torch.ones((), dtype=torch.int64) << bit
        expected = torch.ones((), dtype=torch.int64) << (8 * row + column) if inside else 0
        assert shift(word, direction) == expected


def grids(words: Tensor) -> np.ndarray:
    """(N, 8, 8) booleans of (N,) words."""
    return unpack(words).reshape(-1, 8, 8).numpy()


def random_words(count: int) -> Tensor:
    """(count,) int64 with every bit random."""
    generator = torch.Generator().manual_seed(3)
    return torch.randint(-(2**63), 2**63 - 1, (count,), generator=generator)


@pytest.mark.parametrize("symmetry", range(8))
def test_transforms_are_flips_and_transposes(symmetry: int) -> None:
    words = random_words(50)
    expected = grids(words)
    if symmetry & 1:
        expected = expected[:, ::-1]
    if symmetry & 2:
        expected = expected[:, :, ::-1]
    if symmetry & 4:
        expected = expected.transpose(0, 2, 1)
    assert (grids(transform(words, symmetry)) == expected).all()


def test_transforms_are_a_group() -> None:
    words = random_words(4)
    images = {symmetry: tuple(transform(words, symmetry).tolist()) for symmetry in range(8)}
    assert len(set(images.values())) == 8
    for first in range(8):
        twice = [tuple(transform(transform(words, first), second).tolist()) for second in range(8)]
        assert set(twice) == set(images.values())
        assert twice.count(images[0]) == 1  # exactly one inverse


@given(levels(), st.integers(0, 7), directions(longest=40))
@settings(max_examples=50)
def test_an_image_of_a_level_plays_like_the_level(level: Level, symmetry: int, moves: list[int]) -> None:
    plain = batch_of([level], step_limit=1000)
    image = batch_of([level], step_limit=1000)
    image.boards = Boards(*(transform(plane, symmetry) for plane in plain.boards))
    image.table = torch.stack(list(image.boards), dim=1)
    centre = torch.ones(1, dtype=torch.int64) << 27
    turned = [  # the direction that the image of a step has
        next(d for d in range(4) if transform(shift(centre, way), symmetry) == shift(start, d))
        for way in range(4)
        for start in (transform(centre, symmetry),)
    ]
    for direction in moves:
        left = plain.move(torch.tensor([direction]))
        right = image.move(torch.tensor([turned[direction]]))
        assert transform(plain.boards.boxes, symmetry) == image.boards.boxes
        assert transform(plain.boards.player, symmetry) == image.boards.player
        assert (left.reward, left.solved, left.failed) == (right.reward, right.solved, right.failed)


def table_of_corridors(count: int) -> LevelTable:
    """`count` levels that differ in the player's cell only, so that the word of the player names a level."""
    floor = {(1, column) for column in range(1, 9)} | {(2, column) for column in range(1, 9)}
    return table_of(
        [closed_level(2, 8, floor, {(2, 1)}, {(2, 3)}, cell) for cell in sorted(floor - {(2, 3)})[:count]]
    )


def test_boards_start_again_on_the_next_level_in_order() -> None:
    """Boards b, b + B, b + 2B, ... of the table, each ended by the step limit after two bumps."""
    table = table_of_corridors(5)
    batch = SokobanBatch(table, 2, generator=None, step_limit=2)
    seen: list[list[int]] = []
    for _ in range(6):
        seen.append(batch.level_index.tolist())
        assert batch.boards.player.tolist() == [int(table.player[row]) for row in seen[-1]]
        assert batch.moves.tolist() == [0, 0]
        assert not batch.move(torch.tensor([0, 0])).done.any()
        assert batch.move(torch.tensor([0, 0])).failed.all()
    assert seen == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4], [0, 1]]


def test_every_level_has_its_turn_equally_often() -> None:
    table = table_of_corridors(7)
    batch = SokobanBatch(table, 3, generator=torch.Generator().manual_seed(1), step_limit=1)
    counts = dict.fromkeys(table.player.tolist(), 0)
    for _ in range(14):  # 14 restarts of 3 boards are 6 turns for each of 7 levels
        for word in batch.boards.player.tolist():
            counts[word] += 1
        batch.move(torch.zeros(3, dtype=torch.int64))
    assert set(counts.values()) == {6}


def test_more_boards_than_levels_share_them() -> None:
    table = table_of_corridors(2)
    batch = SokobanBatch(table, 5, generator=None)
    assert batch.level_index.tolist() == [0, 1, 0, 1, 0]


def test_symmetries_give_every_image_of_every_level_once() -> None:
    table = table_of_corridors(3)
    batch = SokobanBatch(table, 24, generator=torch.Generator().manual_seed(2), symmetries=True)
    expected = {
        tuple(int(transform(torch.tensor(int(plane[row])), symmetry)) for plane in table.planes)
        for row in range(3)
        for symmetry in range(8)
    }
    assert len(expected) == 24
    assert set(zip(*(plane.tolist() for plane in batch.boards), strict=True)) == expected


def test_the_generator_alone_decides_the_order() -> None:
    table = table_of_corridors(15)
    orders: list[list[int]] = []
    for seed in (0, 0, 1):
        torch.manual_seed(len(orders))
        batch = SokobanBatch(table, 15, generator=torch.Generator().manual_seed(seed))
        orders.append(batch.boards.player.tolist())
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])
    assert orders[0] != table.player.tolist()


def test_a_batch_needs_boards_and_levels() -> None:
    with pytest.raises(ValueError, match="0 boards"):
        SokobanBatch(table_of([ROOM]), 0, generator=None)
    with pytest.raises(ValueError, match="0 levels"):
        SokobanBatch(table_of([]), 3, generator=None)


def push_once(level: Level, action: int, limit: int) -> tuple[SokobanBatch, float, bool, bool, Boards]:
    """A fresh batch of one board, and what one push action does to it."""
    batch = batch_of([level], step_limit=limit)
    outcome = batch.push(torch.tensor([action]), batch.walks())
    reward, solved, failed, _, after = outcome
    return batch, reward.item(), bool(solved), bool(failed), after


def test_a_push_that_ends_on_the_limit_is_made_and_one_past_it_is_not() -> None:
    right = 3 * 64 + bit_of((1, 3))  # a step and a push
    _, reward, solved, failed, after = push_once(CORRIDOR, right, limit=2)
    assert (solved, failed) == (False, True)
    assert reward == pytest.approx(-0.2)
    assert cells_of(int(after.boxes)) == {(1, 4)}
    batch, reward, solved, failed, after = push_once(CORRIDOR, right, limit=1)
    assert (solved, failed) == (False, True)
    assert reward == pytest.approx(-0.2)
    assert cells_of(int(after.boxes)) == {(1, 3)}
    assert batch.moves.item() == 0


def test_a_solve_on_the_last_move_is_no_failure() -> None:
    batch = batch_of([CORRIDOR], step_limit=4)
    for _ in range(3):
        assert not batch.move(torch.tensor([3])).done
    outcome = batch.move(torch.tensor([3]))
    assert (outcome.solved.item(), outcome.failed.item()) == (True, False)
    assert outcome.reward.item() == pytest.approx(-0.1 + 1 + 10)


def test_a_batch_pays_the_rewards_that_it_was_given() -> None:
    corridor, off = CORRIDOR, parse_levels("#######\n#@* $.#\n#######\n")[0]
    batch = batch_of([corridor, off], rewards=Rewards(move=0.5, box_on=2.0, box_off=-3.0, solved=7.0))
    paid = [batch.move(torch.tensor([3, 3])).reward.tolist() for _ in range(4)]
    assert [first for first, _ in paid] == [0.5, 0.5, 0.5, 0.5 + 2 + 7]
    assert paid[0][1] == 0.5 - 3


@pytest.mark.parametrize("action", [0, 3 * 64 + bit_of((1, 1)), bit_of((1, 3)), 2 * 64 + bit_of((1, 3))])
def test_a_push_that_is_not_legal_costs_one_move(action: int) -> None:
    batch, reward, solved, failed, after = push_once(CORRIDOR, action, limit=STEP_LIMIT)
    assert (solved, failed) == (False, False)
    assert reward == pytest.approx(-0.1)
    assert batch.moves.item() == 1
    assert cells_of(int(after.boxes)) == {(1, 3)}
    assert cells_of(int(after.player)) == {(1, 1)}


def test_a_board_without_a_legal_push_ends_with_any_action() -> None:
    batch = batch_of([STUCK])
    assert not batch.push(torch.tensor([3 * 64 + bit_of((1, 2))]), batch.walks()).done
    walks = batch.walks()
    assert not batch.legal_pushes(walks).any()
    assert batch.push(torch.tensor([0]), walks).failed
    assert batch.moves.item() == 0
    assert cells_of(int(batch.boards.boxes)) == {(1, 2)}


@given(levels(largest=4, most_boxes=3))
@settings(max_examples=150)
def test_solutions_solve_on_bitboards_too(level: Level) -> None:
    moves = solve(level)
    if not moves:
        return
    walked = batch_of([level], step_limit=1000)
    outcomes = [walked.move(torch.tensor([LETTERS.index(letter)])) for letter in moves.lower()]
    assert [bool(outcome.solved) for outcome in outcomes] == [False] * (len(moves) - 1) + [True]
    pushed, game = batch_of([level], step_limit=1000), Game(level)
    solved = []
    for letter in moves:
        direction = LETTERS.index(letter.lower())
        if letter.isupper():
            action = direction * 64 + bit_of(neighbour(game.player, direction))
            solved.append(bool(pushed.push(torch.tensor([action]), pushed.walks()).solved))
        game.move(direction)
    assert solved == [False] * (len(solved) - 1) + [True]


def random_table(count: int) -> LevelTable:
    """`count` levels, most of them open, from a fixed seed."""
    chance = random.Random(5)
    cells = [(row, column) for row in range(1, 9) for column in range(1, 9)]
    drawn = []
    for _ in range(count):
        floor = chance.sample(cells, chance.randint(30, 64))
        drawn.append(closed_level(8, 8, set(floor), set(chance.sample(floor, 4)), set(floor[:4]), floor[4]))
    return table_of(drawn)


@pytest.mark.gpu
@pytest.mark.filterwarnings("default")  # torch.compile warns of torch's own deprecations
@pytest.mark.parametrize("kind", ["move", "compiled move", "push"])
def test_cuda_agrees_with_the_cpu_at_every_step(kind: str) -> None:
    """The same actions on both devices; every tensor is equal after every step."""
    table, boards, generator = random_table(700), 512, torch.Generator().manual_seed(7)
    batches = [
        SokobanBatch(
            table,
            boards,
            generator=torch.Generator().manual_seed(0),
            device=device,
            symmetries=True,
        )
        for device in ("cpu", "cuda")
    ]

    def state(batch: SokobanBatch, outcome: Outcome) -> tuple[Tensor, ...]:
        reward, *others, after = outcome
        return reward, *others, *after, *batch.boards, batch.moves, batch.level_index

    def move(batch: SokobanBatch, actions: Tensor) -> tuple[Tensor, ...]:
        return state(batch, batch.move(actions))

    def push(batch: SokobanBatch, actions: Tensor) -> tuple[Tensor, ...]:
        walks = batch.walks()
        legal = batch.legal_pushes(walks)
        outcome = batch.push(actions, walks)
        return (*state(batch, outcome), walks.reach, *walks.distance, legal)

    on_cpu = push if kind == "push" else move
    on_cuda = torch.compile(move) if kind == "compiled move" else on_cpu
    ended = 0
    for _ in range(300):
        if kind == "push":  # most of them legal
            legal = unpack(batches[0].legal_pushes(batches[0].walks())).flatten(1).float()
            actions = torch.multinomial(legal + 1e-3, 1, generator=generator).squeeze(1)
        else:
            actions = torch.randint(4, (boards,), generator=generator)
        expected, found = on_cpu(batches[0], actions), on_cuda(batches[1], actions.cuda())
        torch.testing.assert_close(found[0].cpu(), expected[0], rtol=0, atol=1e-5)  # the reward, a float
        for left, right in zip(expected[1:], found[1:], strict=True):
            assert torch.equal(left, right.cpu())
        ended += int(expected[1].sum() + expected[2].sum())
    assert ended > boards
