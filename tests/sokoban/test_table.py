"""sokoban.table: which bit is which cell, and that bulk reading is exactly the careful reading."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_levels import levels

from sokoban.generator import PRACTICE, practice_levels
from sokoban.levels import BOXOBAN, Level, LevelError, format_levels, parse_levels
from sokoban.table import SIDE, LevelTable, concatenate, parse_table, table_of

SAMPLE = PRACTICE.read_text("utf-8")


def same(one: LevelTable, other: LevelTable) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.planes, other.planes, strict=True))


def test_bits() -> None:
    rows = ["#" * 10, "#@       #", *["#        #"] * 5, "#    $   #", "#       .#", "#" * 10]
    table = table_of(parse_levels("\n".join(rows)))
    assert (int(table.player[0]), int(table.goals[0])) == (1, 1 << 63)
    assert (int(table.boxes[0]), int(table.floor[0])) == (1 << 8 * 6 + 4, 2**64 - 1)


def test_smaller_levels_lie_top_left_and_outside_becomes_wall() -> None:
    table = table_of(parse_levels("  ####\n###  #\n#@ $.#\n######\n"))
    assert int(table.floor[0]) == 0b1111 << 8 | 0b1100
    assert (int(table.player[0]), int(table.boxes[0]), int(table.goals[0])) == (1 << 8, 1 << 10, 1 << 11)
    level = table.level(0)
    assert (level.height, level.width, len(level.walls)) == (SIDE, SIDE, 100 - 6)


def test_too_large() -> None:
    with pytest.raises(LevelError, match=r"level 1 \('wide'\) is 3x11"):
        table_of(parse_levels("#####\n#@$.#\n#####\n\n;wide\n11#|#@$.6-#|11#"))


@given(levels().filter(lambda level: level.player not in level.boxes))
def test_packing_loses_nothing(level: Level) -> None:
    unpacked = table_of([level]).level(0)
    box = {(row, column) for row in range(level.height) for column in range(level.width)}
    assert unpacked.walls & box == level.walls
    assert (unpacked.goals, unpacked.boxes, unpacked.player) == (level.goals, level.boxes, level.player)


def test_bulk_reading_is_careful_reading() -> None:
    table = parse_table(SAMPLE.encode(), "sample.txt", "digest")
    read = parse_levels(SAMPLE, BOXOBAN)
    assert table.sources == (("sample.txt", "digest"),)
    assert same(table, table_of(read))
    assert [replace(table.level(i), title=str(i)) for i in range(0, 1000, 97)] == read[::97]


@pytest.mark.parametrize(
    "text",
    [
        SAMPLE.replace("\n", "\r\n"),
        "\ufeff" + SAMPLE,
        SAMPLE.rstrip("\n"),
        SAMPLE.replace("; 7\n", "; seven\n"),
    ],
)
def test_odd_but_well_formed_files(text: str) -> None:
    assert same(parse_table(text.encode(), "odd.txt"), practice_levels())


@given(st.integers(0, 3000), st.sampled_from(["", "#", "@", "$", ".", " ", "*", "+", "\n", ";", "\xe9", "x"]))
def test_damage_is_never_overlooked(where: int, instead: str) -> None:
    """One changed character changes the level, or is an error; bulk and careful reading agree on which."""
    some = SAMPLE[: SAMPLE.index("; 25\n")]
    damaged = some[:where] + instead + some[where + 1 :]
    try:
        expected = table_of(parse_levels(damaged, BOXOBAN, source="damaged.txt"))
    except LevelError as error:
        with pytest.raises(LevelError) as caught:
            parse_table(damaged.encode(), "damaged.txt")
        assert str(caught.value) == str(error)
    else:
        assert same(parse_table(damaged.encode(), "damaged.txt"), expected)


def test_not_text() -> None:
    with pytest.raises(LevelError, match=r"^bad\.txt:3: not UTF-8"):
        parse_table(b"; 0\n###\n#\xff#\n", "bad.txt")


def test_concatenate_and_take() -> None:
    table = practice_levels()
    front, back = table.take(slice(0, 10)), table.take(np.array([12, 11]))
    both = concatenate([front, back])
    assert len(both) == 12 and both.sources == table.sources * 2
    assert both.level(10) == table.level(12)
    assert format_levels([both.level(11)]) == format_levels([table.level(11)])
