"""sokoban.levels: what each dialect accepts, what it refuses and where it says the fault is."""

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_levels import levels

from sokoban.levels import (
    BOXOBAN,
    DIALECTS,
    REASONING_GYM,
    XSB,
    Dialect,
    Level,
    LevelError,
    format_level,
    format_levels,
    parse_levels,
    read_levels,
)

SMALL = "#####\n#@$.#\n#####\n"
SMALL_LEVEL = Level(
    3,
    5,
    walls=frozenset({(0, c) for c in range(5)} | {(2, c) for c in range(5)} | {(1, 0), (1, 4)}),
    goals=frozenset({(1, 3)}),
    boxes=frozenset({(1, 2)}),
    player=(1, 1),
)
SMALL_LEVELS = levels(largest=5).filter(lambda level: level.player not in level.boxes)
EVERY_DIALECT = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)


def test_small_level() -> None:
    assert parse_levels(SMALL) == [SMALL_LEVEL]
    assert parse_levels("; \n" + SMALL, BOXOBAN) == [SMALL_LEVEL]
    assert parse_levels("+++++\n+*@X+\n+++++", REASONING_GYM) == [SMALL_LEVEL]


def test_boxes_and_player_on_goals() -> None:
    [xsb] = parse_levels("######\n#+$*.#\n#  $ #\n######")
    [gym] = parse_levels("++++++\n+%@$X+\n+--@-+\n++++++", REASONING_GYM)
    assert xsb == gym
    assert (xsb.player, xsb.goals) == ((1, 1), {(1, 1), (1, 3), (1, 4)})
    assert xsb.boxes == {(1, 2), (1, 3), (2, 3)}


def test_reasoning_gym_writes_blanks_between_cells() -> None:
    text = "+ + + + +  \n+ * @ X +  \n+ + + + +  "
    assert parse_levels(text, REASONING_GYM) == [SMALL_LEVEL]


@pytest.mark.parametrize(
    "text",
    [
        SMALL.replace("\n", "\r\n"),
        SMALL.replace("\n", "\r"),
        "\ufeff" + SMALL,
        SMALL.rstrip("\n"),
        SMALL.replace("\n", "  \t\n") + " \n\t\n\n",
        "\n\n" + SMALL,
        "".join(f"   {row}\n" for row in SMALL.splitlines()),
        "".join(f"\t{row}\n" for row in SMALL.splitlines()),
        "    #####\n    #@$.#\n    #####",
        "5#|#@$.#|5#",
        "5#|#@$.#|\n5#|",
        "-5#_\n-#@$.#\n_#####",
    ],
)
def test_one_level_in_many_shapes(text: str) -> None:
    assert parse_levels(text) == [SMALL_LEVEL]


def test_all_signs_of_floor() -> None:
    expected = parse_levels("########\n#@ $. ##\n########")
    for floor in ("-", "_"):
        assert parse_levels(f"########\n#@{floor}$.{floor}##\n########") == expected
    assert parse_levels("8#\n#@-$._2#\n8#") == expected
    assert parse_levels("#########\n#@$.\t#\n#########") == parse_levels("#########\n#@$.    #\n#########")


def test_irregular_outline() -> None:
    [level] = parse_levels("  ####\n###  #\n#@ $.#\n######\n")
    assert (level.height, level.width) == (4, 6)
    assert (0, 0) not in level.walls and (3, 5) in level.walls
    [short] = parse_levels("########\n#@$.####\n#####\n")  # the last row ends early, outside the walls
    assert (short.height, short.width) == (3, 8)


def test_titles_and_comments() -> None:
    text = "; a collection\n; first\n\n{0}Author: somebody\n:: a remark\n;second\n{0}\n;\n{0}; the end\n"
    assert [level.title for level in parse_levels(text.format(SMALL))] == ["first", "second", ""]
    after = "{0}Title: one\n\n; a comment\n{0}Title: two\n"
    assert [level.title for level in parse_levels(after.format(SMALL))] == ["one", "two"]
    before = "Title: one\nAuthor: x\n{0}\nTitle: two\n{0}"
    assert [level.title for level in parse_levels(before.format(SMALL))] == ["one", "two"]


@pytest.mark.parametrize(
    ("text", "dialect", "line", "reason"),
    [
        ("#####\n# $.#\n#####", XSB, 1, "no player"),
        ("\n#####\n#@$.#\n# @ #\n#####", XSB, 4, "2 players"),
        ("#####\n#@$+#\n#####", XSB, 2, "2 players"),
        ("######\n#@$$.#\n######", XSB, 1, "2 boxes and 1 goals"),
        ("######\n#@$..#\n######", XSB, 1, "1 boxes and 2 goals"),
        ("####\n#@ #\n####", XSB, 1, "no boxes"),
        ("#####\n#@$.\n#####", XSB, 2, "an open board: no wall around row 2"),
        ("#####\n#@$. \n#####", XSB, 2, "an open board"),
        ("# ###\n#@$.#\n#####", XSB, 1, "an open board"),
        ("#####\n\n#@$.#\n#####", XSB, 1, "no player"),
        ("#####\n@$.\n#####", XSB, 2, "a row without a wall"),
        ("#####\n#@$,#\n#####", XSB, 2, "unknown character ','"),
        ("#####\n#@$.#\n#####\n\nprose", XSB, 5, "unknown character 'p'"),
        ("#####\n#@\x00.#\n#####", XSB, 2, "unknown character '\\x00'"),
        ("5\n#@$.#\n#####", XSB, 1, "a run length without a character"),
        ("0#5#\n#@$.#\n#####", XSB, 1, "a run length"),
        ("9999999999999#\n#@$.#\n#####", XSB, 1, "a run length"),
        (("#" * 1001 + "\n") * 3, XSB, 1, "a row of more than 1000 cells"),
        ("#|" * 1001, XSB, 1, "a board of more than 1000 rows"),
        ("#####\n#@$.#\n####", BOXOBAN, 1, "a board without a `;` line"),
        (f"; 0\n{SMALL}; 1\n; 2\n{SMALL}", BOXOBAN, 5, "a title without a board"),
        ("; 0\n#####\n#@$.##\n#####\n; 1\n" + SMALL, BOXOBAN, 3, "a ragged row: 6 cells, not 5"),
        ("; 0\n #####\n #@$.#\n #####\n", BOXOBAN, 4, "an open board"),
        ("; 0\n" + SMALL.replace("@", "-@"), BOXOBAN, 3, "unknown character '-'"),
        ("; 0\n5#|#@$.#|5#", BOXOBAN, 2, "unknown character '5'"),
        (SMALL, REASONING_GYM, 1, "unknown character '#'"),
        ("+++++\n+*@X\n+++++\n", REASONING_GYM, 2, "a ragged row: 4 cells, not 5"),
        ("", XSB, None, "no levels"),
        ("; only a comment\n", XSB, None, "no levels"),
        # Cut off in the middle of the last level: after a title, in a row, between rows.
        (f"; 0\n{SMALL}; 1\n", BOXOBAN, 5, "the last level is cut off"),
        (f"; 0\n{SMALL}; 1\n#####\n#@", BOXOBAN, 7, "the last level is cut off"),
        (f"; 0\n{SMALL}; 1\n#####\n#@$.#\n", BOXOBAN, 7, "the last level is cut off"),
        (f"; 0\n{SMALL}; 1\n#####\n#@$.#\n##", BOXOBAN, 8, "the last level is cut off"),
        (SMALL + "\n#####\n#@$.#", XSB, 6, "the last level is cut off"),
        (SMALL + "\n#####\n#@$.#\n###", XSB, 7, "the last level is cut off"),
    ],
)
def test_faults(text: str, dialect: Dialect, line: int | None, reason: str) -> None:
    with pytest.raises(LevelError) as caught:
        parse_levels(text, dialect, source="some.txt")
    assert (caught.value.file, caught.value.line) == ("some.txt", line)
    assert reason in caught.value.reason
    assert str(caught.value).startswith("some.txt:" if line is None else f"some.txt:{line}: ")


def test_count() -> None:
    text = f"{SMALL}\n{SMALL}"
    assert len(parse_levels(text, count=2)) == 2
    with pytest.raises(LevelError, match="3 levels expected, 2 found"):
        parse_levels(text, count=3)
    with pytest.raises(LevelError, match="1 levels expected, 2 found"):
        parse_levels(text, count=1)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "levels.txt"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    assert read_levels(path) == [SMALL_LEVEL]
    path.write_bytes(SMALL.encode() + b"; caf\xe9\n")
    with pytest.raises(LevelError, match="not UTF-8") as caught:
        read_levels(path)
    assert (caught.value.file, caught.value.line) == (str(path), 4)


def test_what_cannot_be_written() -> None:
    corner = frozenset({(0, 0)})
    for level, dialect in (
        (replace(SMALL_LEVEL, walls=SMALL_LEVEL.walls - corner), BOXOBAN),
        (replace(SMALL_LEVEL, title="two\nlines"), XSB),
        (replace(SMALL_LEVEL, title=" blank "), XSB),
        (replace(SMALL_LEVEL, player=(0, 0)), XSB),
        (replace(SMALL_LEVEL, goals=frozenset()), XSB),
        (replace(SMALL_LEVEL, width=6), XSB),
    ):
        with pytest.raises(LevelError):
            format_level(level, dialect)
    assert parse_levels(format_level(replace(SMALL_LEVEL, walls=SMALL_LEVEL.walls - corner)))


@EVERY_DIALECT
@given(level=SMALL_LEVELS, title=st.text(max_size=12))
def test_what_is_written_reads_back(dialect: Dialect, level: Level, title: str) -> None:
    titled = replace(level, title=" ".join(title.split()))
    assert parse_levels(format_level(titled, dialect), dialect) == [titled]


@settings(max_examples=40)
@given(st.lists(SMALL_LEVELS, min_size=1, max_size=3))
def test_files_of_many_levels_read_back(some: list[Level]) -> None:
    for dialect in DIALECTS.values():
        assert parse_levels(format_levels(some, dialect), dialect, count=len(some)) == some


@given(SMALL_LEVELS)
def test_irregular_boards_read_back(level: Level) -> None:
    floor = {(r, c) for r in range(level.height) for c in range(level.width)} - level.walls
    beside = {(r + dr, c + dc) for r, c in floor for dr in (-1, 0, 1) for dc in (-1, 0, 1)}
    kept = level.walls & beside
    top, left = min(row for row, _ in kept), min(column for _, column in kept)

    def moved(cells: frozenset[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        return frozenset((row - top, column - left) for row, column in cells)

    walls = moved(kept)
    if {row for row, _ in walls} != set(range(max(row for row, _ in walls) + 1)):
        return  # an empty row between two rooms would end the board
    bare = Level(
        max(row for row, _ in walls) + 1,
        max(column for _, column in walls) + 1,
        walls,
        moved(level.goals),
        moved(level.boxes),
        (level.player[0] - top, level.player[1] - left),
    )
    assert parse_levels(format_level(bare)) == [bare]


@EVERY_DIALECT
@given(data=st.binary(max_size=200))
def test_any_bytes_give_levels_or_a_level_error(dialect: Dialect, data: bytes) -> None:
    with contextlib.suppress(LevelError):
        parse_levels(data.decode("latin-1"), dialect)


@EVERY_DIALECT
@given(level=SMALL_LEVELS, junk=st.text("#@$.*+X%-_ |;:\t\r\n109aT", max_size=6), where=st.integers(0, 80))
def test_damaged_levels_give_levels_or_a_level_error(
    dialect: Dialect, level: Level, junk: str, where: int
) -> None:
    text = format_levels([level, level], dialect)
    damaged = text[:where] + junk + text[where + len(junk) // 2 :]
    try:
        read = parse_levels(damaged, dialect)
    except LevelError:
        return
    assert parse_levels(format_levels(read, XSB), XSB) == read


def test_official_file_is_reproduced(boxoban_folder: Path) -> None:
    path = boxoban_folder / "unfiltered/test/000.txt"
    read = read_levels(path, BOXOBAN, count=1000)
    assert [level.title for level in read] == [str(index) for index in range(1000)]
    assert format_levels(read, BOXOBAN) == path.read_text("utf-8")


@pytest.mark.parametrize("line", ["\t" * 200_000 + "#", "1000#|" * 50_000, "#" * 200_000])
def test_a_line_that_would_take_much_memory_is_refused(line: str) -> None:
    with pytest.raises(LevelError, match="more than 100,000 characters"):
        parse_levels(line)
