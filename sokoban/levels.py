"""Sokoban levels as text: three dialects, one strict reader, one writer.

A file is read line by line. `;` starts a comment, and the last comment above a board is its title. Blank
lines and comments end a board. The dialect is always named by the caller, because the alphabets contradict
each other. Nothing is skipped: a line that is neither blank nor comment is part of a board, or an error.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path

Cell = tuple[int, int]  # (row, column), 0-based, from the top left

LONGEST_SIDE = 1000  # bounds the memory that a run length such as `99999999#` can ask for
LONGEST_LINE = 100_000  # and this what a line of tabs or of many runs can
TAB_STOP = 8


class LevelError(ValueError):
    """Text that is not the levels it should be. Carries `file`, `line` (1-based, or None) and `reason`."""

    def __init__(self, reason: str, *, file: str = "<level>", line: int | None = None) -> None:
        super().__init__(f"{file}: {reason}" if line is None else f"{file}:{line}: {reason}")
        self.file, self.line, self.reason = file, line, reason


@dataclass(frozen=True, slots=True)
class Level:
    """One level at its start. What is not in `walls` is floor; goals may lie under boxes or the player."""

    height: int
    width: int
    walls: frozenset[Cell]
    goals: frozenset[Cell]
    boxes: frozenset[Cell]
    player: Cell
    title: str = ""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The characters of a level format and how strict it is.

    `floors` lists every character read as floor; the first one is written. Where a blank is not a floor,
    blanks between cells are ignored. `rectangle` asks for rows of one length with a closed ring of wall
    around them; without it a board may be indented and its rows may end early outside the walls, and only
    what the player and the boxes can reach must be closed in. `titled` asks for exactly one `;` line above
    each board. `run_length` reads `4#` as `####` and `|` as the end of a row.
    """

    name: str
    wall: str
    floors: str
    goal: str
    box: str
    box_on_goal: str
    player: str
    player_on_goal: str
    rectangle: bool
    titled: bool
    run_length: bool


XSB = Dialect("XSB", "#", " -_", ".", "$", "*", "@", "+", rectangle=False, titled=False, run_length=True)
BOXOBAN = Dialect("Boxoban", "#", " ", ".", "$", "*", "@", "+", rectangle=True, titled=True, run_length=False)
REASONING_GYM = Dialect(
    "reasoning-gym", "+", "-", "X", "@", "$", "*", "%", rectangle=True, titled=False, run_length=False
)
DIALECTS = {dialect.name: dialect for dialect in (XSB, BOXOBAN, REASONING_GYM)}


def read_levels(path: str | Path, dialect: Dialect = XSB, *, count: int | None = None) -> list[Level]:
    """Read a UTF-8 file of levels. Raises LevelError for bad levels and OSError for an unreadable file."""
    data = Path(path).read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LevelError("not UTF-8 text", file=str(path), line=line) from None
    return parse_levels(text, dialect, source=str(path), count=count)


def parse_levels(
    text: str, dialect: Dialect = XSB, *, source: str = "<text>", count: int | None = None
) -> list[Level]:
    """Read every level in `text`, in order; `source` names it in errors.

    Raises:
        LevelError: the text holds no level, a number of levels other than `count`, or anything that is not a
            level of this dialect.
    """
    blocks = _split(text, dialect, source)
    levels = [_board(block, dialect, source, block is blocks[-1]) for block in blocks]
    last = blocks[-1].line if blocks else None
    if count is not None and len(levels) != count:
        raise LevelError(f"{count} levels expected, {len(levels)} found", file=source, line=last)
    if not levels:
        raise LevelError("no levels", file=source)
    return levels


def format_level(level: Level, dialect: Dialect = XSB) -> str:
    """Write one level so that `parse_levels` reads it back equal. Raises LevelError where it could not."""
    flags = {meaning: character for character, meaning in reversed(_alphabet(dialect).items())}
    rows = (
        "".join(
            flags[(cell in level.walls, cell in level.goals, cell in level.boxes, cell == level.player)]
            for cell in ((row, column) for column in range(level.width))
        ).rstrip(dialect.floors)
        for row in range(level.height)
    )
    title = [f"; {level.title}".rstrip()] if level.title or dialect.titled else []
    try:
        text = "\n".join([*title, *rows]) + "\n"
        written = parse_levels(text, dialect)
    except KeyError:
        raise LevelError("two things that exclude each other share a cell") from None
    except LevelError as error:
        raise LevelError(f"cannot be written as {dialect.name}: {error.reason}") from None
    if written != [level]:
        raise LevelError(f"cannot be written as {dialect.name}: it would read back as another level")
    return text


def format_levels(levels: Iterable[Level], dialect: Dialect = XSB) -> str:
    """Write levels one after the other, a blank line after each, as the official Boxoban files do."""
    return "".join(format_level(level, dialect) + "\n" for level in levels)


@dataclass(slots=True)
class _Block:
    """The rows of one board as text, each with its line number. `line` is where the block begins."""

    line: int
    title: str
    named: bool  # the title comes from a `Title:` line, which outranks a comment
    rows: list[tuple[int, str]] = field(default_factory=list)


_NOTE = re.compile(r"::|(?P<key>[A-Za-z][\w -]*):(?P<value>.*)", re.ASCII)  # no alphabet has a colon
_RUN = re.compile(r"([0-9]*)([^0-9])")


def _lines(text: str) -> list[tuple[int, str]]:
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [(number, line.rstrip(" \t")) for number, line in enumerate(lines, 1)]


def _split(text: str, dialect: Dialect, source: str) -> list[_Block]:
    """Group the lines into boards and give each its title.

    A `Title: name` line names the board above it, or the board below where the one above has such a line or
    there is none. Other `Key: value` lines and lines that start with `::` are comments.
    """
    blocks: list[_Block] = []
    pending: _Block | None = None  # what is known of the next board: a title, or that one has begun
    for number, line in _lines(text):
        note = None if dialect.titled else _NOTE.match(line)
        if not line.startswith(";") and not note and line:
            if pending is None:
                if dialect.titled:
                    raise LevelError("a board without a `;` line above it", file=source, line=number)
                pending = _Block(number, "", named=False)
            if not pending.rows:
                blocks.append(pending)
            pending.rows += [(number, row) for row in _expand(line, dialect, source, number)]
            continue
        if pending is not None and pending.rows:
            pending = None
        if line.startswith(";"):
            if dialect.titled and pending is not None:
                raise LevelError("a title without a board below it", file=source, line=pending.line)
            if pending is None or not pending.named:
                pending = _Block(number, line[1:].strip(), named=False)
        elif note and (note["key"] or "").lower() == "title":
            title = note["value"].strip()
            if blocks and not blocks[-1].named:
                blocks[-1].title, blocks[-1].named = title, True
            else:
                pending = _Block(number, title, named=True)
    if dialect.titled and pending is not None and not pending.rows:
        raise LevelError("the last level is cut off: a title without a board", file=source, line=pending.line)
    return blocks


def _expand(line: str, dialect: Dialect, source: str, number: int) -> Iterator[str]:
    """The rows that one line stands for: tabs and run lengths undone, floor at the end of a row removed."""
    pieces = line.split("|") if dialect.run_length else [line]
    if len(pieces) > 1 and not pieces[-1]:
        pieces.pop()
    if len(line) > LONGEST_LINE:
        raise LevelError(f"a line of more than {LONGEST_LINE:,} characters", file=source, line=number)
    alphabet = _alphabet(dialect)
    for piece in pieces:
        row = piece.expandtabs(TAB_STOP) if " " in dialect.floors else re.sub("[ \t]", "", piece)
        try:
            row = _undo_runs(row) if dialect.run_length else row
        except LevelError as error:
            raise LevelError(error.reason, file=source, line=number) from None
        row = row.rstrip(dialect.floors)
        if len(row) > LONGEST_SIDE:
            raise LevelError(f"a row of more than {LONGEST_SIDE} cells", file=source, line=number)
        if strange := [character for character in row if character not in alphabet]:
            known = f"{dialect.name} has {''.join(alphabet)!r}, and comments start with `;`"
            raise LevelError(f"unknown character {strange[0]!r}: {known}", file=source, line=number)
        yield row


def _undo_runs(row: str) -> str:
    """`3#-2$` to `###-$$`."""
    if row[-1:] in set("0123456789"):
        raise LevelError("a run length without a character")
    cells = ""
    for length, cell in _RUN.findall(row):
        run = int(length.lstrip("0")[:9] or 0) if length else 1
        if not 0 < run <= LONGEST_SIDE or len(cells) > LONGEST_SIDE:
            raise LevelError(f"a run length or row that is not between 1 and {LONGEST_SIDE}")
        cells += run * cell
    return cells


@cache
def _alphabet(dialect: Dialect) -> dict[str, tuple[bool, bool, bool, bool]]:
    """What each character means: (wall, goal, box, player)."""
    alphabet = dict.fromkeys(dialect.floors, (False, False, False, False))
    return alphabet | {
        dialect.wall: (True, False, False, False),
        dialect.goal: (False, True, False, False),
        dialect.box: (False, False, True, False),
        dialect.box_on_goal: (False, True, True, False),
        dialect.player: (False, False, False, True),
        dialect.player_on_goal: (False, True, False, True),
    }


def _board(block: _Block, dialect: Dialect, source: str, is_last: bool) -> Level:
    """Turn the rows of one board into a level, or say which line is wrong and why."""
    try:
        return replace(_read_rows(block.rows, dialect), title=block.title)
    except LevelError as error:
        last, above = block.rows[-1][1], block.rows[-2:][0][1]
        cut_off = is_last and (set(last) != {dialect.wall} or len(last) < len(above))
        reason = f"the last level is cut off: {error.reason}" if cut_off else error.reason
        raise LevelError(reason, file=source, line=error.line) from None


def _read_rows(rows: Sequence[tuple[int, str]], dialect: Dialect) -> Level:
    alphabet = _alphabet(dialect)
    line_of = [line for line, _ in rows]
    if len(rows) > LONGEST_SIDE:
        raise LevelError(f"a board of more than {LONGEST_SIDE} rows", line=line_of[0])
    indents = [len(row) - len(row.lstrip(dialect.floors)) for _, row in rows]
    indent = 0 if dialect.rectangle else min(indents)
    planes: tuple[set[Cell], ...] = (set(), set(), set(), set())
    for index, (line, text) in enumerate(rows):
        for column, character in enumerate(text):
            for plane, present in zip(planes, alphabet[character], strict=True):
                if present:
                    plane.add((index, column - indent))
        if dialect.wall not in text:
            raise LevelError("a row without a wall", line=line)
        if dialect.rectangle and len(text) != len(rows[0][1]):
            raise LevelError(f"a ragged row: {len(text)} cells, not {len(rows[0][1])}", line=line)
    walls, goals, boxes, players = (frozenset(plane) for plane in planes)
    height, width = len(rows), max(len(row) for _, row in rows) - indent
    leak = _leak(height, width, walls, goals | boxes | players, dialect.rectangle)
    if leak is not None:
        raise LevelError(f"an open board: no wall around row {leak[0] + 1}", line=line_of[leak[0]])
    if len(players) != 1:
        line = line_of[sorted(players)[1][0]] if players else line_of[0]
        raise LevelError(f"{len(players)} players" if players else "no player", line=line)
    if len(boxes) != len(goals) or not boxes:
        reason = f"{len(boxes)} boxes and {len(goals)} goals" if boxes or goals else "no boxes"
        raise LevelError(reason, line=line_of[0])
    return Level(height, width, walls, goals, boxes, next(iter(players)))


def _leak(
    height: int, width: int, walls: frozenset[Cell], things: frozenset[Cell], ring: bool
) -> Cell | None:
    """The lowest cell at the edge that should be wall: all of the edge, or what `things` are connected to."""
    edge = {*product((0, height - 1), range(width)), *product(range(height), (0, width - 1))}
    if ring:
        return max(edge - walls, default=None)
    reached, frontier = set(things), list(things)
    while frontier:
        row, column = frontier.pop()
        if not (0 < row < height - 1 and 0 < column < width - 1):
            continue
        for cell in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            if cell not in walls and cell not in reached:
                reached.add(cell)
                frontier.append(cell)
    return max(edge & reached, default=None)
