"""sokoban.render: what is drawn where, what a GIF plays, and plain errors."""

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from sokoban import render, tiles
from sokoban.levels import parse_levels
from sokoban.reference import DOWN, LEFT, RIGHT, IllegalMove

TEXT = "; small\n########\n#@ $ . #\n# *    #\n########\n"
[LEVEL] = parse_levels(TEXT)
SOLUTION = "rRR"


def colour(image: Image.Image, row: float, column: float, tile: int) -> tuple[int, ...]:
    """The pixel at a place given in cells."""
    pixel = image.convert("RGB").getpixel((int(column * tile), int(row * tile)))
    assert isinstance(pixel, tuple)
    return pixel


def test_ansi() -> None:
    text = render.ansi(LEVEL)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    rows = [" " * 16, "  ◖◗  []  ◇     ", "    []          ", " " * 16]
    assert plain.splitlines() == rows
    assert all(line.endswith("\x1b[0m") for line in text.splitlines())
    for part, count in ((tiles.CRATE[0], 1), (tiles.CRATE_HOME[0], 1), (tiles.WALL, 8 + 8 + 4)):
        red, green, blue = ImageColor.getrgb(part)
        assert text.count(f"48;2;{red};{green};{blue};") == count
    [irregular] = parse_levels("  ####\n###  #\n#@ $.#\n######\n")
    red, green, blue = ImageColor.getrgb(tiles.NIGHT)
    assert render.ansi(irregular).count(f"48;2;{red};{green};{blue};") == 2  # the two cells outside


@pytest.mark.parametrize("tile", [16, 48])
def test_picture(tile: int) -> None:
    image = render.picture(LEVEL, tile=tile)
    assert (image.mode, image.size) == ("RGB", (8 * tile, 4 * tile))
    assert colour(image, 3.5, 0.5, tile) == ImageColor.getrgb(tiles.WALL)
    assert colour(image, 2.6, 4.5, tile) == ImageColor.getrgb(tiles.FLOOR)
    assert colour(image, 2.6, 5.5, tile) == ImageColor.getrgb(tiles.FLOOR_ODD)
    red, green, _ = colour(image, 1.28, 3.5, tile)
    assert red > green  # a crate is brown, one on a goal is green
    red, green, _ = colour(image, 2.28, 2.5, tile)
    assert green > red
    red, _, blue = colour(image, 1.7, 1.5, tile)
    assert blue > red  # the player
    red, green, blue = colour(image, 1.56, 5.5, tile)
    assert red > green + 40 > blue + 40  # the middle of a goal


def test_what_lies_outside_is_dark() -> None:
    walls = "#" * 10
    image = render.picture(parse_levels("\n".join([walls, "#@$.######", *[walls] * 3]))[0], tile=16)
    assert colour(image, 1.5, 8.5, 16) == colour(image, 4.5, 1.5, 16) == ImageColor.getrgb(tiles.NIGHT)


def test_the_player_looks_where_he_goes() -> None:
    views = [np.asarray(render.picture(LEVEL, facing=facing)) for facing in (DOWN, LEFT, RIGHT)]
    changed = np.argwhere((views[1] != views[2]).any(axis=2))
    assert changed.min() >= render.TILE and changed.max() < 2 * render.TILE  # only in the player's cell
    assert not np.array_equal(views[0], views[1])


def test_png() -> None:
    data = render.png(LEVEL, tile=24)
    image = Image.open(io.BytesIO(data))
    assert (image.format, image.size) == ("PNG", (192, 96))
    assert np.array_equal(np.asarray(image), np.asarray(render.picture(LEVEL, tile=24)))
    assert render.png(LEVEL, tile=24) == data


def test_positions() -> None:
    line = render.positions(LEVEL, SOLUTION)
    assert [position.player for position in line] == [(1, 1), (1, 2), (1, 3), (1, 4)]
    assert [sorted(position.boxes)[0] for position in line] == [(1, 3), (1, 3), (1, 4), (1, 5)]
    assert line[-1].boxes == LEVEL.goals


def test_gif() -> None:
    image = Image.open(io.BytesIO(render.gif(LEVEL, SOLUTION, tile=24)))
    assert (image.format, image.size, image.info["loop"]) == ("GIF", (192, 96), 0)
    assert image.n_frames == 1 + render.FRAMES_PER_MOVE * len(SOLUTION)
    shown, total = [], 0
    for frame in range(image.n_frames):
        image.seek(frame)
        total += image.info["duration"]
        shown.append(np.asarray(image.convert("RGB")).astype(int))
    assert total == 2 * render.HOLD_MS + (image.n_frames - 2) * render.FRAME_MS
    end = render.positions(LEVEL, SOLUTION)[-1]
    for seen, position, facing in ((shown[0], LEVEL, DOWN), (shown[-1], end, RIGHT)):
        exact = np.asarray(render.picture(position, facing=facing, tile=24)).astype(int)
        assert np.abs(seen - exact).mean() < 3  # a palette of 256 colours comes this close
    middle = shown[2 * render.FRAMES_PER_MOVE - 1]  # two thirds into the first push
    assert not np.array_equal(middle, shown[render.FRAMES_PER_MOVE])


def test_gif_refuses_illegal_moves() -> None:
    with pytest.raises(IllegalMove, match="this move pushes a box"):
        render.gif(LEVEL, "rr")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["render", *arguments])
    return render.main()


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    levels = tmp_path / "levels.txt"
    levels.write_text(f"{TEXT}\n; other\n#####\n#@$.#\n#####\n")
    assert run(monkeypatch, str(levels), "--index", "1", "--moves", "R") == 0
    assert capsys.readouterr().out == "; other\n#####\n# @*#\n#####\nsolved: 1 moves, 1 pushes\n"
    for name, kind in (("a.png", "PNG"), ("a.gif", "GIF")):
        out = tmp_path / name
        assert run(monkeypatch, str(levels), "--moves", "rR", "--out", str(out), "--tile", "16") == 0
        assert capsys.readouterr().out == f"not solved: 2 moves, 1 pushes\n{out}\n"
        assert Image.open(io.BytesIO(out.read_bytes())).format == kind
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.gif", "a.png", "levels.txt"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.txt"], "missing.txt: No such file"),
        (["levels.txt", "--index", "1"], "levels.txt has the levels 0 to 0, not 1"),
        (["levels.txt", "--index", "-1"], "not -1"),
        (["levels.txt", "--out", "a.jpg"], "a.jpg: a picture is .png or .gif"),
        (["levels.txt", "--out", "a"], "a: a picture is .png or .gif"),
        (["levels.txt", "--out", "a.gif"], "give --moves"),
        (["levels.txt", "--tile", "4"], "between 8 and 256"),
        (["levels.txt", "--moves", "rr"], "move 2 ('r'): this move pushes a box"),
        (["levels.txt", "--moves", "rx"], "move 2 ('x')"),
        (["levels.txt", "--dialect", "Boxoban"], "levels.txt:"),
        (["levels.txt", "--out", "none/a.png"], "none/a.png: No such file"),
    ],
)
def test_plain_errors(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("levels.txt").write_text(TEXT.removeprefix("; small\n"))
    assert run(monkeypatch, *arguments) == 2
    captured = capsys.readouterr()
    assert said in captured.err and captured.err.count("\n") == 1 and captured.out == ""
